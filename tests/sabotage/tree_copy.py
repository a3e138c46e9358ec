"""A copy of the tree, and the reports of tests that run in it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from tests.sabotage.report_plugin import REPORT_VARIABLE

ROOT = Path(__file__).parents[2]
# A test that hangs without the rule is stopped; a timeout does not count as noticing.
_TEST_SECONDS = 120
_TESTS_FAILED = 1
# Long ago, in seconds since 1970: a file of the tree is newer.
_FIRST_CHANGE = 1_000_000_000


class TestOutcome(NamedTuple):
    """The outcome of one test: `passed`, `failed` or `skipped`, with its output."""

    test: str
    outcome: str
    phase: str
    words: str


class TestReport(NamedTuple):
    exit_code: int
    verdicts: Sequence[TestOutcome]
    # Why the tests could not run at all.
    problem: str | None

    def of(self, test: str) -> list[TestOutcome]:
        """The outcomes of a test, for all its parameters unless some are named."""
        return [each for each in self.verdicts if each.test == test or each.test.startswith(f"{test}[")]

    @property
    def failed_as_tests_do(self) -> bool:
        return self.exit_code == _TESTS_FAILED and self.problem is None


class TreeCopy:
    """A copy of the working tree: tracked and new files, with uncommitted changes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._modified_at = _FIRST_CHANGE
        listed = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        )
        for name in listed.stdout.split("\0"):
            source = ROOT / name
            if name and source.is_file():
                target = folder / name
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(source, target)
        # Kafka's jars never change.
        (folder / ".services").symlink_to(ROOT / ".services", target_is_directory=True)

    @contextmanager
    def changed(self, path: str, text: str) -> Generator[None]:
        file = self.folder / path
        before = file.read_text()
        self._write(file, text)
        try:
            yield
        finally:
            self._write(file, before)

    def _write(self, file: Path, text: str) -> None:
        """
        Gives the file a modification time that it never had.

        Python finds a module's bytecode by the time and the size of its source. A file that is changed and restored
        within a second would otherwise keep the bytecode of the change.
        """
        file.write_text(text)
        self._modified_at += 1
        os.utime(file, (self._modified_at, self._modified_at))

    def run(self, tests: Sequence[str]) -> TestReport:
        report = self.folder / "report.jsonl"
        report.unlink(missing_ok=True)
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "tests.sabotage.report_plugin",
            "-p",
            "no:cacheprovider",
        ]
        ended = subprocess.run(
            [*command, "--timeout", str(_TEST_SECONDS), *tests],
            cwd=self.folder,
            env=os.environ
            | {
                "PYTHONPATH": f"{self.folder / 'src'}{os.pathsep}{self.folder}",
                REPORT_VARIABLE: str(report),
            },
            capture_output=True,
            text=True,
            check=False,
        )
        lines = report.read_text().splitlines() if report.exists() else []
        return self._trial(ended, [json.loads(line) for line in lines])

    def _trial(self, ended: subprocess.CompletedProcess[str], told: Sequence[dict[str, str]]) -> TestReport:
        verdicts = [
            TestOutcome(line["test"], line["kind"], line["phase"], line["words"])
            for line in told
            if line["kind"] in {"passed", "failed", "skipped"}
        ]
        return TestReport(ended.returncode, verdicts, self._problem(ended, told, verdicts))

    def _problem(
        self,
        ended: subprocess.CompletedProcess[str],
        told: Sequence[dict[str, str]],
        verdicts: Sequence[TestOutcome],
    ) -> str | None:
        programs = [line["file"] for line in told if line["kind"] == "program"]
        if not programs:
            return f"pytest did not start: {(ended.stdout + ended.stderr)[-2000:]}"
        if not Path(programs[0]).is_relative_to(self.folder / "src"):
            return f"the program that was tested is not the copy: {programs[0]}"
        for line in told:
            if line["kind"] == "not collected":
                return f"{line['test']} could not be collected: {line['words'][-1000:]}"
        begun = {line["test"] for line in told if line["kind"] == "begun"}
        lost = begun - {verdict.test for verdict in verdicts}
        return f"{', '.join(sorted(lost))} did not end" if lost else None


@contextmanager
def copies(number: int) -> Generator[list[TreeCopy]]:
    with tempfile.TemporaryDirectory(prefix="trunkline-sabotage-") as folder:
        # The user that runs PostgreSQL on behalf of root must be able to read this folder.
        Path(folder).chmod(0o755)
        yield [TreeCopy(Path(folder) / str(each)) for each in range(number)]
