"""The system's own page: how it stands, dead letters, and who has changed what."""

from __future__ import annotations

import re
from collections.abc import Generator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect
from tests.scenarios.api.test_dead_letters import put
from tests.ui.agents import ThreadedAgents
from tests.ui.browser import check_appearance, watched_page
from tests.ui.wheel_install import trunkline_up

from trunkline.cli.follow import follow_run
from trunkline.cli.rest.client import Client
from trunkline.testing import simple_success

HOSTILE = b'<img src=x onerror="console.error(1)"> \xc3\xbc'


@dataclass(frozen=True)
class SystemPageServer:
    """A system with one finished run."""

    client: Client
    data: Path
    agents: ThreadedAgents

    def put_letters(self, *values: bytes | None) -> list[str]:
        return self.agents.portal.call(partial(put, self.data, *values))


@pytest.fixture(scope="module")
def system_page(
    session_folder: Path, tmp_path_factory: pytest.TempPathFactory, agents: ThreadedAgents
) -> Generator[SystemPageServer]:
    folder = tmp_path_factory.mktemp("system")
    with trunkline_up(session_folder, folder) as url:
        client = Client(url)
        client.create_agent(
            {"name": "Writer", "url": agents.start(simple_success({})).url, "protocol": "simple-a2a"}
        )
        client.save_workflow(b"{name: write, steps: {a: {agent: Writer}}}")
        assert follow_run(client, client.execute("write", {})["id"], show="nothing")["status"] == "COMPLETED"
        yield SystemPageServer(client, folder / "trunkline", agents)


@pytest.fixture
def page(browser: Browser, system_page: SystemPageServer) -> Generator[Page]:
    with watched_page(browser, system_page.client.url) as page:
        yield page


def test_it_shows_that_all_is_well(page: Page, system_page: SystemPageServer) -> None:
    page.goto("/system")
    expect(page.get_by_test_id("dependencies")).to_contain_text("Store ready")
    expect(page.get_by_test_id("version")).to_contain_text("embedded · SQLite")
    process = page.get_by_test_id("process")
    expect(process).to_have_count(1)
    expect(process).to_contain_text("Alive")
    expect(process).to_contain_text("api, bridge, executor")
    expect(page.get_by_test_id("warnings")).to_have_count(0)
    expect(page.get_by_test_id("queues").locator("[data-name=tasks_queued]")).to_contain_text("0")
    expect(page.get_by_role("heading", name="Kafka")).to_have_count(0)
    check_appearance(page, "system")
    page.get_by_test_id("run-counts").locator("[data-name=COMPLETED]").get_by_role("link").click()
    expect(page).to_have_url(f"{system_page.client.url}/runs?status=COMPLETED&children=true")


def test_what_waits_changes_while_one_looks(page: Page, system_page: SystemPageServer) -> None:
    page.goto("/system")
    dead = page.get_by_test_id("queues").locator("[data-name=dead_letters]")
    expect(dead).to_contain_text("0")
    (letter,) = system_page.put_letters(b"not JSON")
    expect(dead).to_contain_text("1")
    expect(page.get_by_test_id("warnings")).to_contain_text("Replay or delete")
    expect(page.get_by_test_id("letters-count")).to_have_text("1")
    check_appearance(page, "system-warning")
    system_page.client.delete_dead_letter(letter)
    expect(page.get_by_test_id("warnings")).to_have_count(0)


def test_a_dead_letter_is_looked_into_and_thrown_away_after_a_question(
    page: Page, system_page: SystemPageServer
) -> None:
    page.goto("/system?tab=letters")
    expect(page.get_by_test_id("no-letters")).to_be_visible()
    check_appearance(page, "letters-none")
    kept, gone = system_page.put_letters(None, HOSTILE)
    expect(page.get_by_test_id("letter-row")).to_have_count(2)
    page.get_by_test_id("letter-row").first.get_by_role("link").click()
    expect(page).to_have_url(re.compile(f"letter={gone}"))
    expect(page.get_by_test_id("letter-value")).to_have_text(HOSTILE.decode())
    expect(page.get_by_test_id("letter-reason")).to_have_text("It is no task. Delete it.")
    expect(page.get_by_test_id("letter")).to_contain_text("[redacted]")
    expect(page.get_by_test_id("replay")).to_have_attribute("aria-disabled", "true")
    expect(page.get_by_test_id("replay")).to_have_attribute("aria-label", re.compile("no topic"))
    check_appearance(page, "letter")
    page.get_by_test_id("delete").click()
    expect(page.get_by_test_id("delete-dialog")).to_contain_text("permanently deleted")
    check_appearance(page, "letter-delete")
    page.get_by_test_id("confirm-delete").click()
    expect(page.get_by_test_id("toast")).to_contain_text("deleted")
    expect(page.get_by_test_id("letter-row")).to_have_count(1)
    expect(page.get_by_test_id("letter")).to_have_count(0)
    system_page.client.delete_dead_letter(kept)
    expect(page.get_by_test_id("no-letters")).to_be_visible()


def test_a_dead_letter_that_is_gone_says_so(page: Page) -> None:
    page.goto("/system?tab=letters&letter=018f0000-0000-7000-8000-000000000000")
    expect(page.get_by_test_id("letter-gone")).to_be_visible()
    page.get_by_test_id("close-letter").click()
    expect(page.get_by_test_id("letter")).to_have_count(0)


def test_changes_are_found_by_what_they_concern_and_appear_by_themselves(
    page: Page, system_page: SystemPageServer
) -> None:
    page.goto("/system?tab=audit")
    entries = page.get_by_test_id("audit-entry")
    expect(entries.filter(has_text="Saved workflow write")).to_have_count(1)
    expect(entries.filter(has_text="Registered agent Writer")).to_have_count(1)
    system_page.client.set_secret("bot", "a-value-that-stays-hidden")
    expect(entries.filter(has_text="Set secret bot")).to_have_count(1)
    expect(page.get_by_text("stays-hidden")).to_have_count(0)
    check_appearance(page, "audit")
    page.get_by_test_id("audit-kind").click()
    page.get_by_role("option", name="Workflows").click()
    expect(page).to_have_url(re.compile("kind=workflow"))
    expect(entries).to_have_count(1)
    page.goto("/system?tab=audit&subject=Writer")
    expect(entries).to_have_count(1)
    expect(page.get_by_test_id("audit-subject")).to_have_value("Writer")
    page.get_by_test_id("audit-who").fill("nobody")
    expect(page).to_have_url(re.compile("who=nobody"))
    expect(page.get_by_test_id("no-audit")).to_contain_text("No matching entries.")
    check_appearance(page, "audit-none")
    page.get_by_role("link", name="Clear filters").click()
    expect(entries.first).to_be_visible()


def test_older_changes_come_when_one_asks(page: Page, system_page: SystemPageServer) -> None:
    for number in range(52):
        system_page.client.set_secret("often", f"value {number}")
    page.goto("/system?tab=audit&subject=often")
    entries = page.get_by_test_id("audit-entry")
    expect(entries).to_have_count(50)
    page.get_by_test_id("older").click()
    expect(entries).to_have_count(52)
    expect(page.get_by_test_id("older")).to_have_count(0)


@pytest.mark.parametrize("tab", ["overview", "letters", "audit", "keys"])
def test_a_phone_shows_it_without_scrolling_sideways(
    browser: Browser, system_page: SystemPageServer, tab: str
) -> None:
    with watched_page(browser, system_page.client.url, width=390, height=800) as page:
        page.goto(f"/system?tab={tab}")
        expect(page.get_by_test_id(f"tab-{tab}")).to_have_attribute("aria-selected", "true")
        expect(page.get_by_test_id("version")).to_be_visible()
        if tab == "audit":
            page.goto("/system?tab=audit&subject=write")
            entry = page.get_by_test_id("audit-entry").filter(has_text="Saved workflow write")
            who = entry.get_by_text("anonymous").filter(visible=True)
            expect(who).to_be_in_viewport(ratio=0.99)
            assert who.evaluate("word => word.getClientRects().length") == 1
            expect(entry.get_by_text("version: 1").filter(visible=True)).to_be_in_viewport(ratio=0.99)
        check_appearance(page, f"system-phone-{tab}")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
