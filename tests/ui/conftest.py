"""
One browser and one system for a file of tests: the installed wheel, with the demo's agents and a
finished run of the demo's workflow in it.
"""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, sync_playwright
from tests.ui.agents import ThreadedAgents, threaded_agents
from tests.ui.browser import open_browser, watched_page
from tests.ui.inspected_run import InspectedRun, inspected_system
from tests.ui.sample_runs import SampleRuns, sample_runs
from tests.ui.wheel_install import trunkline_up

from trunkline.cli.demo.processes import running
from trunkline.cli.demo.walkthrough import AGENTS, INPUT, workflow_text
from trunkline.cli.follow import follow_run
from trunkline.cli.rest.client import Client


@pytest.fixture(scope="session")
def session_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same for all test processes."""
    base = tmp_path_factory.getbasetemp()
    return base.parent if "PYTEST_XDIST_WORKER" in os.environ else base


@pytest.fixture(scope="module")
def browser() -> Generator[Browser]:
    """Not for longer: while it is there a loop runs in this thread, and other tests start their own."""
    with sync_playwright() as playwright:
        browser = open_browser(playwright)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def agents() -> Generator[ThreadedAgents]:
    with threaded_agents() as started:
        yield started


@pytest.fixture(scope="session")
def sample_system(session_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Generator[SampleRuns]:
    """A system in which each test starts runs of its own (`sample_runs.py`)."""
    with (
        threaded_agents() as started,
        sample_runs(started, session_folder, tmp_path_factory.mktemp("voyages")) as samples,
    ):
        yield samples


@dataclass(frozen=True)
class DemoSystem:
    """A system with the demo's four agents; `run` is a finished run of the demo's workflow."""

    client: Client
    run: str

    @property
    def url(self) -> str:
        return self.client.url


@pytest.fixture(scope="module")
def demo(session_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Generator[DemoSystem]:
    folder = tmp_path_factory.mktemp("demo")
    with ExitStack() as stack:
        client = Client(stack.enter_context(trunkline_up(session_folder, folder)))
        for agent in AGENTS:
            module = f"trunkline.cli.demo.{agent.module}"
            url = stack.enter_context(running(agent.name, [module], folder / f"{agent.name}.log"))
            client.create_agent({"name": agent.name, "url": url, "protocol": agent.protocol or "auto"})
        saved, _ = client.save_workflow(workflow_text())
        run = client.execute(saved["name"], INPUT)["id"]
        assert follow_run(client, run, show="nothing")["status"] == "COMPLETED"
        yield DemoSystem(client, run)


@pytest.fixture
def page(browser: Browser, demo: DemoSystem) -> Generator[Page]:
    with watched_page(browser, demo.url) as page:
        yield page


@pytest.fixture(scope="module")
def inspected(
    session_folder: Path, tmp_path_factory: pytest.TempPathFactory, agents: ThreadedAgents
) -> Generator[InspectedRun]:
    """A system with a run to look into (`inspected_run.py`)."""
    with inspected_system(session_folder, tmp_path_factory.mktemp("inspected"), agents) as system:
        yield system


@pytest.fixture
def inspected_page(browser: Browser, inspected: InspectedRun) -> Generator[Page]:
    with watched_page(browser, inspected.url) as page:
        # The page closes one by itself, and so would hide it.
        page.on("dialog", lambda dialog: pytest.fail(f"A script of an agent has run: {dialog.message}"))
        yield page


@pytest.fixture
def sample_page(browser: Browser, sample_system: SampleRuns) -> Generator[Page]:
    sample_system.open_gate()
    with watched_page(browser, sample_system.url, width=1440, height=900) as page:
        yield page
