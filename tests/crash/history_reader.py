"""Asks a running Trunkline for its whole history, through the doors that anybody can use."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from time import monotonic

import msgspec
from tests.crash.agents import ReceivedCall
from tests.crash.client import RunEvent, TrunklineClient
from tests.crash.history_checker import Ending, RequestedRun, RunHistory, SystemHistory

from trunkline.jsontypes import JsonObject

# Only what waits forever takes so long.
_QUIET_SECONDS = 90


async def quiet(client: TrunklineClient) -> None:
    """Returns when nothing waits any more, or after so long that it never will."""
    until = monotonic() + _QUIET_SECONDS
    while any((await client.gauge("trunkline_queue_depth")).values()) and monotonic() < until:
        await asyncio.sleep(0.1)


async def read_history(
    client: TrunklineClient,
    wanted: Sequence[RequestedRun],
    calls: Sequence[ReceivedCall],
    lives: dict[int, Ending],
) -> SystemHistory:
    runs: list[RunHistory] = []
    for listed in await _with_blocks(client, await client.pages("/runs")):
        path = f"/runs/{listed['id']}"
        events = [msgspec.convert(event, RunEvent) for event in await client.pages(f"{path}/events")]
        runs.append(
            RunHistory(
                run=await client.call("GET", path), events=events, wire=await client.pages(f"{path}/wire")
            )
        )
    without_reason = await client.gauge("trunkline_rows_without_wake_reason")
    return SystemHistory(
        wanted=list(wanted),
        runs=runs,
        calls=list(calls),
        lives=dict(lives),
        without_wake_reason=without_reason[""],
        waiting=await client.gauge("trunkline_queue_depth"),
    )


async def _with_blocks(client: TrunklineClient, runs: Sequence[JsonObject]) -> list[JsonObject]:
    """The runs and, behind each, those of its blocks: lists leave them out."""
    found: list[JsonObject] = []
    for run in runs:
        below = await client.pages(f"/runs?parent={run['id']}")
        blocks = [each for each in below if "block" in each]
        found += [run, *await _with_blocks(client, blocks)]
    return found
