"""A line that breaks again and again: what is shown at the end is what somebody sees who comes then."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from pathlib import Path

import pytest
from deploy.local.processes import wait_until
from playwright.sync_api import Browser, Page, expect
from tests.ui.agents import ThreadedAgents
from tests.ui.browser import watched_page
from tests.ui.tcp_proxy import TcpProxy, tcp_proxy_to
from tests.ui.wheel_install import trunkline_up

from trunkline.cli.follow import follow_run
from trunkline.cli.rest.client import Client
from trunkline.jsontypes import Json, JsonObject, encode
from trunkline.testing.agents import Call, simple_success

CUTS = 20
# Everything that tells how a step stands, and each stretch of its time with what it says of itself.
SHOWN = """() => [...document.querySelectorAll('[data-testid^="graph-step-"], [data-testid="bar"]')].map((element) => [
  element.dataset.testid, element.dataset.status, element.dataset.kind, element.title,
])"""


@pytest.fixture(scope="module")
def url(session_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Generator[str]:
    with trunkline_up(session_folder, tmp_path_factory.mktemp("cuts")) as url:
        yield url


@pytest.fixture
def proxy(agents: ThreadedAgents, url: str) -> Generator[TcpProxy]:
    with agents.portal.wrap_async_context_manager(tcp_proxy_to(url)) as line:
        yield line


HIDE = """(hidden) => {
  Object.defineProperty(document, "hidden", {configurable: true, get: () => hidden});
  document.dispatchEvent(new Event("visibilitychange"));
}"""


def patient_agent(agents: ThreadedAgents, client: Client, name: str = "patient") -> asyncio.Semaphore:
    """An agent that answers once for each release."""
    allowed = agents.portal.call(asyncio.Semaphore, 0)

    async def answer(call: Call) -> Json:
        await allowed.acquire()
        return simple_success("done")(call)

    client.create_agent({"name": name, "url": agents.start(answer).url, "protocol": "simple-a2a"})
    return allowed


def wait_for_the_end(page: Page) -> None:
    expect(page.get_by_test_id("run-status")).to_have_text("Completed")
    expect(page.get_by_test_id("connection")).to_have_attribute("data-connection", "over")
    expect(page.locator('[data-testid^="graph-step-"][data-status=COMPLETED]')).to_have_count(CUTS + 1)


def test_a_line_that_is_cut_twenty_times_loses_and_doubles_nothing(
    agents: ThreadedAgents, url: str, proxy: TcpProxy, browser: Browser
) -> None:
    client = Client(url)
    allowed = patient_agent(agents, client)
    steps: JsonObject = {f"step{number}": {"agent": "patient"} for number in range(CUTS + 1)}
    for number in range(CUTS):
        steps[f"step{number + 1}"] = {"agent": "patient", "needs": [f"step{number}"]}
    client.save_workflow(encode({"name": "long", "steps": steps}))
    run = client.execute("long", {})["id"]
    with watched_page(browser, proxy.url, cuts_are_expected=True) as page:
        page.goto(f"/runs/{run}")
        expect(page.get_by_test_id("connection")).to_have_attribute("data-connection", "live")
        for number in range(CUTS):
            expect(page.get_by_test_id(f"graph-step-step{number}")).to_have_attribute(
                "data-status", "RUNNING"
            )
            assert agents.portal.call(proxy.cut) >= 1
            agents.portal.call(allowed.release)
        agents.portal.call(allowed.release)
        wait_for_the_end(page)
        with watched_page(browser, url) as fresh:
            fresh.goto(f"/runs/{run}")
            wait_for_the_end(fresh)
            # What the wire tells of the calls' times comes a little after the rest, in both.
            assert wait_until(lambda: page.evaluate(SHOWN) == fresh.evaluate(SHOWN), seconds=60)


def test_a_hidden_page_closes_its_connection_and_is_complete_when_shown_again(
    agents: ThreadedAgents, url: str, proxy: TcpProxy, browser: Browser
) -> None:
    """A browser has six connections for all pages of one server."""
    client = Client(url)
    allowed = patient_agent(agents, client, "unhurried")
    client.save_workflow(encode({"name": "short", "steps": {"only": {"agent": "unhurried"}}}))
    run = client.execute("short", {})["id"]
    with watched_page(browser, proxy.url) as page:
        page.clock.install()
        page.goto(f"/runs/{run}")
        expect(page.get_by_test_id("graph-step-only")).to_have_attribute("data-status", "RUNNING")
        expect(page.get_by_test_id("connection")).to_have_attribute("data-connection", "live")
        assert proxy.open_streams == 1
        page.evaluate(HIDE, arg=True)
        page.clock.fast_forward("01:00")
        assert wait_until(lambda: proxy.open_streams == 0, 60)
        agents.portal.call(allowed.release)
        follow_run(client, run, show="nothing")
        page.evaluate(HIDE, arg=False)
        expect(page.get_by_test_id("run-status")).to_have_text("Completed")
        expect(page.get_by_test_id("graph-step-only")).to_have_attribute("data-status", "COMPLETED")


def test_more_pages_than_a_browser_has_connections_follow_a_run(
    agents: ThreadedAgents, url: str, browser: Browser
) -> None:
    client = Client(url)
    allowed = patient_agent(agents, client, "watched")
    client.save_workflow(encode({"name": "watched", "steps": {"only": {"agent": "watched"}}}))
    run = client.execute("watched", {})["id"]
    with watched_page(browser, url) as first:
        pages = [first, *(first.context.new_page() for _ in range(8))]
        for page in pages:
            page.goto(f"/runs/{run}")
            expect(page.get_by_test_id("graph-step-only")).to_have_attribute("data-status", "RUNNING")
        pages[0].goto("/runs")
        expect(pages[0].get_by_test_id("run").first).to_be_visible()
        agents.portal.call(allowed.release)
        for page in pages[1:]:
            expect(page.get_by_test_id("run-status")).to_have_text("Completed")
