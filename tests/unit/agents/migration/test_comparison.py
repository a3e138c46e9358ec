"""Whether two sides of an agent say the same."""

from __future__ import annotations

import hashlib
from base64 import b64encode

import pytest

from trunkline.agents.migration.comparison import MAX_DIFFERENCES, differences, only_in_source
from trunkline.jsontypes import Json, JsonObject


def same(text: str) -> str:
    return text


def paths(old: Json, new: Json) -> list[str]:
    found, _ = differences(old, new, same)
    return [each.path for each in found]


AGREEING: dict[str, tuple[Json, Json]] = {
    "a wrapped text and a plain one": (
        {"text": "The weather is sunny", "data": {"result": "The weather is sunny"}},
        {
            "text": "The weather is sunny",
            "artifacts": [{"parts": [{"kind": "text", "text": "The weather is sunny"}]}],
            "history": [{"role": "user", "parts": []}],
        },
    ),
    "an object and its JSON as text": (
        {"text": "ok", "data": {"result": "ok"}},
        {"text": "ok", "data": {"result": "ok"}, "response": '{"result": "ok"}'},
    ),
    "numbers that are spelled differently": (
        {"text": "ok", "data": {"result": "ok", "score": 1}},
        {"text": "ok", "data": {"score": 1.0, "result": "ok"}},
    ),
    "an id within a text that the data has as well": (
        {
            "text": "0193d1a4-8a01-7000-8000-000000000001",
            "data": {"result": "0193d1a4-8a01-7000-8000-000000000001"},
        },
        {
            "text": "0193d1a4-8a01-7000-8000-000000000002",
            "data": {"result": "0193d1a4-8a01-7000-8000-000000000002"},
        },
    ),
    "a text that became an object with this text": ({"text": "x"}, {"text": "x", "data": {"result": "x"}}),
    "JSON text on one side, data without text on the other": ({"data": {"a": [1]}}, {"text": '{"a": [1]}'}),
    "the order of keys": ({"data": {"a": 1, "b": 2}}, {"data": {"b": 2, "a": 1}}),
    "JSON in a field of the data": ({"data": {"a": '{"x": 1, "y": 2}'}}, {"data": {"a": '{"y":2,"x":1}'}}),
    "ids of the protocol": (
        {"data": {"a": 1, "task_id": "1", "contextId": "c"}},
        {"data": {"a": 1, "task_id": "2", "messageId": "m"}, "context_id": "c"},
    ),
    "an id that each side has made": (
        {"data": {"order": "0193d1a4-8a01-7000-8000-000000000001"}},
        {"data": {"order": "0193d1a4-8a01-7000-8000-000000000002"}},
    ),
    "a time that each side has taken": (
        {"data": {"checked": "2025-01-01T10:00:00Z", "created_at": 1, "timestamp": 5.5}},
        {"data": {"checked": "2025-01-01 10:00:07.123+00:00", "created_at": 2, "timestamp": 9}},
    ),
    "metadata and history": (
        {"data": {"a": 1, "metadata": {"model": "x"}}, "metadata": {"x": 1}},
        {"data": {"a": 1, "history": []}, "usage": {"input_tokens": 3}},
    ),
    "output_mode data on both sides": ({"a": 1, "b": [2]}, {"b": [2], "a": 1}),
    "output_mode data on one side": ({"a": 1}, {"data": {"a": 1}}),
    "an output that is a string": ("hello", {"text": "hello", "artifacts": []}),
    "nothing on both sides": (None, None),
}


@pytest.mark.parametrize(("old", "new"), AGREEING.values(), ids=AGREEING.keys())
def test_what_a_workflow_reads_alike_agrees(old: Json, new: Json) -> None:
    assert differences(old, new, same) == ((), 0)


DIFFERING: dict[str, tuple[Json, Json, list[str]]] = {
    "another text": ({"text": "a"}, {"text": "b"}, ["/text"]),
    "another value deep inside": (
        {"data": {"a": [{"b": 1}, {"b": 2}]}},
        {"data": {"a": [{"b": 1}, {"b": 3}]}},
        ["/data/a/1/b"],
    ),
    "one item less": ({"data": [1, 2]}, {"data": [1]}, ["/data/1"]),
    "the order of a list": ({"data": [1, 2]}, {"data": [2, 1]}, ["/data/0", "/data/1"]),
    "a field more, a field less": ({"data": {"a": 1}}, {"data": {"b": 1}}, ["/data/a", "/data/b"]),
    "data that became text": ({"data": {"a": 1}}, {"text": "a is 1"}, ["/data"]),
    "an id of the agent's own": (
        {"data": {"customer_id": "7"}},
        {"data": {"customer_id": "8"}},
        ["/data/customer_id"],
    ),
    "a number that became a text": ({"data": {"n": 1}}, {"data": {"n": "1"}}, ["/data/n"]),
    "a number that became a truth": ({"data": {"n": 1}}, {"data": {"n": True}}, ["/data/n"]),
    "null that became nothing": ({"data": {"n": None}}, {"data": {"m": 1, "n": 0}}, ["/data/n", "/data/m"]),
    "an answer that became empty": ({"text": "a"}, {"artifacts": []}, ["/text"]),
    "a name that needs escaping": ({"data": {"a/b~": 1}}, {"data": {"a/b~": 2}}, ["/data/a~1b~0"]),
    "a wrapped text that changed": (
        {"text": "x", "data": {"result": "x"}},
        {"text": "y", "data": {"result": "y"}},
        ["/data/result"],
    ),
    "the same data under another text": (
        {"text": "The score is 1", "data": {"score": 1}},
        {"text": "Not sure", "data": {"score": 1}},
        ["/text"],
    ),
    "the same data without its text": ({"text": "Good", "data": {"n": 1}}, {"data": {"n": 1}}, ["/text"]),
    "JSON text that was never read as data": (
        {"text": "ok", "data": {"result": "ok"}},
        {"text": '{"result": "ok"}', "data": {"result": "ok"}},
        ["/text"],
    ),
}


@pytest.mark.parametrize(("old", "new", "where"), DIFFERING.values(), ids=DIFFERING.keys())
def test_what_a_workflow_would_notice_differs(old: Json, new: Json, where: list[str]) -> None:
    assert paths(old, new) == where


def test_what_only_the_old_side_has_is_named_although_the_content_agrees() -> None:
    plain: Json = {"text": "Sunny"}
    wrapped: Json = {"text": "Sunny", "data": {"result": "Sunny"}}
    assert only_in_source(wrapped, plain) == ("/data",)
    assert only_in_source(wrapped, wrapped) == ()
    assert only_in_source(plain, wrapped) == ()


def test_a_file_is_the_same_wherever_it_is_kept() -> None:
    content = b"%PDF"
    held: JsonObject = {"artifacts": [{"parts": [{"file": {"bytes": b64encode(content).decode()}}]}]}
    stored: JsonObject = {
        "artifacts": [{"parts": [{"filename": "a", "blob": {"id": hashlib.sha256(content).hexdigest()}}]}]
    }
    other: JsonObject = {"artifacts": [{"parts": [{"raw": b64encode(b"other").decode()}]}]}
    assert paths(held, stored) == []
    assert paths(stored, other) == ["/files/0"]


def test_values_are_cut_counted_and_without_secrets() -> None:
    old: Json = {"data": {f"k{n}": "x" * 1_000 for n in range(30)}}
    new: Json = {"data": {f"k{n}": "hunter2" for n in range(30)}}
    found, more = differences(old, new, lambda text: text.replace("hunter2", "***"))
    assert (len(found), more) == (MAX_DIFFERENCES, 30 - MAX_DIFFERENCES)
    assert found[0].new == '"***"'
    assert found[0].old is not None
    assert len(found[0].old) == 201


def test_a_missing_value_is_distinguished_from_null() -> None:
    found, _ = differences({"data": {"a": None}}, {"data": {}}, same)
    assert [(each.old, each.new) for each in found] == [("null", None)]


def test_nesting_without_end_breaks_nothing() -> None:
    old: Json = 1
    new: Json = 2
    for _ in range(50_000):
        old, new = [old], [new]
    found, _ = differences({"data": old}, {"data": new}, same)
    assert len(found) == 1
