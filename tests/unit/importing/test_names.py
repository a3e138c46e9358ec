"""Names of steps and files, whatever they were elsewhere."""

from __future__ import annotations

import pytest

from trunkline.importing.identifiers import file_name, identifiers


def test_ids_become_identifiers_and_stay_apart() -> None:
    given = ["step-1", "step_1", "step.1", "1st", "in", "größe", "", "x" * 100, "x" * 100 + "y"]
    names = identifiers(given)
    assert names["step_1"] == "step_1"
    assert names["step-1"] == "step_1_2"
    assert names["step.1"] == "step_1_3"
    assert names["1st"] == "step_1st"
    assert names["in"] == "in_"
    assert names["größe"] == "gr__e"
    assert len(set(names.values())) == len(given)
    assert all(name.isidentifier() and len(name) <= 64 for name in names.values())


def test_ten_thousand_ids_that_all_become_the_same_stay_apart() -> None:
    assert len(set(identifiers(chr(0x4E00 + number) for number in range(10_000)).values())) == 10_000


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("Parallel Loop", "Parallel-Loop"),
        ("../../etc/passwd", "etc-passwd"),
        ("..", "workflow"),
        ("a/b", "a-b"),
    ],
)
def test_a_name_is_no_path(name: str, file: str) -> None:
    assert file_name(name) == file
