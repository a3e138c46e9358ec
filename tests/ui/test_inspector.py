"""What is known of a run, a step, an attempt and an item, tab by tab."""

from __future__ import annotations

import re
import zlib
from base64 import b64encode
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect
from tests.ui.agents import ThreadedAgents
from tests.ui.browser import check_appearance, watched_page
from tests.ui.inspected_run import (
    DRAWING,
    HOSTILE_TEXT,
    ITEMS,
    LONG_FILE,
    PICTURE,
    ROWS,
    SERIAL,
    InspectedRun,
    begin_slow_run,
)

from trunkline.cli.follow import follow_run
from trunkline.jsontypes import Json, JsonObject, decode, encode

COLOURS = [(255, 0, 0), (0, 0, 255)]
COLOUR_OF = """
(picture) => {
  const canvas = document.createElement("canvas").getContext("2d");
  canvas.drawImage(picture, 0, 0, 1, 1);
  return [...canvas.getImageData(0, 0, 1, 1).data];
}
"""


def pixel(colour: tuple[int, int, int]) -> Json:
    """One pixel, not compressed: the colour comes after everything that such pictures have in common."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return len(data).to_bytes(4) + kind + data + zlib.crc32(kind + data).to_bytes(4)

    data = chunk(b"IDAT", zlib.compress(bytes([0, *colour]), level=0))
    content = PICTURE[:33] + data + chunk(b"IEND", b"")
    return {"name": "pixel.png", "mimeType": "image/png", "bytes": b64encode(content).decode()}


ALIKE: list[Json] = [pixel(colour) for colour in COLOURS]


@pytest.fixture
def page(inspected_page: Page) -> Page:
    return inspected_page


def open_inspector(page: Page, inspected: InspectedRun, query: str = "") -> None:
    page.goto(f"/runs/{inspected.run}{query}")
    expect(page.get_by_test_id("inspector")).to_be_visible()


def test_without_a_step_the_run_itself_is_shown(page: Page, inspected: InspectedRun) -> None:
    open_inspector(page, inspected)
    panel = page.get_by_test_id("panel-error")
    expect(panel.get_by_test_id("error-code")).to_have_text("agent_jsonrpc_error")
    expect(panel.get_by_test_id("error-message")).to_contain_text(HOSTILE_TEXT)
    expect(panel.get_by_test_id("error-reached")).to_contain_text("The agent responded.")
    panel.get_by_role("button", name="broken").click()
    expect(page.get_by_test_id("inspected")).to_have_text("broken")
    expect(page).to_have_url(f"{inspected.url}/runs/{inspected.run}?step=broken&attempt=1")


def test_a_tab_and_its_form_are_in_the_address(page: Page, inspected: InspectedRun) -> None:
    open_inspector(page, inspected, "?step=files")
    expect(page.get_by_test_id("text")).to_contain_text("Four files")
    page.get_by_test_id("value").get_by_text("JSON", exact=True).click()
    expect(page).to_have_url(f"{inspected.url}/runs/{inspected.run}?step=files&tab=output.json")
    page.reload()
    expect(page.get_by_test_id("json-rows")).to_be_visible()
    page.get_by_test_id("tab-input").click()
    expect(page).to_have_url(f"{inspected.url}/runs/{inspected.run}?step=files&tab=input")


def test_megabytes_of_json_are_searched_and_only_what_is_in_sight_is_drawn(
    page: Page, inspected: InspectedRun
) -> None:
    open_inspector(page, inspected, "?step=long&tab=output.json")
    rows = page.get_by_test_id("json-row")
    expect(rows).to_have_count(3)
    rows.filter(has_text=f"[{ROWS:,} items]").click()
    rows.filter(has_text="[0 … 199]").click()
    expect(rows.filter(has_text="{3 fields}").first).to_be_visible()
    assert rows.count() < 100
    page.get_by_test_id("json-search").fill(f"GAUGE {ROWS - 1}")
    expect(page.get_by_test_id("json-found")).to_have_text("1 of 1")
    expect(page.get_by_test_id("json-path")).to_have_text(f"steps.long.output.data.rows[{ROWS - 1}].name")
    expect(rows.filter(has_text=f'"gauge {ROWS - 1}"')).to_be_in_viewport()
    page.get_by_test_id("copy-path").click()
    assert clipboard(page) == f"steps.long.output.data.rows[{ROWS - 1}].name"
    page.get_by_test_id("copy-value").click()
    expect(page.get_by_test_id("copy-value")).to_have_text("Copied")
    assert clipboard(page) == f"gauge {ROWS - 1}"
    page.get_by_test_id("json-search").fill("nowhere")
    expect(page.get_by_test_id("json-found")).to_have_text("No matches")


def test_a_tree_is_walked_through_with_the_keyboard(page: Page, inspected: InspectedRun) -> None:
    open_inspector(page, inspected, "?step=long&tab=output.json")
    tree = page.get_by_test_id("json-rows")
    path = page.get_by_test_id("json-path")
    tree.focus()
    for key, expected in [
        ("End", "steps.long.output.data.rows"),
        ("ArrowUp", "steps.long.output.data"),
        ("ArrowRight", "steps.long.output.data.rows"),
        ("ArrowLeft", "steps.long.output.data"),
        ("ArrowLeft", "steps.long.output.data"),
        ("ArrowDown", "steps.long.output.data"),
        ("Home", "steps.long.output"),
    ]:
        page.keyboard.press(key)
        expect(path).to_have_text(expected)
    expect(page.get_by_test_id("json-row")).to_have_count(2)
    check_appearance(page, "inspector-json")


def test_a_number_is_shown_found_and_copied_in_all_its_digits(page: Page, inspected: InspectedRun) -> None:
    open_inspector(page, inspected, "?step=files&tab=output.json")
    for number, row in [("12.0", "depth12.0"), (f"{SERIAL}", f"serial{SERIAL}")]:
        page.get_by_test_id("json-search").fill(number)
        expect(page.get_by_test_id("json-found")).to_have_text(re.compile("^1 of "))
        expect(page.locator("[data-testid=json-row][aria-selected=true]")).to_have_text(row)
    page.get_by_test_id("copy-value").click()
    expect(page.get_by_test_id("copy-value")).to_have_text("Copied")
    assert clipboard(page) == f"{SERIAL}"


def test_pictures_are_shown_and_every_file_is_downloaded_as_it_is(
    page: Page, inspected: InspectedRun, tmp_path: Path
) -> None:
    open_inspector(page, inspected, "?step=files&tab=output.files")
    files = page.get_by_test_id("file")
    expect(files).to_have_count(4)
    picture = page.get_by_test_id("picture")
    expect(picture).to_have_count(1)
    expect(picture).to_have_js_property("naturalWidth", 1)
    assert str(picture.get_attribute("src")).startswith("blob:")
    expect(files.nth(1)).to_contain_text("SVG files can contain scripts")
    expect(files.nth(3)).to_contain_text("application/octet-stream · 307.2 kB · Readings")
    contents = [PICTURE, DRAWING, HOSTILE_TEXT.encode(), LONG_FILE]
    names = ["gauge.png", "map.svg", "report.html", "readings.bin"]
    for place, (name, content) in enumerate(zip(names, contents, strict=True)):
        with page.expect_download() as download:
            files.nth(place).get_by_test_id("download").click()
        assert download.value.suggested_filename == name
        download.value.save_as(tmp_path / name)
        assert (tmp_path / name).read_bytes() == content
    check_appearance(page, "inspector-files")


def test_each_attempt_says_why_it_failed_and_what_followed(page: Page, inspected: InspectedRun) -> None:
    open_inspector(page, inspected, "?step=flaky&tab=error")
    failures = page.get_by_test_id("failure")
    expect(failures).to_have_count(2)
    expect(failures.nth(0)).to_contain_text("Attempt 2 failed")
    expect(failures.nth(0).get_by_test_id("error-reached")).to_contain_text("no response arrived")
    expect(failures.nth(0).get_by_test_id("error-next")).to_have_text("Attempt 3 followed.")
    expect(failures.nth(1).get_by_test_id("error-code")).to_have_text("agent_http_error")
    expect(failures.nth(1).get_by_test_id("error-fix")).to_have_text(
        f"See the request and the response: trunkline runs wire {inspected.run} flaky."
    )
    check_appearance(page, "inspector-errors")
    page.get_by_test_id("attempts").get_by_text("1", exact=True).click()
    expect(page).to_have_url(re.compile("[?&]attempt=1"))
    expect(failures).to_have_count(1)
    page.get_by_test_id("tab-output").click()
    expect(page.get_by_test_id("no-value")).to_have_text("Attempt 1 has no output. Attempt 2 followed.")


def test_the_last_failure_says_that_no_attempt_follows(page: Page, inspected: InspectedRun) -> None:
    open_inspector(page, inspected, "?step=broken")
    expect(page.get_by_test_id("error-next")).to_have_text(
        "There are no more attempts. Fix the cause, then retry the run from this step."
    )
    page.get_by_test_id("to-wire").click()
    expect(page.get_by_test_id("wire-count")).to_have_text("1 exchange")


def test_events_are_those_of_the_run_or_of_what_is_selected(page: Page, inspected: InspectedRun) -> None:
    open_inspector(page, inspected, "?tab=events")
    listed = page.get_by_test_id("events")
    expect(listed.get_by_test_id("event").first).to_contain_text("RunStarted")
    assert listed.get_by_test_id("event").count() < 80
    check_appearance(page, "inspector-events")
    # As many as were looked at, and those that follow them.
    expect(listed).to_have_attribute("data-count", "100")
    listed.evaluate("(list) => list.scrollTo(0, list.scrollHeight)")
    expect(listed).to_have_attribute("data-count", str(len(inspected.client.events(inspected.run).items)))
    listed.evaluate("(list) => list.scrollTo(0, list.scrollHeight)")
    expect(listed.locator("[data-type=RunFailed]")).to_be_visible()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url) if "/events?" in request.url else None)
    open_inspector(page, inspected, "?step=flaky&attempt=2&tab=events")
    expect(listed.get_by_test_id("event")).to_have_count(2)
    assert asked
    assert all("step=flaky" in url for url in asked)
    expect(listed.locator("[data-type=StepRetryScheduled]")).to_contain_text(
        "flaky · attempt 2 · The agent closed the connection without an answer."
    )
    listed.locator("[data-type=StepRetryScheduled]").get_by_role("button").click()
    expect(listed.get_by_label("Event", exact=False).last).to_contain_text('"code": "agent_connection_lost"')


def test_the_log_is_read_line_by_line_and_downloaded_whole(page: Page, inspected: InspectedRun) -> None:
    open_inspector(page, inspected, "?step=flaky&tab=logs")
    lines = page.get_by_test_id("log-line")
    expect(lines.first).to_contain_text("Attempt 1 started: calling Flaky.")
    expect(page.locator("[data-testid=log-line][data-level=warning]")).to_have_count(4)
    check_appearance(page, "inspector-logs")
    with page.expect_download() as download:
        page.get_by_test_id("download-logs").click()
    assert download.value.suggested_filename == f"{inspected.run}-flaky.jsonl"
    whole = [decode(line) for line in Path(download.value.path()).read_bytes().splitlines()]
    assert len(whole) == lines.count()
    open_inspector(page, inspected, "?tab=logs")
    expect(lines).to_have_count(200)
    page.get_by_role("button", name="Load more lines").click()
    expect(lines.last).to_contain_text("The run failed.")


def test_items_are_listed_page_by_page_and_one_is_looked_into(page: Page, inspected: InspectedRun) -> None:
    open_inspector(page, inspected, "?step=each")
    items = page.get_by_test_id("item")
    expect(items).to_have_count(50)
    expect(page.get_by_test_id("items")).to_contain_text(f"{ITEMS - 1} completed")
    page.get_by_role("button", name="Load more items").click()
    expect(items).to_have_count(ITEMS)
    expect(items.last).to_contain_text("Too deep: 60")
    # The one that failed is found without reading the rest, also by whoever is given the address.
    failed = page.get_by_role("button", name="1 failed", exact=True)
    failed.click()
    expect(items).to_have_count(1)
    expect(page).to_have_url(re.compile("items=failed"))
    page.reload()
    expect(items).to_have_count(1)
    expect(failed).to_have_attribute("aria-pressed", "true")
    check_appearance(page, "inspector-items")
    items.last.click()
    expect(page.get_by_test_id("inspected")).to_have_text(f"each[{ITEMS - 1}]")
    expect(page.get_by_test_id("error-message")).to_contain_text("Too deep: 60")
    expect(page.get_by_test_id("error-next")).to_have_text(
        "The step each completed despite this failure (on_error of its for_each)."
    )
    page.get_by_test_id("tab-input").click()
    expect(page.get_by_test_id("json-row").last).to_have_text(f"number{ITEMS}")
    page.get_by_test_id("all-items").click()
    expect(items).to_have_count(1)
    failed.click()
    expect(items).to_have_count(50)
    expect(page).not_to_have_url(re.compile("items=failed"))
    page.get_by_test_id("tab-wire").click()
    expect(page.get_by_test_id("panel-wire")).to_have_text(
        "Each item has its own exchanges. Select one on the tab Items."
    )
    page.get_by_test_id("wire-of-items").get_by_role("button", name="Items").click()
    expect(items.first).to_be_visible()


@pytest.fixture(scope="module")
def nested(inspected: InspectedRun) -> str:
    """A run that the only item of the run it has begun has failed."""
    each: JsonObject = {
        "agent": "Each",
        "for_each": "${ input.numbers }",
        "input": {"number": "${ item }"},
        "retry": {"max_attempts": 1},
    }
    inner: JsonObject = {"workflow": "soundings", "input": "${ input }"}
    inspected.client.save_workflow(encode({"name": "soundings", "steps": {"each": each}}))
    inspected.client.save_workflow(encode({"name": "survey", "steps": {"inner": inner}}))
    run = inspected.client.execute("survey", {"numbers": [ITEMS], "pictures": ALIKE})["id"]
    follow_run(inspected.client, run, show="nothing")
    return run


def test_the_failure_of_another_run_leads_there_and_to_the_item_that_failed_it(
    page: Page, inspected: InspectedRun, nested: str
) -> None:
    page.goto(f"/runs/{nested}?step=inner")
    failure = page.get_by_test_id("failure")
    expect(failure.get_by_test_id("error-code")).to_have_text("child_failed")
    expect(failure.get_by_test_id("error-fix")).not_to_contain_text(nested)
    expect(failure.get_by_test_id("error-in-general")).to_have_count(0)
    expect(failure.get_by_test_id("error-reached")).to_have_count(0)
    expect(page.get_by_test_id("run-notice").get_by_test_id("child-run")).to_be_visible()
    check_appearance(page, "inspector-child")
    failure.get_by_test_id("child-run").click()
    expect(page).not_to_have_url(re.compile(nested))
    child = page.url.rsplit("/", 1)[-1]
    page.goto(f"/runs/{child}?step=each[0]")
    expect(page.get_by_test_id("error-next")).to_have_text(
        "There are no more attempts. This failure made the step each fail."
        " Fix the cause, then retry the run from that step."
    )
    check_appearance(page, "inspector-item-error")


def test_pictures_that_begin_alike_are_each_shown_as_they_are(
    page: Page, inspected: InspectedRun, nested: str
) -> None:
    page.goto(f"/runs/{nested}?tab=input.files")
    pictures = page.get_by_test_id("picture")
    expect(pictures).to_have_count(2)
    for place, colour in enumerate(COLOURS):
        expect(pictures.nth(place)).to_have_js_property("naturalWidth", 1)
        assert pictures.nth(place).evaluate(COLOUR_OF) == [*colour, 255]


def test_what_agents_say_is_text_wherever_it_is_shown(page: Page, inspected: InspectedRun) -> None:
    for query in ("?step=files&tab=output.text", "?step=files&tab=output.json", "?step=files&tab=input"):
        open_inspector(page, inspected, query)
        expect(page.get_by_test_id("inspector").get_by_text(HOSTILE_TEXT).first).to_be_visible()
    open_inspector(page, inspected, "?step=broken&tab=error")
    expect(page.get_by_test_id("error-message")).to_contain_text(HOSTILE_TEXT)
    assert page.get_by_test_id("inspector").locator("img, script, iframe, a[href^=javascript]").count() == 0


def test_a_step_and_an_attempt_that_are_none_say_which_there_are(page: Page, inspected: InspectedRun) -> None:
    open_inspector(page, inspected, "?step=nobody")
    problem = page.get_by_test_id("inspector").get_by_test_id("problem")
    expect(problem).to_contain_text("has no step nobody")
    expect(problem).to_contain_text("Its steps: flaky, stream, files")
    check_appearance(page, "inspector-no-step")
    page.get_by_test_id("instead").click()
    expect(page).to_have_url(f"{inspected.url}/runs/{inspected.run}")
    expect(page.get_by_test_id("tab-input")).to_be_visible()
    open_inspector(page, inspected, "?step=flaky&attempt=9&tab=wire")
    expect(page.get_by_test_id("no-attempt")).to_have_text("There is no attempt 9: flaky has 3 attempts.")
    expect(page.get_by_test_id("tab-wire")).to_have_count(0)
    check_appearance(page, "inspector-no-attempt")
    page.get_by_test_id("instead").click()
    expect(page.get_by_test_id("wire-count")).to_have_text("6 exchanges")
    open_inspector(page, inspected, "?step=broken&attempt=2")
    expect(page.get_by_test_id("no-attempt")).to_have_text("There is no attempt 2: broken has one attempt.")


def test_a_run_is_looked_into_while_it_goes_on(
    page: Page, inspected: InspectedRun, agents: ThreadedAgents
) -> None:
    run = begin_slow_run(inspected, agents)
    page.goto(f"/runs/{run.id}?step=only&tab=output")
    expect(page.get_by_test_id("no-value")).to_have_text("The output is available when the step completes.")
    page.get_by_test_id("tab-wire").click()
    expect(page.get_by_test_id("no-exchanges")).to_contain_text("No exchanges yet.")
    run.let_answer()
    expect(page.get_by_test_id("exchange")).to_have_count(1)
    page.get_by_test_id("tab-output").click()
    expect(page.get_by_test_id("text")).to_have_text("At last")
    # The list of those that have completed grows, and so does their count.
    slowly: JsonObject = {"agent": "Slow", "for_each": "${ input.numbers }"}
    inspected.client.save_workflow(encode({"name": "slowly", "steps": {"each": slowly}}))
    loop = inspected.client.execute("slowly", {"numbers": [1, 2]})["id"]
    page.goto(f"/runs/{loop}?step=each&items=completed")
    items = page.get_by_test_id("items")
    expect(items).to_contain_text("No completed items.")
    expect(items.get_by_role("button", name="2 running")).to_be_visible()
    run.let_answer()
    expect(items.get_by_role("button", name="1 completed")).to_have_attribute("aria-pressed", "true")
    expect(page.get_by_test_id("item")).to_have_count(1)
    run.let_answer()
    expect(page.get_by_test_id("item")).to_have_count(2)


def test_it_is_read_on_a_narrow_screen_too(browser: Browser, inspected: InspectedRun) -> None:
    with watched_page(browser, inspected.url, width=1024, height=768) as page:
        open_inspector(page, inspected, "?step=flaky&tab=wire")
        expect(page.get_by_test_id("exchanges")).to_be_visible()
        assert not page.evaluate(
            "document.documentElement.scrollWidth > document.documentElement.clientWidth"
        )
        # Why an item failed is read whole, and the tabs stand in one line, all of them.
        open_inspector(page, inspected, "?step=each&items=failed")
        why = page.get_by_test_id("item").get_by_text("Too deep: 60")
        expect(why).to_be_visible()
        assert why.evaluate("it => it.scrollWidth <= it.clientWidth && it.scrollHeight <= it.clientHeight")
        tabs = page.get_by_role("tab")
        assert len(set(tabs.evaluate_all("tabs => tabs.map((each) => each.offsetTop)"))) == 1
        expect(tabs.last).to_be_in_viewport(ratio=0.99)
        check_appearance(page, "inspector-items-1024")
        # Where there is no room for all of them the chosen one is in viewport_of.
        page.set_viewport_size({"width": 320, "height": 768})
        open_inspector(page, inspected, "?step=each&tab=wire")
        page.get_by_role("tablist").evaluate("tabs => tabs.scrollIntoView({block: 'center'})")
        expect(tabs.first).not_to_be_in_viewport(ratio=0.9)
        expect(tabs.last).to_be_in_viewport(ratio=0.99)


def clipboard(page: Page) -> str:
    return str(page.evaluate("navigator.clipboard.readText()"))
