"""The full-size crash tests run in parts: what has passed stays, and what was interrupted or has failed runs again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from time import monotonic

import pytest
from tests.crash.full_size import PARTS, Part, PartResults, show
from tests.crash.process_instances import ROOT

# It passes if a file is there, counts how often it has run, and hangs if its environment says so.
_TEST = """
import os, time
from pathlib import Path
from tests.crash.report import write_figures

HERE = Path(__file__).parent

def test_a_part():
    with (HERE / "runs").open("a") as runs:
        runs.write("x")
    write_figures({"runs": int(os.environ["TRUNKLINE_CHAOS_RUNS"]), "longest": len((HERE / "runs").read_text())})
    while os.environ.get("HANGS"):
        time.sleep(0.1)
    assert (HERE / "passes").exists()
"""
_RUN = """
import sys
from pathlib import Path
from tests.crash.full_size import Part, PartResults
PartResults(Path(sys.argv[1])).run(Part("one", sys.argv[2], {"RUNS": 5}))
"""
_AMPLE_SECONDS = 60


@pytest.fixture
def parts(tmp_path: Path) -> list[Part]:
    made: list[Part] = []
    for number, name in enumerate(("one", "two")):
        folder = tmp_path / name
        folder.mkdir()
        test = folder / "test_part.py"
        test.write_text(_TEST)
        made.append(Part(name, str(test), {"RUNS": 5 + number}))
    return made


def runs_of(part: Part) -> int:
    file = Path(part.tests).parent / "runs"
    return len(file.read_text()) if file.exists() else 0


def let_pass(part: Part) -> None:
    (Path(part.tests).parent / "passes").touch()


def test_what_has_passed_stays_and_what_has_failed_runs_again(
    tmp_path: Path, parts: list[Part], capsys: pytest.CaptureFixture[str]
) -> None:
    one, two = parts
    let_pass(one)
    results = PartResults(tmp_path / "results")
    assert results.choose(parts, None) == parts
    assert [results.run(part).passed for part in parts] == [True, False]
    again = PartResults(tmp_path / "results")
    assert again.choose(parts, None) == [two]
    assert again.choose(parts, ["one"]) == [one]
    let_pass(two)
    assert again.run(two).passed
    assert (runs_of(one), runs_of(two)) == (1, 2)
    assert again.choose(parts, None) == []
    capsys.readouterr()
    show(again, parts)
    *_, runs, longest = capsys.readouterr().out.splitlines()
    # Added up, apart from what is a maximum.
    assert (runs.split(), longest.split()) == (["runs", "11"], ["longest", "2"])


def test_a_part_that_is_interrupted_runs_again(tmp_path: Path, parts: list[Part]) -> None:
    one = parts[0]
    let_pass(one)
    process = subprocess.Popen(
        [sys.executable, "-c", _RUN, str(tmp_path / "results"), one.tests],
        cwd=ROOT,
        env=os.environ | {"HANGS": "1"},
        start_new_session=True,
    )
    try:
        deadline = monotonic() + _AMPLE_SECONDS
        while runs_of(one) == 0:
            assert monotonic() < deadline, "the part did not begin"
            assert process.poll() is None, "the part has ended"
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    results = PartResults(tmp_path / "results")
    assert results.choose([one], None) == [one]
    assert results.run(one).passed
    assert runs_of(one) == 2


def test_the_parts_have_the_full_size_together() -> None:
    def total(test: str, name: str) -> int:
        return sum(int(part.environment.get(name, 0)) for part in PARTS if test in part.tests)

    assert [total("kill_loop", name) for name in ("RUNS", "KILLS")] == [10_000, 1_000]
    wanted = {"RUNS": 10_000, "KILLS": 1_000, "BROKER_KILLS": 10, "DATABASE_CRASHES": 10, "PAUSES": 20}
    assert {name: total("distributed_kills", name) for name in wanted} == wanted
    assert len({part.name for part in PARTS}) == len(PARTS)
