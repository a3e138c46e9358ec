"""
A page of a real browser that notices what nobody looks at: errors in its console, violations of the page's own
Content-Security-Policy, requests to another host. A test in which one of them happens fails.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from deploy.local.errors import ServiceMissing
from playwright.sync_api import Browser, ConsoleMessage, Page, Playwright, Request, expect
from tests.services import needed

AXE = Path(__file__).parents[2] / "ui" / "node_modules" / "axe-core" / "axe.min.js"
# Screenshots of what was looked at go here, for whoever wants to look too.
PICTURES = "TRUNKLINE_UI_PICTURES"
# A busy machine with two cores; nothing waits this long otherwise.
TIMEOUT_MS = 60_000
# Its sandbox needs what a container seldom has; it loads nothing but our own page.
FLAGS = ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"]
# The first draws nothing that nobody sees, and needs half the work.
_BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
RULES = {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]}
# The browser's own line about an answer such as 404: what the page makes of it is for the test to say.
_AN_ANSWER = "Failed to load resource: the server responded with a status of"
# The same of a line that a test has cut.
_NO_ANSWER = "Failed to load resource: net::ERR_"
_TELL_VIOLATIONS = """
addEventListener("securitypolicyviolation", (event) => {
  console.error(`policy: ${event.violatedDirective} forbids ${event.blockedURI} ${event.sample}`);
});
"""

expect.set_options(timeout=TIMEOUT_MS)


def open_browser(playwright: Playwright) -> Browser:
    return playwright.chromium.launch(executable_path=chromium(), args=FLAGS)


def chromium() -> str:
    with needed():
        for name in _BROWSERS:
            if program := shutil.which(name):
                return program
        raise ServiceMissing("There is no Chromium on this machine; get it with: make services")


@contextmanager
def watched_page(
    browser: Browser, url: str, *, width: int = 1280, height: int = 800, cuts_are_expected: bool = False
) -> Generator[Page]:
    """A page whose addresses are relative to `url`."""
    context = browser.new_context(
        base_url=url, viewport={"width": width, "height": height}, locale="en-GB", reduced_motion="reduce"
    )
    context.set_default_timeout(TIMEOUT_MS)
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    context.add_init_script(_TELL_VIOLATIONS)
    wrong: list[str] = []

    def hear(message: ConsoleMessage) -> None:
        expected = (_AN_ANSWER, *((_NO_ANSWER,) if cuts_are_expected else ()))
        if message.type in {"error", "warning"} and not message.text.startswith(expected):
            wrong.append(f"console: {message.text}")

    def look(request: Request) -> None:
        if request.url.startswith(("http", "ws")) and urlsplit(request.url).netloc != urlsplit(url).netloc:
            wrong.append(f"a request to another host: {request.url}")

    # Of every tab that the test opens.
    context.on("console", hear)
    context.on("weberror", lambda problem: wrong.append(f"error: {problem.error}"))
    context.on("request", look)
    try:
        yield context.new_page()
    finally:
        context.close()
    assert not wrong, "\n".join(wrong)


def check_appearance(page: Page, name: str) -> None:
    """What is shown breaks no rule of accessibility, light and dark."""
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        expect(page.locator(f"html[data-mantine-color-scheme={scheme}]")).to_be_attached()
        pictures = os.environ.get(PICTURES)
        if pictures:
            page.screenshot(path=Path(pictures) / f"{name}-{scheme}.png", full_page=True)
        broken = violations(page)
        assert not broken, "\n".join([f"{name}, {scheme}:", *broken])
    page.emulate_media(color_scheme="light", reduced_motion="reduce")


def violations(page: Page) -> list[str]:
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE.read_text("utf-8"))
    found: dict[str, Any] = page.evaluate(
        "(rules) => axe.run(document, {runOnly: rules, resultTypes: ['violations']})", RULES
    )
    return [
        f"{rule['id']}: {node['target']} {node['failureSummary']}"
        for rule in found["violations"]
        for node in rule["nodes"]
    ]
