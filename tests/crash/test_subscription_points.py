"""The process ends at every point of a delivery, is started again, and every change arrives, in order per run."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import aiohttp
import pytest
from tests.crash.client import ServerGone
from tests.crash.crash_points import KILLED, SUBSCRIPTION_POINTS, point_in
from tests.crash.process_instances import ProcessStarter
from tests.crash.test_trigger_points import client_of
from tests.scenarios.event_receiver import event_receiver

pytestmark = pytest.mark.anyio

WORKFLOW = b"{name: failing, steps: {bad: {set: {x: '${ input.missing.deep }'}}}}"
RUNS = 6
TYPES = ["step.failed", "run.failed"]


@pytest.mark.parametrize(
    "point", [*SUBSCRIPTION_POINTS, "post.before", "post.after", "commit.before", "commit.after"]
)
async def test_every_change_is_delivered_in_order_wherever_the_process_ends(
    point: str,
    tmp_path: Path,
    starter: ProcessStarter,
    session: aiohttp.ClientSession,
    mode_settings: Mapping[str, str],
) -> None:
    async with event_receiver() as receiver:
        client = await client_of(await starter.start(tmp_path / "data", settings=mode_settings), session)
        await client.call("POST", "/workflows", WORKFLOW)
        await client.call(
            "POST", "/subscriptions", {"name": "outside", "url": receiver.url, "types": [*TYPES]}
        )
        await starter.end()
        # One claim takes everything that is due.
        occurrence = 1 if point == "callbacks.claim" else 2
        life = await starter.start(
            tmp_path / "data", point_in(mode_settings, point), occurrence, mode_settings
        )
        client = await client_of(life, session)
        with suppress(ServerGone):
            for _ in range(RUNS):
                await client.call("POST", "/workflows/failing/execute", {})
        assert await life.ended == KILLED
        client = await client_of(await starter.start(tmp_path / "data", settings=mode_settings), session)
        runs = [str(run["id"]) for run in await client.pages("/runs")]
        assert runs
        await receiver.has_seen(run_id + type_ for run_id in runs for type_ in TYPES)
        await starter.end()
    seen: dict[str, list[str]] = {}
    for event in receiver.events:
        types = seen.setdefault(event["subject"], [])
        # After a crash the same event may come again.
        if event["type"] not in types:
            types.append(event["type"])
    assert seen == dict.fromkeys(runs, TYPES)
    assert len({event["id"] for event in receiver.events}) == len(runs) * len(TYPES)
