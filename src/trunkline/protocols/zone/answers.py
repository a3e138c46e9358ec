"""
What a zone answers, read strictly: by its caller, whatever has carried it.

    {"jsonrpc": "2.0", "id": "<ours>", "result": {"status": "success", "response_text": "…", …}}
    {"jsonrpc": "2.0", "id": "<ours>", "result": {"status": "accepted", "task_id": "…"}}
    {"jsonrpc": "2.0", "id": "<ours>" | null, "error": {"code": -32602, "message": "Invalid params", "data": {
        "fields": [{"path": "channel", "message": "is required"}], "correlation_id": "…"}}}
    {"jsonrpc": "2.0", "id": null, "error": {"code": -32000, "message": "…", "data": {"retry_after_ms": 200}}}

Exactly one of `result` and `error`, and nothing in between: what is in no form of the contract is malformed, for
half an answer could be taken for a whole one. An error without `id` is noted and taken, since a zone that could not
read the request cannot know it; one with another `id` is not ours.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NoReturn

import msgspec
from msgspec import UNSET, Raw, UnsetType
from msgspec.structs import replace

from trunkline.jsontypes import Json, JsonObject, decode, encode
from trunkline.messages import StepError
from trunkline.protocols.answer_json import JsonReader, NotJson, json_kind, parse
from trunkline.protocols.http_failures import (
    failure_without_body,
    fix_for_status,
    http_failure,
    retry_after_ms,
)
from trunkline.protocols.json_rpc.envelope import VERSION
from trunkline.protocols.outcomes import AgentAnswer, ProtocolTranslationError, step_error

PROTOCOL = "jsonrpc-2.0"
_INVALID_PARAMS = -32602

_FORM = (
    "Change the zone to always respond with 'jsonrpc': '2.0', the request's 'id', and either 'result' or 'error'; "
    "a result has the status success, or accepted with a task_id."
)
_INPUT_HINT = "Compare the step's input with the params of the zone's method. The message names each field."
_FIXES = {
    -32700: "The zone could not parse the request. Check for a proxy between Trunkline and the zone.",
    -32600: "The zone rejected the request. Check that it implements this contract.",
    -32601: "The zone does not support the method. Check protocol_config.method.",
    _INVALID_PARAMS: _INPUT_HINT,
    -32603: "Check the zone's log: the zone failed with an internal error.",
    -32001: "The work took longer than its deadline in the zone: raise it there, or make the work shorter.",
}
# Why a zone cannot say what has become of a request, for now: the same one is to be sent again.
_UNAVAILABLE_REASONS = frozenset({"stopping", "store_unavailable"})
# What an answer may say at length; the whole of it is in the step's wire record.
_LONGEST_SHOWN = 100
_MOST_FIELDS_SHOWN = 5
_TOO_MANY = 429
# A day; longer than anybody waits.
_MOST_RETRY_AFTER_MS = 86_400_000


class ZoneSucceeded(msgspec.Struct, frozen=True, kw_only=True):
    """The work has ended well."""

    # The whole result as it came, and its `response_text` where that is a text.
    result: Raw
    text: str | UnsetType
    id: str


class ZoneAccepted(msgspec.Struct, frozen=True, kw_only=True):
    """The zone has taken the work, and is to be asked for it by this id."""

    task_id: str
    id: str


class ZoneFailed(msgspec.Struct, frozen=True, kw_only=True):
    """The zone has answered with an error: it did not take the work, or the work broke, or it cannot tell now."""

    error: StepError
    # None: the zone did not say.
    id: str | None
    notes: tuple[str, ...] = ()


ZoneAnswer = ZoneSucceeded | ZoneAccepted | ZoneFailed


class _ZoneEnvelope(msgspec.Struct):
    jsonrpc: Raw | UnsetType = UNSET
    id: Raw | UnsetType = UNSET
    result: Raw | UnsetType = UNSET
    error: Raw | UnsetType = UNSET


class _ZoneResult(msgspec.Struct):
    status: Raw | UnsetType = UNSET
    task_id: Raw | UnsetType = UNSET
    response_text: Raw | UnsetType = UNSET


_envelopes = JsonReader(_ZoneEnvelope)
_results = msgspec.json.Decoder(_ZoneResult)


def read_http_answer(answer: AgentAnswer, ids: Collection[str], *, request_size: int) -> ZoneAnswer:
    """
    What an answer says, with what its status and headers add; for a request of this size.

    Raises `ProtocolTranslationError`: it is malformed, and nothing of HTTP says why.
    """
    unreadable = failure_without_body(answer)
    if unreadable is not None:
        return ZoneFailed(error=unreadable.error, id=None)
    try:
        read = read_answer(answer.body, ids)
    except (NotJson, ProtocolTranslationError) as exc:
        if answer.status >= 400:
            return ZoneFailed(error=http_failure(answer, request_size).error, id=None)
        raise _malformed(exc) from exc
    return _with_http(read, answer) if isinstance(read, ZoneFailed) else read


def _malformed(exc: NotJson | ProtocolTranslationError) -> ProtocolTranslationError:
    if isinstance(exc, ProtocolTranslationError) and exc.code != "agent_answer_malformed":
        return exc
    return ProtocolTranslationError(f"malformed JSON-RPC response: {exc}", PROTOCOL, "response", fix=_FORM)


def _with_http(refused: ZoneFailed, answer: AgentAnswer) -> ZoneFailed:
    if answer.status < 400:
        return refused
    error = refused.error
    wait = retry_after_ms(answer) if error.retry_after_ms is None else error.retry_after_ms
    fix = fix_for_status(answer.status) or error.fix
    return replace(refused, error=replace(error, http_status=answer.status, retry_after_ms=wait, fix=fix))


def read_answer(body: bytes, ids: Collection[str]) -> ZoneAnswer:
    """What an answer says to the request with one of these ids; raises `NotJson` or `ProtocolTranslationError`."""
    try:
        envelope = _envelopes.read(body)
    except msgspec.ValidationError:
        raise NotJson(f"The answer is {json_kind(parse(body))}, not an object") from None
    _check_version(envelope.jsonrpc)
    if envelope.result is not UNSET and envelope.error is not UNSET:
        _refuse("Response has both 'result' and 'error'")
    if envelope.error is not UNSET:
        return _read_error(envelope.error, envelope.id, ids)
    if envelope.result is UNSET:
        _refuse("Response missing both 'result' and 'error'")
    return _read_result(envelope.result, _own_id(envelope.id, ids))


def _check_version(version: Raw | UnsetType) -> None:
    if version is UNSET:
        _refuse("Response missing 'jsonrpc' field")
    if _value(version) != VERSION:
        _refuse(f"Unsupported JSON-RPC version: {_shown(_value(version))}")


def _own_id(got: Raw | UnsetType, ids: Collection[str]) -> str:
    value = None if got is UNSET else _value(got)
    if value is None:
        _refuse("Response missing 'id' field")
    if not isinstance(value, str) or value not in ids:
        message = f"Response ID mismatch: expected {next(iter(ids))}, got {_shown(value)}"
        raise ProtocolTranslationError(message, PROTOCOL, "response", code="agent_response_id_mismatch")
    return value


def _read_result(result: Raw, id_: str) -> ZoneSucceeded | ZoneAccepted:
    if bytes(memoryview(result)[:1]) != b"{":
        _refuse(f"The result is {json_kind(_value(result))}, not an object with a status")
    fields = _results.decode(result)
    status = _text(fields.status)
    if status == "success":
        return ZoneSucceeded(result=result, text=_text(fields.response_text), id=id_)
    if status != "accepted":
        _refuse_status(fields.status)
    task_id = _text(fields.task_id)
    if task_id is UNSET or not task_id:
        _refuse("The result has the status accepted, but no task_id to poll")
    return ZoneAccepted(task_id=task_id, id=id_)


def _refuse_status(status: Raw | UnsetType) -> NoReturn:
    if status is UNSET:
        _refuse("The result is missing its 'status' field")
    _refuse(f"The result has the status {_shown(_value(status))}, not success or accepted")


def _read_error(raw: Raw, got: Raw | UnsetType, ids: Collection[str]) -> ZoneFailed:
    id_ = None if got is UNSET or _value(got) is None else _own_id(got, ids)
    error = _value(raw)
    if not isinstance(error, dict):
        _refuse(f"'error' is {json_kind(error)}, not an object with a code and a message")
    code, message = error.get("code"), error.get("message")
    if isinstance(code, bool) or not isinstance(code, int):
        _refuse("The error's 'code' is not a whole number")
    if not isinstance(message, str):
        _refuse("The error's 'message' is not a string")
    notes = ("The error has no 'id'; it is taken for this request's",) if got is UNSET else ()
    return ZoneFailed(error=_step_error(code, message, error.get("data")), id=id_, notes=notes)


def _step_error(code: int, message: str, data: Json) -> StepError:
    more = _words(data) if isinstance(data, dict) else ""
    wait = _retry_after_ms(data)
    is_open = isinstance(data, dict) and data.get("reason") in _UNAVAILABLE_REASONS
    return step_error(
        "agent_unavailable" if is_open else "agent_jsonrpc_error",
        f"JSON-RPC Error {code}: {message}" + (f" ({more})" if more else ""),
        fix=_FIXES.get(code, "") if wait is None else fix_for_status(_TOO_MANY),
        jsonrpc_code=code,
        detail=data,
        # A rate limit applies over every transport, including those without HTTP status codes.
        http_status=None if wait is None else _TOO_MANY,
        retry_after_ms=wait,
    )


def is_unknown_task(error: StepError) -> bool:
    """Whether the answer to a question says that the task is not known: of params a question has no others."""
    fields = error.detail.get("fields") if isinstance(error.detail, dict) else None
    return error.jsonrpc_code == _INVALID_PARAMS and any(
        isinstance(field, dict) and field.get("path") == "task_id"
        for field in (fields if isinstance(fields, list) else ())
    )


def _words(data: JsonObject) -> str:
    """What the error's data says to people: which fields are wrong, or in which way the request is."""
    fields, detail = data.get("fields"), data.get("detail")
    if isinstance(fields, list):
        return "; ".join(_field_words(field) for field in fields[:_MOST_FIELDS_SHOWN])
    return _shown(detail) if isinstance(detail, str) else ""


def _field_words(field: Json) -> str:
    if not isinstance(field, dict):
        return _shown(field)
    return " ".join(_shown(word) for word in (field.get("path"), field.get("message")) if word)


def _retry_after_ms(data: Json) -> int | None:
    """How long the zone asks us to wait; None: it was no refusal by rate."""
    wait = data.get("retry_after_ms") if isinstance(data, dict) else None
    if isinstance(wait, bool) or not isinstance(wait, int):
        return None
    return wait if 0 <= wait <= _MOST_RETRY_AFTER_MS else None


def _text(value: Raw | UnsetType) -> str | UnsetType:
    if value is UNSET:
        return UNSET
    read = _value(value)
    return read if isinstance(read, str) else UNSET


def _value(raw: Raw) -> Json:
    # The whole has been read: only a number of a long answer can still be out of range.
    try:
        return decode(raw)
    except msgspec.ValidationError as exc:
        raise NotJson(f"The JSON is not valid: {exc}") from exc


def _shown(value: Json) -> str:
    text = value if isinstance(value, str) else encode(value).decode()
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}…"


def _refuse(message: str) -> NoReturn:
    raise ProtocolTranslationError(message, PROTOCOL, "response", fix=_FORM)
