"""The frame of every page: where one can go, by mouse, by keys and by name, and how it looks."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Browser, Page, expect
from tests.ui.browser import check_appearance, watched_page
from tests.ui.conftest import DemoSystem

PLACES = ("runs", "inbox", "workflows", "agents", "migration", "system")


def test_the_first_address_shows_the_runs(page: Page, demo: DemoSystem) -> None:
    page.goto("/")
    expect(page).to_have_url(f"{demo.url}/runs")
    expect(page.get_by_test_id("run")).to_have_count(1)
    expect(page).to_have_title("Runs · Trunkline")
    check_appearance(page, "runs")


def test_colours_are_as_the_system_has_them_until_one_chooses(page: Page) -> None:
    page.emulate_media(color_scheme="dark")
    page.goto("/runs")
    expect(page.locator("html[data-mantine-color-scheme=dark]")).to_be_attached()
    page.get_by_test_id("scheme").click()
    expect(page.locator("html[data-mantine-color-scheme=light]")).to_be_attached()
    page.reload()
    expect(page.locator("html[data-mantine-color-scheme=light]")).to_be_attached()


def test_the_chosen_colours_are_there_before_anything_is_painted(page: Page) -> None:
    page.goto("/runs")
    page.evaluate("localStorage.setItem('mantine-color-scheme-value', 'dark')")
    # Without its script nothing but the document, its styles and the blocking line are there.
    page.route(
        re.compile(r"/assets/.*\.js"), lambda route: route.fulfill(body="", content_type="text/javascript")
    )
    page.reload()
    shown = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert page.evaluate("document.documentElement.dataset.mantineColorScheme") == "dark"
    assert max(int(part) for part in re.findall(r"\d+", shown)[:3]) < 60, shown


@pytest.mark.parametrize("address", ["/nowhere", "/runs/one/two"])
def test_an_address_that_is_none_says_so(page: Page, address: str) -> None:
    page.goto(address)
    expect(page.get_by_role("heading", name="Page not found")).to_be_visible()
    check_appearance(page, "no-page")


def test_a_place_is_current_has_its_title_and_gives_its_heading_the_focus(page: Page) -> None:
    page.goto("/runs")
    expect(page.get_by_test_id("run")).to_have_count(1)
    page.get_by_test_id("nav-migration").click()
    expect(page).to_have_title("Migration · Trunkline")
    expect(page.get_by_test_id("nav-migration")).to_have_attribute("aria-current", "page")
    expect(page.get_by_test_id("nav-runs")).not_to_have_attribute("aria-current", "page")
    expect(page.get_by_role("heading", name="Migration", level=1)).to_be_focused()


def test_a_page_that_fails_says_so_and_leaves_the_rest_working(page: Page, demo: DemoSystem) -> None:
    broken = re.compile(r"/assets/MigrationPage-.*\.js")
    page.route(
        broken,
        lambda route: route.fulfill(body="throw new Error('a broken page')", content_type="text/javascript"),
    )
    page.goto("/migration")
    expect(page.get_by_role("heading", name="This page can't be displayed")).to_be_visible()
    expect(page.get_by_test_id("problem")).to_contain_text("a broken page")
    check_appearance(page, "page-failed")
    page.get_by_test_id("nav-runs").click()
    expect(page).to_have_url(f"{demo.url}/runs")
    expect(page.get_by_test_id("run")).to_have_count(1)


def test_the_content_can_be_reached_without_the_navigation(page: Page) -> None:
    page.goto("/runs")
    expect(page.get_by_test_id("nav-runs")).to_be_visible()
    page.keyboard.press("Tab")
    skip = page.get_by_role("link", name="Skip to content")
    expect(skip).to_be_focused()
    expect(skip).to_be_in_viewport()
    page.keyboard.press("Enter")
    expect(page.get_by_role("main")).to_be_focused()


@pytest.mark.parametrize("place", PLACES)
def test_two_keys_go_to_a_place(page: Page, demo: DemoSystem, place: str) -> None:
    page.goto("/runs/one/two")
    expect(page.get_by_test_id("nav-runs")).to_be_visible()
    page.keyboard.press("g")
    page.keyboard.press(place[0])
    expect(page).to_have_url(f"{demo.url}/{place}")


def test_keys_are_left_alone_while_one_types(page: Page) -> None:
    page.goto("/runs")
    expect(page.get_by_test_id("nav-runs")).to_be_visible()
    page.keyboard.press("Control+k")
    page.get_by_test_id("palette-input").press_sequentially("g a?")
    expect(page.get_by_test_id("palette-input")).to_have_value("g a?")
    expect(page).to_have_url(re.compile("/runs$"))
    expect(page.get_by_test_id("shortcuts")).to_have_count(0)


def test_a_question_mark_lists_what_keys_do_here(page: Page) -> None:
    page.goto("/runs")
    expect(page.get_by_test_id("nav-runs")).to_be_visible()
    page.keyboard.press("?")
    dialog = page.get_by_role("dialog", name="Keyboard shortcuts")
    expect(dialog).to_be_visible()
    expect(dialog.get_by_test_id("shortcut").filter(has_text="Go to migration")).to_be_visible()
    expect(dialog.get_by_role("table", name="On this page")).to_be_visible()
    expect(dialog.get_by_test_id("shortcut").filter(has_text="Open run")).to_contain_text("Enter")
    check_appearance(page, "shortcuts")
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)


def test_the_palette_finds_pages_agents_workflows_and_runs(page: Page, demo: DemoSystem) -> None:
    page.goto("/runs")
    expect(page.get_by_test_id("nav-runs")).to_be_visible()
    page.keyboard.press("Control+k")
    typed = page.get_by_role("combobox", name=re.compile("^Search pages"))
    expect(typed).to_be_focused()
    check_appearance(page, "palette")
    for text, command in (
        ("migr", "page-migration"),
        ("researcher", "agent-Researcher"),
        (demo.run[:12], f"run-{demo.run}"),
        ("utc", "times"),
    ):
        typed.fill(text)
        expect(page.locator(f'[data-command="{command}"]')).to_be_visible()
    typed.fill("no such thing at all")
    expect(page.get_by_text("No matches.")).to_be_visible()
    typed.fill(demo.run[:12])
    expect(page.locator(f'[data-command="run-{demo.run}"]')).to_have_attribute("aria-selected", "true")
    page.keyboard.press("Enter")
    expect(page).to_have_url(f"{demo.url}/runs/{demo.run}")
    expect(page.get_by_test_id("palette")).to_have_count(0)
    expect(page.get_by_role("heading", level=1)).to_be_focused()


def test_the_palette_has_the_beginnings_of_words_first_and_is_empty_when_it_is_opened_again(
    page: Page, demo: DemoSystem
) -> None:
    steps = b"steps: {only: {agent: Writer}}"
    for name in ("ways-of-being", "sub-mitter", "mitigation of all that is known"):
        demo.client.save_workflow(b"name: " + name.encode() + b"\n" + steps)
    demo.client.create_agent({"name": "Wobbly", "url": "http://127.0.0.1:9/", "protocol": "simple-a2a"})
    page.goto("/runs")
    expect(page.get_by_test_id("nav-runs")).to_be_visible()
    options = page.get_by_test_id("palette-option")
    for typed, first in (
        ("wob", "agent-Wobbly"),
        ("mitter", "workflow-sub-mitter"),
        ("mit", "workflow-mitigation of all that is known"),
    ):
        page.keyboard.press("Control+k")
        expect(page.get_by_test_id("palette-input")).to_have_value("")
        page.keyboard.type(typed)
        expect(options.first).to_have_attribute("data-command", first)
        expect(options.first).to_have_attribute("aria-selected", "true")
        page.keyboard.press("Escape")
    page.keyboard.press("Control+k")
    page.keyboard.type("wob")
    expect(page.locator('[data-command="workflow-ways-of-being"]')).to_be_visible()
    page.keyboard.press("Enter")
    expect(page).to_have_url(f"{demo.url}/agents/Wobbly")


@pytest.mark.parametrize(
    ("address", "shown", "first"),
    [
        ("/system?tab=zz", "/system", "tab-overview"),
        ("/agents/Writer?tab=zz&minutes=x", "/agents/Writer", "tab-overview"),
        ("/workflows/demo?tab=zz&version=x", "/workflows/demo", "tab-definition"),
    ],
)
def test_what_an_address_cannot_mean_shows_the_first_and_leaves_the_address(
    page: Page, demo: DemoSystem, address: str, shown: str, first: str
) -> None:
    page.goto(address)
    expect(page.get_by_test_id(first)).to_have_attribute("aria-selected", "true")
    expect(page).to_have_url(f"{demo.url}{shown}")


@pytest.mark.parametrize("attempt", ["abc", "0", "-1", "1.5"])
def test_an_attempt_that_is_none_leaves_the_address_of_a_run(
    page: Page, demo: DemoSystem, attempt: str
) -> None:
    page.goto(f"/runs/{demo.run}?step=research&attempt={attempt}")
    expect(page.get_by_test_id("graph-step-research")).to_be_visible()
    expect(page).to_have_url(f"{demo.url}/runs/{demo.run}?step=research")


def test_the_palette_is_used_with_the_arrows_and_acts(page: Page) -> None:
    page.goto("/runs")
    page.get_by_test_id("open-palette").click()
    page.get_by_test_id("palette-input").fill("theme")
    options = page.get_by_test_id("palette-option")
    expect(options).to_have_count(3)
    expect(options.nth(0)).to_have_attribute("aria-selected", "true")
    page.keyboard.press("ArrowUp")
    expect(options.nth(2)).to_have_attribute("aria-selected", "true")
    page.keyboard.press("ArrowDown")
    expect(page.get_by_test_id("palette-input")).to_have_attribute(
        "aria-activedescendant", options.nth(0).get_attribute("id") or "none"
    )
    page.get_by_test_id("palette-option").filter(has_text="Dark theme").click()
    expect(page.locator("html[data-mantine-color-scheme=dark]")).to_be_attached()
    expect(page.get_by_test_id("open-palette")).to_be_focused()


def test_a_name_cannot_turn_what_is_shown_around(page: Page, demo: DemoSystem) -> None:
    name = "invoice\u202egnp.exe"
    demo.client.create_agent({"name": name, "url": "http://127.0.0.1:9/", "protocol": "simple-a2a"})
    demo.client.save_workflow(f'name: "{name}"\nsteps: {{only: {{agent: "{name}"}}}}'.encode())
    shown = r"invoice\u202egnp.exe"
    for place in ("agents", "workflows"):
        page.goto(f"/{place}")
        page.get_by_role("link", name=shown).first.click()
        expect(page.get_by_role("heading", name=shown, level=1)).to_be_visible()
        expect(page).to_have_title(re.compile(re.escape(shown)))
    expect(page.get_by_test_id("graph-step-only")).to_contain_text(shown)
    check_appearance(page, "turned-name")


def test_times_are_local_or_utc_as_one_likes(page: Page) -> None:
    page.goto("/runs")
    expect(page.get_by_test_id("run")).to_have_count(1)
    page.get_by_test_id("times").click()
    expect(page.locator("[data-testid=run] time").first).to_have_attribute("title", re.compile("UTC$"))
    page.reload()
    expect(page.get_by_test_id("times")).to_have_text("UTC")


def test_a_phone_has_the_places_behind_a_button(browser: Browser, demo: DemoSystem) -> None:
    with watched_page(browser, demo.url, width=390, height=800) as page:
        page.goto("/runs")
        expect(page.get_by_test_id("run")).to_have_count(1)
        expect(page.get_by_test_id("nav-agents")).not_to_be_in_viewport()
        page.get_by_role("button", name="Open menu").click()
        expect(page.get_by_test_id("nav-agents")).to_be_in_viewport()
        check_appearance(page, "menu-phone")
        page.get_by_test_id("nav-agents").click()
        expect(page).to_have_url(f"{demo.url}/agents")
        expect(page.get_by_test_id("nav-agents")).not_to_be_in_viewport()
        page.get_by_role("button", name="Search or go to…").click()
        expect(page.get_by_test_id("palette-input")).to_be_focused()
        check_appearance(page, "palette-phone")
