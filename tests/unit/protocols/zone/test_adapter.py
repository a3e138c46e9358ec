"""A zone as an agent: what is sent, what is refused before that, and how strictly its answers are read."""

from __future__ import annotations

from uuid import UUID

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from trunkline.jsontypes import Json, JsonObject, decode, encode
from trunkline.messages import ERROR_CODES, AgentTask
from trunkline.protocols import (
    AgentAnswer,
    Failed,
    JsonRpc2Adapter,
    ProtocolAdapterFactory,
    ProtocolTranslationError,
    Succeeded,
    Working,
    ZoneAdapter,
    validate_protocol_config,
)
from trunkline.protocols.answer_json import NotJson
from trunkline.protocols.zone.answers import (
    ZoneAccepted,
    ZoneFailed,
    ZoneSucceeded,
    read_answer,
    read_http_answer,
)

SECRET = "xoxb-very-secret"
INPUT: JsonObject = {"channel": "C1", "text": "hello", "bot_token": SECRET}
TASK = AgentTask(task_id="run/step/0", input_data=INPUT)
SLACK = ZoneAdapter("slack")
ID = "7a1c9a52-5f0e-5d52-9c1b-0c9d6f6a2f10"
GOOD: JsonObject = {"jsonrpc": "2.0", "id": ID, "result": {"status": "success"}}


def sent(adapter: ZoneAdapter = SLACK, task: AgentTask = TASK) -> JsonObject:
    return msgspec.json.decode(adapter.encode(task).body, type=JsonObject)


def id_of(request: JsonObject) -> str:
    return msgspec.convert(request["id"], str)


def answered(body: Json, status: int = 200) -> AgentAnswer:
    return AgentAnswer(status=status, headers={}, body=encode(body))


def with_result(result: Json) -> bytes:
    return encode({**GOOD, "result": result})


def with_error(error: Json) -> bytes:
    return encode({"jsonrpc": "2.0", "id": ID, "error": error})


# --- what is sent


def test_the_same_task_has_the_same_id_and_another_task_another() -> None:
    first, again = sent(), sent()
    other = sent(task=AgentTask(task_id="run/step/1", input_data=INPUT))
    assert UUID(id_of(first)).version == 5
    assert first == again
    assert id_of(other) != id_of(first)


def test_a_question_has_another_id_and_the_same_session() -> None:
    request, poll = SLACK.encode(TASK), SLACK.encode_poll(TASK, "z-1")
    assert poll is not None
    asked = msgspec.json.decode(poll.body, type=JsonObject)
    assert (asked["method"], asked["params"]) == ("get_task_result", {"task_id": "z-1"})
    assert asked["id"] != sent()["id"]
    assert poll.headers == request.headers == {"X-Zone-Session": id_of(sent())}


def test_each_poll_has_an_id_of_its_own_and_the_same_poll_again_the_same_one() -> None:
    tasks = [msgspec.structs.replace(TASK, polls=polls) for polls in (0, 1, 2, 1)]
    ids = [msgspec.json.decode(poll.body)["id"] for task in tasks if (poll := SLACK.encode_poll(task, "z-1"))]
    assert [str(UUID(each)) for each in ids] == ids
    assert (len(set(ids)), ids[1]) == (3, ids[3])
    for task, id_ in zip(tasks, ids, strict=True):
        accepted: JsonObject = {
            "jsonrpc": "2.0",
            "id": id_,
            "result": {"status": "accepted", "task_id": "z-1"},
        }
        assert isinstance(SLACK.decode(answered(accepted), task), Working)


def test_work_that_has_begun_cannot_be_stopped() -> None:
    assert SLACK.encode_cancel(TASK, "z-1") is None


@pytest.mark.parametrize(
    ("input_data", "words"),
    [
        ({"text": "hello", "bot_token": SECRET}, "channel is required"),
        ({**INPUT, "bot_token": {"$secret": "slack-bot"}}, 'bot_token the value is not of type "string"'),
        (SECRET, "the params must be an object"),
        ([SECRET], "the params must be an object"),
        (None, "the params must be an object"),
    ],
)
def test_an_input_that_does_not_fit_is_refused_before_it_is_sent(input_data: Json, words: str) -> None:
    with pytest.raises(ProtocolTranslationError) as raised:
        SLACK.encode(AgentTask(task_id="t", input_data=input_data))
    assert str(raised.value).startswith("The input does not match the profile slack: ")
    assert words in str(raised.value)
    assert (raised.value.code, raised.value.direction) == ("request_not_encodable", "request")
    assert SECRET not in f"{raised.value}{raised.value.original_data}"


@pytest.mark.parametrize(
    ("profile", "given", "expected"),
    [
        ("slack", {}, "c-run"),
        ("slack", {"correlation_id": "c-own"}, "c-own"),
        ("any", {}, None),
        ({"properties": {"correlation_id": {}}}, {}, "c-run"),
        ({"properties": {}}, {}, None),
    ],
)
def test_the_correlation_id_is_put_in_where_the_profile_knows_it(
    profile: str | JsonObject, given: JsonObject, expected: str | None
) -> None:
    task = AgentTask(task_id="t", input_data={**INPUT, **given}, correlation_id="c-run")
    params = sent(ZoneAdapter(profile), task)["params"]
    assert isinstance(params, dict)
    assert params.get("correlation_id") == expected
    assert task.input_data == {**INPUT, **given}


# --- which answers are read, and how


@pytest.mark.parametrize(
    ("change", "symptom"),
    [
        ({"jsonrpc": None}, "Unsupported JSON-RPC version: null"),
        ({"jsonrpc": "1.0"}, "Unsupported JSON-RPC version: 1.0"),
        ({"jsonrpc": 2.0}, "Unsupported JSON-RPC version: 2.0"),
        ({"id": None}, "Response missing 'id' field"),
        ({"id": 7}, "Response ID mismatch"),
        ({"id": ID.upper()}, "Response ID mismatch"),
        ({"id": [ID]}, "Response ID mismatch"),
        ({"error": None}, "Response has both 'result' and 'error'"),
        ({"error": {"code": 1, "message": "x"}}, "Response has both 'result' and 'error'"),
        ({"result": None}, "The result is null, not an object"),
        ({"result": []}, "The result is an array, not an object"),
        ({"result": "done"}, "The result is a string, not an object"),
        ({"result": 1}, "The result is a number, not an object"),
        ({"result": {}}, "The result is missing its 'status' field"),
        ({"result": {"response_text": "x"}}, "The result is missing its 'status' field"),
        ({"result": {"status": None}}, "The result has the status null, not"),
        ({"result": {"status": True}}, "The result has the status true, not"),
        ({"result": {"status": "Success"}}, "The result has the status Success, not"),
        ({"result": {"status": "failed"}}, "The result has the status failed, not"),
        ({"result": {"status": "x" * 500}}, "x" * 100 + "…, not"),
        ({"result": {"status": "accepted"}}, "no task_id to poll"),
        ({"result": {"status": "accepted", "task_id": ""}}, "no task_id to poll"),
        ({"result": {"status": "accepted", "task_id": 7}}, "no task_id to poll"),
        ({"result": {"status": "accepted", "task_id": None}}, "no task_id to poll"),
    ],
)
def test_a_result_in_no_form_of_the_contract_is_malformed(change: JsonObject, symptom: str) -> None:
    with pytest.raises(ProtocolTranslationError) as raised:
        read_answer(encode({**GOOD, **change}), (ID,))
    assert symptom in str(raised.value)


@pytest.mark.parametrize("missing", ["jsonrpc", "id", "result"])
def test_nothing_of_the_envelope_may_be_missing(missing: str) -> None:
    with pytest.raises(ProtocolTranslationError, match="missing"):
        read_answer(encode({name: value for name, value in GOOD.items() if name != missing}), (ID,))


@pytest.mark.parametrize(
    ("error", "symptom"),
    [
        (None, "'error' is null"),
        ("No", "'error' is a string"),
        ([], "'error' is an array"),
        ({}, "'code' is not a whole number"),
        ({"message": "x"}, "'code' is not a whole number"),
        ({"code": "-32000", "message": "x"}, "'code' is not a whole number"),
        ({"code": True, "message": "x"}, "'code' is not a whole number"),
        ({"code": -32000.5, "message": "x"}, "'code' is not a whole number"),
        ({"code": -32000}, "'message' is not a string"),
        ({"code": -32000, "message": None}, "'message' is not a string"),
    ],
)
def test_an_error_in_no_form_of_the_contract_is_malformed(error: Json, symptom: str) -> None:
    with pytest.raises(ProtocolTranslationError) as raised:
        read_answer(with_error(error), (ID,))
    assert symptom in str(raised.value)


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'"x"', b"null", b"\xff", b"data: {}", b"<html>"])
def test_what_is_no_json_object_is_malformed(body: bytes) -> None:
    with pytest.raises(NotJson):
        read_answer(body, (ID,))
    with pytest.raises(ProtocolTranslationError, match="malformed JSON-RPC response: "):
        read_http_answer(AgentAnswer(200, {}, body), (ID,), request_size=1)
    refused = read_http_answer(AgentAnswer(503, {"retry-after": "3"}, body), (ID,), request_size=1)
    assert isinstance(refused, ZoneFailed)
    assert (refused.error.code, refused.error.http_status) == ("agent_http_error", 503)
    assert refused.error.retry_after_ms == 3_000


def test_the_whole_result_is_kept_as_it_came() -> None:
    text = b'{ "status":"success" , "response_text":"x","n":1.50,"extra":{"a":[1,2]}}'
    done = read_answer(b'{"jsonrpc":"2.0","id":"' + ID.encode() + b'","result":' + text + b"}", (ID,))
    assert isinstance(done, ZoneSucceeded)
    assert bytes(done.result) == text
    assert done.text == "x"


@pytest.mark.parametrize(
    ("code", "data", "message", "fix"),
    [
        (-32700, None, "JSON-RPC Error -32700: m", "could not parse"),
        (-32600, {"detail": "no batches"}, "JSON-RPC Error -32600: m (no batches)", "rejected the request"),
        (-32601, None, "JSON-RPC Error -32601: m", "protocol_config.method"),
        (
            -32602,
            {"fields": [{"path": "channel", "message": "is required"}, {"path": "text", "message": "no"}]},
            "JSON-RPC Error -32602: m (channel is required; text no)",
            "The message names each field",
        ),
        (-32602, {"fields": ["channel"]}, "JSON-RPC Error -32602: m (channel)", "names each field"),
        (-32602, {"fields": 7}, "JSON-RPC Error -32602: m", "names each field"),
        (-32603, None, "JSON-RPC Error -32603: m", "the zone's log"),
        (-32001, None, "JSON-RPC Error -32001: m", "longer than its deadline"),
        (-32000, "x", "JSON-RPC Error -32000: m", "as its message says"),
        (4711, None, "JSON-RPC Error 4711: m", "as its message says"),
    ],
)
def test_an_error_becomes_ours_with_what_to_do_about_it(
    code: int, data: Json, message: str, fix: str
) -> None:
    answer = read_answer(with_error({"code": code, "message": "m", "data": data}), (ID,))
    assert isinstance(answer, ZoneFailed)
    assert (answer.error.code, answer.error.jsonrpc_code) == ("agent_jsonrpc_error", code)
    assert (answer.error.message, answer.error.detail) == (message, data)
    assert fix in answer.error.fix


@pytest.mark.parametrize("wait", [True, -1, 10**12, 1.5, "1", None])
def test_a_wait_that_is_none_is_not_waited_for(wait: Json) -> None:
    body = with_error({"code": -32000, "message": "m", "data": {"retry_after_ms": wait}})
    answer = read_answer(body, (ID,))
    assert isinstance(answer, ZoneFailed)
    assert (answer.error.http_status, answer.error.retry_after_ms) == (None, None)


def test_a_refusal_by_rate_is_one_over_every_transport() -> None:
    body = with_error({"code": -32000, "message": "m", "data": {"retry_after_ms": 200}})
    for status, headers in ((200, {}), (429, {}), (429, {"retry-after": "1"})):
        answer = read_http_answer(AgentAnswer(status, headers, body), (ID,), request_size=1)
        assert isinstance(answer, ZoneFailed)
        assert (answer.error.http_status, answer.error.retry_after_ms) == (429, 200)


def test_only_the_question_can_find_a_task_unknown() -> None:
    poll = SLACK.encode_poll(TASK, "z-1")
    assert poll is not None
    asked = msgspec.json.decode(poll.body, type=JsonObject)["id"]
    for id_, path, unknown in (
        (id_of(sent()), "task_id", False),
        (asked, "task_id", True),
        (asked, "channel", False),
    ):
        data: JsonObject = {"fields": [{"path": path, "message": "is not known"}]}
        error: JsonObject = {"code": -32602, "message": "Invalid params", "data": data}
        outcome = SLACK.decode(answered({"jsonrpc": "2.0", "id": id_, "error": error}), TASK)
        assert isinstance(outcome, Failed)
        assert outcome.task_unknown is unknown


def test_an_answer_is_read_though_the_task_only_names_its_secret() -> None:
    task = AgentTask(task_id="t", input_data={**INPUT, "bot_token": {"$secret": "slack-bot"}})
    outcome = SLACK.decode(AgentAnswer(413, {}, b"too large"), task)
    assert isinstance(outcome, Failed)
    assert "the request of" in outcome.error.message


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=8,
)
_RESULTS = st.fixed_dictionaries(
    {},
    optional={
        "status": st.sampled_from(["success", "accepted", "failed", ""]) | _JSON,
        "task_id": st.text() | _JSON,
        "response_text": st.text() | _JSON,
    },
)
_ERRORS = st.fixed_dictionaries(
    {},
    optional={
        "code": st.integers(-33_000, 0) | _JSON,
        "message": st.text() | _JSON,
        "data": st.fixed_dictionaries(
            {}, optional={"fields": _JSON, "retry_after_ms": _JSON, "detail": _JSON}
        )
        | _JSON,
    },
)
_ENVELOPES = st.fixed_dictionaries(
    {},
    optional={
        "jsonrpc": st.just("2.0") | _JSON,
        "id": st.just(ID) | _JSON,
        "result": _RESULTS | _JSON,
        "error": _ERRORS | _JSON,
    },
)


# A machine that is busy with other tests draws slowly.
@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None, derandomize=True)
@given(_ENVELOPES)
def test_an_answer_is_read_only_if_it_is_in_a_form_of_the_contract(envelope: JsonObject) -> None:
    try:
        answer = read_answer(encode(envelope), (ID,))
    except (ProtocolTranslationError, NotJson):
        return
    assert envelope["jsonrpc"] == "2.0"
    assert ("result" in envelope) != ("error" in envelope)
    match answer:
        case ZoneSucceeded():
            assert (envelope["id"], decode(answer.result)) == (ID, envelope["result"])
            assert isinstance(result := envelope["result"], dict)
            assert result["status"] == "success"
        case ZoneAccepted():
            assert envelope["id"] == ID
            assert isinstance(result := envelope["result"], dict)
            assert (result["status"], result["task_id"]) == ("accepted", answer.task_id)
            assert answer.task_id
        case ZoneFailed():
            assert envelope.get("id") in (ID, None)
            assert answer.error.code in ERROR_CODES
            assert isinstance(error := envelope["error"], dict)
            assert answer.error.jsonrpc_code == error["code"]


@settings(deadline=None, derandomize=True)
@given(st.binary(max_size=200))
def test_no_bytes_break_it(body: bytes) -> None:
    for status in (200, 500):
        try:
            answer = read_http_answer(AgentAnswer(status, {}, body), (ID,), request_size=0)
        except ProtocolTranslationError:
            assert status == 200
        else:
            assert isinstance(answer, ZoneFailed)


# --- as a dialect


def test_a_profile_makes_a_zone_of_the_seeds_protocol() -> None:
    make = ProtocolAdapterFactory.create_adapter
    zone = make("jsonrpc-2.0", {"profile": "slack", "method": "m", "poll_method": "p", "output_mode": "data"})
    assert isinstance(zone, ZoneAdapter)
    assert (zone.profile.name, zone.method, zone.poll_method) == ("slack", "m", "p")
    assert (zone.output_mode, zone.get_protocol_name()) == ("data", "jsonrpc-2.0")
    assert isinstance(make("jsonrpc-2.0", {"method": "message/send"}), JsonRpc2Adapter)
    assert isinstance(make("jsonrpc-2.0"), JsonRpc2Adapter)


@pytest.mark.parametrize(
    "config",
    [
        {"profile": "slack"},
        {"profile": "any", "method": "execute_task", "version": "2.0", "params": "input"},
        {"profile": {"type": "object"}, "poll_method": "GetAsyncTaskResult", "output_mode": "data"},
    ],
)
def test_a_good_configuration_of_a_zone_has_no_findings(config: JsonObject) -> None:
    assert validate_protocol_config("jsonrpc-2.0", config) == []


@pytest.mark.parametrize(
    ("protocol", "config", "key", "words"),
    [
        ("jsonrpc-2.0", {"profile": "slak"}, "profile", "did you mean 'slack'?"),
        ("jsonrpc-2.0", {"profile": 1}, "profile", "the name of a profile, or a JSON Schema"),
        ("jsonrpc-2.0", {"profile": {"type": "x"}}, "profile", "not valid JSON Schema"),
        ("jsonrpc-2.0", {"profile": {"$ref": "http://x.example/"}}, "profile", "Retrieval is disabled"),
        ("jsonrpc-2.0", {"profile": "any", "batch": {"max": 2}}, "batch", "do not accept batches"),
        ("jsonrpc-2.0", {"profile": "any", "input_mode": "json"}, "input_mode", "becomes the params"),
        ("jsonrpc-2.0", {"profile": "any", "params": "message"}, "params", "must be 'input'"),
        ("jsonrpc-2.0", {"profile": "any", "method": "rpc.run"}, "method", "begins with 'rpc.'"),
        ("jsonrpc-2.0", {"profile": "any", "poll_method": "rpc.x"}, "poll_method", "begins with 'rpc.'"),
        ("jsonrpc-2.0", {"profile": "any", "method": "get_task_result"}, "poll_method", "must differ"),
        (
            "jsonrpc-2.0",
            {"profile": "any", "poll_methods": "x"},
            "poll_methods",
            "did you mean 'poll_method'?",
        ),
        ("auto", {"profile": "slack"}, "profile", "needs the protocol jsonrpc-2.0"),
        ("jsonrpc-call", {"profile": "slack"}, "profile", "is not supported"),
    ],
)
def test_a_senseless_configuration_of_a_zone_is_explained(
    protocol: str, config: JsonObject, key: str, words: str
) -> None:
    findings = validate_protocol_config(protocol, config)
    assert [finding.path for finding in findings] == [f"protocol_config.{key}"]
    assert words in findings[0].message


def test_the_outcomes_of_a_zone() -> None:
    done = SLACK.decode(
        answered({**GOOD, "id": id_of(sent()), "result": {"status": "success", "response_text": "x"}}), TASK
    )
    assert isinstance(done, Succeeded)
    assert decode(done.output) == {"text": "x", "data": {"status": "success", "response_text": "x"}}
    accepted: JsonObject = {"status": "accepted", "task_id": "z-1"}
    working = SLACK.decode(answered({**GOOD, "id": id_of(sent()), "result": accepted}), TASK)
    assert working == Working(remote_task_id="z-1", state="accepted")
    internal = SLACK.from_agent_response({**GOOD, "id": id_of(sent())}, TASK.task_id)
    assert (internal["task_id"], internal["status"]) == (TASK.task_id, "success")
