"""How much of a part is shown while an agent works."""

from __future__ import annotations

from trunkline.jsontypes import JsonObject, encode
from trunkline.protocols.a2a.common.parts import shown_part


def test_a_short_part_is_shown_whole() -> None:
    part: JsonObject = {"kind": "data", "data": {"n": [1, 2, None, True]}}
    assert shown_part(part) == part


def test_the_bytes_of_a_file_are_cut() -> None:
    part: JsonObject = {"kind": "file", "file": {"name": "a.bin", "bytes": "A" * 10_000}}
    assert shown_part(part) == {"kind": "file", "file": {"name": "a.bin", "bytes": "A" * 200 + "…"}}


def test_a_part_that_is_long_all_the_same_is_only_named() -> None:
    part: JsonObject = {"kind": "data", "data": list(range(10_000))}
    assert shown_part(part) == {"kind": "data", "omitted_bytes": len(encode(part))}


def test_not_even_its_name_makes_a_part_long() -> None:
    part: JsonObject = {"kind": "k" * 10_000, "data": list(range(10_000))}
    assert len(encode(shown_part(part))) < 300
