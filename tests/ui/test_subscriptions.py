"""The pages of subscriptions: created with a form, tested, listed with their deliveries, paused and deleted."""

from __future__ import annotations

import re
import threading
from collections.abc import Generator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect
from tests.ui.browser import check_appearance, watched_page
from tests.ui.wheel_install import trunkline_up

from trunkline.cli.rest.client import Client


class Receiver(BaseHTTPRequestHandler):
    """Accepts what comes to /ok."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(204 if self.path == "/ok" else 500)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name there
        """Nothing."""


@pytest.fixture(scope="module")
def receiver() -> Generator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Receiver) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def client(session_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Generator[Client]:
    with trunkline_up(session_folder, tmp_path_factory.mktemp("subscriptions")) as url:
        client = Client(url)
        client.save_workflow(b"{name: report, steps: {work: {set: {n: 1}}}}")
        yield client


@pytest.fixture
def page(browser: Browser, client: Client) -> Generator[Page]:
    with watched_page(browser, client.url) as page:
        yield page


def test_a_subscription_is_created_and_tested_and_its_deliveries_are_sent_again(
    page: Page, client: Client, receiver: str
) -> None:
    page.goto("/runs")
    expect(page.get_by_role("heading", name="Runs")).to_be_visible()
    page.keyboard.press("g")
    page.keyboard.press("u")
    expect(page.get_by_test_id("no-subscriptions")).to_be_visible()
    page.get_by_test_id("new-subscription").click()
    page.get_by_test_id("subscription-name").fill("mine")
    page.get_by_test_id("subscription-url").fill("nowhere")
    page.get_by_test_id("save-subscription").click()
    expect(page.get_by_text("'url' cannot be called").first).to_be_visible()
    check_appearance(page, "subscription-form")
    page.get_by_test_id("subscription-url").fill(f"{receiver}/bad")
    page.get_by_label("A run completed").check()
    page.get_by_label("A run failed", exact=True).uncheck()
    page.get_by_test_id("subscription-url").press("Enter")
    expect(page).to_have_url(re.compile("/subscriptions/mine$"))
    expect(page.get_by_test_id("no-deliveries")).to_be_visible()
    page.get_by_test_id("test-delivery").click()
    expect(page.get_by_test_id("toast").filter(has_text="HTTP 500")).to_be_visible()
    expect(page.get_by_test_id("delivery-status")).to_have_text("Failed")
    page.get_by_test_id("edit").click()
    expect(page.get_by_label("A run completed")).to_be_checked()
    page.get_by_test_id("subscription-url").fill(f"{receiver}/ok")
    page.get_by_test_id("save-subscription").click()
    client.execute("report", {})
    expect(page.get_by_test_id("delivery")).to_have_count(2)
    newest = page.get_by_test_id("delivery").first
    expect(newest).to_contain_text("Delivered")
    newest.get_by_test_id("redeliver").click()
    expect(page.get_by_test_id("delivery")).to_have_count(2)
    expect(newest).to_contain_text("Delivered")
    check_appearance(page, "subscription")
    newest.get_by_role("link").click()
    expect(page).to_have_url(re.compile("/runs/"))


def test_messages_for_people_have_a_text_and_no_secret(page: Page) -> None:
    page.goto("/new-subscription")
    expect(page.get_by_label("Signing secret")).to_be_visible()
    page.get_by_test_id("subscription-name").fill("channel")
    page.get_by_test_id("subscription-receiver").click()
    page.get_by_role("option", name="Slack").click()
    expect(page.get_by_label("Signing secret")).to_have_count(0)
    page.get_by_test_id("subscription-url").fill("https://hooks.slack.com/services/x")
    page.get_by_test_id("subscription-template").fill("${ event.subject } failed")
    page.get_by_test_id("subscription-label").fill("team:a, region:eu")
    page.get_by_test_id("save-subscription").click()
    facts = page.get_by_test_id("subscription-facts")
    expect(facts).to_contain_text("Slack: https://hooks.slack.com/services/x")
    expect(facts).to_contain_text("region:eu, team:a")
    page.get_by_test_id("edit").click()
    page.get_by_test_id("subscription-receiver").click()
    page.get_by_role("option", name="Mail").click()
    page.get_by_test_id("subscription-mail").fill("ops@example.com")
    page.get_by_test_id("save-subscription").click()
    expect(page.get_by_text("No mail server is configured").first).to_be_visible()


def test_a_subscription_is_paused_resumed_and_deleted_after_a_question(page: Page, client: Client) -> None:
    client.save_subscription("gone", b"{name: gone, url: 'https://example.com/', types: [dead_letter]}")
    page.goto("/subscriptions")
    check_appearance(page, "subscriptions")
    page.locator("[data-testid=subscription-row][data-name=gone]").get_by_role("link").click()
    page.get_by_test_id("switch").click()
    expect(page.get_by_test_id("subscription-status")).to_have_text("Paused")
    page.get_by_test_id("switch").click()
    expect(page.get_by_test_id("subscription-status")).to_have_text("Active")
    page.get_by_test_id("delete").click()
    expect(page.get_by_test_id("delete-dialog")).to_contain_text("You cannot undo this")
    page.get_by_test_id("confirm-delete").click()
    expect(page).to_have_url(re.compile("/subscriptions$"))
    expect(page.locator("[data-testid=subscription-row][data-name=gone]")).to_have_count(0)
