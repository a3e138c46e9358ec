"""
A zone that records each run of a handler, and dies where a test says.

    ZONE_RUNS   the file that gets a line when a handler begins; written at once, whatever happens to the process then
    ZONE_CRASH_POINT   where it is killed, by itself, with -9: see `CRASH_POINTS`
    ZONE_STOP_TIMEOUT  seconds
"""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Sequence

from trunkline.clock import Instant
from trunkline.jsontypes import JsonObject
from trunkline.stores.zones import CallKey, ZoneCall
from trunkline.stores.zones import file as zone_files
from trunkline.stores.zones.file import ZoneFile
from trunkline.zones import Zone

RUNS = "ZONE_RUNS"
CRASH_POINT = "ZONE_CRASH_POINT"
# In the order in which a call that is accepted and then ends comes past them.
CRASH_POINTS: Sequence[str] = (
    "before begin",
    "after begin",
    "in the handler",
    "before accept",
    "after accept",
    "before finish",
    "after finish",
)
# Longer than any test: it is killed before.
LONG = 120.0

STOP_TIMEOUT = "ZONE_STOP_TIMEOUT"

zone = Zone(
    "crash", accept_after=0.05, deadline=300.0, stop_timeout=float(os.environ.get(STOP_TIMEOUT, "60"))
)


def _pass(point: str) -> None:
    if os.environ.get(CRASH_POINT) == point:
        os.kill(os.getpid(), signal.SIGKILL)


def _note(name: object) -> None:
    descriptor = os.open(os.environ[RUNS], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(descriptor, f"{name}\n".encode())
    os.close(descriptor)


def _seconds(params: JsonObject) -> float:
    return float(str(params.get("seconds", 0)))


@zone.method("once")
async def once(params: JsonObject) -> JsonObject:
    return await _work(params)


@zone.method("again", restartable=True)
async def again(params: JsonObject) -> JsonObject:
    return await _work(params)


@zone.method("block")
def block(params: JsonObject) -> JsonObject:
    _note(params["name"])
    threading.Event().wait(_seconds(params))
    return {"response_text": str(params["name"])}


async def _work(params: JsonObject) -> JsonObject:
    _note(params["name"])
    _pass("in the handler")
    await asyncio.sleep(_seconds(params))
    return {"response_text": str(params["name"])}


class CrashingZoneFile(ZoneFile):
    def begin(self, call: ZoneCall) -> ZoneCall | None:
        _pass("before begin")
        known = super().begin(call)
        _pass("after begin")
        return known

    async def accept(self, key: CallKey) -> None:
        _pass("before accept")
        await super().accept(key)
        _pass("after accept")

    def finish(
        self, key: CallKey, now: Instant, *, result: bytes | None = None, error: bytes | None = None
    ) -> None:
        _pass("before finish")
        super().finish(key, now, result=result, error=error)
        _pass("after finish")


if CRASH_POINT in os.environ:
    # For the life of this process.
    # Without pytest, which is a third of what a start imports.
    setattr(zone_files, "ZoneFile", CrashingZoneFile)  # noqa: B010
