"""Answers that are JSON but exceed a limit."""

from __future__ import annotations

import pytest

from trunkline.protocols.answer_json import MAX_CONTAINERS, MAX_ITEMS, NotJson, parse


def refusal(text: bytes) -> str:
    try:
        parse(text)
    except NotJson as exc:
        return str(exc)
    return "none"


@pytest.mark.parametrize(
    "text",
    [
        b"[" + b"{}," * MAX_CONTAINERS + b"{}]",
        b"[" + b"[[]]," * MAX_CONTAINERS + b"0]",
        b"[" + b"0," * (MAX_ITEMS + 1) + b"0]",
        b'"' * (5 * MAX_ITEMS) + b"{" * (MAX_CONTAINERS + 1),
        b'"",' * (MAX_ITEMS + 1),
    ],
)
def test_more_values_than_anybody_can_use_are_refused_unread(text: bytes) -> None:
    assert "more than 200,000 objects and arrays, or 1,000,000 items" in refusal(text)


@pytest.mark.parametrize("said", ["{[,", '\\"{', '"{', "\\{"])
def test_what_a_text_says_is_not_counted(said: str) -> None:
    text = said * (MAX_ITEMS + 1)
    as_json = text.replace("\\", "\\\\").replace('"', '\\"')
    assert parse(f'["{as_json}"]'.encode()) == [text]


def test_a_long_list_is_an_answer() -> None:
    assert parse(b"[" + b"0.25," * 900_000 + b"1]") == [*[0.25] * 900_000, 1]
