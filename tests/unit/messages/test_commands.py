"""Commands: what starts a run, and what is said about anything else."""

from __future__ import annotations

import pytest

from trunkline.messages import BrokerRecord
from trunkline.messages.codec import UnreadableMessage
from trunkline.messages.commands import StartRun, idempotency_key, read_command


def record(
    value: bytes | None, *, key: bytes | None = b"order-1", headers: tuple[tuple[str, bytes], ...] = ()
) -> BrokerRecord:
    return BrokerRecord(
        topic="trunkline.commands", partition=2, offset=7, key=key, value=value, headers=headers
    )


@pytest.mark.parametrize(
    ("value", "command"),
    [
        (b'{"workflow": "w"}', StartRun(workflow="w")),
        (b'{"workflow": "w", "version": null, "input": null}', StartRun(workflow="w", input=None)),
        (
            b'{"workflow": "w", "version": 2, "input": {"a": [1]}, "correlation_id": "c-1"}',
            StartRun(workflow="w", version=2, input={"a": [1]}, correlation_id="c-1"),
        ),
    ],
)
def test_a_command_names_a_workflow_and_may_say_more(value: bytes, command: StartRun) -> None:
    assert read_command(record(value)) == command
    assert read_command(record(value, headers=(("trunkline-version", b"1"),))) == command


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"{",
        b"[]",
        b'"w"',
        b"{}",
        b'{"workflow": ""}',
        b'{"workflow": 1}',
        b'{"workflow": "a\\u0000"}',
        b'{"workflow": "w", "version": 0}',
        b'{"workflow": "w", "version": 99999999999}',
        b'{"workflow": "w", "inptu": {}}',
        b'{"workflow": "w", "correlation_id": ""}',
        b'{"workflow": "w", "correlation_id": "a b"}',
        b'{"workflow": "w", "correlation_id": "a\\n"}',
        b'{"workflow": "w", "input": "\xff"}',
        b'{"workflow": "w", "input": ' + b"[" * 300 + b"]" * 300 + b"}",
        b'{"workflow": "w", "input": ' + b"[" * 100_000,
        b'{"workflow": "w", "input": ' + b"9" * 10_000 + b"}",
    ],
)
def test_an_invalid_command_is_unreadable(value: bytes) -> None:
    with pytest.raises(UnreadableMessage) as caught:
        read_command(record(value))
    assert caught.value.category == "malformed"
    assert "delete" in caught.value.reason


def test_nothing_and_another_version_are_no_commands_either() -> None:
    with pytest.raises(UnreadableMessage, match="no value"):
        read_command(record(None))
    with pytest.raises(UnreadableMessage, match="version 2"):
        read_command(record(b'{"workflow": "w"}', headers=(("trunkline-version", b"2"),)))


def test_the_key_of_a_record_is_its_idempotency_key() -> None:
    assert idempotency_key(record(b"{}")) == "order-1"
    assert idempotency_key(record(b"{}", key="auftrag-ü".encode())) == "auftrag-ü"


@pytest.mark.parametrize("key", [b"\xff\x00", b"a\x00b", b"x" * 256])
def test_a_key_that_is_no_text_still_tells_one_record_from_another(key: bytes) -> None:
    known = idempotency_key(record(b"{}", key=key))
    assert known.startswith("sha256:")
    assert known == idempotency_key(record(b"[]", key=key))
    assert known != idempotency_key(record(b"{}", key=key + b"x"))


def test_a_record_without_a_key_is_known_by_where_it_stands() -> None:
    known = idempotency_key(record(b"{}", key=None))
    assert known.startswith("trunkline.commands/2/7/")
    assert known == idempotency_key(record(b"{}", key=b""))
    assert known != idempotency_key(record(b"[]", key=None))
