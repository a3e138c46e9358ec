"""A server that wants keys: every page asks for one, says who one is, and shows what the key may not do."""

from __future__ import annotations

import re
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect
from tests.scenarios.api.test_dead_letters import put
from tests.scenarios.api.test_keys import create_key, keys_of
from tests.ui.agents import ThreadedAgents
from tests.ui.browser import check_appearance, watched_page
from tests.ui.wheel_install import trunkline_up

from trunkline.cli.rest.client import Client
from trunkline.stores.base import KeyRole
from trunkline.testing.agents import simple_success

NAMES: dict[KeyRole, str] = {"viewer": "vera", "operator": "otto", "admin": "ann"}


@dataclass(frozen=True)
class GuardedServer:
    url: str
    data: Path
    keys: dict[KeyRole, str]
    agents: ThreadedAgents


async def revoke(data: Path, name: str) -> None:
    async with keys_of(data) as keys:
        await keys.revoke(name)


@pytest.fixture(scope="module")
def guarded(
    session_folder: Path, tmp_path_factory: pytest.TempPathFactory, agents: ThreadedAgents
) -> Generator[GuardedServer]:
    folder = tmp_path_factory.mktemp("keys")
    data = folder / "trunkline"
    keys: dict[KeyRole, str] = {
        role: agents.portal.call(create_key, data, role, name) for role, name in NAMES.items()
    }
    with trunkline_up(session_folder, folder, flags=["--require-keys"]) as url:
        yield GuardedServer(url, data, keys, agents)


@pytest.fixture
def page(browser: Browser, guarded: GuardedServer) -> Generator[Page]:
    with watched_page(browser, guarded.url) as page:
        yield page


def enter(page: Page, key: str) -> None:
    page.get_by_label("API key", exact=True).fill(key)
    page.get_by_test_id("enter").click()


@pytest.mark.parametrize("path", ["/runs", "/runs/one", "/workflows", "/agents", "/inbox", "/system"])
def test_every_page_asks_for_a_key_and_for_nothing_else(page: Page, path: str) -> None:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url) if "/api/" in request.url else None)
    page.goto(path)
    expect(page.get_by_test_id("key-dialog")).to_be_visible()
    expect(page.get_by_label("API key", exact=True)).to_be_focused()
    expect(page.get_by_test_id("account")).to_have_count(0)
    assert {url.rpartition("/")[2] for url in asked} == {"me"}
    if path == "/runs":
        check_appearance(page, "key")


def test_a_wrong_key_is_reported_and_the_right_one_opens_the_page_until_sign_out(
    page: Page, guarded: GuardedServer
) -> None:
    context = page.context
    other_tab = context.new_page()
    other_tab.goto("/inbox")
    expect(other_tab.get_by_test_id("key-dialog")).to_be_visible()
    page.goto("/system?tab=audit")
    enter(page, "tl_wrong")
    expect(page.get_by_test_id("key-wrong")).to_contain_text("The API key is unknown.")
    check_appearance(page, "key-wrong")
    enter(page, guarded.keys["admin"])
    expect(page.get_by_test_id("audit-entry").filter(has_text="Created key vera")).to_be_visible()
    expect(page).to_have_url(f"{guarded.url}/system?tab=audit")
    expect(page.get_by_test_id("account")).to_have_text("ann")
    expect(other_tab.get_by_test_id("inbox-empty")).to_be_visible()
    page.reload()
    expect(page.get_by_test_id("audit-entry").first).to_be_visible()
    late = context.new_page()
    late.goto("/workflows")
    expect(late.get_by_test_id("account")).to_have_text("ann")
    assert guarded.keys["admin"] not in late.evaluate("JSON.stringify({...localStorage})")
    page.get_by_test_id("account").click()
    expect(page.get_by_test_id("account-name")).to_have_text("ann · admin")
    check_appearance(page, "account")
    page.get_by_test_id("sign-out").click()
    expect(page.get_by_test_id("key-dialog")).to_be_visible()
    expect(page.get_by_test_id("audit-entry")).to_have_count(0)
    page.reload()
    expect(page.get_by_test_id("key-dialog")).to_be_visible()
    kept = page.evaluate("JSON.stringify([{...sessionStorage}, {...localStorage}])")
    assert guarded.keys["admin"] not in kept
    for tab in (other_tab, late):
        expect(tab.get_by_test_id("key-dialog")).to_be_visible()
    enter(late, guarded.keys["viewer"])
    for tab in (page, other_tab):
        expect(tab.get_by_test_id("account")).to_have_text("vera")
    for tab in (page, other_tab, late):
        tab.close()
    later = context.new_page()
    later.goto("/inbox")
    expect(later.get_by_test_id("key-dialog")).to_be_visible()


def test_what_a_role_may_not_do_cannot_be_pressed_and_says_why(page: Page, guarded: GuardedServer) -> None:
    (letter,) = guarded.agents.portal.call(put, guarded.data, b"a")
    page.goto(f"/system?tab=letters&letter={letter}")
    enter(page, guarded.keys["viewer"])
    delete = page.get_by_test_id("delete")
    expect(delete).to_have_attribute("aria-disabled", "true")
    delete.hover()
    expect(
        page.get_by_text("Requires the role operator. The API key vera has the role viewer.")
    ).to_be_visible()
    check_appearance(page, "role-too-low")
    page.get_by_test_id("account").click()
    page.get_by_test_id("sign-out").click()
    enter(page, guarded.keys["operator"])
    delete.click()
    page.get_by_test_id("confirm-delete").click()
    expect(page.get_by_test_id("no-letters")).to_be_visible()
    page.get_by_test_id("tab-audit").click()
    entry = page.get_by_test_id("audit-entry").filter(has_text="Deleted dead letter")
    expect(entry).to_contain_text("otto")


def test_an_admin_creates_a_key_sees_it_once_and_revokes_it(page: Page, guarded: GuardedServer) -> None:
    page.goto("/system?tab=keys")
    enter(page, guarded.keys["viewer"])
    expect(page.get_by_test_id("not-allowed")).to_contain_text("Requires the role admin.")
    page.get_by_test_id("account").click()
    page.get_by_test_id("sign-out").click()
    enter(page, guarded.keys["admin"])
    own = page.get_by_test_id("key-row").and_(page.locator("[data-name=ann]"))
    expect(own).to_contain_text("Active")
    check_appearance(page, "keys")
    page.get_by_test_id("new-key").click()
    page.get_by_test_id("key-name").fill("guest")
    check_appearance(page, "key-new")
    page.get_by_test_id("create-key").click()
    text = page.get_by_test_id("key-text").inner_text()
    check_appearance(page, "key-created")
    assert Client(guarded.url, api_key=text).secrets().items == []
    page.get_by_test_id("close-key").click()
    guest = page.get_by_test_id("key-row").and_(page.locator("[data-name=guest]"))
    expect(guest).to_have_attribute("data-state", "Active")
    expect(page.get_by_text(text)).to_have_count(0)
    page.get_by_test_id("revoke-guest").click()
    check_appearance(page, "key-revoke")
    page.get_by_test_id("confirm-revoke").click()
    expect(guest).to_have_attribute("data-state", "Revoked")
    page.get_by_test_id("revoke-ann").click()
    page.get_by_test_id("confirm-revoke").click()
    expect(page.get_by_test_id("revoke-dialog")).to_contain_text("trunkline keys revoke ann")


def test_a_run_says_who_started_it(page: Page, guarded: GuardedServer) -> None:
    admin = Client(guarded.url, api_key=guarded.keys["admin"])
    agent = guarded.agents.start(simple_success({"text": "done"}))
    admin.create_agent({"name": "Worker", "url": agent.url, "protocol": "simple-a2a"})
    admin.save_workflow(b"{name: work, steps: {do: {agent: Worker}}}")
    run = Client(guarded.url, api_key=guarded.keys["operator"]).execute("work", {})["id"]
    page.goto("/runs")
    enter(page, guarded.keys["viewer"])
    shown = page.locator(f"[data-testid=run][data-run='{run}']")
    expect(shown.get_by_test_id("run-started-by")).to_have_text("by otto")
    check_appearance(page, "runs-started-by")
    page.goto(f"/runs/{run}")
    expect(page.get_by_test_id("started-by")).to_have_text("otto")
    check_appearance(page, "run-started-by")


def test_a_viewer_learns_of_missing_rights_before_writing_or_starting_a_workflow(
    page: Page, guarded: GuardedServer
) -> None:
    Client(guarded.url, api_key=guarded.keys["admin"]).save_workflow(
        b"{name: read, steps: {write: {agent: Writer}}}"
    )
    page.goto("/workflows/read")
    enter(page, guarded.keys["viewer"])
    for button, role in {"edit": "admin", "start": "operator"}.items():
        expect(page.get_by_test_id(button)).to_have_attribute("aria-disabled", "true")
        expect(page.get_by_test_id(button)).to_have_accessible_name(re.compile(f"Requires the role {role}"))
    page.get_by_test_id("nav-workflows").click()
    expect(page.get_by_test_id("new-workflow")).to_have_attribute("aria-disabled", "true")
    page.goto("/workflows/read/edit")
    expect(page.get_by_test_id("not-allowed")).to_contain_text("Requires the role admin.")
    expect(page.get_by_test_id("save")).to_have_attribute("aria-disabled", "true")
    check_appearance(page, "editor-not-allowed")


def test_a_viewer_learns_of_missing_rights_before_filling_in_the_form_of_an_agent(
    page: Page, guarded: GuardedServer
) -> None:
    Client(guarded.url, api_key=guarded.keys["admin"]).create_agent(
        {"name": "Told", "url": "http://127.0.0.1:9/", "protocol": "simple-a2a"}
    )
    page.goto("/new-agent")
    enter(page, guarded.keys["viewer"])
    for address, role, button in (
        ("/new-agent", "admin", "save-agent"),
        ("/agents/Told/edit", "admin", "save-agent"),
        ("/agents/Told?tab=try", "operator", "try-send"),
    ):
        page.goto(address)
        expect(page.get_by_test_id("not-allowed")).to_contain_text(f"Requires the role {role}.")
        expect(page.get_by_test_id(button)).to_be_disabled()
        check_appearance(page, f"{button}-not-allowed")


def test_a_key_that_is_revoked_meanwhile_is_asked_for_again(page: Page, guarded: GuardedServer) -> None:
    key = guarded.agents.portal.call(create_key, guarded.data, "viewer", "leaked")
    page.goto("/system")
    enter(page, key)
    expect(page.get_by_test_id("process")).to_be_visible()
    guarded.agents.portal.call(revoke, guarded.data, "leaked")
    expect(page.get_by_test_id("key-wrong")).to_contain_text("The API key leaked was revoked.")
    other = page.context.new_page()
    shown: list[str | None] = []
    other.on("request", lambda request: shown.append(request.headers.get("authorization")))
    other.goto("/system")
    expect(other.get_by_test_id("key-dialog")).to_be_visible()
    enter(page, guarded.keys["viewer"])
    expect(page.get_by_test_id("process")).to_be_visible()
    expect(page.get_by_test_id("account")).to_have_attribute("aria-label", re.compile("vera.*viewer"))
    expect(other.get_by_test_id("account")).to_have_text("vera")
    assert {header for header in shown if header} == {f"Bearer {guarded.keys['viewer']}"}


def test_without_keys_no_caller_is_asked_and_none_has_a_name(
    browser: Browser, session_folder: Path, tmp_path: Path
) -> None:
    with trunkline_up(session_folder, tmp_path) as url, watched_page(browser, url) as page:
        page.goto("/system")
        expect(page.get_by_test_id("process")).to_be_visible()
        expect(page.get_by_test_id("account")).to_have_count(0)
