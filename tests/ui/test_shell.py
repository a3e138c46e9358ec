"""The frame of every page: where one can go, and how it looks."""

from __future__ import annotations

from playwright.sync_api import Page, expect
from tests.ui.browser import look_at
from tests.ui.conftest import Demo


def test_the_first_address_shows_the_runs(page: Page, demo: Demo) -> None:
    page.goto("/")
    expect(page).to_have_url(f"{demo.url}/runs")
    expect(page.get_by_test_id("run")).to_have_count(1)
    look_at(page, "runs")


def test_colours_are_as_the_system_has_them_until_one_chooses(page: Page) -> None:
    page.emulate_media(color_scheme="dark")
    page.goto("/runs")
    expect(page.locator("html[data-mantine-color-scheme=dark]")).to_be_attached()
    page.get_by_test_id("scheme").click()
    expect(page.locator("html[data-mantine-color-scheme=light]")).to_be_attached()
    page.reload()
    expect(page.locator("html[data-mantine-color-scheme=light]")).to_be_attached()


def test_an_address_that_is_none_says_so(page: Page) -> None:
    page.goto("/runs/one/two")
    expect(page.get_by_role("heading", name="There is no page at this address")).to_be_visible()
    look_at(page, "no-page")
