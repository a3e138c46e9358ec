"""Bytes become lines, however they are cut."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trunkline.transports.lines import Line, LineReader


def read(chunks: list[bytes], longest: int = 1_000) -> list[Line]:
    reader = LineReader(longest)
    return [line for chunk in chunks for line in reader.feed(chunk)] + reader.end()


@given(
    st.lists(st.binary(max_size=20).filter(lambda text: b"\n" not in text and b"\r" not in text)), st.data()
)
def test_lines_are_the_same_wherever_they_are_cut(lines: list[bytes], data: st.DataObject) -> None:
    text = b"".join(line + b"\n" for line in lines)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=10)))
    chunks = [text[begin:end] for begin, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    assert read(chunks) == [Line(line) for line in lines]


@pytest.mark.parametrize(
    ("chunks", "lines"),
    [
        ([b"a\r\nb\n"], [Line(b"a"), Line(b"b")]),
        ([b"a\r", b"\nb"], [Line(b"a"), Line(b"b")]),
        ([b"\n\n"], [Line(b""), Line(b"")]),
        ([b"a"], [Line(b"a")]),
        ([], []),
    ],
)
def test_the_last_line_needs_no_end_and_windows_ends_are_ends(chunks: list[bytes], lines: list[Line]) -> None:
    assert read(chunks) == lines


@pytest.mark.parametrize(
    "chunks", [[b"12345", b"6789\nnext\n"], [b"123456\nnext\n"], [b"1234567", b"8" * 100, b"9\nnext\n"]]
)
def test_of_a_line_that_is_too_long_there_is_only_the_beginning(chunks: list[bytes]) -> None:
    assert read(chunks, longest=5) == [Line(b"12345", is_whole=False), Line(b"next")]


def test_a_line_of_just_the_longest_length_is_whole() -> None:
    assert read([b"12345\n123456\n"], longest=5) == [Line(b"12345"), Line(b"12345", is_whole=False)]


def test_a_line_that_is_too_long_is_an_error_before_its_end() -> None:
    assert LineReader(5).feed(b"1234567") == [Line(b"12345", is_whole=False)]
