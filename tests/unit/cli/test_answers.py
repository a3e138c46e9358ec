"""Answers to agents that wait for a function."""

from __future__ import annotations

import pytest

from trunkline.api.resources.inbox import InboxItemResource
from trunkline.cli.answers import function_response, verdict
from trunkline.cli.exit_codes import Exit
from trunkline.cli.failures import CliError
from trunkline.jsontypes import Json, JsonObject

PAY: JsonObject = {"id": "call-1", "name": "pay", "args": {"amount": 7}}
SHIP: JsonObject = {"id": "call-2", "name": "ship", "args": {}}


def asking(data: Json) -> InboxItemResource:
    return {
        "id": "r1.a.1.0",
        "run_id": "r1",
        "workflow": {"name": "w", "version": 1},
        "step": "a",
        "agent": "A",
        "protocol": None,
        "attempt": 1,
        "kind": "input",
        "text": "?",
        "data": data,
        "since": "2026-03-01T12:00:00Z",
        "until": None,
        "reply_url": "/api/v1/runs/r1/steps/a/reply",
    }


@pytest.mark.parametrize("data", [PAY, [PAY], [{"text": "no call"}, PAY]])
def test_the_id_and_the_name_come_from_the_question(data: Json) -> None:
    assert function_response(asking(data), {"paid": True}) == {
        "id": "call-1",
        "name": "pay",
        "response": {"paid": True},
    }


def test_what_is_no_object_becomes_one() -> None:
    assert function_response(asking(PAY), 7)["response"] == {"result": 7}


@pytest.mark.parametrize("named", [{"id": "call-2"}, {"name": "ship"}, {"id": "call-2", "name": "ship"}])
def test_of_several_functions_one_is_named(named: JsonObject) -> None:
    answer = function_response(asking([PAY, SHIP]), {**named, "response": {"shipped": True}})
    assert answer == {"id": "call-2", "name": "ship", "response": {"shipped": True}}


@pytest.mark.parametrize(
    ("data", "given", "said"),
    [
        pytest.param(None, {}, "does not wait for this function", id="no function"),
        pytest.param("text", {}, "does not wait for this function", id="no object"),
        pytest.param([PAY, SHIP], {}, "pay (call-1), ship (call-2)", id="several"),
        pytest.param(PAY, {"id": "call-9", "response": 1}, "does not wait for this function", id="another"),
    ],
)
def test_an_answer_that_fits_no_single_function_is_refused(data: Json, given: Json, said: str) -> None:
    with pytest.raises(CliError) as refused:
        function_response(asking(data), given)
    assert said in str(refused.value)
    assert refused.value.exit_code == Exit.USAGE


def test_a_verdict_is_what_a_confirmation_returns_or_else_words_and_data() -> None:
    assert verdict(asking(PAY), approved=True) == {
        "data": {"id": "call-1", "name": "pay", "response": {"confirmed": True}}
    }
    assert verdict(asking(None), approved=False) == {"text": "rejected", "data": {"approved": False}}
