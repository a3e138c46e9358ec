"""The threads for handlers that are not coroutines."""

from __future__ import annotations

import subprocess
import sys
import threading

import pytest

from trunkline.zones.thread_pool import DaemonThreadPool

TIMEOUT_SECONDS = 20

STUCK = """
import threading
from trunkline.zones.thread_pool import DaemonThreadPool

with DaemonThreadPool() as threads:
    began = threading.Event()
    threads.submit(lambda: (began.set(), threading.Event().wait()))
    began.wait()
print("over")
"""


def test_calls_run_at_once_up_to_the_limit_and_the_rest_in_turn() -> None:
    with DaemonThreadPool(most=3) as threads:
        meeting = threading.Barrier(4)
        gate = threading.Event()

        def meet() -> int:
            meeting.wait(TIMEOUT_SECONDS)
            gate.wait(TIMEOUT_SECONDS)
            return threading.get_ident()

        first = [threads.submit(meet) for _ in range(3)]
        fourth = threads.submit(threading.get_ident)
        meeting.wait(TIMEOUT_SECONDS)
        assert not fourth.running()
        gate.set()
        idents = {call.result(TIMEOUT_SECONDS) for call in first}
        assert len(idents) == 3
        assert fourth.result(TIMEOUT_SECONDS) in idents


def test_a_thread_that_is_free_is_used_again() -> None:
    with DaemonThreadPool(most=3) as threads:
        idents: set[int] = set()
        free = threading.Event()
        for _ in range(20):
            free.clear()
            call = threads.submit(threading.get_ident)
            call.add_done_callback(lambda _: free.set())
            idents.add(call.result(TIMEOUT_SECONDS))
            assert free.wait(TIMEOUT_SECONDS)
        assert len(idents) <= 3


def test_a_call_that_is_given_up_before_its_turn_is_not_made() -> None:
    with DaemonThreadPool(most=1) as threads:
        gate, made = threading.Event(), threading.Event()
        first = threads.submit(gate.wait, TIMEOUT_SECONDS)
        second = threads.submit(made.set)
        assert second.cancel()
        gate.set()
        assert first.result(TIMEOUT_SECONDS)
        assert threads.submit(int).result(TIMEOUT_SECONDS) == 0
        assert not made.is_set()


def test_what_a_call_raises_is_raised_where_it_is_waited_for() -> None:
    with DaemonThreadPool() as threads:
        with pytest.raises(ZeroDivisionError):
            threads.submit(lambda: 1 // 0).result(TIMEOUT_SECONDS)
        with pytest.raises(SystemExit):
            threads.submit(sys.exit, 3).result(TIMEOUT_SECONDS)


def test_a_call_that_never_ends_does_not_keep_the_process() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", STUCK], capture_output=True, text=True, timeout=TIMEOUT_SECONDS, check=False
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "over\n", "")
