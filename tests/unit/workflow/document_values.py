"""Values that a document can hold, for the tests that read documents and write them."""

from __future__ import annotations

from hypothesis import strategies as st

from trunkline.jsontypes import Json


def values_with(texts: st.SearchStrategy[str]) -> st.SearchStrategy[Json]:
    """Numbers only as JSON and YAML both have them."""
    return st.recursive(
        st.none()
        | st.booleans()
        | st.integers(-(2**53), 2**53)
        | st.floats(allow_nan=False, allow_infinity=False)
        | texts,
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
        max_leaves=20,
    )
