"""The page of an answer link, in a browser: on a phone, by keyboard, light and dark."""

from __future__ import annotations

import os
from collections.abc import Generator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect
from tests.ui.browser import PICTURES, violations, watched_page
from tests.ui.conftest import DemoSystem

from trunkline.jsontypes import JsonObject, encode

FORM: JsonObject = {
    "type": "object",
    "required": ["amount", "reason"],
    "properties": {
        "amount": {
            "type": "number",
            "title": "Amount in EUR",
            "description": "At most 500.",
            "maximum": 500,
            "multipleOf": 10,
        },
        "reason": {"enum": ["damaged", "lost"], "title": "Reason"},
        "urgent": {"type": "boolean", "title": "Urgent"},
        "day": {"type": "string", "format": "date", "title": "Day"},
        "address": {"type": "object", "title": "Address", "properties": {"city": {"type": "string"}}},
    },
}
STEP: JsonObject = {
    "ask": {
        "title": "Refund 20 EUR to Ada <Lovelace>",
        "text": "The parcel was damaged.\nSee the photos.",
        "options": ["approve", "reject"],
        "form": FORM,
    }
}


@pytest.fixture
def phone(browser: Browser, demo: DemoSystem) -> Generator[Page]:
    with watched_page(browser, demo.url, width=390, height=800) as page:
        yield page


def link(demo: DemoSystem) -> tuple[str, str]:
    """The run, and the path of the link."""
    demo.client.save_workflow(encode({"name": "refund-by-link", "steps": {"ok": STEP}}))
    run = demo.client.execute("refund-by-link", {})["id"]
    for event in demo.client.follow(run):
        if event["type"] == "RunWaiting":
            break
    return run, demo.client.create_answer_link(f"{run}.ok", {"person": "ada"})["url"]


def looks_right(page: Page, name: str) -> None:
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        pictures = os.environ.get(PICTURES)
        if pictures:
            page.screenshot(path=Path(pictures) / f"{name}-{scheme}.png", full_page=True)
        assert violations(page) == [], scheme
    page.emulate_media(color_scheme="light", reduced_motion="reduce")
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


def test_a_person_answers_on_a_phone(phone: Page, demo: DemoSystem) -> None:
    run, path = link(demo)
    phone.goto(path)
    expect(phone.get_by_role("heading")).to_have_text("Refund 20 EUR to Ada <Lovelace>")
    looks_right(phone, "answer-form")
    # The browser checks what it can.
    phone.get_by_role("button", name="approve").click()
    expect(phone.get_by_label("Amount in EUR")).to_be_focused()
    phone.get_by_label("Amount in EUR").fill("700")
    assert phone.get_by_label("Amount in EUR").evaluate("field => field.validity.rangeOverflow")
    # And the server the rest.
    phone.get_by_label("Amount in EUR").fill("25")
    phone.get_by_label("Reason").select_option("damaged")
    phone.get_by_label("city").fill("Berlin")
    phone.get_by_role("button", name="approve").click()
    expect(phone.get_by_role("alert")).to_contain_text("25")
    looks_right(phone, "answer-wrong")
    expect(phone.get_by_label("city")).to_have_value("Berlin")
    phone.get_by_label("Amount in EUR").fill("20")
    phone.get_by_role("button", name="approve").focus()
    phone.keyboard.press("Enter")
    expect(phone.get_by_role("heading")).to_have_text("Thank you")
    looks_right(phone, "answer-thanks")
    for _ in demo.client.follow(run):
        pass
    output = demo.client.run(run)["output"]
    assert isinstance(output, dict)
    assert (output["by"], output["answer"]) == ("ada", "approve")
    assert output["data"] == {
        "amount": 20, "reason": "damaged", "urgent": False, "address": {"city": "Berlin"},
    }  # fmt: skip
