"""
JSON values inside a text: in code fences, and in prose.

    Here is the result:
    ```json
    {"score": 3}
    ```
    I hope that {"score": 3} helps.

Deterministic, no I/O. Bounded: a text is read at most a few times, whatever is in it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import msgspec

from trunkline.jsontypes import Json, decode

_FENCE = "```"
_OPENING = "{["
# A value begins at a bracket; most brackets of a text that has JSON in it are inside a value.
_MAX_BEGINNINGS = 200
# How much is read at all of them together, in lengths of the text.
_MAX_PASSES = 4
_decoder = json.JSONDecoder()


def embedded_values(text: str) -> Iterator[Json]:
    """Those in code fences first. Of several, the last comes first: drafts come before the answer."""
    yield from reversed([*_fenced(text)])
    yield from reversed([*_in_prose(text)])


def _fenced(text: str) -> Iterator[Json]:
    parts = text.split(_FENCE)
    for block in parts[1 : _MAX_BEGINNINGS * 2 : 2]:
        # The word behind the fence names the language.
        first, _, rest = block.partition("\n")
        for candidate in (rest, block) if first.strip().isalnum() or not first.strip() else (block,):
            try:
                yield decode(candidate.encode())
            except (msgspec.DecodeError, ValueError, RecursionError):
                continue
            break


def _in_prose(text: str) -> Iterator[Json]:
    place, left = 0, len(text) * _MAX_PASSES
    for _ in range(_MAX_BEGINNINGS):
        place = _next_opening(text, place)
        if place < 0 or left <= 0:
            return
        try:
            _, end = _decoder.raw_decode(text, place)
            value = decode(text[place:end].encode())
        except json.JSONDecodeError as exc:
            left -= exc.pos - place + 1
        except (msgspec.DecodeError, ValueError, RecursionError):
            # Read to the end of the value, and not JSON for us: NaN, or nested too deeply.
            left -= len(text) - place
        else:
            yield value
            left -= end - place
            place = end
            continue
        place += 1


def _next_opening(text: str, start: int) -> int:
    found = [place for bracket in _OPENING if (place := text.find(bracket, start)) >= 0]
    return min(found, default=-1)
