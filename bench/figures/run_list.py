"""
How long the list of runs takes to open in a browser, with very many runs in the store and with few.

Until the first rows are drawn; each time by a browser that has seen nothing of it before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bench.figures.browser import NOT_BUILT, TIMEOUT_MS, open_browser, page_is_built
from bench.harness.embedded import Target, check_completed, drive, trunkline_up
from bench.harness.environment import BenchEnvironment
from bench.harness.http_client import request
from bench.harness.job import NO_CALL_INPUT, NO_CALL_WORKFLOW
from bench.harness.load import LoadOrder
from bench.harness.table import FigureRow, ratio, spread

if TYPE_CHECKING:
    from playwright.async_api import Browser

    from bench.harness.embedded import Server

_FEW = 100
_MANY = 100_000
_AT_A_TIME = 50
# An opening takes less than a second, and single ones differ.
_OPENINGS_IN_A_ROUND = 4
_GOAL = "1.1"

_WATCH = """
new MutationObserver((_, observer) => {
  if (document.querySelector('[data-testid="run"]') === null) return;
  observer.disconnect();
  requestAnimationFrame(() => setTimeout(() => { window.shownAt = performance.now(); }));
}).observe(document, { childList: true, subtree: true });
"""


async def run_list(environment: BenchEnvironment) -> list[FigureRow]:
    figure = "list of runs, first rows"
    if not page_is_built():
        return [FigureRow(figure, NOT_BUILT)]
    many = environment.runs(_MANY)
    times: dict[int, list[float]] = {_FEW: [], many: []}
    with trunkline_up(environment.new_folder()) as small, trunkline_up(environment.new_folder()) as large:
        servers = {_FEW: small, many: large}
        for number, server in servers.items():
            await _fill(server, environment.agent_url, number)
        async with open_browser() as browser:
            for turn in range(environment.rounds * _OPENINGS_IN_A_ROUND + 1):
                # Neither is always the second one.
                for number in sorted(servers, reverse=turn % 2 == 0):
                    took = await _open(browser, servers[number])
                    if turn:
                        times[number].append(took)
    ours, against = times[many], times[_FEW]
    return [
        FigureRow(
            f"{figure}, {many:,} runs",
            spread(ours, ".0f", " ms"),
            f"{_FEW} runs {spread(against, '.0f', ' ms')}",
            ratio(ours, against),
            _GOAL,
        )
    ]


async def _fill(server: Server, agent_url: str, runs: int) -> None:
    """With runs that are over in the commit that starts them."""
    await server.set_up(agent_url)
    path = f"/api/v1/workflows/{NO_CALL_WORKFLOW}/execute?wait=30"
    target = Target(server.url, request(server.url, path, NO_CALL_INPUT))
    await drive([target], LoadOrder(_AT_A_TIME, runs), check_completed)


async def _open(browser: Browser, server: Server) -> float:
    """Milliseconds from the navigation to the first rows."""
    shown = await browser.new_page(base_url=server.url, viewport={"width": 1440, "height": 900})
    shown.set_default_timeout(TIMEOUT_MS)
    await shown.add_init_script(_WATCH)
    await shown.goto("/runs", wait_until="commit")
    await shown.wait_for_function("() => window.shownAt !== undefined")
    took: float = await shown.evaluate("window.shownAt")
    await shown.close()
    return took
