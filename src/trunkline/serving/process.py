"""A process that serves: when it has to stop, and how little its memory is looked through."""

from __future__ import annotations

import asyncio
import gc
import signal


def stop_signal() -> asyncio.Event:
    """Set when the process is asked to stop: SIGTERM or Ctrl-C."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    return stop


def calm_collector() -> None:
    """For a process that has loaded all that it needs."""
    # What is loaded by now stays for good, and what a run makes is freed without the collector: looking through
    # all of it again and again took a sixth of the time. No collection before it: it would find next to nothing,
    # and hold up for 40 ms whoever has waited for the start.
    gc.freeze()
    gc.set_threshold(20_000, 25, 50)
