"""The browser of those figures that are about the page."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from playwright.async_api import async_playwright
from tests.ui.browser import FLAGS, chromium

from trunkline.api.middleware.web_ui_files import is_there

if TYPE_CHECKING:
    from playwright.async_api import Browser

NOT_BUILT = "not built: make ui"
TIMEOUT_MS = 120_000


def page_is_built() -> bool:
    return "TRUNKLINE_UI_FOLDER" in os.environ or is_there()


@asynccontextmanager
async def open_browser() -> AsyncGenerator[Browser]:
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=chromium(), args=FLAGS)
        yield browser
        await browser.close()
