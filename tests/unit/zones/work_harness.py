"""A call runner with its own store, and handlers that a test holds and releases."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

from trunkline.jsontypes import JsonObject, decode
from trunkline.services.security.vault import KEY_BYTES, Vault
from trunkline.stores.zones import CallKey, ZoneCall, ZoneStore
from trunkline.testing.clock import FakeClock
from trunkline.zones.call_runner import (
    CallAnswer,
    ZoneCallAccepted,
    ZoneCallErrored,
    ZoneCallJob,
    ZoneCallRunner,
)

# Only a call that hangs takes so long.
TIMEOUT_SECONDS = 20.0
# Longer than any test: what is not answered by then was not answered early.
NEVER = 3_600.0
KEY = b"k" * KEY_BYTES
HELLO = b'{"status":"success","response_text":"hello"}'


class GatedHandler:
    """Notes each run; waits at its gate."""

    def __init__(self, *, is_open: bool = False) -> None:
        self.runs = 0
        self.cancelled = 0
        self.began = asyncio.Event()
        self.gate = asyncio.Event()
        if is_open:
            self.gate.set()

    async def __call__(self) -> bytes:
        self.runs += 1
        self.began.set()
        try:
            await self.gate.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        return HELLO


class WorkHarness:
    def __init__(
        self, store: ZoneStore, *, accept_after: float = NEVER, clock: FakeClock | None = None
    ) -> None:
        self.store = store
        self.clock = clock or FakeClock()
        self.keep = timedelta(hours=24)
        self.work = ZoneCallRunner(
            store, Vault(KEY), accept_after=accept_after, keep=self.keep, clock=self.clock
        )
        # What a call that was interrupted runs with.
        self.revived = GatedHandler()
        self.revived_params: list[JsonObject] = []

    def job(self, handler: Any, id_: str = "1", **more: Any) -> ZoneCallJob:
        fields: dict[str, Any] = {
            "key": CallKey("partner", f'"{id_}"'.encode()),
            "method": "execute_task",
            "params": {"text": "hi", "bot_token": "xoxb-secret"},
            "digest": b"digest",
            "perform": handler,
            "deadline": NEVER,
            "correlation_id": "c-1",
        }
        return ZoneCallJob(**{**fields, **more})

    def revive(self, call: ZoneCall, params: JsonObject) -> ZoneCallJob | None:
        self.revived_params.append(params)
        return self.job(self.revived, key=call.key, params=params, digest=call.digest, restartable=True)

    async def answer(self, job: ZoneCallJob) -> CallAnswer:
        async with asyncio.timeout(TIMEOUT_SECONDS):
            return await self.work.run(job)

    async def end_of(self, task_id: str) -> CallAnswer | None:
        """Asks until it is over."""
        async with asyncio.timeout(TIMEOUT_SECONDS):
            while isinstance(answer := self.work.result_of("partner", task_id), ZoneCallAccepted):
                await asyncio.sleep(0)
        return answer


@asynccontextmanager
async def work_harness(store: ZoneStore, *, accept_after: float = NEVER) -> AsyncGenerator[WorkHarness]:
    harness = WorkHarness(store, accept_after=accept_after)
    await harness.work.resume_calls(harness.revive)
    try:
        yield harness
    finally:
        await harness.work.stop(0)


def error_of(answer: CallAnswer | None) -> JsonObject:
    assert isinstance(answer, ZoneCallErrored), answer
    error = decode(answer.error)
    assert isinstance(error, dict)
    return error


def reason_of(answer: CallAnswer | None) -> object:
    error = error_of(answer)
    data = error["data"]
    assert isinstance(data, dict)
    assert data["correlation_id"] == "c-1"
    return (error["code"], data.get("reason"))


def task_of(answer: CallAnswer) -> str:
    assert isinstance(answer, ZoneCallAccepted), answer
    return answer.task_id
