"""The examples before their migration: Simple A2A, and no crash over bad input either."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import pytest
from tests.examples.conftest import Caller

from trunkline.jsontypes import Json, JsonObject


def done(task_id: str, result: str) -> JsonObject:
    return {"task_id": task_id, "status": "success", "output": {"result": result}, "error": None}


def assert_answers(before: Caller) -> None:
    answer = before.post({"task_id": "t-1", "input": {"query": "tides"}})
    assert (answer.status, answer.json) == (200, done("t-1", "Processed: tides"))


@pytest.mark.parametrize(
    ("given", "query"),
    [({"query": "tides", "n": 2}, "tides"), ({"text": "tides"}, "tides"), ("潮 🌊", "潮 🌊"), ({}, "")],
    ids=["query", "text", "a text alone", "nothing"],
)
def test_a_task_is_done(before: Caller, given: Json, query: str) -> None:
    answer = before.post({"task_id": "t-1", "input": given})
    assert (answer.status, answer.json) == (200, done("t-1", f"Processed: {query}"))


class Refused(NamedTuple):
    body: Json | bytes
    task_id: str | None = None
    status: int = 400


REFUSED: Mapping[str, Refused] = {
    "nothing": Refused(b""),
    "no JSON": Refused(b'{"task_id": '),
    "deep": Refused(b"[" * 100_000 + b"]" * 100_000),
    "null": Refused(None),
    "a list": Refused([{"task_id": "t-1", "input": {}}]),
    "a string": Refused("t-1"),
    "no task_id": Refused({"input": {"query": "tides"}}),
    "task_id a number": Refused({"task_id": 7, "input": {"query": "tides"}}),
    "no input": Refused({"task_id": "t-1"}, "t-1"),
    "input null": Refused({"task_id": "t-1", "input": None}, "t-1"),
    "input a list": Refused({"task_id": "t-1", "input": ["tides"]}, "t-1"),
    "input a number": Refused({"task_id": "t-1", "input": 7}, "t-1"),
    "JSON-RPC": Refused({"jsonrpc": "2.0", "id": "t-1", "method": "message/send", "params": {}}),
    "query a number": Refused({"task_id": "t-1", "input": {"query": 7}}, "t-1", 500),
    "query an object": Refused({"task_id": "t-1", "input": {"query": {}}}, "t-1", 500),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_bad_task_is_refused_in_simple_a2a(before: Caller, case: str) -> None:
    wrong = REFUSED[case]
    answer = before.post(wrong.body)
    error = answer.json["error"]
    assert answer.json == {"task_id": wrong.task_id, "status": "error", "output": None, "error": error}
    assert isinstance(error, str)
    assert error == "query must be a string" if wrong.status == 500 else error
    assert answer.status == wrong.status
    assert_answers(before)


def test_bytes_that_are_no_text_break_nothing(before: Caller) -> None:
    assert before.post(b'{"task_id": "t-1", "input": {"query": "\xff"}}').json["status"] in (
        "success",
        "error",
    )
    assert_answers(before)


@pytest.mark.parametrize("content_type", ["text/plain", "application/x-www-form-urlencoded", "junk", None])
def test_another_content_type_is_refused_in_clear_words(before: Caller, content_type: str | None) -> None:
    answer = before.post({"task_id": "t-1", "input": {}}, content_type)
    assert (answer.status, answer.json["status"]) == (415, "error")
    assert "application/json" in str(answer.json["error"])


def test_a_body_that_is_too_large_is_refused(before: Caller) -> None:
    answer = before.post({"task_id": "t-1", "input": {"query": "x" * 1_100_000}})
    assert (answer.status, answer.json["status"]) == (413, "error")
    assert_answers(before)


def test_only_a_post_is_taken(before: Caller) -> None:
    answer = before.call("GET", None, {})
    assert answer.status == 405
    assert "POST" in answer.headers["Allow"]
