"""
Commands from other systems: a record that starts a run.

The value is JSON, and no header is needed. The record's key makes the command idempotent: however often it is sent or
delivered, it starts one run. A record without a key is identified by its position.
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
        str, msgspec.Meta(description="Name or id of the workflow.", extra_json_schema={"pattern": _WORKFLOW})
    ]
    version: Annotated[
        Annotated[int, msgspec.Meta(ge=1, le=2**31 - 1)] | None,
        msgspec.Meta(description="Version to run. Defaults to the latest."),
    ] = None
    input: Annotated[Json, msgspec.Meta(description="The run input.")] = {}
    correlation_id: Annotated[
        Annotated[str, msgspec.Meta(extra_json_schema={"pattern": _CORRELATION_ID})] | None,
        msgspec.Meta(description="The id that logs and requests to agents carry. Created if omitted."),
    ] = None


_commands: msgspec.json.Decoder[StartRun] = msgspec.json.Decoder(StartRun)


def read_command(record: BrokerRecord) -> StartRun:
    """Raises `UnreadableMessage`."""
    version = dict(record.headers).get(VERSION_HEADER, str(VERSION).encode())
    if version != str(VERSION).encode():
        raise UnreadableMessage(
            "version",
            f"The command has version {version.decode(errors='replace')[:20]}, but this Trunkline reads version "
            f"{VERSION}. Send it in that version, or replay it after an upgrade.",
        )
    if record.value is None:
        raise UnreadableMessage("empty", "The record has no value, so there is nothing to start. Delete it.")
    try:
        command = _commands.decode(record.value)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, ValueError) as exc:
        # ValueError: an integer with more digits than Python converts.
        raise _malformed(f"The value is not a valid command: {exc}") from exc
    if is_too_deep(command.input):
        raise _malformed("The input is nested too deeply")
    if not _matches(_WORKFLOW, command.workflow):
        raise _malformed("The workflow is not a valid name")
    if command.correlation_id is not None and not _matches(_CORRELATION_ID, command.correlation_id):
        raise _malformed("The correlation_id must have 1 to 128 visible ASCII characters")
    return command


def idempotency_key(record: BrokerRecord) -> str:
    """The record's key, a digest of a key that does not fit a column, or the position of a record without a key."""
    key = record.key
    if not key:
        digest = hashlib.sha256(record.value or b"").hexdigest()
        # Includes the value, because the offsets of a recreated topic start at 0 again.
        return f"{record.topic}/{record.partition}/{record.offset}/{digest}"
    try:
        text = key.decode()
    except UnicodeDecodeError:
        text = ""
    if 0 < len(text) <= _LONGEST_KEY and text.isprintable():
        return text
    return f"sha256:{hashlib.sha256(key).hexdigest()}"


def _matches(pattern: str, text: str) -> bool:
    # Not `search`, whose $ would accept a trailing line break.
    return re.fullmatch(pattern.removeprefix("^").removesuffix("$"), text) is not None


def _malformed(what: str) -> UnreadableMessage:
    return UnreadableMessage("malformed", f"{what}. Send a corrected command, and delete this one.")
