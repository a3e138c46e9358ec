"""
How smoothly the page of a large run moves while the run goes on: frames that the browser draws in a second.

The page is there before the run begins in earnest: its first step waits for a gate. The agents answer at once.
"""

from __future__ import annotations

import asyncio
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from bench.figures.browser import NOT_BUILT, TIMEOUT_MS, open_browser, page_is_built
from bench.harness.embedded import trunkline_up
from bench.harness.environment import BenchEnvironment
from bench.harness.table import FigureRow, spread
from trunkline.jsontypes import Json, JsonObject, encode
from trunkline.testing import ScriptedAgent, simple_success
from trunkline.testing.agents import Call

if TYPE_CHECKING:
    from playwright.async_api import Browser

    from bench.harness.embedded import Server

_LAYERS = 10
_IN_A_LAYER = 30
_NEEDS = 3
_GOAL = "30"

_COUNT = """
() => {
  const times = [];
  const count = (at) => { times.push(at); window.counting = requestAnimationFrame(count); };
  window.counting = requestAnimationFrame(count);
  window.counted = () => { cancelAnimationFrame(window.counting); return times; };
}
"""
_OVER = """() => document.querySelector('[data-testid="run-status"] [data-status="COMPLETED"]') !== null"""


class FrameRates(NamedTuple):
    frames_per_second: float
    longest_ms: float


async def run_page(environment: BenchEnvironment) -> list[FigureRow]:
    if not page_is_built():
        return [FigureRow("page of a large run", NOT_BUILT)]
    gate = asyncio.Event()

    async def begin(call: Call) -> Json:
        await gate.wait()
        return simple_success("ok")(call)

    async with (
        open_browser() as browser,
        ScriptedAgent(begin) as first,
        ScriptedAgent(simple_success("ok")) as others,
    ):
        with trunkline_up(environment.new_folder()) as server:
            for name, agent in (("First", first), ("Other", others)):
                spec = {"name": name, "url": agent.url, "protocol": "simple-a2a", "max_concurrency": 64}
                await server.call("/api/v1/agents", msgspec.json.encode(spec))
            await server.call("/api/v1/workflows", encode(_layers()))
            moved = [await _watch_one(browser, server, gate) for _ in range(environment.rounds)]
    steps = _LAYERS * _IN_A_LAYER
    frames = spread([each.frames_per_second for each in moved], ".0f", " frames/s")
    longest = spread([each.longest_ms for each in moved], ".0f", " ms")
    return [
        FigureRow(f"page of a run of {steps} steps, live", frames, goal=_GOAL),
        FigureRow(f"page of a run of {steps} steps, longest pause", longest),
    ]


async def _watch_one(browser: Browser, server: Server, gate: asyncio.Event) -> FrameRates:
    gate.clear()
    started = msgspec.json.decode(await server.call("/api/v1/workflows/layers/execute", b"{}"))
    shown = await browser.new_page(base_url=server.url, viewport={"width": 1440, "height": 900})
    shown.set_default_timeout(TIMEOUT_MS)
    await shown.goto(f"/runs/{started['id']}")
    await shown.get_by_test_id("graph-step-begin").wait_for()
    await shown.evaluate(_COUNT)
    gate.set()
    await shown.wait_for_function(_OVER)
    times: list[float] = await shown.evaluate("window.counted()")
    await shown.close()
    gaps = [after - before for before, after in pairwise(times)]
    return FrameRates(len(gaps) / sum(gaps) * 1_000, max(gaps))


def _layers() -> JsonObject:
    steps: JsonObject = {"begin": {"agent": "First", "timeout": "10m"}}
    for layer in range(_LAYERS):
        for place in range(_IN_A_LAYER):
            needs = (
                [f"s{layer - 1}_{(place + way) % _IN_A_LAYER}" for way in range(_NEEDS)]
                if layer
                else ["begin"]
            )
            steps[f"s{layer}_{place}"] = {"agent": "Other", "needs": list[Json](needs), "input": {}}
    return {"name": "layers", "steps": steps}
