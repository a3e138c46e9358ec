"""What readers of JSON do not agree about: a mark before the text, and a key that an object has twice."""

from __future__ import annotations

import json

_MARK = b"\xef\xbb\xbf"


def ambiguity_in(body: bytes) -> str | None:
    """The first one, of a body that is JSON."""
    if body.startswith(_MARK):
        return "The answer begins with a byte order mark."
    twice: list[str] = []

    def note(pairs: list[tuple[str, object]]) -> None:
        seen: set[str] = set()
        for name, _ in pairs:
            if name in seen:
                twice.append(name)
            seen.add(name)

    # Numbers as they are: one with thousands of digits is no whole number for Python.
    json.loads(body, object_pairs_hook=note, parse_int=str, parse_float=str)
    return f"An object of the answer has the key {twice[0]!r} twice." if twice else None
