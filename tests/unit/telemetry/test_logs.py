"""What a log line shows of an exception: where it was raised, and nothing of what was at hand there."""

from __future__ import annotations

import subprocess
import sys

import pytest

RAISES = """
import sys
import structlog
from trunkline.telemetry.logs import configure_logs

configure_logs("debug", sys.argv[1])

def fail(token):
    headers = {"Authorization": token}
    raise LookupError("no such thing")

try:
    fail("canary-" + "4711")
except LookupError:
    structlog.stdlib.get_logger().exception("call_crashed")
"""


@pytest.mark.parametrize("log_format", ["console", "json"])
def test_an_exception_is_shown_without_what_the_variables_held(log_format: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", RAISES, log_format], capture_output=True, text=True, check=True
    )
    assert "LookupError: no such thing" in done.stderr
    assert "in fail" in done.stderr
    assert "canary-4711" not in done.stderr
