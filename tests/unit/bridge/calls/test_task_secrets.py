"""Secrets of one call: where they are put, and what is refused before anything is sent."""

from __future__ import annotations

import json
import re
from base64 import b64encode, urlsafe_b64encode
from collections.abc import AsyncGenerator
from html import escape
from pathlib import Path
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trunkline.bridge.calls.task_secrets import TaskSecrets, open_secrets
from trunkline.jsontypes import Json, encode
from trunkline.messages import AgentTask, StepError
from trunkline.services.security.secrets import Secrets
from trunkline.services.security.vault import KEY_BYTES, Vault
from trunkline.stores.base import Store
from trunkline.stores.sqlite import open_sqlite
from trunkline.telemetry.redaction import Redaction
from trunkline.testing import FakeClock

pytestmark = pytest.mark.anyio

CANARY = "canary-5d1c"
PLACE: Json = {"$secret": "bot"}


@pytest.fixture
async def store(tmp_path: Path) -> AsyncGenerator[Store]:
    async with open_sqlite(tmp_path / "trunkline.db") as opened:
        yield opened


@pytest.fixture
async def secrets(store: Store) -> Secrets:
    made = Secrets(store, Vault(bytes(KEY_BYTES)), FakeClock())
    await made.set("bot", CANARY)
    return made


def task(input_data: Json, **places: str) -> AgentTask:
    return AgentTask(task_id="t", input_data=input_data, secrets=places)


async def opened(task: AgentTask, secrets: Secrets) -> TaskSecrets:
    found = await open_secrets(task, secrets)
    assert isinstance(found, TaskSecrets)
    return found


@pytest.mark.parametrize(
    ("input_data", "pointer", "filled"),
    [
        ({"t": PLACE, "x": 1}, "/t", {"t": CANARY, "x": 1}),
        (PLACE, "", CANARY),
        ({"a": [0, {"b": PLACE}]}, "/a/1/b", {"a": [0, {"b": CANARY}]}),
        ({"a/b": PLACE}, "/a~1b", {"a/b": CANARY}),
        ({"c~d": PLACE}, "/c~0d", {"c~d": CANARY}),
        ({"~1": PLACE, "/": 1}, "/~01", {"~1": CANARY, "/": 1}),
        ({"": PLACE}, "/", {"": CANARY}),
        ({"0": PLACE}, "/0", {"0": CANARY}),
    ],
)
async def test_a_secret_is_put_into_a_copy_and_the_task_stays_as_it_was(
    secrets: Secrets, input_data: Json, pointer: str, filled: Json
) -> None:
    before = encode(input_data)
    given_task = task(input_data, **{pointer: "bot"})
    found = await opened(given_task, secrets)
    assert found.filled.input_data == filled
    assert encode(given_task.input_data) == before
    assert CANARY not in repr(given_task)


async def test_nothing_but_the_places_of_the_definition_is_filled_in(secrets: Secrets) -> None:
    data: Json = {"t": PLACE, "data": PLACE, "list": [PLACE, "/t"]}
    found = await opened(task(data, **{"/t": "bot"}), secrets)
    assert found.filled.input_data == {"t": CANARY, "data": PLACE, "list": [PLACE, "/t"]}


@pytest.mark.parametrize(
    ("input_data", "pointer"),
    [
        ({"t": {"$secret": "other"}}, "/t"),
        ({"t": {"$secret": "bot", "x": 1}}, "/t"),
        ({"t": "text"}, "/t"),
        ({}, "/t"),
        ([PLACE], "/1"),
        ([PLACE], "/-1"),
        ([PLACE], "/²"),
        ("text", "/t"),
        ({"t": PLACE}, "/t/$secret"),
    ],
)
async def test_a_place_that_holds_anything_else_is_refused(
    secrets: Secrets, input_data: Json, pointer: str
) -> None:
    found = await open_secrets(task(input_data, **{pointer: "bot"}), secrets)
    assert isinstance(found, StepError)
    assert found.code == "request_not_encodable"
    assert CANARY not in found.message


async def test_a_missing_secret_is_named_with_the_way_to_set_it(secrets: Secrets) -> None:
    found = await open_secrets(task({"t": {"$secret": "slack"}}, **{"/t": "slack"}), secrets)
    assert isinstance(found, StepError)
    assert (found.code, found.message) == ("secret_missing", "The secret slack does not exist.")
    assert "trunkline secrets set slack" in found.fix
    assert found.fix_command == "trunkline secrets set slack"


async def test_a_secret_of_another_key_is_unreadable(secrets: Secrets, store: Store) -> None:
    others = Secrets(store, Vault(b"x" * KEY_BYTES), FakeClock())
    found = await open_secrets(task({"t": PLACE}, **{"/t": "bot"}), others)
    assert isinstance(found, StepError)
    assert found.code == "secret_unreadable"
    assert "trunkline secrets set bot" in found.fix


async def test_secrets_of_earlier_messages_are_hidden_and_not_sent(secrets: Secrets) -> None:
    told = AgentTask(task_id="t", input_data={"data": PLACE}, told_secrets=["bot"])
    found = await opened(told, secrets)
    assert found.filled is told
    assert found.hidden == (CANARY,)


async def test_progress_that_cannot_be_reported_any_more_fails_nothing(
    secrets: Secrets, store: Store
) -> None:
    told = AgentTask(task_id="t", told_secrets=["gone", "bot"])
    assert (await opened(told, secrets)).hidden == (CANARY,)
    others = Secrets(store, Vault(b"x" * KEY_BYTES), FakeClock())
    assert (await opened(told, others)).hidden == ()


async def test_a_secret_that_was_changed_is_hidden_in_both_forms(secrets: Secrets) -> None:
    await secrets.set("bot", "another-value")
    found = await opened(task({"t": PLACE}, **{"/t": "bot"}), secrets)
    assert found.filled.input_data == {"t": "another-value"}
    assert found.hidden == ("another-value", CANARY)


def test_a_redaction_combined_with_another_hides_both_and_leaves_the_first_unchanged() -> None:
    first = Redaction.of("of-the-agent")
    first.learn(("learned-token",))
    second = first.with_secrets((CANARY,))
    text = f"of-the-agent learned-token {CANARY}"
    assert second.text(text) == "[redacted] [redacted] [redacted]"
    assert first.text(text) == f"[redacted] [redacted] {CANARY}"


# Letters that the encoders treat differently are likely; PostgreSQL, JSON and HTML all have their own.
_TEXTS = st.text(st.sampled_from("abcXYZ019 /+=\\\"'<>&%\n\t\x00\x7fäß漢😀"), min_size=8, max_size=40)


@given(secret=_TEXTS, around=st.text("abc:", max_size=5))
def test_no_usual_encoding_shows_a_secret(secret: str, around: str) -> None:
    redaction = Redaction().with_secrets((secret,))
    once = encode(secret).decode()[1:-1]
    forms = [
        secret,
        once,
        encode(once).decode()[1:-1],
        json.dumps(secret)[1:-1],
        quote(secret, safe=""),
        quote(secret),
        quote(secret, safe="!'()*"),
        quote_plus(secret),
        re.sub("%..", lambda found: found[0].lower(), quote(secret)),
        encode(repr(secret)[1:-1]).decode()[1:-1],
        escape(secret),
    ]
    for form in forms:
        assert redaction.text(f"{around}{form}{around}") == f"{around}[redacted]{around}"
    assert "[redacted]" in redaction.text(b64encode(f"{around}{once}".encode()).decode())
    data = f"{around}{secret}{around}".encode()
    plain = b64encode(secret.encode()).decode()
    for encoded in (b64encode(data).decode(), urlsafe_b64encode(data).decode()):
        hidden = redaction.text(encoded)
        assert "[redacted]" in hidden
        assert plain.rstrip("=") not in hidden


def test_a_secret_that_an_agent_repeats_in_a_header_is_hidden_whatever_its_letters() -> None:
    read = 'said "Schlüssel"'.encode().decode("latin-1")
    assert Redaction().with_secrets(("Schlüssel",)).received_headers({"X-Echo": read}) == {
        "X-Echo": 'said "[redacted]"'
    }


def test_a_secret_of_several_lines_is_hidden_on_one() -> None:
    assert Redaction().with_secrets(("one-key\n of lines\n",)).text("no one-key of lines") == "no [redacted]"
    # What is left of such a secret may be in every text.
    assert Redaction().with_secrets((" \n \n a",)).text("a b") == "a b"


@pytest.mark.parametrize("depth", range(1, 5))
@pytest.mark.parametrize(
    "secret", ['with"quote', "with\nlines\n", "mit ä\\"], ids=["quote", "lines", "letters"]
)
def test_a_secret_in_json_in_json_is_hidden_in_a_body(secret: str, depth: int) -> None:
    body = secret
    for _ in range(depth):
        body = encode({"said": body}).decode()
    hidden = Redaction().with_secrets((secret,)).body(body.encode()).decode()
    for _ in range(depth):
        hidden = json.loads(hidden)["said"]
    assert hidden == "[redacted]"


@given(secret=st.text("ab", min_size=4, max_size=12), text=st.text("ab", max_size=20))
def test_the_beginning_of_a_secret_at_the_end_of_a_text_is_seen(secret: str, text: str) -> None:
    expected = max(n for n in range(len(secret)) if text.endswith(secret[:n]))
    assert Redaction.of(secret).begun_in(text) == expected


def test_an_output_that_writes_a_secret_as_escapes_is_redacted_and_another_stays_as_it_is() -> None:
    redaction = Redaction().with_secrets((CANARY,))
    escaped = "".join(f"\\u{ord(letter):04x}" for letter in CANARY)
    assert redaction.body(f'{{"a":"{escaped}"}}'.encode()) == b'{"a":"[redacted]"}'
    assert redaction.body(b'{"a": "\\u00e4", "n": 1.50}') == b'{"a": "\\u00e4", "n": 1.50}'
