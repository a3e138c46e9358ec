"""How large values are split into pieces, and put together again."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from trunkline.jsontypes import Json, encode
from trunkline.stores.payloads import (
    MAX_IN_ROW_BYTES,
    Piece,
    PieceCache,
    is_split,
    joined,
    pieces_of,
    size_of,
    split,
)

LONG = "x" * (2 * MAX_IN_ROW_BYTES)
TEXTS = st.one_of(
    st.text(max_size=5),
    st.sampled_from(['"', "\\", '\\"', "\\\\", LONG, f'"{LONG}', f"{LONG}\\", f'{LONG}\\"', f"\\{LONG}ü"]),
)
VALUES = st.recursive(
    TEXTS | st.integers() | st.none(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=8,
)


def bodies_of(pieces: list[Piece]) -> dict[bytes, bytes]:
    return dict(pieces)


@given(VALUES)
def test_pieces_together_are_the_value(value: Json) -> None:
    text = encode(value)
    stored, pieces = split(text)
    assert joined(stored, bodies_of(pieces)) == text
    assert is_split(stored) == bool(pieces) == (len(text) > MAX_IN_ROW_BYTES)
    if pieces:
        assert size_of(stored) == len(text)
        assert pieces_of(stored) == {piece.digest: len(piece.body) for piece in pieces}


def test_the_same_long_text_in_two_values_is_one_piece() -> None:
    texts = [encode({"item": number, "text": LONG, "more": "y"}) for number in range(2)]
    (first, pieces), (second, again) = map(split, texts)
    assert pieces == again
    assert [piece.body for piece in pieces] == [encode(LONG)]
    assert first != second
    assert len(first) < 200


def test_what_is_large_without_a_long_text_is_one_piece() -> None:
    text = encode([{"n": number} for number in range(20_000)])
    _, pieces = split(text)
    assert [piece.body for piece in pieces] == [text]


def test_the_search_for_long_texts_has_a_limit() -> None:
    text = encode(["a"] * 30_000 + [LONG])
    _, pieces = split(text)
    # The long text stands behind the last quote that is looked at.
    assert [piece.body for piece in pieces] == [text]


def test_what_is_split_stays_as_it_is() -> None:
    stored, _ = split(encode([f"{LONG}{number}" for number in range(2_000)]))
    assert len(stored) > MAX_IN_ROW_BYTES
    assert split(stored) == (stored, [])


def test_the_cache_keeps_the_pieces_that_were_used_last() -> None:
    cache = PieceCache(max_bytes=30)
    cache.put([(b"a", bytes(10)), (b"b", bytes(10)), (b"c", bytes(10)), (b"too large", bytes(31))])
    assert cache.known([b"a", b"too large"]) == {b"a": bytes(10)}
    cache.put([(b"d", bytes(10))])
    assert list(cache.known([b"a", b"b", b"c", b"d"])) == [b"a", b"c", b"d"]
