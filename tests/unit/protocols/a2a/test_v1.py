"""A2A 1.0 in both bindings: whatever comes, and what golden files cannot say."""

from __future__ import annotations

from itertools import pairwise

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trunkline.jsontypes import Json, JsonObject, decode, encode
from trunkline.messages import ERROR_CODES, AgentTask
from trunkline.protocols import (
    A2A10Adapter,
    A2A10HttpAdapter,
    AgentAnswer,
    AgentRequest,
    Failed,
    Interrupted,
    Outcome,
    ProtocolAdapter,
    ProtocolTranslationError,
    Succeeded,
    Working,
    failure_of,
)
from trunkline.protocols.a2a.v1.model import V1Result
from trunkline.protocols.a2a.v1.parsed_result import parse_exact_result
from trunkline.protocols.answer_json import WHOLE_CHECK_BYTES
from trunkline.protocols.parts import parts_in

TASK = AgentTask(task_id="t", input_data={"query": "q"})
BINDINGS: list[ProtocolAdapter] = [A2A10Adapter(), A2A10HttpAdapter()]
EVERY: list[ProtocolAdapter] = [
    *BINDINGS,
    A2A10Adapter(output_mode="data"),
    A2A10HttpAdapter(output_mode="data"),
]

both_bindings = pytest.mark.parametrize("adapter", BINDINGS, ids=lambda adapter: adapter.get_protocol_name())
every_adapter = pytest.mark.parametrize("adapter", EVERY)
# The same examples every time, and no clock: a busy machine is no fault of the dialect.
without_deadline = settings(deadline=None, derandomize=True)

STATES = st.sampled_from(
    [
        *("TASK_STATE_SUBMITTED", "TASK_STATE_WORKING", "TASK_STATE_COMPLETED", "TASK_STATE_FAILED"),
        *(
            "TASK_STATE_CANCELED",
            "TASK_STATE_INPUT_REQUIRED",
            "TASK_STATE_AUTH_REQUIRED",
            "completed",
            "done",
        ),
        *(3, 99, None, True),
    ]
)
WORDS = st.sampled_from(
    [
        *("task", "message", "statusUpdate", "artifactUpdate", "status_update", "artifact", "artifacts"),
        *("id", "taskId", "contextId", "artifactId", "status", "state", "history", "role", "ROLE_AGENT"),
        *("parts", "text", "data", "raw", "url", "file", "kind", "append", "lastChunk", "metadata"),
        *("error", "code", "details", "reason", "TASK_NOT_FOUND", "type", "title", "detail", "usage", "t"),
        *("adk_thought", "adk_type", "function_call", "jsonrpc", "2.0", "result"),
    ]
)
SCALARS: st.SearchStrategy[Json] = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | WORDS
    | st.text(max_size=6)
)
VALUES: st.SearchStrategy[Json] = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(WORDS, inner, max_size=5),
    max_leaves=20,
)


def with_fields(
    *may: tuple[str, st.SearchStrategy[Json]], **must: st.SearchStrategy[Json]
) -> st.SearchStrategy[JsonObject]:
    """Objects that have all fields that they must have, and some of those that they may have."""
    return st.fixed_dictionaries(must, optional=dict(may))


def several(items: st.SearchStrategy[Json]) -> st.SearchStrategy[Json]:
    return st.lists(items | VALUES, max_size=3)


PARTS = several(
    with_fields(("metadata", VALUES), text=st.text(max_size=4))
    | with_fields(data=VALUES)
    | with_fields(raw=st.just("aGk="), filename=WORDS)
)
MESSAGES = with_fields(("role", WORDS), ("metadata", VALUES), parts=PARTS | VALUES)
STATUSES = with_fields(("message", MESSAGES | VALUES), state=STATES)
ARTIFACTS = with_fields(
    ("artifactId", WORDS), ("append", st.booleans()), ("metadata", VALUES), parts=PARTS | VALUES
)
TASKS = with_fields(
    ("id", SCALARS),
    ("artifacts", several(ARTIFACTS) | VALUES),
    ("history", several(MESSAGES)),
    ("metadata", VALUES),
    ("error", VALUES),
    status=STATUSES,
)
ARTIFACT_UPDATES = with_fields(
    ("append", st.booleans()),
    ("lastChunk", st.booleans()),
    ("metadata", VALUES),
    taskId=SCALARS,
    artifact=ARTIFACTS,
)
# Results and events that are nearly right.
RESULTS = (
    with_fields(task=TASKS)
    | with_fields(message=MESSAGES)
    | with_fields(statusUpdate=with_fields(taskId=SCALARS, status=STATUSES))
    | with_fields(artifactUpdate=ARTIFACT_UPDATES)
)


def wrapped(adapter: ProtocolAdapter, result: Json) -> bytes:
    """The result as the adapter's binding carries it."""
    is_json_rpc = isinstance(adapter, A2A10Adapter)
    return encode({"jsonrpc": "2.0", "id": "t", "result": result} if is_json_rpc else result)


def decoded(adapter: ProtocolAdapter, body: bytes, status: int = 200) -> Outcome:
    try:
        return adapter.decode(AgentAnswer(status=status, headers={}, body=body), TASK)
    except ProtocolTranslationError as exc:
        return failure_of(exc)


def streamed_outcome(adapter: ProtocolAdapter, events: list[bytes]) -> Outcome:
    reading = adapter.read_stream(TASK)
    try:
        news = [reading.take(event) for event in events]
        outcome = reading.outcome()
    except ProtocolTranslationError as exc:
        return failure_of(exc)
    encode(news)
    assert all(later.is_over for earlier, later in pairwise(news) if earlier.is_over)
    return outcome


def check(outcome: Outcome) -> None:
    """One of the documented outcomes, whole enough to be told and kept."""
    match outcome:
        case Succeeded():
            decode(outcome.output)
        case Failed(error=error):
            assert error.code in ERROR_CODES
            assert error.message
            assert error.fix
            encode(error)
        case Working():
            assert outcome.remote_task_id
        case Interrupted():
            assert outcome.question.text
            encode(outcome.question)


@every_adapter
@without_deadline
@given(body=st.binary(), status=st.sampled_from([200, 302, 404, 500]))
def test_any_bytes_have_an_outcome(adapter: ProtocolAdapter, body: bytes, status: int) -> None:
    check(decoded(adapter, body, status))


@every_adapter
@without_deadline
@given(value=VALUES | RESULTS, status=st.sampled_from([200, 400, 404, 500]))
def test_any_json_has_an_outcome(adapter: ProtocolAdapter, value: Json, status: int) -> None:
    check(decoded(adapter, encode(value), status))
    check(decoded(adapter, wrapped(adapter, value), status))


@both_bindings
@without_deadline
@given(value=RESULTS, at=st.integers(0, 300))
def test_any_answer_cut_anywhere_has_an_outcome(adapter: ProtocolAdapter, value: Json, at: int) -> None:
    check(decoded(adapter, wrapped(adapter, value)[:at]))


@both_bindings
@without_deadline
@given(values=st.lists(RESULTS | VALUES, max_size=6))
def test_any_events_have_an_outcome(adapter: ProtocolAdapter, values: list[Json]) -> None:
    check(streamed_outcome(adapter, [wrapped(adapter, value) for value in values]))


@both_bindings
@without_deadline
@given(events=st.lists(st.binary(), max_size=3))
def test_any_bytes_in_a_stream_have_an_outcome(adapter: ProtocolAdapter, events: list[bytes]) -> None:
    check(streamed_outcome(adapter, events))


@both_bindings
@without_deadline
@given(value=RESULTS)
def test_a_stream_of_one_result_ends_as_the_result_does(adapter: ProtocolAdapter, value: JsonObject) -> None:
    answer, streamed = (
        decoded(adapter, wrapped(adapter, value)),
        streamed_outcome(adapter, [wrapped(adapter, value)]),
    )
    if isinstance(answer, Interrupted):
        assert streamed == answer
    if isinstance(answer, Succeeded) and "task" in value:
        assert isinstance(streamed, Succeeded)


@both_bindings
@without_deadline
@given(texts=st.lists(st.text(max_size=5), min_size=1, max_size=8))
def test_a_text_in_pieces_is_the_text_at_once(adapter: ProtocolAdapter, texts: list[str]) -> None:
    status: JsonObject = {"state": "TASK_STATE_COMPLETED"}
    pieces = [piece(text, append=number > 0) for number, text in enumerate(texts)]
    done: Json = {"statusUpdate": {"taskId": "r", "contextId": "c", "status": status}}
    artifact: Json = {"artifactId": "a", "parts": [{"text": "".join(texts)}]}
    task: Json = {"id": "r", "contextId": "c", "status": status, "artifacts": [artifact]}
    at_once = decoded(adapter, wrapped(adapter, {"task": task}))
    assert streamed_outcome(adapter, [wrapped(adapter, event) for event in [*pieces, done]]) == at_once


def piece(text: str, *, append: bool) -> Json:
    artifact: Json = {"artifactId": "a", "parts": [{"text": text}]}
    return {"artifactUpdate": {"taskId": "r", "contextId": "c", "artifact": artifact, "append": append}}


@both_bindings
@without_deadline
@given(value=VALUES.filter(lambda value: parts_in(value) is None))
def test_any_input_reaches_the_agent_whole(adapter: ProtocolAdapter, value: Json) -> None:
    message = message_in(adapter.encode(AgentTask(task_id="t", input_data=value)))
    part = first_part(message)
    arrived = message.get("metadata", part["text"] if isinstance(value, str) else decode(str(part["text"])))
    assert arrived == value


@both_bindings
@without_deadline
@given(value=VALUES.filter(lambda value: value is not None))
def test_any_input_reaches_the_agent_as_data_where_that_is_wanted(
    adapter: ProtocolAdapter, value: Json
) -> None:
    adapter = type(adapter).from_config({"input_mode": "data"})
    message = message_in(adapter.encode(AgentTask(task_id="t", input_data=value)))
    assert message["parts"] == [{"data": value}]


def message_in(request: AgentRequest) -> JsonObject:
    body = decode(request.body)
    assert isinstance(body, dict)
    params = body.get("params", body)
    assert isinstance(params, dict)
    message = params["message"]
    assert isinstance(message, dict)
    return message


def first_part(message: JsonObject) -> JsonObject:
    parts = message["parts"]
    assert isinstance(parts, list)
    assert isinstance(parts[0], dict)
    return parts[0]


@both_bindings
def test_a_part_that_cannot_be_sent_is_named(adapter: ProtocolAdapter) -> None:
    task = AgentTask(task_id="t", input_data={"parts": [{"text": "fine"}, {"raw": "not base64!"}]})
    for encode_task in (adapter.encode, adapter.encode_stream):
        with pytest.raises(
            ProtocolTranslationError, match=r"parts\[1\] has bytes that are not base64"
        ) as raised:
            encode_task(task)
        assert raised.value.code == "request_not_encodable"
        assert raised.value.protocol == adapter.get_protocol_name()


@both_bindings
def test_a_task_is_sent_again_with_the_same_ids(adapter: ProtocolAdapter) -> None:
    assert adapter.encode(TASK) == adapter.encode(TASK)
    other = AgentTask(task_id="u", input_data=TASK.input_data)
    ours, theirs = message_in(adapter.encode(TASK)), message_in(adapter.encode(other))
    assert ours["contextId"] != theirs["contextId"]
    assert (ours["messageId"], theirs["messageId"]) == ("msg-t", "msg-u")


@both_bindings
def test_a_message_that_names_no_context_is_in_the_one_that_it_answers(adapter: ProtocolAdapter) -> None:
    body = wrapped(adapter, {"message": {"messageId": "m", "role": "ROLE_AGENT", "parts": [{"text": "hi"}]}})
    ours = message_in(adapter.encode(TASK))["contextId"]
    for outcome in (decoded(adapter, body), streamed_outcome(adapter, [body])):
        assert isinstance(outcome, Succeeded)
        assert outcome.context_id == ours


@both_bindings
def test_a_number_out_of_range_deep_in_a_large_question_loses_only_itself(adapter: ProtocolAdapter) -> None:
    asked = b'{"parts":[{"text":"' + b"x" * WHOLE_CHECK_BYTES + b'"},{"data":{"n":1e999}}]}'
    task = b'{"task":{"id":"r","status":{"state":"TASK_STATE_INPUT_REQUIRED","message":' + asked + b"}}}"
    body = wrapped(adapter, "RESULT").replace(b'"RESULT"', task)
    for outcome in (decoded(adapter, body), streamed_outcome(adapter, [body])):
        assert isinstance(outcome, Interrupted)
        assert outcome.question.data is None


@both_bindings
def test_every_request_names_the_version(adapter: ProtocolAdapter) -> None:
    requests = [
        adapter.encode(TASK),
        adapter.encode_stream(TASK),
        adapter.encode_poll(TASK, "r"),
        adapter.encode_cancel(TASK, "r"),
        adapter.encode_resubscribe(TASK, "r"),
        adapter.encode_find(TASK),
    ]
    assert [request.headers if request else None for request in requests] == [{"A2A-Version": "1.0"}] * 6


@pytest.mark.parametrize(
    "result",
    [
        {"task": {"id": "r", "contextId": "c", "status": {"state": "TASK_STATE_COMPLETED"}}},
        {"id": "r", "contextId": "c", "status": {"state": "TASK_STATE_WORKING", "timestamp": "2026-03-01"}},
        {"message": {"messageId": "m", "role": "ROLE_AGENT", "parts": [{"text": "a", "mediaType": "b"}]}},
        {"statusUpdate": {"taskId": "r", "contextId": "c", "status": {"state": "TASK_STATE_WORKING"}}},
        {"artifactUpdate": {"taskId": "r", "artifact": {"artifactId": "a", "parts": [{"raw": "aGk="}]}}},
    ],
)
def test_the_exact_forms_of_1_0_take_the_fast_way(result: Json) -> None:
    assert parse_exact_result(msgspec.json.decode(encode(result), type=V1Result)) is not None


@pytest.mark.parametrize(
    "config", [{"tenant": ""}, {"method": "SendMessage"}, {"params": "input"}, {"version": "1.0"}]
)
@both_bindings
def test_what_1_0_cannot_express_is_refused(adapter: ProtocolAdapter, config: JsonObject) -> None:
    assert isinstance(adapter, A2A10Adapter | A2A10HttpAdapter)
    (finding,) = adapter.validate_config(config)
    assert finding.path == f"protocol_config.{next(iter(config))}"


# --- finding a task again

OURS: JsonObject = {"id": "ours", "history": [{"messageId": "msg-t"}]}
THEIRS: JsonObject = {"id": "theirs", "history": [{"messageId": "msg-other"}]}
SILENT: JsonObject = {"id": "silent"}
IN_CONTEXT = AgentTask(task_id="t", input_data="q", context_id="c")
REPLY = AgentTask(task_id="t", input_data={"text": "Berlin"}, context_id="c", remote_task_id="r")


def found(adapter: ProtocolAdapter, listed: Json, task: AgentTask = TASK, status: int = 200) -> str | None:
    answer = AgentAnswer(status=status, headers={}, body=wrapped(adapter, listed))
    return adapter.decode_find(answer, task)


@both_bindings
@pytest.mark.parametrize(
    ("task", "tasks", "meant"),
    [
        (TASK, [], None),
        (TASK, [OURS], "ours"),
        (TASK, [SILENT], "silent"),
        (TASK, [SILENT, OURS], "ours"),
        (TASK, [{"id": "newest"}, {"id": "older"}], "newest"),
        (IN_CONTEXT, [], None),
        (IN_CONTEXT, [THEIRS, OURS], "ours"),
        (IN_CONTEXT, [THEIRS], None),
        (IN_CONTEXT, [{"id": "ours", "history": [{"message_id": "msg-t"}]}], "ours"),
        (REPLY, [OURS], "ours"),
        (REPLY, [THEIRS], None),
    ],
)
def test_the_task_with_our_message_is_found(
    adapter: ProtocolAdapter, task: AgentTask, tasks: Json, meant: str | None
) -> None:
    assert found(adapter, {"tasks": tasks, "nextPageToken": ""}, task) == meant


@both_bindings
@pytest.mark.parametrize(
    ("listed", "complaint"),
    [
        ({"tasks": [SILENT]}, "without their messages"),
        ({"tasks": [THEIRS], "nextPageToken": "more"}, "more tasks in this context than fit on one page"),
        ({"tasks": "none"}, "The list of tasks is a string, not an array"),
        (7, "not an "),
    ],
)
def test_a_list_that_leaves_it_open_is_no_answer(
    adapter: ProtocolAdapter, listed: Json, complaint: str
) -> None:
    with pytest.raises(ProtocolTranslationError, match=complaint):
        found(adapter, listed, IN_CONTEXT)


def test_an_agent_that_does_not_list_its_tasks_is_no_answer() -> None:
    refusal = encode({"jsonrpc": "2.0", "id": "t", "error": {"code": -32601, "message": "Method not found"}})
    for adapter, body, status, code in (
        (A2A10Adapter(), refusal, 200, "agent_jsonrpc_error"),
        (A2A10Adapter(), b"away", 503, "agent_http_error"),
        (A2A10HttpAdapter(), b'{"error":{"code":404,"message":"no"}}', 404, "agent_http_error"),
        (A2A10HttpAdapter(), b"", 302, "agent_redirected"),
    ):
        with pytest.raises(ProtocolTranslationError) as raised:
            adapter.decode_find(AgentAnswer(status=status, headers={}, body=body), TASK)
        assert raised.value.code == code


def test_a_reply_with_an_unknown_context_cannot_be_looked_for() -> None:
    reply = AgentTask(task_id="t", input_data={"text": "Berlin"}, remote_task_id="r")
    assert [adapter.encode_find(reply) for adapter in BINDINGS] == [None, None]


@both_bindings
@without_deadline
@given(value=VALUES | with_fields(tasks=several(st.just(OURS))))
def test_any_list_is_read_or_refused(adapter: ProtocolAdapter, value: Json) -> None:
    try:
        name = found(adapter, value, IN_CONTEXT)
    except ProtocolTranslationError as exc:
        assert exc.code in ERROR_CODES  # noqa: PT017 - either way of ending is right
    else:
        assert name is None or name
