"""Push notification URLs: they name a task, carry a valid token, and cause a poll."""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trunkline.messages import TaskKey
from trunkline.services.agents.push_notifications import (
    MAX_TOKEN_CHARACTERS,
    PushNotifications,
    PushTokenKey,
)
from trunkline.services.security.vault import KEY_BYTES
from trunkline.stores.base import Store
from trunkline.telemetry.metrics import Metrics

VAULT_KEY = bytes(range(KEY_BYTES))
TASK = TaskKey("018f0000-0000-7000-8000-000000000001/step/0.1", 2)
OTHER = TaskKey(TASK.task_id, 3)


@pytest.fixture
def key() -> PushTokenKey:
    return PushTokenKey(VAULT_KEY)


def test_an_address_and_its_token_open_their_task(key: PushTokenKey) -> None:
    assert key.opened(key.address_of(TASK), key.token_of(TASK)) == TASK


def test_every_process_with_the_same_key_knows_the_address(key: PushTokenKey) -> None:
    other_process = PushTokenKey(VAULT_KEY)
    assert other_process.opened(key.address_of(TASK), key.token_of(TASK)) == TASK


def test_a_longest_address_is_shorter_than_what_is_read(key: PushTokenKey) -> None:
    longest = TaskKey(f"018f0000-0000-7000-8000-000000000001/{'s' * 64}/{10**9}.{10**9}", 10**9)
    assert len(key.address_of(longest)) < MAX_TOKEN_CHARACTERS


def test_neither_the_address_nor_the_token_shows_the_key_or_the_other(key: PushTokenKey) -> None:
    address, token = key.address_of(TASK), key.token_of(TASK)
    assert token not in address
    for text in (address, token):
        assert urlsafe_b64encode(VAULT_KEY).decode().rstrip("=") not in text
        assert VAULT_KEY.hex() not in text


FORGERIES: dict[str, Callable[[str], str]] = {
    "cut": lambda address: address[:-1],
    "without its signature": lambda address: address.partition(".")[0],
    "with an empty signature": lambda address: address.partition(".")[0] + ".",
    "longer": lambda address: address + "A",
    "padded": lambda address: address.replace(".", "=."),
    "with what base64 skips": lambda address: "!" + address,
    "with another task's name": lambda address: (
        PushTokenKey(VAULT_KEY).address_of(OTHER).partition(".")[0] + "." + address.partition(".")[2]
    ),
    "of another system": lambda _: PushTokenKey(bytes(KEY_BYTES)).address_of(TASK),
    "not ASCII": lambda address: address + "ü",
    "empty": lambda _: "",
    "a dot": lambda _: ".",
}


@pytest.mark.parametrize("forgery", FORGERIES)
def test_a_forged_address_opens_nothing(key: PushTokenKey, forgery: str) -> None:
    assert key.opened(FORGERIES[forgery](key.address_of(TASK)), key.token_of(TASK)) is None


@pytest.mark.parametrize("token", ["", "x", "ü", "0" * 43])
def test_a_wrong_token_opens_nothing(key: PushTokenKey, token: str) -> None:
    assert key.opened(key.address_of(TASK), token) is None
    assert key.opened(key.address_of(TASK), key.token_of(OTHER)) is None
    assert key.opened(key.address_of(TASK), key.address_of(TASK).partition(".")[2]) is None


@given(st.binary(max_size=200), st.text(max_size=60))
def test_whatever_is_sent_opens_nothing_and_raises_nothing(named: bytes, rest: str) -> None:
    key = PushTokenKey(VAULT_KEY)
    text = urlsafe_b64encode(named).decode()
    assert key.opened(f"{text}.{rest}", rest) is None
    assert key.opened(rest, rest) is None


def test_each_bit_of_a_signature_counts(key: PushTokenKey) -> None:
    named, _, signature = key.address_of(TASK).partition(".")
    raw = bytearray(urlsafe_b64decode(signature + "="))
    for place in range(len(raw) * 8):
        raw[place // 8] ^= 1 << place % 8
        changed = urlsafe_b64encode(bytes(raw)).decode().rstrip("=")
        raw[place // 8] ^= 1 << place % 8
        assert key.opened(f"{named}.{changed}", key.token_of(TASK)) is None


@pytest.mark.anyio
async def test_without_a_public_url_there_is_no_push_address(key: PushTokenKey, store: Store) -> None:
    assert PushNotifications(key, store, Metrics(), public_url=None).target(TASK) is None


@pytest.mark.anyio
async def test_a_target_is_under_the_public_address(key: PushTokenKey, store: Store) -> None:
    target = PushNotifications(key, store, Metrics(), public_url="https://t.example/base").target(TASK)
    assert target is not None
    assert target.url == f"https://t.example/base/hooks/a2a/{key.address_of(TASK)}"
    assert target.token == key.token_of(TASK)


@pytest.mark.anyio
async def test_a_push_for_a_deleted_task_is_accepted_and_wakes_no_bridge(
    key: PushTokenKey, store: Store
) -> None:
    metrics = Metrics()
    hooks = PushNotifications(key, store, metrics, public_url=None)
    woken: list[str] = []
    hooks.on_push(lambda: woken.append("bridge"))
    assert await hooks.receive(key.address_of(TASK), key.token_of(TASK)) == "over"
    assert await hooks.receive("A" * (MAX_TOKEN_CHARACTERS + 1), "") == "refused"
    assert woken == []
    text = metrics.render().decode()
    assert 'agent_pushes_total{result="over"} 1.0' in text
    assert 'agent_pushes_total{result="refused"} 1.0' in text


def test_addresses_that_a_previous_key_signed_are_accepted_during_a_rotation() -> None:
    before, rotated = PushTokenKey(VAULT_KEY), PushTokenKey(bytes(KEY_BYTES), VAULT_KEY)
    assert rotated.opened(before.address_of(TASK), before.token_of(TASK)) == TASK
    assert rotated.opened(rotated.address_of(TASK), rotated.token_of(TASK)) == TASK
    assert rotated.address_of(TASK) != before.address_of(TASK)
    # Both parts have to be of the same key.
    assert rotated.opened(before.address_of(TASK), rotated.token_of(TASK)) is None
