"""Named secrets: what is kept, what is refused, and that nothing comes out again."""

from __future__ import annotations

from datetime import timedelta

import pytest
from structlog.testing import capture_logs

from trunkline.errors import ConfigurationError, Invalid, NotFound
from trunkline.services.security.secrets import MAX_VALUE_CHARACTERS, Secrets
from trunkline.services.security.vault import KEY_BYTES, Vault
from trunkline.stores.base import Store
from trunkline.testing import FakeClock

pytestmark = pytest.mark.anyio

CANARY = "canary-91fe"
MOMENT = timedelta(microseconds=1)


@pytest.fixture
def secrets(store: Store, clock: FakeClock) -> Secrets:
    return Secrets(store, Vault(bytes(KEY_BYTES)), clock)


async def value_of(secrets: Secrets, name: str) -> str | None:
    opened = await secrets.open(name)
    return None if opened is None else opened.value


async def test_a_secret_is_kept_sealed_and_bound_to_its_name(secrets: Secrets, store: Store) -> None:
    kept = await secrets.set("slack-bot", CANARY)
    assert kept.version == 1
    assert CANARY.encode() not in kept.sealed
    assert await value_of(secrets, "slack-bot") == CANARY
    async with store.transaction() as tx:
        await tx.secrets.put("other", kept.sealed)
    with pytest.raises(ConfigurationError):
        await secrets.open("other")


async def test_a_secret_can_be_changed_listed_and_removed(secrets: Secrets) -> None:
    await secrets.set("b", "first value")
    changed = await secrets.set("b", "second value")
    await secrets.set("a", CANARY)
    assert (changed.version, await value_of(secrets, "b")) == (2, "second value")
    assert [secret.name for secret in await secrets.list(limit=10)] == ["a", "b"]
    await secrets.remove("b")
    assert await value_of(secrets, "b") is None
    with pytest.raises(NotFound, match="'b'"):
        await secrets.remove("b")


async def test_the_value_before_the_last_is_hidden_and_no_older_one(secrets: Secrets) -> None:
    for value in ("value-1", "value-2", "value-3", "value-3"):
        await secrets.set("a", value)
    opened = await secrets.open("a")
    assert opened is not None
    assert opened.hidden == ("value-3", "value-2")
    assert "value" not in repr(opened)


async def test_a_secret_whose_key_is_lost_can_be_set_again(store: Store, clock: FakeClock) -> None:
    await Secrets(store, Vault(b"x" * KEY_BYTES), clock).set("a", "lost with its key")
    secrets = Secrets(store, Vault(bytes(KEY_BYTES)), clock)
    with pytest.raises(ConfigurationError):
        await secrets.open("a")
    await secrets.set("a", CANARY)
    assert await value_of(secrets, "a") == CANARY


@pytest.mark.parametrize("value", ["", "abc", "x" * (MAX_VALUE_CHARACTERS + 1), "half \ud800 of a pair"])
async def test_a_value_that_could_not_be_hidden_or_sent_is_refused_and_not_repeated(
    secrets: Secrets, value: str
) -> None:
    with pytest.raises(Invalid) as caught:
        await secrets.set("a", value)
    assert [finding.path for finding in caught.value.findings] == ["value"]
    assert not value or value not in f"{caught.value}{caught.value.findings}{caught.value.fix}"
    assert await secrets.list(limit=1) == []


@pytest.mark.parametrize(
    "value", ["abcd", "x" * MAX_VALUE_CHARACTERS, "-----BEGIN\nlines\n-----END", 'quote " \x00 漢']
)
async def test_any_other_text_comes_back_as_it_was(secrets: Secrets, value: str) -> None:
    await secrets.set("a", value)
    assert await value_of(secrets, "a") == value


@pytest.mark.parametrize("name", ["", "a b", "-a", "a/b", "a" * 101, "ä", "a\n"])
async def test_a_name_that_a_workflow_could_not_use_is_refused(secrets: Secrets, name: str) -> None:
    with pytest.raises(Invalid, match="is not a valid secret name"):
        await secrets.set(name, CANARY)


async def test_a_change_of_another_process_is_used_within_two_seconds(
    secrets: Secrets, store: Store, clock: FakeClock
) -> None:
    await secrets.set("a", CANARY)
    assert await value_of(secrets, "a") == CANARY
    await Secrets(store, Vault(bytes(KEY_BYTES)), clock).set("a", "of another process")
    clock.advance(timedelta(seconds=2) - MOMENT)
    assert await value_of(secrets, "a") == CANARY
    clock.advance(MOMENT)
    assert await value_of(secrets, "a") == "of another process"


async def test_a_change_of_this_process_is_used_at_once(secrets: Secrets) -> None:
    assert await value_of(secrets, "a") is None
    await secrets.set("a", CANARY)
    assert await value_of(secrets, "a") == CANARY
    await secrets.set("a", "the next one")
    assert await value_of(secrets, "a") == "the next one"


async def test_the_log_says_who_was_changed_and_never_to_what(secrets: Secrets) -> None:
    with capture_logs() as logs:
        await secrets.set("a", CANARY)
        await secrets.remove("a")
    assert [(line["event"], line["secret"]) for line in logs] == [
        ("secret_set", "a"),
        ("secret_removed", "a"),
    ]
    assert CANARY not in repr(logs)
