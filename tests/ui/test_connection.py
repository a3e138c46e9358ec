"""A Trunkline that stops answering: the page says so, asks again by itself, and shows what is new when it is back."""

from __future__ import annotations

import re
from collections.abc import Generator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect
from tests.ui.agents import ThreadedAgents
from tests.ui.browser import check_appearance, watched_page
from tests.ui.wheel_install import trunkline_up

from trunkline.cli.rest.client import Client
from trunkline.testing.agents import simple_success

ONE = b"name: one\nsteps:\n  ask:\n    agent: Asked\n"


class StoppableServer:
    """A `trunkline up` that is started again at the address that it had."""

    def __init__(self, session: Path, folder: Path) -> None:
        self._session = session
        self._folder = folder
        self._up = trunkline_up(session, folder)
        self.client = Client(self._up.__enter__())

    def stop(self) -> None:
        self._up.__exit__(None, None, None)

    def start(self) -> None:
        port = int(self.client.url.rpartition(":")[2])
        self._up = trunkline_up(self._session, self._folder, port=port)
        assert self._up.__enter__() == self.client.url


@pytest.fixture
def trunkline(session_folder: Path, tmp_path: Path, agents: ThreadedAgents) -> Generator[StoppableServer]:
    running = StoppableServer(session_folder, tmp_path)
    running.client.create_agent(
        {"name": "Asked", "url": agents.start(simple_success("yes")).url, "protocol": "simple-a2a"}
    )
    running.client.save_workflow(ONE)
    yield running
    running.stop()


@pytest.fixture
def page(browser: Browser, trunkline: StoppableServer) -> Generator[Page]:
    with watched_page(browser, trunkline.client.url, cuts_are_expected=True) as page:
        yield page


def test_a_lost_connection_shows_and_heals_itself(page: Page, trunkline: StoppableServer) -> None:
    trunkline.client.execute("one", {})
    page.goto("/runs")
    expect(page.get_by_test_id("run")).to_have_count(1)
    banner = page.get_by_test_id("connection-lost")
    expect(banner).to_have_count(0)
    trunkline.stop()
    expect(banner).to_contain_text("Trunkline is not responding")
    # What was there stays, and nothing claims to have failed.
    expect(page.get_by_test_id("run")).to_have_count(1)
    expect(page.get_by_test_id("problem")).to_have_count(0)
    check_appearance(page, "connection-lost")
    with page.expect_request("**/livez"):
        page.get_by_test_id("ask-again").click()
    expect(banner).to_be_visible()
    trunkline.start()
    expect(banner).to_have_count(0)
    expect(page.get_by_text("Connection restored.")).to_be_attached()
    trunkline.client.execute("one", {})
    expect(page.get_by_test_id("run")).to_have_count(2)


def test_a_page_that_is_opened_meanwhile_comes_when_trunkline_is_back(
    page: Page, trunkline: StoppableServer
) -> None:
    page.goto("/runs")
    expect(page.get_by_test_id("no-runs")).to_be_visible()
    trunkline.stop()
    expect(page.get_by_test_id("connection-lost")).to_be_visible()
    page.get_by_test_id("nav-migration").click()
    # Not even its script can be loaded now.
    expect(page.get_by_test_id("loading")).to_be_visible()
    trunkline.start()
    expect(page.locator('[data-testid=card][data-agent="Asked"]')).to_be_visible()
    expect(page.get_by_test_id("connection-lost")).to_have_count(0)
    # The worker that lays out a graph has a script of its own, and a graph waits for that, too.
    page.route(re.compile(r"/assets/elk-worker"), lambda route: route.abort(), times=1)
    with page.expect_request_finished(lambda request: "/assets/elk-worker" in request.url):
        page.goto("/workflows/one")
    expect(page.get_by_test_id("graph-step-ask")).to_be_visible()
