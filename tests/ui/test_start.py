"""Starting a run: a form made from the workflow's input schema, or JSON, and what the server says of them."""

from __future__ import annotations

import json
import re

import pytest
from playwright.sync_api import Page, Request, expect
from tests.ui.agents import ThreadedAgents
from tests.ui.browser import check_appearance
from tests.ui.conftest import DemoSystem

from trunkline.jsontypes import Json
from trunkline.testing.agents import simple_success

# A double has no room for its last digit.
MANY = 2**53 + 1
ORDER = b"""
name: order
description: Orders something and has it brought.
input:
  type: object
  required: [item, size, guests, address]
  properties:
    item: {type: string, minLength: 3, title: Dish, description: What to bring.}
    size: {enum: [small, large]}
    guests: {type: integer, minimum: 1}
    tip: {type: number, default: 1.5}
    gift: {type: boolean}
    when: {type: string, format: date-time}
    wishes: {type: array, items: {type: string}}
    address:
      type: object
      required: [street]
      properties:
        street: {type: string}
        floor: {$ref: '#/$defs/floor'}
    anything: {}
  $defs:
    floor: {type: integer, maximum: 9}
steps:
  bring: {agent: Waiter, input: "${ input }"}
"""
LISTS = b"""
name: lists
input:
  type: object
  required: [names]
  properties:
    names: {type: array, items: {type: string}}
    places: {type: array, items: {type: object, properties: {town: {type: string}}}}
steps:
  bring: {agent: Waiter, input: "${ input }"}
"""
WITH_SECRETS = b"""
name: secretive
input:
  type: object
  properties:
    user: {type: string}
    pin: {type: string, format: password}
    deep: {type: object, properties: {note: {type: string}, token: {$ref: '#/$defs/token'}}}
  $defs:
    token: {type: string, writeOnly: true}
steps:
  bring: {agent: Waiter, input: {text: "${ input.user }"}}
"""
FREE = b"{name: free, steps: {bring: {agent: Waiter, input: '${ input }'}}}"


@pytest.fixture(scope="module", autouse=True)
def waiting_workflow(demo: DemoSystem, agents: ThreadedAgents) -> None:
    agent = agents.start(simple_success({"text": "Here you are."}))
    demo.client.create_agent({"name": "Waiter", "url": agent.url, "protocol": "simple-a2a"})
    demo.client.save_workflow(ORDER)
    demo.client.save_workflow(LISTS)
    demo.client.save_workflow(FREE)
    demo.client.save_workflow(WITH_SECRETS)


def write_json(page: Page, label: str, value: Json) -> None:
    page.get_by_role("textbox", name=label).fill(json.dumps(value))


def started_input(page: Page, demo: DemoSystem) -> Json:
    page.wait_for_url(re.compile(r"/runs/[0-9a-f-]{36}"))
    return demo.client.run(page.url.rpartition("/")[2])["input"]


def test_a_form_asks_for_what_the_schema_says_and_the_run_gets_it(page: Page, demo: DemoSystem) -> None:
    page.goto("/workflows/order/start")
    page.get_by_label("Dish").fill("Soup")
    page.get_by_role("combobox", name="size").click()
    page.get_by_role("option", name="large").click()
    page.get_by_label("guests").fill(f"{MANY}")
    page.get_by_label("gift").check()
    page.get_by_test_id("add-input.wishes").click()
    page.get_by_label("wishes 1", exact=True).fill("hot")
    page.get_by_label("street").fill("Main Street 1")
    page.get_by_label("floor").fill("2")
    write_json(page, "anything", [MANY, {"two": None}])
    check_appearance(page, "start")
    page.get_by_test_id("start").click()
    assert started_input(page, demo) == {
        "item": "Soup",
        "size": "large",
        "guests": MANY,
        "tip": 1.5,
        "gift": True,
        "wishes": ["hot"],
        "address": {"street": "Main Street 1", "floor": 2},
        "anything": [MANY, {"two": None}],
    }
    expect(page.get_by_test_id("toast")).to_contain_text("Started a run")


def test_what_the_server_refuses_is_said_at_the_field(page: Page) -> None:
    page.goto("/workflows/order/start")
    page.get_by_label("Dish").fill("Pi")
    page.get_by_label("street").fill("Main Street 1")
    page.get_by_label("floor").fill("12")
    page.get_by_test_id("start").click()
    expect(page.get_by_test_id("start-refused")).to_contain_text("does not match the input schema")
    wrong = {"item": "shorter than 3", "size": "required", "guests": "required", "address.floor": "maximum"}
    for place, words in wrong.items():
        field = page.get_by_test_id(f"field-input.{place}")
        expect(field).to_have_attribute("aria-invalid", "true")
        expect(field).to_have_accessible_description(re.compile(words))
    expect(page.get_by_label("Dish")).to_be_focused()
    check_appearance(page, "start-refused")


def test_a_list_that_is_needed_is_asked_for_and_adding_to_it_leads_into_the_new_field(
    page: Page, demo: DemoSystem
) -> None:
    page.goto("/workflows/lists/start")
    page.get_by_test_id("start").click()
    expect(page.get_by_test_id("field-input.names")).to_contain_text("This field is required.")
    add = page.get_by_test_id("add-input.names")
    for name in ("Ann", "Ben"):
        add.click()
        page.keyboard.type(name)
    page.get_by_test_id("add-input.places").click()
    page.keyboard.type("Rome")
    check_appearance(page, "start-lists")
    field = page.get_by_label("names 1", exact=True).bounding_box()
    remove = page.get_by_role("button", name="Remove names 1").bounding_box()
    assert field is not None
    assert remove is not None
    assert abs(field["y"] + field["height"] / 2 - remove["y"] - remove["height"] / 2) <= 1
    page.get_by_test_id("start").click()
    assert started_input(page, demo) == {"names": ["Ann", "Ben"], "places": [{"town": "Rome"}]}


def test_a_double_click_starts_one_run(page: Page, demo: DemoSystem) -> None:
    keys: list[str | None] = []

    def look(request: Request) -> None:
        if request.method == "POST":
            keys.append(request.headers.get("idempotency-key"))

    page.goto("/workflows/free/start")
    page.on("request", look)
    button = page.get_by_test_id("start")
    # Two clicks before the page can have drawn itself anew.
    button.evaluate("(it) => { it.click(); it.click(); }")
    page.wait_for_url(re.compile(r"/runs/[0-9a-f-]{36}"))
    runs, _ = demo.client.runs({"workflow": "free"})
    assert len(runs) == 1
    assert len({*keys}) == 1
    assert keys[0]


def test_a_form_and_its_json_are_the_same_input(page: Page, demo: DemoSystem) -> None:
    page.goto("/workflows/order/start")
    page.get_by_label("Dish").fill("Bread")
    page.get_by_test_id("start-as").get_by_text("JSON").click()
    editor = page.get_by_role("textbox", name="Input")
    expect(editor).to_contain_text('"item": "Bread"')
    editor.fill('{"item": "Bread",')
    expect(page.get_by_test_id("start-json")).to_contain_text("Invalid JSON")
    expect(page.get_by_test_id("start")).to_be_disabled()
    given: Json = {"item": "Cake", "size": "small", "guests": MANY, "tip": 2.5, "address": {"street": "x"}}
    write_json(page, "Input", given)
    page.get_by_test_id("start-as").get_by_text("Form").click()
    expect(page.get_by_label("Dish")).to_have_value("Cake")
    expect(page.get_by_label("guests")).to_have_value(f"{MANY}")
    # It is in the field still: nothing has to be left before the form is sent.
    page.get_by_label("tip").fill("2.50")
    expect(page.get_by_label("tip")).to_have_value("2.50")
    page.keyboard.press("Enter")
    assert started_input(page, demo) == given


def test_a_workflow_without_a_schema_takes_any_json(page: Page, demo: DemoSystem) -> None:
    page.goto("/workflows/free/start")
    write_json(page, "Input", None)
    check_appearance(page, "start-free")
    page.get_by_test_id("start").click()
    assert started_input(page, demo) is None


def test_the_start_can_be_copied_as_a_command(page: Page, demo: DemoSystem) -> None:
    page.goto("/workflows/free/start")
    write_json(page, "Input", {"it's": 1})
    page.get_by_test_id("copy-curl").click()
    expect(page.get_by_test_id("copy-curl")).to_have_text("Copied")
    assert f"{demo.url}/api/v1/workflows/free/execute" in page.evaluate("navigator.clipboard.readText()")
    page.get_by_test_id("copy-command").click()
    expect(page.get_by_test_id("copy-command")).to_have_text("Copied")
    command = page.evaluate("navigator.clipboard.readText()")
    assert command.startswith("trunkline run free --follow --input-file -")
    assert '"it\'s": 1' in command


def test_what_was_filled_in_outlasts_a_reload_but_secrets_do_not(page: Page) -> None:
    page.goto("/workflows/secretive/start")
    expect(page.get_by_label("user")).to_be_visible()
    expect(page.get_by_test_id("start-kept")).to_have_count(0)
    for label, text in (("user", "ann"), ("pin", "hidden-1"), ("note", "a note"), ("token", "hidden-2")):
        page.get_by_label(label, exact=True).fill(text)
    kept = "JSON.stringify(sessionStorage)"
    page.wait_for_function(f"() => {kept}.includes('a note')")
    assert "hidden" not in page.evaluate(kept)
    page.reload()
    expect(page.get_by_test_id("start-kept")).to_contain_text("Secrets are not stored")
    expect(page.get_by_label("user")).to_have_value("ann")
    expect(page.get_by_label("note")).to_have_value("a note")
    expect(page.get_by_label("pin", exact=True)).to_have_value("")
    check_appearance(page, "start-kept")
    page.get_by_test_id("start-as").get_by_text("JSON").click()
    page.get_by_role("textbox", name="Input").fill(
        '{"user": "ben", "pin": "hidden-3", "deep": {"token": "hidden-4'
    )
    expect(page.get_by_test_id("start-json")).to_contain_text("Invalid JSON")
    assert "hidden" not in page.evaluate(kept)
    page.reload()
    expect(page.get_by_test_id("start-kept")).to_be_visible()
    page.get_by_test_id("clear-form").click()
    expect(page.get_by_test_id("start-kept")).to_have_count(0)
    assert "trunkline.start" not in page.evaluate(kept)


def test_what_was_started_is_not_kept(page: Page, demo: DemoSystem) -> None:
    page.goto("/workflows/free/start")
    write_json(page, "Input", {"mine": [1, 2]})
    page.wait_for_function("() => JSON.stringify(sessionStorage).includes('mine')")
    page.reload()
    expect(page.get_by_role("textbox", name="Input")).to_contain_text('"mine"')
    page.get_by_test_id("start").click()
    assert started_input(page, demo) == {"mine": [1, 2]}
    page.goto("/workflows/free/start")
    expect(page.get_by_role("textbox", name="Input")).not_to_contain_text("mine")
    expect(page.get_by_test_id("start-kept")).to_have_count(0)


def test_a_workflow_that_is_not_there_is_a_problem_that_says_so(page: Page) -> None:
    page.goto("/workflows/nothing/start")
    expect(page.get_by_test_id("problem")).to_contain_text("nothing")


def test_a_run_that_may_have_to_wait_can_be_given_a_priority(page: Page, demo: DemoSystem) -> None:
    demo.client.save_workflow(
        b"{name: limited, steps: {work: {set: {n: 1}}}, concurrency: {limit: 1}, priority: 3}"
    )
    page.goto("/workflows/limited/start")
    field = page.get_by_test_id("priority")
    expect(field).to_have_attribute("placeholder", "3")
    field.fill("7")
    check_appearance(page, "start-priority")
    with page.expect_request(lambda request: "/execute" in request.url) as sent:
        page.get_by_test_id("start").press("Enter")
    assert sent.value.url.endswith("priority=7")
    expect(page.get_by_test_id("run-status")).to_have_text("Completed")
    page.goto("/workflows/order/start")
    expect(page.get_by_test_id("start-form")).to_be_visible()
    expect(page.get_by_test_id("priority")).to_have_count(0)
