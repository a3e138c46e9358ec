"""JSON-RPC batches: whose answer is whose."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trunkline.jsontypes import Json, decode, encode
from trunkline.messages import ERROR_CODES, AgentTask
from trunkline.protocols import AgentAnswer, Failed, ProtocolAdapterFactory, Succeeded
from trunkline.protocols.json_rpc.batches import (
    BatchLimits,
    batch_limits,
    is_call,
    join_requests,
    request_id,
    split_answers,
)

IDS = ["a", "b", "c"]


def result(name: Json, value: Json = "x") -> Json:
    return {"jsonrpc": "2.0", "id": name, "result": value}


def refused(name: Json) -> Json:
    return {"jsonrpc": "2.0", "id": name, "error": {"code": -32000, "message": "No"}}


def shares(body: Json, ids: list[str] | None = None) -> tuple[list[Json], tuple[str, ...]]:
    """What each request gets, None where it gets nothing; and the notes."""
    names = [encode(name).decode() for name in ids or IDS]
    brought = split_answers(AgentAnswer(200, {"date": "now"}, encode(body)), names)
    assert all(own is None or (own.status, own.headers) == (200, {"date": "now"}) for own in brought.answers)
    return [None if own is None else decode(own.body) for own in brought.answers], brought.notes


def test_requests_travel_as_one_array_in_their_order() -> None:
    adapter = ProtocolAdapterFactory.create_adapter("jsonrpc-call")
    bodies = [adapter.encode(AgentTask(task_id=name, input_data={"n": 1})).body for name in IDS]
    joined = decode(join_requests(bodies))
    assert joined == [decode(body) for body in bodies]
    assert [request_id(body) for body in bodies] == ['"a"', '"b"', '"c"']


def test_a_request_alone_needs_no_array() -> None:
    assert join_requests([b'{"id":"a"}']) == b'{"id":"a"}'
    alone = AgentAnswer(200, {}, b"anything")
    assert split_answers(alone, ['"a"']).answers == [alone]


def test_answers_are_found_by_their_id_in_any_order() -> None:
    answers, notes = shares([result("c", 3), refused("a"), result("b", 2)])
    assert answers == [refused("a"), result("b", 2), result("c", 3)]
    assert notes == ()


def test_a_missing_answer_is_missing_for_its_own_task_only() -> None:
    answers, notes = shares([result("c"), result("a")])
    assert answers == [result("a"), None, result("c")]
    assert notes == ()


def test_an_agent_that_answers_only_one_leaves_the_others_without() -> None:
    assert shares(result("b")) == ([None, result("b"), None], ())


def test_the_first_of_two_answers_counts() -> None:
    answers, notes = shares([result("a", 1), result("b"), result("c"), result("a", 2)])
    assert answers[0] == result("a", 1)
    assert notes == ('The batch contains several answers with the id "a": the first one is used',)


def test_an_answer_to_nothing_is_noted() -> None:
    answers, notes = shares([result("z"), 5, result("a"), result("b"), result("c")])
    assert answers == [result("a"), result("b"), result("c")]
    assert notes == (
        'The batch contains an answer that matches none of its requests: id "z"',
        "The batch contains an answer that matches none of its requests: id unreadable",
    )


def test_the_id_one_is_not_the_id_of_the_string_one() -> None:
    assert shares([result(1), result("2")], ["1", "2"])[0] == [None, result("2")]


def test_any_number_of_answers_to_nothing_makes_few_notes() -> None:
    assert len(shares([result(number) for number in range(1000)])[1]) == 10


def test_an_error_without_an_id_is_for_the_one_task_that_is_left() -> None:
    assert shares([result("a"), refused(None), result("c")]) == (
        [result("a"), refused(None), result("c")],
        (),
    )


def test_an_error_without_an_id_belongs_to_neither_of_two_calls() -> None:
    answers, notes = shares([result("a"), refused(None)])
    assert answers == [result("a"), None, None]
    assert notes == ("The batch contains an answer without an id",)


@pytest.mark.parametrize("body", [b'{"jsonrpc":"2.0","id":null,"error":{}}', b"<html>", b"", b"7", b"null"])
def test_what_is_no_batch_of_answers_is_for_all(body: bytes) -> None:
    answer = AgentAnswer(500, {}, body)
    assert split_answers(answer, ['"a"', '"b"']).answers == [answer, answer]


def test_each_share_is_read_as_if_it_had_come_alone() -> None:
    brought = split_answers(
        AgentAnswer(200, {}, encode([result("b", "Hi"), refused("a")])),
        [encode(name).decode() for name in "ab"],
    )
    adapter = ProtocolAdapterFactory.create_adapter("jsonrpc-call")
    first, second = brought.answers
    assert first is not None
    assert second is not None
    assert isinstance(adapter.decode(first, AgentTask(task_id="a")), Failed)
    assert isinstance(adapter.decode(second, AgentTask(task_id="b")), Succeeded)


def test_a_missing_answer_is_one_that_did_not_come_to_a_request_that_was_sent() -> None:
    code = ERROR_CODES["agent_batch_answer_missing"]
    assert (code.sent, code.answered) == (True, False)


@pytest.mark.parametrize(
    ("config", "limits"),
    [
        (None, None),
        ({}, None),
        ({"method": "x"}, None),
        ({"batch": {"max": 5}}, BatchLimits(max=5, wait_ms=10)),
        ({"batch": {"max": 100, "wait_ms": 0}}, BatchLimits(max=100, wait_ms=0)),
    ],
)
def test_batches_are_off_unless_the_agent_asks(
    config: dict[str, Json] | None, limits: BatchLimits | None
) -> None:
    assert batch_limits(config) == limits


@pytest.mark.parametrize(
    ("body", "can_travel"),
    [
        (b'{"jsonrpc":"2.0","id":"a","method":"m"}', True),
        (b'{"jsonrpc":"2.0","method":"m"}', False),
        (b'{"task_id":"a","input":1}', False),
        (b"[]", False),
        (b"", False),
    ],
)
def test_only_json_rpc_travels_in_batches(body: bytes, *, can_travel: bool) -> None:
    assert is_call(body) is can_travel


ANSWERS = st.one_of(
    st.builds(result, st.sampled_from([*IDS, "z", None, 1]), st.integers()),
    st.builds(refused, st.sampled_from([*IDS, "z", None])),
    st.integers(),
    st.none(),
    st.dictionaries(st.sampled_from(IDS), st.integers(), max_size=1),
)


@settings(deadline=None, derandomize=True)
@given(items=st.lists(ANSWERS, max_size=8))
def test_no_request_gets_an_answer_with_the_id_of_another(items: list[Json]) -> None:
    answers, _ = shares(items)
    for name, own in zip(IDS, answers, strict=True):
        if isinstance(own, dict):
            assert own.get("id") in (name, None)
        assert own is not None or not any(isinstance(item, dict) and item.get("id") == name for item in items)


@settings(deadline=None, derandomize=True)
@given(body=st.binary(), status=st.integers(100, 599))
def test_any_bytes_give_every_request_an_answer_or_none(body: bytes, status: int) -> None:
    assert len(split_answers(AgentAnswer(status, {}, body), IDS).answers) == len(IDS)
