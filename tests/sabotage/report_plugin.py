"""
A pytest plugin that records which program was tested and the outcome of each test, one JSON object per line.

Each line is flushed, so that a test that kills the process is in the report too.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

import trunkline

REPORT_VARIABLE = "TRUNKLINE_SABOTAGE_REPORT"


def _record(**facts: str) -> None:
    with Path(os.environ[REPORT_VARIABLE]).open("a") as report:
        report.write(json.dumps(facts) + "\n")


def pytest_sessionstart() -> None:
    _record(kind="program", file=str(trunkline.__file__))


def pytest_collectreport(report: pytest.CollectReport) -> None:
    if report.failed:
        _record(kind="not collected", test=report.nodeid, words=report.longreprtext)


def pytest_runtest_logstart(nodeid: str) -> None:
    _record(kind="begun", test=nodeid)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    # Only the lines of the exception; the others show the code.
    words = "\n".join(line[1:] for line in report.longreprtext.splitlines() if line.startswith("E"))
    if report.when == "call" or not report.passed:
        _record(
            kind=report.outcome, test=report.nodeid, phase=report.when, words=words or report.longreprtext
        )
