"""What a user has to fetch: the wheel, and the first page."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import Page, expect
from tests.ui.wheel_install import installed_wheel

# The web UI takes 0.87 MB of it, and 0.33 MB of that is the engine that lays out graphs. The code takes 1.5 MB.
WHEEL_BYTES = 2_700_000
SCRIPT_BYTES = 350_000
SCRIPTS = """() => performance.getEntriesByType("resource")
  .filter((entry) => new URL(entry.name).pathname.endsWith(".js"))
  .map((entry) => [entry.name, entry.encodedBodySize])"""


def test_the_wheel_has_the_page_in_it_and_is_small(session_folder: Path) -> None:
    installed_wheel(session_folder)
    (wheel,) = (session_folder / "wheel").glob("*.whl")
    assert wheel.stat().st_size < WHEEL_BYTES


def test_the_first_page_needs_little_script(page: Page) -> None:
    page.goto("/")
    expect(page.get_by_test_id("run").first).to_be_visible()
    page.wait_for_load_state("load")
    scripts: list[tuple[str, int]] = page.evaluate(SCRIPTS)
    assert all(size > 0 for _, size in scripts)
    assert sum(size for _, size in scripts) < SCRIPT_BYTES, scripts
