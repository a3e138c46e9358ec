"""Agents that move, as a board and one by one: compared, tried, cut over and brought back, with real agents."""

from __future__ import annotations

import re
from collections.abc import Generator
from contextlib import AbstractAsyncContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, expect
from tests.scenarios.kit_server import served
from tests.ui.agents import ThreadedAgents
from tests.ui.browser import check_appearance, watched_page
from tests.ui.wheel_install import trunkline_up

from trunkline.agentkit import Agent, Task
from trunkline.cli.follow import follow_run
from trunkline.cli.rest.client import Client
from trunkline.jsontypes import JsonObject


@dataclass(frozen=True)
class MigratingSystem:
    """A system, and two agents next to it: what the new one says differs from what the old one says in one place."""

    client: Client
    old: str
    new: str

    def add(self, name: str, *, protocol: str = "simple-a2a", repeatable: bool = True) -> None:
        """An agent, and a workflow of the same name that calls it."""
        url = self.old if protocol == "simple-a2a" else self.new
        self.client.create_agent({"name": name, "url": url, "protocol": protocol, "repeatable": repeatable})
        workflow = (
            f"name: {name.lower()}\nsteps:\n  ask:\n    agent: {name}\noutput: ${{ steps.ask.output.data }}\n"
        )
        self.client.save_workflow(workflow.encode())

    def run(self, name: str) -> str:
        run = self.client.execute(name.lower(), {"text": "Ann"})["id"]
        assert follow_run(self.client, run, show="nothing")["status"] == "COMPLETED"
        return run

    def try_out(self, action: str, name: str, **body: object) -> None:
        target: JsonObject = {"url": self.new, "protocol": "jsonrpc-2.0"}
        self.client.migrate(action, {"percent": 100, "target": target, "who": "ann", **body}, name)  # pyright: ignore[reportArgumentType]


def migration_endpoint(word: str) -> AbstractAsyncContextManager[str]:
    agent = Agent("Harbour")

    @agent
    def answer(task: Task) -> JsonObject:
        return {"greeting": f"{word}, {task.text}", "ships": 3}

    return served(agent)


@contextmanager
def open_migrating_system(session: Path, folder: Path, agents: ThreadedAgents) -> Generator[MigratingSystem]:
    with ExitStack() as stack:
        old, new = (
            stack.enter_context(agents.portal.wrap_async_context_manager(migration_endpoint(word)))
            for word in ("Good morning", "Good evening")
        )
        yield MigratingSystem(Client(stack.enter_context(trunkline_up(session, folder))), old, new)


@pytest.fixture(scope="module")
def migrating_system(
    session_folder: Path, tmp_path_factory: pytest.TempPathFactory, agents: ThreadedAgents
) -> Generator[MigratingSystem]:
    with open_migrating_system(session_folder, tmp_path_factory.mktemp("migrating"), agents) as system:
        yield system


@pytest.fixture
def page(browser: Browser, migrating_system: MigratingSystem) -> Generator[Page]:
    with watched_page(browser, migrating_system.client.url) as page:
        yield page


def card(page: Page, agent: str) -> Locator:
    return page.locator(f'[data-testid=card][data-agent="{agent}"]')


def stage(page: Page) -> Locator:
    return page.get_by_test_id("standing").get_by_test_id("stage")


def fits(page: Page) -> bool:
    """Whether the page as a whole has nothing to scroll sideways."""
    return bool(page.evaluate("document.documentElement.scrollWidth <= innerWidth"))


def test_an_agent_is_shadowed_and_where_both_sides_differ_is_shown(
    page: Page, migrating_system: MigratingSystem
) -> None:
    migrating_system.add("Greeter")
    page.goto("/migration?q=greeter")
    expect(page.get_by_test_id("column-planned").get_by_test_id("card")).to_have_count(1)
    expect(card(page, "Greeter").get_by_test_id("blocker")).to_have_text("No target set")
    card(page, "Greeter").get_by_role("link", name=re.compile("^Start shadowing")).click()
    dialog = page.get_by_role("dialog", name="Shadow Greeter")
    dialog.get_by_test_id("target-url").fill(migrating_system.new)
    dialog.get_by_test_id("limits").click()
    dialog.get_by_test_id("limit-comparisons").fill("1")
    dialog.get_by_test_id("why").fill("The new version is deployed")
    dialog.get_by_test_id("who").fill("ann")
    check_appearance(page, "migration-shadow-dialog")
    dialog.get_by_test_id("confirm").click()
    expect(stage(page)).to_have_attribute("data-stage", "shadow")
    expect(dialog).to_have_count(0)
    expect(page.get_by_test_id("last-change")).to_contain_text("by ann: The new version is deployed")
    expect(page.get_by_test_id("target-protocol")).to_have_text("jsonrpc-2.0")

    run = migrating_system.run("Greeter")
    compared = page.get_by_test_id("comparison")
    expect(compared).to_have_count(1)
    expect(compared).to_have_attribute("data-verdict", "differ")
    compared.get_by_test_id("open-comparison").click()
    difference = page.get_by_test_id("difference")
    expect(difference).to_have_count(1)
    expect(difference).to_have_attribute("data-path", "/data/greeting")
    expect(difference.locator("del")).to_have_text("morning")
    expect(difference.locator("ins")).to_have_text("evening")
    check_appearance(page, "migration-agent")
    page.reload()
    expect(page.get_by_test_id("difference")).to_have_count(1)
    page.locator("[data-testid=blockers] [data-code=disagreement]").get_by_test_id("see-differences").click()
    expect(page).to_have_url(f"{migrating_system.client.url}/migration/Greeter?verdict=differ")
    page.get_by_role("link", name=f"{run} ask").click()
    expect(page).to_have_url(f"{migrating_system.client.url}/runs/{run}?step=ask")

    page.goto("/migration?q=greeter")
    expect(card(page, "Greeter")).to_contain_text("100% shadowed: 1 of 1 differ (100%)")


def test_an_agent_is_tried_cut_over_and_brought_back(page: Page, migrating_system: MigratingSystem) -> None:
    migrating_system.add("Ferry", repeatable=False)
    page.goto("/migration/Ferry?act=canary")
    dialog = page.get_by_role("dialog")
    dialog.get_by_test_id("target-url").fill(migrating_system.new)
    dialog.get_by_test_id("percent").fill("150")
    expect(dialog.get_by_test_id("confirm")).to_be_disabled()
    dialog.get_by_test_id("percent").fill("100")
    dialog.get_by_test_id("confirm").click()
    expect(stage(page)).to_have_attribute("data-stage", "canary")
    migrating_system.run("Ferry")
    expect(page.get_by_test_id("target-recent-calls")).to_have_text("1")
    expect(page.get_by_test_id("target-failed")).to_have_text("0 (0%)")

    page.get_by_test_id("fix-check_missing").click()
    expect(page.get_by_test_id("grade")).to_contain_text("Grade")
    page.get_by_test_id("act-cutover").click()
    dialog = page.get_by_role("dialog", name="Cut over Ferry?")
    expect(dialog.get_by_test_id("against")).to_contain_text("Not attested yet")
    expect(dialog.get_by_test_id("confirm")).to_be_disabled()
    check_appearance(page, "migration-cutover-dialog")
    dialog.get_by_role("button", name="Cancel").click()
    page.get_by_test_id("fix-not_attested").click()
    dialog = page.get_by_role("dialog", name="Attest that Ferry is ready")
    dialog.get_by_test_id("note").fill("Deployed as 2.1, the harbour master knows")
    dialog.get_by_test_id("confirm").click()
    expect(page.get_by_test_id("attested")).to_contain_text("the harbour master knows")
    page.get_by_test_id("act-cutover").click()
    page.get_by_role("dialog").get_by_test_id("confirm").click()
    expect(stage(page)).to_have_attribute("data-stage", "cut_over")

    page.get_by_test_id("act-rollback").click()
    dialog = page.get_by_role("dialog", name="Roll back Ferry?")
    expect(dialog.get_by_test_id("confirm")).to_be_disabled()
    dialog.get_by_test_id("why").fill("It greets in the evening only")
    dialog.get_by_test_id("confirm").click()
    expect(stage(page)).to_have_attribute("data-stage", "rolled_back")
    events = page.locator("[data-testid=event][data-kind=migration]")
    expect(events).to_have_count(4)
    expect(events.first).to_contain_text("It greets in the evening only")
    page.goto("/migration?q=ferry")
    expect(page.get_by_test_id("column-rolled_back")).to_contain_text("It greets in the evening only")


def test_what_cannot_be_done_says_why(page: Page, migrating_system: MigratingSystem) -> None:
    migrating_system.add("Pilot", repeatable=False)
    page.goto("/migration/Pilot")
    for action, reason in (
        ("shadow", "The agent is not repeatable."),
        ("cutover", "The migration has no target yet."),
        ("rollback", "there is nothing to roll back"),
        ("finish", "The agent is not cut over."),
    ):
        button = page.get_by_test_id(f"act-{action}")
        expect(button).to_have_attribute("aria-disabled", "true")
        expect(button).to_have_attribute("aria-label", re.compile(re.escape(reason)))
    page.goto("/migration/Pilot?act=rollback")
    expect(page.get_by_test_id("standing")).to_be_visible()
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.get_by_test_id("to-agent").click()
    expect(page.get_by_test_id("agent-name")).to_have_text("Pilot")
    page.get_by_test_id("to-migration").click()
    expect(page.get_by_test_id("standing")).to_be_visible()


def test_what_the_server_refuses_is_said_in_the_dialog(page: Page, migrating_system: MigratingSystem) -> None:
    migrating_system.add("Tug")
    page.goto("/migration/Tug?act=shadow")
    dialog = page.get_by_role("dialog")
    dialog.get_by_test_id("target-url").fill("not an address")
    dialog.get_by_test_id("confirm").click()
    expect(dialog.get_by_test_id("problem")).to_contain_text("url")
    check_appearance(page, "migration-refused")


def test_an_agent_that_is_none_is_said_to_be_none(page: Page) -> None:
    page.goto("/migration/Nobody")
    expect(page.get_by_test_id("problem")).to_contain_text("There is no agent 'Nobody'.")


def test_all_agents_are_a_board_and_are_rolled_back_at_once(
    browser: Browser, session_folder: Path, tmp_path: Path, agents: ThreadedAgents
) -> None:
    with open_migrating_system(session_folder, tmp_path, agents) as system:
        with watched_page(browser, system.client.url) as page:
            page.goto("/migration")
            expect(page.get_by_test_id("no-agents")).to_be_visible()
        for name in (
            "Archive",
            "Ferry",
            "Greeter",
            "Lighthouse",
            "Pilot",
            "Tug",
            "Warehouse-of-the-old-port",
        ):
            system.add(name, repeatable=name != "Pilot")
        system.add("Customs", protocol="jsonrpc-2.0")
        system.try_out("shadow", "Greeter")
        system.try_out("canary", "Ferry", percent=25)
        system.try_out("shadow", "Tug")
        system.client.migrate("rollback", {"why": "Its answers come late", "who": "bob"}, "Tug")
        system.try_out("canary", "Lighthouse")
        system.client.migrate("cutover", {"force": True, "why": "The old one is going away"}, "Lighthouse")
        system.run("Greeter")
        system.run("Ferry")
        with watched_page(browser, system.client.url) as page:
            page.goto("/migration")
            expect(card(page, "Greeter")).to_contain_text("1 of 1 differ")
            expect(card(page, "Ferry")).to_contain_text("25% of runs")
            expect(card(page, "Tug")).to_contain_text("bob: Its answers come late")
            expect(card(page, "Lighthouse")).to_contain_text("Blockers were overridden")
            expect(page.get_by_test_id("settled")).to_contain_text("Customs")
            check_appearance(page, "migration-board")
            page.set_viewport_size({"width": 1024, "height": 768})
            check_appearance(page, "migration-board-1024")
            assert fits(page)
            page.set_viewport_size({"width": 1280, "height": 800})
            page.get_by_test_id("fleet").click()
            page.get_by_test_id("fleet-rollback").click()
            dialog = page.get_by_role("dialog", name="Roll back all?")
            expect(dialog.get_by_test_id("meant")).to_have_text("3 agents: Ferry, Greeter, Lighthouse")
            dialog.get_by_test_id("why").fill("Back to Simple A2A until Monday")
            dialog.get_by_test_id("confirm").click()
            expect(page.get_by_test_id("fleet-outcome")).to_contain_text("3 agents changed")
            page.get_by_role("dialog").get_by_role("button", name="Close").last.click()
            expect(page.get_by_test_id("column-rolled_back").get_by_test_id("card")).to_have_count(4)
            page.get_by_test_id("fleet").click()
            expect(page.get_by_test_id("fleet-rollback")).to_contain_text("No agents to roll back.")
            page.get_by_test_id("fleet-cutover").click()
            dialog = page.get_by_role("dialog", name="Cut over all?")
            dialog.get_by_test_id("confirm").click()
            expect(dialog.get_by_test_id("problem")).to_contain_text("not ready for the cutover")
        with watched_page(browser, system.client.url, width=390, height=800) as page:
            page.goto("/migration")
            expect(card(page, "Greeter")).to_be_visible()
            check_appearance(page, "migration-board-phone")
            assert fits(page)
            page.goto("/migration/Greeter")
            expect(page.get_by_test_id("comparison")).to_have_count(1)
            check_appearance(page, "migration-agent-phone")
            assert fits(page)
