"""Whatever bytes an agent answers with, a dialect gives an outcome or says why it cannot."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trunkline.jsontypes import Json, JsonObject, decode, encode
from trunkline.messages import ERROR_CODES, AgentTask
from trunkline.protocols import (
    A2AV01Adapter,
    A2AV03Adapter,
    AgentAnswer,
    Failed,
    Interrupted,
    JsonRpc2Adapter,
    JsonRpcCallAdapter,
    Outcome,
    ProtocolAdapter,
    ProtocolTranslationError,
    SimpleA2AAdapter,
    Succeeded,
    ZoneAdapter,
    failure_of,
)
from trunkline.protocols.parts import parts_in

TASK = AgentTask(task_id="t", input_data={"query": "q"})
ADAPTERS: list[ProtocolAdapter] = [
    SimpleA2AAdapter(),
    SimpleA2AAdapter(output_mode="data"),
    JsonRpc2Adapter(),
    JsonRpc2Adapter(output_mode="data"),
    JsonRpc2Adapter(params="input"),
    A2AV03Adapter(),
    A2AV01Adapter(),
    JsonRpcCallAdapter(),
    JsonRpcCallAdapter(output_mode="data"),
    ZoneAdapter(),
    ZoneAdapter(output_mode="data"),
]
STREAMING: list[ProtocolAdapter] = [A2AV03Adapter(), A2AV03Adapter(output_mode="data")]

# Words that the dialects look for, so that chance finds their branches.
WORDS = st.sampled_from(
    [
        "jsonrpc",
        "id",
        "result",
        "error",
        "status",
        "state",
        "message",
        "parts",
        "artifacts",
        "history",
        "kind",
        "type",
        "text",
        "data",
        "metadata",
        "role",
        "task",
        "statusUpdate",
        "artifactUpdate",
        "artifact",
        "append",
        "artifactId",
        "contextId",
        "taskId",
        "code",
        "task_id",
        "output",
        "completed",
        "working",
        "failed",
        "input-required",
        "success",
        "agent",
        "2.0",
        "t",
        "adk_thought",
        "adk_type",
        "function_call",
        "usage",
        "adk_usage_metadata",
        "final",
        "lastChunk",
        "status-update",
        "artifact-update",
        "accepted",
        "sessionId",
    ]
)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | WORDS
    | st.text(max_size=8)
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(WORDS | st.text(max_size=3), inner, max_size=6)
    ),
    max_leaves=24,
)
# Events that are nearly right.
STREAM_EVENTS = st.fixed_dictionaries(
    {"kind": st.sampled_from(["status-update", "artifact-update", "task", "message"]), "taskId": SCALARS},
    optional={
        "id": SCALARS,
        "status": st.fixed_dictionaries({"state": WORDS}, optional={"message": VALUES}) | VALUES,
        "artifact": st.fixed_dictionaries({"parts": VALUES}, optional={"artifactId": WORDS}) | VALUES,
        "append": st.booleans(),
        "lastChunk": st.booleans(),
        "final": st.booleans(),
        "parts": VALUES,
        "metadata": VALUES,
        "artifacts": VALUES,
    },
)
# The same examples every time, and no clock: a busy machine is no fault of the dialects.
without_deadline = settings(deadline=None, derandomize=True)
HEADERS = st.dictionaries(
    st.sampled_from(["retry-after", "date", "location", "content-encoding", "content-type"]),
    st.text(max_size=40),
)


def outcome_of(adapter: ProtocolAdapter, body: bytes, status: int, headers: Mapping[str, str]) -> Outcome:
    try:
        return adapter.decode(AgentAnswer(status=status, headers=headers, body=body), TASK)
    except ProtocolTranslationError as exc:
        return failure_of(exc)


def tell(adapter: ProtocolAdapter, body: bytes, status: int, headers: Mapping[str, str]) -> Outcome:
    return checked(outcome_of(adapter, body, status, headers))


def checked(outcome: Outcome) -> Outcome:
    """The outcome, which is one that a run can end with or go on from."""
    if isinstance(outcome, Succeeded):
        decode(outcome.output)
    elif isinstance(outcome, Failed):
        assert outcome.error.code in ERROR_CODES
        assert outcome.error.message
        assert outcome.error.fix
        encode(outcome.error)
    elif isinstance(outcome, Interrupted):
        assert outcome.question.text
    return outcome


@pytest.mark.parametrize("adapter", ADAPTERS)
@without_deadline
@given(body=st.binary(), status=st.integers(100, 599), headers=HEADERS)
def test_any_bytes(adapter: ProtocolAdapter, body: bytes, status: int, headers: dict[str, str]) -> None:
    tell(adapter, body, status, headers)


@pytest.mark.parametrize("adapter", ADAPTERS)
@without_deadline
@given(value=VALUES, status=st.sampled_from([200, 400, 500]))
def test_any_json(adapter: ProtocolAdapter, value: Json, status: int) -> None:
    tell(adapter, encode(value), status, {})


@pytest.mark.parametrize("adapter", ADAPTERS)
@without_deadline
@given(value=VALUES)
def test_any_result(adapter: ProtocolAdapter, value: Json) -> None:
    outcome = tell(adapter, encode({"jsonrpc": "2.0", "id": "t", "result": value}), 200, {})
    if isinstance(adapter, JsonRpc2Adapter) and (value is not None or adapter.params == "input"):
        assert not (isinstance(outcome, Failed) and outcome.error.code == "agent_answer_malformed")


@pytest.mark.parametrize("adapter", ADAPTERS)
@without_deadline
@given(value=VALUES, at=st.integers(0, 400))
def test_any_answer_cut_anywhere(adapter: ProtocolAdapter, value: Json, at: int) -> None:
    tell(adapter, encode({"jsonrpc": "2.0", "id": "t", "result": value})[:at], 200, {})


def streamed_outcome(adapter: ProtocolAdapter, events: list[bytes]) -> Outcome:
    reading = adapter.read_stream(TASK)
    is_over = False
    try:
        for event in events:
            news = reading.take(event)
            encode(news)
            assert news.is_over or not is_over
            is_over = news.is_over
        return reading.outcome()
    except ProtocolTranslationError as exc:
        return failure_of(exc)


@pytest.mark.parametrize("adapter", STREAMING)
@without_deadline
@given(events=st.lists(st.binary(), max_size=3))
def test_any_bytes_in_a_stream(adapter: ProtocolAdapter, events: list[bytes]) -> None:
    checked(streamed_outcome(adapter, events))


@pytest.mark.parametrize("adapter", STREAMING)
@without_deadline
@given(values=st.lists(VALUES | STREAM_EVENTS, max_size=6))
def test_any_results_in_a_stream(adapter: ProtocolAdapter, values: list[Json]) -> None:
    outcome = checked(
        streamed_outcome(
            adapter, [encode({"jsonrpc": "2.0", "id": "t", "result": value}) for value in values]
        )
    )
    if not values:
        assert isinstance(outcome, Failed)


@pytest.mark.parametrize("adapter", STREAMING)
@without_deadline
@given(texts=st.lists(st.text(max_size=5), min_size=1, max_size=8))
def test_a_text_in_pieces_is_the_text_at_once(adapter: ProtocolAdapter, texts: list[str]) -> None:
    pieces = [artifact_update(text, append=number > 0) for number, text in enumerate(texts)]
    done: JsonObject = {
        "kind": "status-update",
        "taskId": "r",
        "status": {"state": "completed"},
        "final": True,
    }
    envelopes = [encode({"jsonrpc": "2.0", "id": "t", "result": event}) for event in [*pieces, done]]
    artifact: Json = {"artifactId": "a", "parts": [{"kind": "text", "text": "".join(texts)}]}
    at_once: JsonObject = {
        "kind": "task",
        "id": "r",
        "status": {"state": "completed"},
        "artifacts": [artifact],
    }
    answer = encode({"jsonrpc": "2.0", "id": "t", "result": at_once})
    assert streamed_outcome(adapter, envelopes) == outcome_of(adapter, answer, 200, {})


def artifact_update(text: str, *, append: bool) -> JsonObject:
    artifact: JsonObject = {"artifactId": "a", "parts": [{"kind": "text", "text": text}]}
    return {"kind": "artifact-update", "taskId": "r", "artifact": artifact, "append": append}


@without_deadline
@given(value=VALUES.filter(lambda value: parts_in(value) is None))
def test_any_input_reaches_the_agent_whole(value: Json) -> None:
    task = AgentTask(task_id="t", input_data=value)
    assert decode(SimpleA2AAdapter().encode(task).body) == {"task_id": "t", "input": value}
    assert what_arrives(decode(JsonRpc2Adapter().encode(task).body), is_text=isinstance(value, str)) == value


@without_deadline
@given(parts=st.lists(VALUES, max_size=3), fields=st.dictionaries(WORDS, SCALARS, max_size=2))
def test_parts_become_a_message_or_are_refused(parts: list[Json], fields: dict[str, Json]) -> None:
    data: JsonObject = {**fields, "parts": parts}
    request, refusal = None, None
    try:
        request = decode(JsonRpc2Adapter().encode(AgentTask(task_id="t", input_data=data)).body)
    except ProtocolTranslationError as exc:
        refusal = exc.code
    assert (request is None) == (refusal == "request_not_encodable")
    if request is None:
        return
    written = message_in(request)["parts"]
    assert isinstance(written, list)
    assert len(written) == len(parts)


def what_arrives(request: Json, *, is_text: bool) -> Json:
    """What an agent reads from a request: the metadata, else the text, as JSON unless it was sent as text."""
    message = message_in(request)
    if "metadata" in message:
        return message["metadata"]
    parts = message["parts"]
    assert isinstance(parts, list)
    (part,) = parts
    assert isinstance(part, dict)
    text = part["text"]
    assert isinstance(text, str)
    return text if is_text else decode(text)


def message_in(request: Json) -> JsonObject:
    assert isinstance(request, dict)
    params = request["params"]
    assert isinstance(params, dict)
    message = params["message"]
    assert isinstance(message, dict)
    return message
