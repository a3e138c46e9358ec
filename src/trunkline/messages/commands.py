"""
Commands of other systems: a record that starts a run.

The value is JSON; no header is needed. The record's key makes it idempotent: however often it comes, or is sent, one
run is started. A record without a key is known by where it stands.
"""

from __future__ import annotations

import hashlib
import re
from typing import Annotated

import msgspec

from trunkline.jsontypes import Json, is_too_deep
from trunkline.messages.codec import VERSION, VERSION_HEADER, UnreadableMessage
from trunkline.messages.records import BrokerRecord

# It becomes a header of every request to an agent.
_CORRELATION_ID = "^[!-~]{1,128}$"
_WORKFLOW = "^[^\\u0000-\\u001f]{1,255}$"
_LONGEST_KEY = 255


class StartRun(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Starts a run of a saved workflow."""

    workflow: Annotated[
        str, msgspec.Meta(description="Its name or id.", extra_json_schema={"pattern": _WORKFLOW})
    ]
    version: Annotated[
        Annotated[int, msgspec.Meta(ge=1, le=2**31 - 1)] | None,
        msgspec.Meta(description="The latest one if left out."),
    ] = None
    input: Annotated[Json, msgspec.Meta(description="The run's input.")] = {}
    correlation_id: Annotated[
        Annotated[str, msgspec.Meta(extra_json_schema={"pattern": _CORRELATION_ID})] | None,
        msgspec.Meta(description="Under which logs and agents know the run; one is made if left out."),
    ] = None


_commands: msgspec.json.Decoder[StartRun] = msgspec.json.Decoder(StartRun)


def read_command(record: BrokerRecord) -> StartRun:
    """Raises `UnreadableMessage`."""
    version = dict(record.headers).get(VERSION_HEADER, str(VERSION).encode())
    if version != str(VERSION).encode():
        raise UnreadableMessage(
            "version",
            f"It is of version {version.decode(errors='replace')[:20]}; {VERSION} is what is read here."
            " Send it in that version, or replay it when this Trunkline is newer.",
        )
    if record.value is None:
        raise UnreadableMessage("empty", "It has no value: there is nothing to start. Discard it.")
    try:
        command = _commands.decode(record.value)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, ValueError) as exc:
        # ValueError: an integer with more digits than Python converts.
        raise _malformed(f"It is no command: {exc}") from exc
    if is_too_deep(command.input):
        raise _malformed("Its input is nested too deep")
    if not _matches(_WORKFLOW, command.workflow):
        raise _malformed("Its workflow is no name")
    if command.correlation_id is not None and not _matches(_CORRELATION_ID, command.correlation_id):
        raise _malformed("Its correlation_id is not 1 to 128 visible ASCII characters")
    return command


def idempotency_key(record: BrokerRecord) -> str:
    """The record's key; a digest of one that no column could hold; without one, where the record stands."""
    key = record.key
    if not key:
        digest = hashlib.sha256(record.value or b"").hexdigest()
        # With the value: a topic that is made anew counts from 0 again.
        return f"{record.topic}/{record.partition}/{record.offset}/{digest}"
    try:
        text = key.decode()
    except UnicodeDecodeError:
        text = ""
    if 0 < len(text) <= _LONGEST_KEY and text.isprintable():
        return text
    return f"sha256:{hashlib.sha256(key).hexdigest()}"


def _matches(pattern: str, text: str) -> bool:
    # Not as `search` would: its $ lets a line end pass.
    return re.fullmatch(pattern.removeprefix("^").removesuffix("$"), text) is not None


def _malformed(what: str) -> UnreadableMessage:
    return UnreadableMessage("malformed", f"{what}. Send a corrected one, and discard this.")
