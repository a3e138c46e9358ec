"""The page and the API agree: the types that the page is checked against are those of the API of now."""

from __future__ import annotations

from tests.ui.api_types import TYPES, generated


def test_the_types_of_the_page_are_those_of_the_api() -> None:
    assert TYPES.read_text("utf-8") == generated(), "The API has changed: run make ui-types"
