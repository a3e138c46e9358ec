"""Cursors hold the last key seen."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from trunkline.api.paging import decode_cursor, encode_cursor, page


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1))
def test_a_cursor_gives_its_key_back(key: str) -> None:
    assert decode_cursor(encode_cursor(key)) == key


@given(st.from_regex(r"\A([A-Za-z0-9_-]{4})*[A-Za-z0-9_-]{2,4}\Z"))
def test_every_text_of_a_cursors_form_is_a_place_in_the_list(cursor: str) -> None:
    assert decode_cursor(cursor) is not None


def test_no_cursor_begins_at_the_beginning() -> None:
    assert decode_cursor(None) is None


def test_the_last_page_has_no_cursor() -> None:
    assert page([1, 2], 2, lambda item: item) == ([1, 2], None)


def test_a_page_with_more_behind_it_has_the_cursor_of_its_last_item() -> None:
    items, cursor = page([1, 2, 3], 2, lambda item: item)
    assert items == [1, 2]
    assert cursor == "2"
