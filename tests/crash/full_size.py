"""
Runs the crash tests at full size, in parts that each take less than 40 minutes: `make chaos`.

    python -m tests.crash.full_size                 run the parts that have not passed yet
    python -m tests.crash.full_size --only NAME     run this part, even if it has passed
    python -m tests.crash.full_size --list          show the parts and their results

The result of a part is kept in `.services/chaos` until the source or the crash tests change, so an interrupted run
continues where it stopped. At the end, the figures of all parts are added up.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from time import monotonic
from typing import NamedTuple

import msgspec
from tests.crash.process_instances import ROOT
from tests.crash.report import FIGURES_FILE

_RESULTS = ROOT / ".services" / "chaos"
# These figures are not added up; the largest counts.
_MAXIMUM_OF = ("recovery seconds", "peak memory", "longest")


class Part(NamedTuple):
    name: str
    tests: str
    environment: Mapping[str, int | str]


class PartResult(msgspec.Struct):
    passed: bool
    seconds: float
    figures: dict[str, int | float]


def _all_parts() -> Iterator[Part]:
    for number in range(1, 3):
        yield Part(
            f"kill-loop-{number}",
            "tests/crash/test_kill_loop.py",
            {"RUNS": 5_000, "KILLS": 500, "SEED": number},
        )
    # In total: 10,000 runs, 1,000 kills, 10 kills of the broker, 10 crashes of the database, 20 pauses.
    for number in range(1, 6):
        yield Part(
            f"distributed-kills-{number}",
            "tests/crash/test_distributed_kills.py",
            {
                "RUNS": 2_000, "KILLS": 200, "BROKER_KILLS": 2, "DATABASE_CRASHES": 2, "PAUSES": 4, "SEED": number,
            },
        )  # fmt: skip
    shares = 6
    for number in range(1, shares + 1):
        yield Part(
            f"distributed-points-{number}",
            "tests/crash/test_distributed_points.py",
            {"POINTS": 20, "SHARE": f"{number}/{shares}"},
        )
    for mode, test in (("embedded", "its_process_is"), ("distributed", "its_bridges_are")):
        yield Part(
            f"fleet-migration-{mode}",
            f"tests/crash/test_fleet_migration.py::test_a_fleet_moves_while_{test}_killed",
            {"RUNS": 3_000, "KILLS": 60},
        )
    yield Part(
        "attacks",
        "tests/crash/test_attacks.py tests/crash/test_strangers.py",
        {
            "ANSWERS": 100,
            "ANSWER_MEGABYTES": 15,
            "HALF_OPEN_CONNECTIONS": 1_300,
            "LOOP_ITEMS": 60,
            "LOOP_MEGABYTES": 6,
        },
    )
    yield Part("published-kills", "tests/crash/test_published_kills.py", {"PUBLISHED_KILLS": 50})
    for mode in ("embedded", "distributed"):
        yield Part(
            f"trigger-storm-{mode}",
            f"tests/crash/test_trigger_storm.py -k {mode}",
            {"RUNS": 10_000, "KILLS": 100},
        )
    yield Part("event-sources", "tests/crash/test_event_source_points.py", {"RECORDS": 10_000})
    yield Part("zone-kills", "tests/crash/test_zone_kills.py", {"KILLS": 200})
    yield Part("zone-client-kills", "tests/crash/test_zone_client_kills.py", {"KILLS": 200})


PARTS = tuple(_all_parts())


def _source_digest() -> str:
    """Of everything that the result of a part depends on."""
    digest = hashlib.sha256()
    for folder in ("src/trunkline", "tests/crash", "deploy/local"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            digest.update(f"{path.relative_to(ROOT)}\0".encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


class PartResults:
    """The results in a folder, which is one for each state of the source."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._folder.mkdir(parents=True, exist_ok=True)

    def get(self, part: Part) -> PartResult | None:
        file = self._file(part)
        return msgspec.json.decode(file.read_bytes(), type=PartResult) if file.exists() else None

    def has_passed(self, part: Part) -> bool:
        result = self.get(part)
        return result is not None and result.passed

    def run(self, part: Part) -> PartResult:
        figures = self._folder / f"{part.name}.figures.json"
        figures.unlink(missing_ok=True)
        environment = os.environ | {FIGURES_FILE: str(figures)}
        environment |= {f"TRUNKLINE_CHAOS_{name}": str(value) for name, value in part.environment.items()}
        began = monotonic()
        ended = subprocess.run(
            [sys.executable, "-m", "pytest", "--timeout", "0", "-s", "-q", *part.tests.split(" ")],
            cwd=ROOT,
            env=environment,
            check=False,
        )
        result = PartResult(
            passed=ended.returncode == 0,
            seconds=round(monotonic() - began, 1),
            figures=msgspec.json.decode(figures.read_bytes()) if figures.exists() else {},
        )
        # Whole or not at all: an interrupted part runs again.
        new = self._file(part).with_suffix(".new")
        new.write_bytes(msgspec.json.encode(result))
        new.replace(self._file(part))
        return result

    def choose(self, parts: Sequence[Part], names: Sequence[str] | None) -> Sequence[Part]:
        """The parts to run: those that are named, or all that have not passed."""
        if names:
            return [part for part in parts if part.name in names]
        return [part for part in parts if not self.has_passed(part)]

    def _file(self, part: Part) -> Path:
        return self._folder / f"{part.name}.json"


def show(results: PartResults, parts: Sequence[Part]) -> None:
    """Prints how each part has ended, and the figures of all of them."""
    width = max(len(part.name) for part in parts)
    total: dict[str, int | float] = {}
    for part in parts:
        result = results.get(part)
        if result is None:
            _say(f"{part.name:{width}}  not run")
            continue
        _say(f"{part.name:{width}}  {'passed' if result.passed else 'FAILED'}  {result.seconds:6.0f} s")
        for name, figure in result.figures.items():
            before = total.get(name, 0)
            total[name] = max(before, figure) if name.startswith(_MAXIMUM_OF) else before + figure
    if total:
        _say("")
    for name, figure in total.items():
        _say(f"{name:40} {figure:>12,}")


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.crash.full_size", description=__doc__)
    parser.add_argument("--only", action="append", metavar="NAME", choices=[part.name for part in PARTS])
    parser.add_argument(
        "--list", action="store_true", help="show the parts and their results, and run nothing"
    )
    arguments = parser.parse_args()
    results = PartResults(_RESULTS / _source_digest())
    if not arguments.list:
        for part in results.choose(PARTS, arguments.only):
            _say(f"== {part.name}")
            results.run(part)
    show(results, PARTS)
    failed = [part.name for part in PARTS if (result := results.get(part)) is not None and not result.passed]
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
