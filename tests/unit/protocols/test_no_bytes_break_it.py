"""Whatever bytes an agent answers with, a dialect gives an outcome or says why it cannot."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trunkline.jsontypes import Json, JsonObject, decode, encode
from trunkline.messages import ERROR_CODES, AgentTask
from trunkline.protocols import (
    AgentAnswer,
    Failed,
    Interrupted,
    JsonRpc2Adapter,
    Outcome,
    ProtocolAdapter,
    ProtocolTranslationError,
    SimpleA2AAdapter,
    Succeeded,
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
]

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
# The same examples every time, and no clock: a busy machine is no fault of the dialects.
unhurried = settings(deadline=None, derandomize=True)
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
    outcome = outcome_of(adapter, body, status, headers)
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
@unhurried
@given(body=st.binary(), status=st.integers(100, 599), headers=HEADERS)
def test_any_bytes(adapter: ProtocolAdapter, body: bytes, status: int, headers: dict[str, str]) -> None:
    tell(adapter, body, status, headers)


@pytest.mark.parametrize("adapter", ADAPTERS)
@unhurried
@given(value=VALUES, status=st.sampled_from([200, 400, 500]))
def test_any_json(adapter: ProtocolAdapter, value: Json, status: int) -> None:
    tell(adapter, encode(value), status, {})


@pytest.mark.parametrize("adapter", ADAPTERS)
@unhurried
@given(value=VALUES)
def test_any_result(adapter: ProtocolAdapter, value: Json) -> None:
    outcome = tell(adapter, encode({"jsonrpc": "2.0", "id": "t", "result": value}), 200, {})
    if isinstance(adapter, JsonRpc2Adapter) and (value is not None or adapter.params == "input"):
        assert not (isinstance(outcome, Failed) and outcome.error.code == "agent_answer_malformed")


@pytest.mark.parametrize("adapter", ADAPTERS)
@unhurried
@given(value=VALUES, at=st.integers(0, 400))
def test_any_answer_cut_anywhere(adapter: ProtocolAdapter, value: Json, at: int) -> None:
    tell(adapter, encode({"jsonrpc": "2.0", "id": "t", "result": value})[:at], 200, {})


@unhurried
@given(value=VALUES.filter(lambda value: parts_in(value) is None))
def test_any_input_reaches_the_agent_whole(value: Json) -> None:
    task = AgentTask(task_id="t", input_data=value)
    assert decode(SimpleA2AAdapter().encode(task).body) == {"task_id": "t", "input": value}
    assert what_arrives(decode(JsonRpc2Adapter().encode(task).body), is_text=isinstance(value, str)) == value


@unhurried
@given(parts=st.lists(VALUES, max_size=3), beside=st.dictionaries(WORDS, SCALARS, max_size=2))
def test_parts_become_a_message_or_are_refused(parts: list[Json], beside: dict[str, Json]) -> None:
    data: JsonObject = {**beside, "parts": parts}
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
