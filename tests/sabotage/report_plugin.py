"""
A plugin of pytest: writes down, line by line, which program was tested and what became of each test.

The file is flushed after every line, so that what a test has done that takes the process with it is there too.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

import trunkline

REPORT_VARIABLE = "TRUNKLINE_SABOTAGE_REPORT"


def _tell(**facts: str) -> None:
    with Path(os.environ[REPORT_VARIABLE]).open("a") as report:
        report.write(json.dumps(facts) + "\n")


def pytest_sessionstart() -> None:
    _tell(kind="program", file=str(trunkline.__file__))


def pytest_collectreport(report: pytest.CollectReport) -> None:
    if report.failed:
        _tell(kind="not collected", test=report.nodeid, words=report.longreprtext)


def pytest_runtest_logstart(nodeid: str) -> None:
    _tell(kind="begun", test=nodeid)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    # The last words are those of the exception; what is before them shows the code.
    words = "\n".join(line[1:] for line in report.longreprtext.splitlines() if line.startswith("E"))
    if report.when == "call" or not report.passed:
        _tell(kind=report.outcome, test=report.nodeid, phase=report.when, words=words or report.longreprtext)
