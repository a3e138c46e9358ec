"""The chart of a run's page: what its bars say, how long they are, and how a keyboard leads through it."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest
from playwright.sync_api import Page, expect
from tests.ui.browser import check_appearance
from tests.ui.run_page import (
    SEEN,
    assert_not_truncated,
    kinds_of,
    moment,
    node,
    open_waiting,
    press,
    row,
    show,
)
from tests.ui.sample_runs import SampleRuns

MANY = 300


@pytest.fixture
def page(sample_page: Page) -> Page:
    return sample_page


def test_the_chart_tells_calls_back_off_work_elsewhere_and_waiting_apart(
    page: Page, sample_system: SampleRuns
) -> None:
    open_waiting(page, sample_system)
    assert [kind for kind in kinds_of(page, "scout") if kind != "queued"] == ["call", "backoff", "call"]
    failed = row(page, "scout").locator("[data-failed]")
    expect(failed).to_have_count(1)
    expect(failed).to_have_attribute("title", re.compile("^Attempt 1 called the agent for .* and failed$"))
    assert kinds_of(page, "provisions")[-1] == "child"
    assert kinds_of(page, "legs")[-1] == "items"
    assert kinds_of(page, "drift")[-1] == "remote"
    assert kinds_of(page, "harbour")[-1] == "person"
    assert kinds_of(page, "detour") == []
    expect(node(page, "detour")).to_contain_text("Skipped")
    expect(node(page, "radio")).to_contain_text("Failed · handled")
    expect(node(page, "scout")).to_contain_text("attempt 2Completed")
    expect(node(page, "harbour")).to_contain_text("Waiting · for a person")
    for step in ("radio", "scout", "harbour"):
        assert_not_truncated(node(page, step))
    expect(page.get_by_role("list", name="Legend")).to_contain_text("Backoff")
    check_appearance(page, "run")


def test_bars_are_as_long_as_the_ruler_says_however_many_a_row_has(
    page: Page, sample_system: SampleRuns
) -> None:
    run = open_waiting(page, sample_system)
    # No answer tells the page that its clock is wrong.
    page.route("**/api/v1/**", lambda _: None)
    page.clock.set_fixed_time(datetime.now(UTC) + timedelta(minutes=20))
    ruler = page.get_by_role("columnheader", name="Time, 0 to 25 min 0 s").bounding_box()
    assert ruler is not None
    pixels = ruler["width"] / (25 * 60)
    shown = sample_system.client.run(run)
    begin = moment(shown["started_at"])
    ended = {
        step["name"]: moment(step["finished_at"]) - begin for step in shown["steps"] if step["finished_at"]
    }
    scout = row(page, "scout").get_by_test_id("bar")
    assert scout.count() >= 3
    for name in ("plan", "scout", "legs", "provisions", "radio", "flags", "drift"):
        box = row(page, name).get_by_test_id("bar").last.bounding_box()
        assert box is not None
        end = box["x"] + box["width"] - ruler["x"]
        assert -2 < end - ended[name] * pixels < SEEN + 2, name
    # What is too short for it is still there to be asked.
    scout.last.click()
    expect(page).to_have_url(re.compile("step=scout&attempt=2$"))
    # To the right of the longest row there is room for how long it took.
    page.clock.set_fixed_time(datetime.fromtimestamp(begin, UTC) + timedelta(hours=272, minutes=15))
    spent = row(page, "harbour").get_by_text("272 h 1")
    expect(spent).to_be_visible()
    chart = page.get_by_role("region", name="Timeline").bounding_box()
    label = spent.bounding_box()
    assert chart is not None
    assert label is not None
    assert label["x"] + label["width"] <= chart["x"] + chart["width"]


def test_a_call_that_waits_for_its_turn_is_shown_as_queued(page: Page, sample_system: SampleRuns) -> None:
    run = open_waiting(page, sample_system, legs=30)
    # Its agent takes three calls at once.
    show(page, f"{run}?step=legs[20]")
    expect(row(page, "legs[20]").locator("[data-kind=queued]")).to_have_count(1)
    assert kinds_of(page, "legs[20]") == ["queued", "call"]
    # It is shown without anybody scrolling, and whoever scrolls away is left there.
    expect(row(page, "legs[20]")).to_be_in_viewport(ratio=0.9)
    chart = page.get_by_role("region", name="Timeline")
    chart.evaluate("element => element.scrollTo(0, 0)")
    expect(row(page, "plan")).to_be_in_viewport(ratio=0.9)
    expect(page.get_by_test_id("graph-item-legs[20]")).to_be_in_viewport(ratio=0.9)
    page.get_by_test_id("graph").get_by_role("button", name="Fit View").click()
    press(page.get_by_test_id("graph-open-provisions"))
    expect(node(page, "load")).to_be_attached()
    assert chart.evaluate("element => element.scrollTop") == 0


def test_the_chart_is_one_stop_of_the_tab_key_and_arrows_lead_through_it(
    page: Page, sample_system: SampleRuns
) -> None:
    run = open_waiting(page, sample_system, legs=MANY)
    page.get_by_test_id("gantt-in").focus()
    page.keyboard.press("Tab")
    expect(row(page, "plan").get_by_role("button")).to_be_focused()
    page.keyboard.press("Tab")
    expect(page.get_by_test_id("gantt").locator(":focus")).to_have_count(0)
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("ArrowDown")
    expect(row(page, "scout").get_by_role("button")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(rf"/runs/{run}\?step=scout$"))
    for step in ("detour", "legs"):
        page.keyboard.press("ArrowDown")
        expect(row(page, step).get_by_role("button").last).to_be_focused()
    page.keyboard.press("ArrowRight")
    expect(page.get_by_test_id("gantt-open-legs")).to_have_attribute("aria-expanded", "true")
    page.keyboard.press("End")
    expect(row(page, "harbour").get_by_role("button")).to_be_focused()
    expect(row(page, "harbour")).to_be_in_viewport(ratio=0.9)
    page.keyboard.press("Home")
    expect(row(page, "plan").get_by_role("button")).to_be_focused()
    expect(row(page, "plan")).to_be_in_viewport(ratio=0.9)


def test_the_chart_can_be_looked_at_more_closely(page: Page, sample_system: SampleRuns) -> None:
    open_waiting(page, sample_system)
    chart = page.get_by_role("region", name="Timeline")
    before = chart.evaluate("element => element.scrollWidth")
    wider = "([element, before]) => element.scrollWidth > 1.5 * before"
    fits = "([element, before]) => element.scrollWidth <= before"
    page.get_by_test_id("gantt-in").click()
    page.wait_for_function(wider, arg=[chart.element_handle(), before])
    page.get_by_test_id("gantt-fit").click()
    page.wait_for_function(fits, arg=[chart.element_handle(), before])
