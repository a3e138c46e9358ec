"""The inbox of a team: filters, claims, comments, and forms with lists, choices and files."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect
from tests.scenarios.api.test_keys import create_key
from tests.ui.agents import ThreadedAgents
from tests.ui.browser import check_appearance, watched_page
from tests.ui.test_keys import enter
from tests.ui.wheel_install import trunkline_up

from trunkline.cli.rest.client import Client
from trunkline.jsontypes import Json, JsonObject, encode

FORM: JsonObject = {
    "type": "object",
    "required": ["day", "speed", "receipt"],
    "properties": {
        "day": {"type": "string", "format": "date", "title": "Day"},
        "speed": {"title": "Speed", "oneOf": [{"const": 1, "title": "Slow"}, {"const": 2, "title": "Fast"}]},
        "amount": {"type": "number", "title": "Amount", "maximum": 100},
        "lines": {
            "type": "array",
            "title": "Lines",
            "items": {"type": "object", "properties": {"what": {"type": "string", "title": "What"}}},
        },
        "receipt": {"type": "object", "format": "file", "title": "Receipt"},
    },
}


@dataclass(frozen=True)
class Team:
    url: str
    keys: dict[str, str]

    def client(self, name: str) -> Client:
        return Client(self.url, api_key=self.keys[name])

    def ask(self, name: str, **rules: Json) -> str:
        """A new item, and its id."""
        client = self.client("ann")
        step: JsonObject = {"ask": {"title": f"Approve {name}", **rules}}
        client.save_workflow(encode({"name": name, "steps": {"ok": step}}))
        run = client.execute(name, {})["id"]
        for event in client.follow(run):
            if event["type"] == "RunWaiting":
                return client.waiting_step(run, "ok")["id"]
        raise AssertionError("The run has ended without a task.")


@pytest.fixture(scope="module")
def team(
    session_folder: Path, tmp_path_factory: pytest.TempPathFactory, agents: ThreadedAgents
) -> Generator[Team]:
    folder = tmp_path_factory.mktemp("team")
    keys = {
        name: agents.portal.call(
            create_key, folder / "trunkline", "admin" if name == "ann" else "operator", name
        )
        for name in ("ann", "ada", "bob")
    }
    flags = ["--require-keys", "--groups", '{"support": ["ada", "bob"]}']
    with trunkline_up(session_folder, folder, flags=flags) as url:
        yield Team(url, keys)


@pytest.fixture
def page(browser: Browser, team: Team) -> Generator[Page]:
    with watched_page(browser, team.url) as page:
        yield page


def titles(page: Page) -> list[str]:
    return [text.split("\n")[0] for text in page.get_by_test_id("inbox-item").all_inner_texts()]


def test_a_person_finds_claims_discusses_and_releases_an_item(page: Page, team: Team) -> None:
    mine = team.ask("mine", assignees=["support"], due="1ms")
    team.ask("other", assignees=["bob"])
    team.ask("free")
    page.goto("/inbox")
    enter(page, team.keys["ada"])
    page.get_by_test_id("inbox-whose").get_by_text("Mine").click()
    expect(page.get_by_test_id("inbox-item")).to_have_count(1)
    expect(page.get_by_test_id("inbox-item-whose")).to_have_text("Overdue · For support")
    page.get_by_test_id("claim-item").click()
    expect(page.get_by_test_id("claimed-by")).to_contain_text("You have claimed this item")
    page.get_by_test_id("comment-text").fill("Why so much?")
    page.get_by_test_id("add-comment").click()
    expect(page.get_by_test_id("comment")).to_contain_text("Why so much?")
    expect(page.get_by_test_id("comment")).to_contain_text("ada")
    check_appearance(page, "inbox-claimed")
    team.client("bob").add_comment(mine, {"text": "It is a present."})
    assert team.client("ada").inbox_item(mine).get("claimed_by") == "ada"
    page.get_by_test_id("release-item").click()
    expect(page.get_by_test_id("claim-item")).to_be_visible()
    expect(page.get_by_test_id("comment")).to_have_count(2)
    page.get_by_test_id("inbox-whose").get_by_text("Unassigned").click()
    expect(page.get_by_test_id("inbox-item")).to_have_count(1)
    expect(page.get_by_test_id("inbox-item")).to_contain_text("Approve free")
    page.get_by_test_id("inbox-whose").get_by_text("Overdue").click()
    expect(page.get_by_test_id("inbox-item")).to_contain_text("Approve mine")


def test_an_item_of_another_person_says_who_works_on_it(page: Page, team: Team) -> None:
    item = team.ask("taken")
    team.client("bob").claim(item)
    page.goto(f"/inbox?item={item}")
    enter(page, team.keys["ada"])
    expect(page.get_by_test_id("claimed-by")).to_contain_text("Claimed by bob")
    expect(page.get_by_test_id("release-item")).to_have_count(0)
    page.get_by_test_id("task-answer").fill("yes")
    page.get_by_test_id("send-answer").click()
    expect(page.get_by_text("is claimed by bob")).to_be_visible()


def test_a_form_with_lists_choices_and_files_is_checked_filled_in_and_sent(
    page: Page, team: Team, tmp_path: Path
) -> None:
    item = team.ask("expenses", form=FORM, options=["approve", "reject"])
    receipt = tmp_path / "receipt.txt"
    receipt.write_text("Thank you")
    page.set_viewport_size({"width": 390, "height": 800})
    page.goto(f"/inbox?item={item}")
    enter(page, team.keys["ada"])
    page.get_by_test_id("field-data.day").fill("2026-03-01")
    page.get_by_test_id("field-data.speed").click()
    page.get_by_role("option", name="Fast").click()
    page.get_by_test_id("field-data.amount").fill("700")
    page.get_by_test_id("add-data.lines").click()
    page.get_by_test_id("field-data.lines[0].what").fill("Taxi")
    page.get_by_label("approve").check()
    page.get_by_test_id("send-answer").click()
    expect(page.get_by_text("Enter at most 100.")).to_be_visible()
    expect(page.get_by_text("This field is required.")).to_be_visible()
    check_appearance(page, "inbox-form-phone")
    page.get_by_test_id("field-data.amount").fill("70")
    with page.expect_file_chooser() as chooser:
        page.get_by_test_id("field-data.receipt").click()
    chooser.value.set_files(receipt)
    expect(page.get_by_test_id("field-data.receipt")).to_contain_text("receipt.txt")
    page.get_by_test_id("send-answer").click()
    expect(page.get_by_text("Answer sent")).to_be_visible()
    run = team.client("ada").run(item.split(".")[0])
    data = run["output"]
    assert isinstance(data, dict)
    sent = data["data"]
    assert isinstance(sent, dict)
    file = sent.pop("receipt")
    assert sent == {"day": "2026-03-01", "speed": 2, "amount": 70, "lines": [{"what": "Taxi"}]}
    assert isinstance(file, dict)
    assert (file["name"], file["mediaType"]) == ("receipt.txt", "text/plain")


def test_lists_and_files_work_on_the_page_of_a_link(page: Page, team: Team, tmp_path: Path) -> None:
    item = team.ask("link", form=FORM, options=["approve", "reject"])
    receipt = tmp_path / "ä.txt"
    receipt.write_text("Thank you")
    page.set_viewport_size({"width": 390, "height": 800})
    page.goto(team.client("ann").create_answer_link(item, {"person": "cleo"})["url"])
    page.get_by_role("button", name="Add to Lines").click()
    page.get_by_role("button", name="Add to Lines").click()
    page.get_by_label("What").nth(1).fill("Taxi")
    page.get_by_role("button", name="Remove 1").click()
    expect(page.get_by_label("What")).to_have_value("Taxi")
    page.get_by_label("Day").fill("2026-03-01")
    page.get_by_label("Speed").select_option("Fast")
    page.get_by_label("Receipt").set_input_files(receipt)
    page.get_by_label("Amount").press("Enter")
    expect(page.get_by_text("Uploaded: ä.txt")).to_be_visible()
    page.get_by_label("Day").fill("")
    page.get_by_label("Day").fill("2026-03-02")
    page.get_by_role("button", name="approve").click()
    expect(page.get_by_text("Your answer was recorded")).to_be_visible()
    run = team.client("ada").run(item.split(".")[0])
    output = run["output"]
    assert isinstance(output, dict)
    data = output["data"]
    assert isinstance(data, dict)
    file = data.pop("receipt")
    assert isinstance(file, dict)
    assert (output["by"], file["name"]) == ("cleo", "ä.txt")
    assert data == {"day": "2026-03-02", "speed": 2, "lines": [{"what": "Taxi"}]}
