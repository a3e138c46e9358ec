"""
The bytes on the wire, one JSON file per case.

    requests/<protocol>/<case>.json   task -> request, compared as bytes
    answers/<protocol>/<case>.json    answer -> outcome, or the error that the answer raises

A file says only what differs from the defaults of the outcome's fields.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import msgspec
import pytest

from trunkline.jsontypes import Json, JsonObject, decode, encode
from trunkline.messages import AgentTask
from trunkline.protocols import (
    AgentAnswer,
    AgentRequest,
    Outcome,
    ProtocolAdapter,
    ProtocolAdapterFactory,
    ProtocolTranslationError,
    SendOptions,
    Succeeded,
    validate_protocol_config,
)

HERE = Path(__file__).parent


class RequestCase(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    about: str
    protocol: str
    protocol_config: JsonObject | None = None
    task: AgentTask
    operation: Literal[
        "encode", "encode_stream", "encode_poll", "encode_cancel", "encode_resubscribe", "encode_find"
    ] = "encode"
    options: SendOptions = SendOptions()
    # None: a GET.
    request: JsonObject | None
    path: str = ""
    headers: dict[str, str] = {}


class WireAnswer(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    status: int
    headers: dict[str, str] = {}
    body: msgspec.Raw = msgspec.Raw(b"")
    text: str | None = None


class AnswerCase(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    about: str
    protocol: str
    protocol_config: JsonObject | None = None
    answer: WireAnswer
    outcome: JsonObject


def cases(folder: str) -> list[str]:
    return sorted(
        path.relative_to(HERE).with_suffix("").as_posix() for path in (HERE / folder).rglob("*.json")
    )


def text_of(name: str) -> bytes:
    return (HERE / f"{name}.json").read_bytes()


def adapter_for(protocol: str, config: JsonObject | None) -> ProtocolAdapter:
    assert validate_protocol_config(protocol, config) == []
    return ProtocolAdapterFactory.create_adapter(protocol, config)


def built_request(case: RequestCase) -> AgentRequest | None:
    adapter = adapter_for(case.protocol, case.protocol_config)
    match case.operation:
        case "encode":
            return adapter.encode(case.task, case.options)
        case "encode_stream":
            return adapter.encode_stream(case.task)
        case "encode_find":
            return adapter.encode_find(case.task)
        case "encode_poll":
            ask = adapter.encode_poll
        case "encode_cancel":
            ask = adapter.encode_cancel
        case "encode_resubscribe":
            ask = adapter.encode_resubscribe
    assert case.task.remote_task_id is not None
    return ask(case.task, case.task.remote_task_id)


@pytest.mark.parametrize("name", cases("requests"))
def test_a_task_becomes_the_request_in_the_file(name: str) -> None:
    case = msgspec.json.decode(text_of(name), type=RequestCase)
    request = built_request(case)
    assert request is not None
    assert (request.path, dict(request.headers)) == (case.path, case.headers)
    assert (decode(request.body) if request.body else None) == case.request
    # The file's order of fields is the order on the wire, so the bytes can be compared too.
    assert request.body == (b"" if case.request is None else encode(case.request))


@pytest.mark.parametrize("name", cases("requests"))
def test_the_seeds_method_builds_the_same_request(name: str) -> None:
    case = msgspec.json.decode(text_of(name), type=RequestCase)
    if case.operation == "encode" and case.options == SendOptions():
        assert adapter_for(case.protocol, case.protocol_config).to_agent_request(case.task) == case.request


@pytest.mark.parametrize("name", cases("answers"))
def test_an_answer_means_the_outcome_in_the_file(name: str) -> None:
    case = msgspec.json.decode(text_of(name), type=AnswerCase)
    adapter = adapter_for(case.protocol, case.protocol_config)
    assert what_it_means(adapter, case.answer) == case.outcome


def what_it_means(adapter: ProtocolAdapter, wire: WireAnswer) -> JsonObject:
    body = compact(wire.body) if wire.text is None else wire.text.encode()
    answer = AgentAnswer(status=wire.status, headers=wire.headers, body=body)
    # A query whose request has 200 bytes in JSON-RPC: an answer may name the size.
    task = AgentTask(task_id="task-123", input_data={"query": "q"})
    try:
        return as_json(adapter.decode(answer, task))
    except ProtocolTranslationError as exc:
        raised: JsonObject = {
            "kind": "ProtocolTranslationError",
            "code": exc.code,
            "message": str(exc),
            "fix": exc.fix,
        }
        return raised | {"other_dialect": True} if exc.other_dialect else raised


def compact(body: msgspec.Raw) -> bytes:
    return encode(decode(body))


def as_json(outcome: Outcome) -> JsonObject:
    """The outcome with only those fields that are not at their defaults."""
    values: dict[str, Json] = {"kind": type(outcome).__name__}
    for field in msgspec.structs.fields(outcome):
        value: object = getattr(outcome, field.name)
        if value in (None, (), False, ""):
            continue
        if isinstance(outcome, Succeeded) and field.name == "output":
            values["output"] = decode(outcome.output)
        else:
            values[field.name] = decode(encode(value))
    return values


def result_in(case: AnswerCase) -> tuple[JsonObject, JsonObject] | None:
    """The body and its result, where the answer has a result that could be read in two ways."""
    body = None if case.answer.text is not None else decode(case.answer.body)
    result = body.get("result") if isinstance(body, dict) else None
    return (body, result) if isinstance(body, dict) and isinstance(result, dict) else None


def results() -> list[str]:
    names = [*cases("answers/jsonrpc-2.0"), *cases("answers/a2a-1.0")]
    return [name for name in names if result_in(msgspec.json.decode(text_of(name), type=AnswerCase))]


@pytest.mark.parametrize("name", results())
def test_the_fast_reading_and_the_tolerant_one_agree(name: str) -> None:
    case = msgspec.json.decode(text_of(name), type=AnswerCase)
    found = result_in(case)
    assert found is not None
    body, result = found
    # A field that nobody knows is what sends a result to the tolerant reading.
    body["result"] = result | {"x-unknown": 1}
    wire = WireAnswer(status=case.answer.status, headers=case.answer.headers, body=msgspec.Raw(encode(body)))
    adapter = adapter_for(case.protocol, case.protocol_config)
    assert without_mark(what_it_means(adapter, wire)) == case.outcome


def without_mark(outcome: JsonObject) -> Json:
    """The outcome without the unknown field, which is there where the full result is shown."""
    return decode(encode(outcome).replace(b',"x-unknown":1', b"").replace(b'"x-unknown":1', b""))
