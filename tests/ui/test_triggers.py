"""The pages of triggers and events: listed, looked into, fired, paused, written with a preview, and sent."""

from __future__ import annotations

import re
from collections.abc import Generator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect
from tests.ui.browser import check_appearance, watched_page
from tests.ui.wheel_install import trunkline_up

from trunkline.cli.rest.client import Client

WORKFLOW = b"{name: report, steps: {work: {set: {n: 1}}}}"
TRIGGERS = {
    "nightly": b"name: nightly\nworkflow: report\nschedule: {cron: 30 2 * * *, timezone: Europe/Berlin}\n",
    "often": b"name: often\nworkflow: report\nschedule: {every: 2h}\nconcurrency: {limit: 3, key: input.n}\n",
    "paid": b"name: paid\nworkflow: report\nevent: {type: payment.received}\n",
    "hook": b"name: hook\nworkflow: report\nwebhook: {verify: {scheme: none}}\n",
}


@pytest.fixture(scope="module")
def client(session_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Generator[Client]:
    with trunkline_up(session_folder, tmp_path_factory.mktemp("triggers")) as url:
        client = Client(url)
        client.save_workflow(WORKFLOW)
        for name, text in TRIGGERS.items():
            client.save_trigger(name, text)
        yield client


@pytest.fixture
def page(browser: Browser, client: Client) -> Generator[Page]:
    with watched_page(browser, client.url) as page:
        yield page


def test_triggers_are_listed_with_what_fires_next(page: Page) -> None:
    page.goto("/triggers")
    expect(page.get_by_test_id("trigger-row")).to_have_count(4)
    nightly = page.locator("[data-testid=trigger-row][data-name=nightly]")
    expect(nightly).to_contain_text("30 2 * * * (Europe/Berlin)")
    hours = page.get_by_test_id("planned-hour")
    # Every two hours, and once in the night, which may be in the same hour.
    expect(hours.filter(has_text="often")).to_have_count(12)
    expect(hours.filter(has_text="nightly")).to_have_count(1)
    check_appearance(page, "triggers")
    page.keyboard.press("g")
    page.keyboard.press("e")
    expect(page).to_have_url(re.compile("/events$"))
    page.keyboard.press("g")
    page.keyboard.press("t")
    nightly.get_by_role("link").click()
    expect(page).to_have_url(re.compile("/triggers/nightly$"))


def test_a_trigger_is_fired_paused_and_resumed(page: Page) -> None:
    page.goto("/triggers/often")
    expect(page.get_by_test_id("trigger-limits")).to_contain_text(
        "Up to 3 at the same time (queue). By input.n"
    )
    expect(page.get_by_test_id("next-firings").get_by_role("listitem")).to_have_count(10)
    expect(page.get_by_test_id("no-firings")).to_be_visible()
    page.get_by_test_id("switch").click()
    expect(page.get_by_test_id("trigger-state")).to_have_text("Paused")
    page.get_by_test_id("switch").click()
    expect(page.get_by_test_id("trigger-state")).to_have_text("Enabled")
    page.goto("/triggers/nightly")
    page.get_by_test_id("fire").click()
    expect(page.get_by_test_id("firing")).to_have_count(1)
    expect(page.get_by_test_id("outcome")).to_have_attribute("data-outcome", "started")
    check_appearance(page, "trigger")
    page.get_by_test_id("firing").get_by_role("link").click()
    expect(page).to_have_url(re.compile("/runs/"))


def test_a_trigger_is_written_with_a_preview_and_deleted_after_a_question(page: Page) -> None:
    page.goto("/triggers")
    page.get_by_test_id("new-trigger").click()
    text = page.get_by_test_id("trigger-text")
    expect(page.get_by_text("unknown workflow 'my-workflow'").first).to_be_visible()
    text.fill("name: mine\nworkflow: report\nschedule: {cron: 0 25 * * *}\n")
    expect(page.get_by_text("'25' is not a valid hour").first).to_be_visible()
    check_appearance(page, "trigger-error")
    text.fill("name: mine\nworkflow: report\nschedule: {cron: 0 9 * * MON, timezone: Asia/Tokyo}\n")
    expect(page.get_by_test_id("trigger-valid")).to_be_visible()
    expect(page.get_by_test_id("next-firings").get_by_role("listitem")).to_have_count(10)
    check_appearance(page, "trigger-editor")
    text.press("Control+s")
    expect(page).to_have_url(re.compile("/triggers/mine$"))
    page.get_by_test_id("edit").click()
    expect(text).to_have_value(re.compile("Asia/Tokyo"))
    text.fill("name: mine\nworkflow: report\nschedule: {every: 1h}\n")
    page.get_by_test_id("save-trigger").click()
    expect(page.get_by_test_id("trigger-facts")).to_contain_text("Every 1h")
    page.get_by_test_id("delete").click()
    expect(page.get_by_test_id("delete-dialog")).to_contain_text("Its runs continue")
    page.get_by_test_id("confirm-delete").click()
    expect(page).to_have_url(re.compile("/triggers$"))
    expect(page.locator("[data-testid=trigger-row][data-name=mine]")).to_have_count(0)


def test_an_event_is_sent_found_and_fires_its_trigger(page: Page) -> None:
    page.goto("/events")
    expect(page.get_by_test_id("no-events")).to_be_visible()
    page.get_by_test_id("send-event").click()
    page.get_by_test_id("send-type").fill("payment.received")
    page.get_by_test_id("send-key").fill("42")
    check_appearance(page, "event-send")
    page.get_by_test_id("send").click()
    expect(page.get_by_test_id("event-row")).to_have_count(1)
    page.get_by_test_id("event-row").get_by_role("button").click()
    expect(page.get_by_test_id("event-data")).to_have_text("{}")
    check_appearance(page, "events")
    page.get_by_test_id("event-type").fill("other")
    expect(page).to_have_url(re.compile("type=other"))
    expect(page.get_by_test_id("no-events")).to_be_visible()
    page.goto("/events?type=payment.received&key=42")
    expect(page.get_by_test_id("event-row")).to_have_count(1)
    page.goto("/triggers/paid")
    expect(page.get_by_test_id("outcome")).to_have_attribute("data-outcome", "started")


def test_the_pages_fit_on_a_phone(browser: Browser, client: Client) -> None:
    with watched_page(browser, client.url, width=390, height=800) as page:
        for path, ready in (
            ("/triggers", "planned-hour"),
            ("/triggers/often", "next-firings"),
            ("/triggers/hook", "trigger-facts"),
            ("/triggers/often/edit", "trigger-valid"),
            ("/events", "send-event"),
        ):
            page.goto(path)
            expect(page.get_by_test_id(ready).first).to_be_visible()
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), path
            check_appearance(page, f"phone{path.replace('/', '-')}")
