"""A run's page: graph, chart and inspector agree with REST and with one another, live and after a fresh load."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page, expect
from tests.ui.browser import check_appearance, watched_page
from tests.ui.run_page import (
    assert_inside,
    assert_no_overlap,
    assert_not_truncated,
    corner,
    delay_events,
    expect_status,
    fit_view,
    kinds_of,
    node,
    open_waiting,
    press,
    row,
    show,
    shown_statuses,
    viewport_of,
)
from tests.ui.sample_runs import LEGS, LOST, SUNK, SampleRuns

from trunkline.cli.follow import follow_run

MANY = 300
SHOWN_ITEMS = 50
READABLE = 0.75


@pytest.fixture
def page(sample_page: Page) -> Page:
    return sample_page


def test_what_is_shown_live_is_what_rest_says_and_what_a_fresh_load_shows(
    page: Page, sample_system: SampleRuns
) -> None:
    sample_system.close_gate()
    run = sample_system.start("voyage")
    show(page, run)
    expect(node(page, "harbour")).to_have_attribute("data-status", "RUNNING")
    expect(page.get_by_test_id("connection")).to_have_attribute("data-connection", "live")
    assert shown_statuses(page, run) == sample_system.statuses(run)
    show(page, run)
    # What works is in view, and the graph stays there when the run goes on.
    expect(node(page, "harbour")).to_be_in_viewport(ratio=0.99)
    before = viewport_of(page)

    sample_system.open_gate()
    expect_status(page, "WAITING")
    expect(page.get_by_test_id("run-notice")).to_contain_text(
        "Step harbour is waiting for a reply: “Which berth?”"
    )
    assert shown_statuses(page, run) == sample_system.statuses(run)
    assert viewport_of(page) == before

    sample_system.client.reply(run, "harbour", {"text": "The third."})
    expect_status(page, "COMPLETED")
    expect(page.get_by_test_id("connection")).to_have_attribute("data-connection", "over")
    expect(page.get_by_test_id("run-notice")).to_have_count(0)
    live = shown_statuses(page, run)
    assert live == sample_system.statuses(run)
    assert set(live.values()) == {"COMPLETED", "FAILED", "SKIPPED"}
    show(page, run)
    expect(node(page, "harbour")).to_have_attribute("data-status", "COMPLETED")
    assert shown_statuses(page, run) == live


def test_a_run_that_is_over_says_so_before_its_history_is_there(
    page: Page, sample_system: SampleRuns
) -> None:
    run = sample_system.start("coast")
    follow_run(sample_system.client, run, show="nothing")
    held = delay_events(page, run)
    marks = page.get_by_role("columnheader", name="Time, 0 to")
    told = [page.get_by_test_id("run-duration").inner_text(), marks.get_attribute("aria-label")]
    expect(page).to_have_title(re.compile("Failed · coast"))
    expect(page.locator("dl").first).to_contain_text("Duration")
    for action in ("pause", "cancel"):
        expect(page.get_by_test_id(action)).to_have_attribute("aria-disabled", "true")
    expect(page.get_by_test_id("retry")).not_to_have_attribute("aria-disabled", "true")
    expect(page.get_by_test_id("run-notice")).to_contain_text(f"Step cape{LOST} failed")
    expect(page.get_by_test_id("bar")).to_have_count(0)
    assert shown_statuses(page, run) == sample_system.statuses(run)

    held.pop().continue_()
    expect(page.get_by_test_id("connection")).to_have_attribute("data-connection", "over")
    expect(page.get_by_test_id("bar").first).to_be_visible()
    assert page.evaluate("window.shown") == ["FAILED"]
    assert shown_statuses(page, run) == sample_system.statuses(run)
    assert [page.get_by_test_id("run-duration").inner_text(), marks.get_attribute("aria-label")] == told


def test_a_run_that_goes_on_is_shown_as_it_stands_before_its_history_is_there(
    page: Page, sample_system: SampleRuns
) -> None:
    run = open_waiting(page, sample_system)
    sample_system.client.act(run, "pause")
    expect_status(page, "PAUSED")
    held = delay_events(page, run)
    expect(page).to_have_title(re.compile("Paused · voyage"))
    expect(page.get_by_test_id("run-notice")).to_contain_text("The run is paused")
    expect(page.get_by_test_id("resume")).not_to_have_attribute("aria-disabled", "true")
    expect(page.locator("dl").first).to_contain_text("Running for")
    assert shown_statuses(page, run) == sample_system.statuses(run)

    held.pop().continue_()
    expect(page.get_by_test_id("connection")).to_have_attribute("data-connection", "live")
    expect(row(page, "harbour").get_by_test_id("bar").first).to_be_visible()
    assert page.evaluate("window.shown") == ["PAUSED"]
    page.get_by_test_id("resume").click()
    expect_status(page, "WAITING")


def test_the_age_of_a_run_goes_on_though_its_page_is_drawn_more_often(
    page: Page, sample_system: SampleRuns
) -> None:
    sample_system.close_gate()
    page.clock.install()
    run = sample_system.start("voyage")
    show(page, run)
    facts = page.locator("dl").first
    expect(facts).to_contain_text("Running for")
    page.clock.pause_at(page.evaluate("Date.now() + 1000"))
    before = facts.locator("time").inner_text()
    for _ in range(6):
        page.clock.run_for(700)
        page.get_by_test_id("times").click()
    assert facts.locator("time").inner_text() != before
    page.clock.resume()
    sample_system.open_gate()
    sample_system.client.act(run, "cancel")
    expect(facts).to_contain_text("Duration")


def test_one_selection_is_shared_and_the_address_keeps_it(page: Page, sample_system: SampleRuns) -> None:
    run = open_waiting(page, sample_system)
    press(node(page, "scout").get_by_role("button").first)
    expect(page).to_have_url(f"{sample_system.url}/runs/{run}?step=scout")
    expect(row(page, "scout")).to_have_attribute("data-selected", "true")
    row(page, "scout").locator("[data-failed]").click()
    expect(page).to_have_url(f"{sample_system.url}/runs/{run}?step=scout&attempt=1")
    expect(row(page, "scout").locator("[data-chosen]").first).to_be_visible()
    row(page, "plan").get_by_role("button").click()
    expect(node(page, "plan")).to_have_attribute("data-selected", "true")
    page.go_back()
    expect(page).to_have_url(f"{sample_system.url}/runs/{run}?step=scout&attempt=1")
    expect(node(page, "scout")).to_have_attribute("data-selected", "true")
    # Of a graph that is looked at closely, what is chosen elsewhere comes into view.
    for _ in range(4):
        page.get_by_test_id("graph").get_by_role("button", name="Zoom In").click()
    for step in ("plan", "harbour"):
        row(page, step).get_by_role("button").click()
        expect(node(page, step)).to_be_in_viewport(ratio=0.9)
    for _ in range(2):
        page.go_back()
    expect(node(page, "scout")).to_be_in_viewport(ratio=0.9)
    page.reload()
    expect(node(page, "scout")).to_have_attribute("data-selected", "true")
    expect(row(page, "scout")).to_have_attribute("data-selected", "true")


def test_items_open_as_a_group_and_each_can_be_chosen(page: Page, sample_system: SampleRuns) -> None:
    run = open_waiting(page, sample_system)
    expect(node(page, "legs")).to_contain_text(f"{LEGS - 1}/{LEGS}Completed · 1 failed")
    assert_not_truncated(node(page, "legs"))
    row(page, "legs").get_by_role("button", name="legs").last.click()
    expect(node(page, "legs")).to_be_in_viewport(ratio=0.99)
    sign, count = (
        part.bounding_box()
        for part in (
            page.get_by_test_id("graph-open-legs").locator("svg"),
            node(page, "legs").get_by_text(f"{LEGS - 1}/{LEGS}", exact=True),
        )
    )
    assert sign is not None
    assert count is not None
    assert sign["y"] + sign["height"] <= count["y"] + 0.5
    places = [corner(node(page, "legs")), corner(page.get_by_test_id("graph-open-legs"))]
    press(page.get_by_test_id("graph-open-legs"))
    expect(page.locator("[data-testid^=graph-item-]")).to_have_count(LEGS)
    # The group opens where it is, and what has opened it closes it.
    assert [corner(node(page, "legs")), corner(page.get_by_test_id("graph-open-legs"))] == places
    assert viewport_of(page)[2] >= READABLE
    sunk = page.get_by_test_id(f"graph-item-legs[{SUNK}]")
    expect(sunk).to_have_attribute("data-status", "FAILED")
    sunk.click()
    expect(page).to_have_url(re.compile(rf"step=legs(\[|%5B){SUNK}(\]|%5D)&open=legs$"))
    expect(row(page, f"legs[{SUNK}]")).to_have_attribute("data-selected", "true")
    check_appearance(page, "run-items")
    # Whoever is given the address sees the item, in its group.
    page.goto(f"/runs/{run}?step=legs[{SUNK}]")
    expect(page.get_by_test_id(f"graph-item-legs[{SUNK}]")).to_have_attribute("data-selected", "true")
    expect(page.get_by_test_id(f"graph-item-legs[{SUNK}]")).to_be_in_viewport(ratio=0.99)
    assert_no_overlap(page)
    fit_view(page)
    assert_no_overlap(page)
    assert_not_truncated(node(page, "legs"))
    # Closing the group of what is chosen chooses the group.
    press(page.get_by_test_id("graph-open-legs"))
    expect(page.locator("[data-testid^=graph-item-]")).to_have_count(0)
    expect(node(page, "legs")).to_have_attribute("data-selected", "true")
    expect(page).to_have_url(f"{sample_system.url}/runs/{run}?step=legs")
    # What marks the row of the chosen step goes on to the edge, behind the bars.
    assert row(page, "legs").evaluate(
        """row => row.clientWidth === row.parentElement.clientWidth
            && getComputedStyle(row).backgroundColor !== 'rgba(0, 0, 0, 0)'"""
    )


def test_of_very_many_items_those_that_failed_are_shown_and_the_first(
    page: Page, sample_system: SampleRuns
) -> None:
    open_waiting(page, sample_system, legs=MANY)
    page.get_by_test_id("gantt-open-legs").click()
    expect(page.locator("[data-testid^=graph-item-]")).to_have_count(SHOWN_ITEMS)
    expect(page.locator("[data-testid^=graph-item-][data-status=FAILED]")).to_have_count(1)
    expect(node(page, "legs")).to_contain_text(f"{SHOWN_ITEMS} of {MANY} shown. See the Items tab for all.")
    expect(node(page, "legs").get_by_role("button").first).to_be_in_viewport()
    assert viewport_of(page)[2] >= READABLE
    # The map is there while part of the graph is out of view.
    graph_map = page.get_by_role("img", name="Minimap")
    expect(graph_map).to_be_visible()
    assert_no_overlap(page)
    check_appearance(page, "run-many-items")
    # Where it would cover something it comes when it is asked for.
    page.get_by_test_id("graph-item-legs[17]").hover()
    page.mouse.wheel(0, -2000)
    expect(graph_map).to_have_count(0)
    page.get_by_test_id("graph").get_by_role("button", name="Map", pressed=False).click()
    expect(graph_map).to_be_visible()
    fit_view(page)
    assert_no_overlap(page)
    expect(graph_map).to_have_count(0)
    expect(page.get_by_role("table", name="Timeline")).to_have_attribute("aria-rowcount", str(MANY + 10))
    assert page.locator("[data-testid^=gantt-row-]").count() < SHOWN_ITEMS


def test_a_run_of_another_workflow_opens_inside_and_on_its_own_page(
    page: Page, sample_system: SampleRuns
) -> None:
    run = open_waiting(page, sample_system)
    fit_view(page)
    press(page.get_by_test_id("graph-open-provisions"))
    for step in ("water", "bread", "load"):
        expect(node(page, step)).to_have_attribute("data-status", "COMPLETED")
        assert_inside(page, f"provisions/{step}", "provisions")
        assert kinds_of(page, f"provisions/{step}")[-1] == "call"
    check_appearance(page, "run-child")
    # As deep as it goes, also for whoever is given the address; opening is not what Back undoes.
    fit_view(page)
    press(page.get_by_test_id("graph-open-stow"))
    expect(page).to_have_url(re.compile(r"\?open=provisions(,|%2C)provisions(/|%2F)stow$"))
    page.reload()
    for step in ("sort", "lash"):
        expect(node(page, step)).to_have_attribute("data-status", "COMPLETED")
        assert_inside(page, f"provisions/stow/{step}", "provisions/stow")
    assert_no_overlap(page)
    fit_view(page)
    assert_no_overlap(page)
    check_appearance(page, "run-grandchild")
    # One control closes what the other has opened, and what was open inside is there again with it.
    page.get_by_test_id("gantt-open-provisions").click()
    expect(page.locator("[data-testid^='gantt-row-provisions/']")).to_have_count(0)
    expect(node(page, "lash")).to_have_count(0)
    page.get_by_test_id("gantt-open-provisions").click()
    expect(row(page, "provisions/stow/lash")).to_be_visible()
    # The graph is laid out anew for it, and only then shows all.
    expect(node(page, "lash")).to_be_attached()
    fit_view(page)
    press(node(page, "lash").get_by_role("button"))
    expect(page.get_by_test_id("run-title")).to_have_text("hold")
    expect(page).to_have_url(re.compile(r"\?step=lash$"))
    page.get_by_test_id("parent-run").click()
    expect(page.get_by_test_id("run-title")).to_have_text("stock")
    expect(page).to_have_url(re.compile(r"\?step=stow$"))
    page.get_by_test_id("parent-run").click()
    expect(page).to_have_url(f"{sample_system.url}/runs/{run}?step=provisions")
    row(page, "provisions").get_by_role("button", name="Completed provisions").focus()
    page.keyboard.press("ArrowRight")
    expect(page.get_by_role("button", name="Steps of provisions", exact=True)).to_have_attribute(
        "aria-expanded", "true"
    )
    expect(row(page, "provisions/water")).to_be_visible()
    for _ in range(4):
        page.keyboard.press("ArrowDown")
    expect(page.get_by_role("button", name="Completed stow in provisions")).to_be_focused()
    expect(row(page, "provisions/stow")).to_be_in_viewport(ratio=0.9)
    page.keyboard.press("Enter")
    expect(page.get_by_test_id("run-title")).to_have_text("stock")
    expect(page).to_have_url(re.compile(r"\?step=stow$"))
    page.go_back()
    press(page.get_by_test_id("graph-child-provisions"))
    expect(page.get_by_test_id("run-title")).to_have_text("stock")


def test_what_is_open_of_another_workflow_lives_and_is_read_once(
    page: Page, sample_system: SampleRuns
) -> None:
    sample_system.close_gate()
    paths: list[str] = []
    page.on("request", lambda request: paths.append(urlsplit(request.url).path))
    show(page, f"{sample_system.start('fleet')}?open=ship")
    expect(row(page, "ship/harbour")).to_have_attribute("data-status", "RUNNING")
    expect(node(page, "harbour")).to_have_attribute("data-status", "RUNNING")
    assert [kind for kind in kinds_of(page, "ship/scout") if kind != "queued"] == ["call", "backoff", "call"]
    expect(row(page, "ship/detour")).to_have_attribute("data-status", "SKIPPED")
    expect(page.get_by_role("list", name="Legend")).to_contain_text("Backoff")
    # Its items are on its own page.
    expect(row(page, "ship/legs")).to_be_attached()
    expect(page.get_by_test_id("gantt-open-ship/legs")).to_have_count(0)
    sample_system.open_gate()
    expect(row(page, "ship/harbour")).to_have_attribute("data-status", "WAITING")
    expect(row(page, "ship/harbour").locator("[data-kind=person]")).to_have_attribute("data-goes-on", "true")
    asked = list(paths)
    row(page, "ship/scout").locator("[data-failed]").click()
    expect(page.get_by_test_id("run-title")).to_have_text("voyage")
    expect(page).to_have_url(re.compile(r"\?step=scout&attempt=1$"))
    # Graph and chart are told by its history, which is read on.
    assert asked.count(f"/api/v1{urlsplit(page.url).path}") == 1


def test_a_failed_run_says_why_and_what_to_do(page: Page, sample_system: SampleRuns) -> None:
    run = sample_system.start("wreck")
    show(page, run)
    notice = page.get_by_test_id("run-notice")
    expect(notice).to_contain_text("Step sail failed: The mast is broken.")
    expect(page.get_by_test_id("run-fix")).to_have_text(
        "The agent reported a failure. Fix the cause that its message names, then retry the run: "
        f"trunkline runs retry {run}."
    )
    expect(node(page, "land")).to_contain_text("Not started")
    assert shown_statuses(page, run) == sample_system.statuses(run)
    notice.get_by_role("button", name="sail").click()
    expect(node(page, "sail")).to_have_attribute("data-selected", "true")
    check_appearance(page, "run-failed")


def test_of_a_run_too_long_to_be_read_as_a_whole_the_part_that_matters_is_shown(
    page: Page, sample_system: SampleRuns
) -> None:
    run = sample_system.start("coast")
    show(page, run)
    expect_status(page, "FAILED")
    show(page, run)
    graph_map = page.get_by_role("img", name="Minimap")
    expect(node(page, f"cape{LOST}")).to_be_in_viewport(ratio=0.99)
    expect(node(page, "cape0")).not_to_be_in_viewport()
    expect(graph_map).to_be_visible()
    assert viewport_of(page)[2] >= READABLE
    expect(page.get_by_test_id("run-fix")).to_have_text(
        f"See the request and the response: trunkline runs wire {run} cape{LOST}."
    )
    check_appearance(page, "run-long")
    page.get_by_test_id("run-wire").click()
    expect(page.get_by_test_id("inspected")).to_have_text(f"cape{LOST}")
    expect(page.get_by_test_id("wire-count")).to_have_text("1 exchange")
    page.get_by_test_id("retry").click()
    kept = page.get_by_test_id("retry-kept")
    expect(kept).to_contain_text("cape16")
    # The names stay in their box, on as many lines as they need.
    box = page.get_by_test_id("retry-consequences").bounding_box()
    last = kept.get_by_text("cape16").bounding_box()
    assert box is not None
    assert last is not None
    assert last["x"] + last["width"] <= box["x"] + box["width"]
    check_appearance(page, "retry-long")
    page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
    row(page, "cape0").get_by_role("button").click()
    expect(node(page, "cape0")).to_be_in_viewport(ratio=0.99)
    fit_view(page)
    for step in ("cape0", f"cape{LOST}", "cape23"):
        expect(node(page, step)).to_be_in_viewport(ratio=0.99)
    expect(graph_map).to_have_count(0)
    page.reload()
    # What is chosen matters more than what failed.
    expect(node(page, "cape0")).to_be_in_viewport(ratio=0.99)
    assert viewport_of(page)[2] >= READABLE


def test_a_run_that_is_over_is_read_once(page: Page, sample_system: SampleRuns) -> None:
    run = open_waiting(page, sample_system)
    sample_system.client.act(run, "cancel")
    expect_status(page, "CANCELLED")
    paths: list[str] = []
    page.on("request", lambda request: paths.append(urlsplit(request.url).path))
    page.goto(f"/runs/{run}?step=plan")
    expect(page.get_by_test_id("connection")).to_have_attribute("data-connection", "over")
    expect(page.get_by_test_id("inspected")).to_have_text("plan")
    assert paths.count(f"/api/v1/runs/{run}") == 1
    # The history that the page follows; another reading of it is for who wants to see it.
    assert paths.count(f"/api/v1/runs/{run}/events") == 1
    page.get_by_test_id("tab-events").click()
    expect(page.get_by_test_id("event").first).to_be_visible()
    assert paths.count(f"/api/v1/runs/{run}/events") == 2


def test_a_repeated_run_shows_what_it_has_kept(page: Page, sample_system: SampleRuns) -> None:
    first = open_waiting(page, sample_system)
    sample_system.client.reply(first, "harbour", {"text": "The third."})
    expect_status(page, "COMPLETED")
    run = sample_system.client.act(first, "retry", {"from_step": "harbour"})["id"]
    show(page, run)
    expect_status(page, "WAITING")
    expect(node(page, "plan")).to_contain_text("Completed · reused")
    expect(page.get_by_test_id("retry-of")).to_have_text(first)
    assert shown_statuses(page, run) == sample_system.statuses(run)


def test_a_run_that_is_paused_and_one_that_is_cancelled_say_so(page: Page, sample_system: SampleRuns) -> None:
    run = open_waiting(page, sample_system)
    sample_system.client.act(run, "pause")
    expect_status(page, "PAUSED")
    expect(page.get_by_test_id("run-notice")).to_contain_text("The run is paused")
    expect(page.get_by_role("list", name="Legend")).to_contain_text("Paused")
    assert shown_statuses(page, run) == sample_system.statuses(run)
    sample_system.client.act(run, "resume")
    expect_status(page, "WAITING")
    sample_system.client.act(run, "cancel")
    expect_status(page, "CANCELLED")
    expect(page.get_by_test_id("run-notice")).to_contain_text("The run was cancelled")
    assert shown_statuses(page, run) == sample_system.statuses(run)


def test_a_call_with_an_unknown_outcome_waits_for_a_person(page: Page, sample_system: SampleRuns) -> None:
    run = sample_system.start("bottle")
    show(page, run)
    expect(node(page, "throw")).to_have_attribute("data-status", "OUTCOME_UNKNOWN")
    expect(page.get_by_test_id("run-notice")).to_contain_text("has an unknown outcome")
    assert kinds_of(page, "throw")[-1] == "unknown"
    assert shown_statuses(page, run) == sample_system.statuses(run)


def test_arrows_lead_through_the_graph_and_enter_chooses(page: Page, sample_system: SampleRuns) -> None:
    run = open_waiting(page, sample_system)
    page.get_by_test_id("direction-right").click()
    expect(page.get_by_test_id("graph")).to_have_attribute("data-direction", "RIGHT")
    node(page, "plan").get_by_role("button").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(rf"/runs/{run}\?step=\w+$"))
    expect(node(page, "plan")).not_to_have_attribute("data-selected", "true")


def test_a_step_that_the_tab_key_leads_to_is_brought_into_sight(
    page: Page, sample_system: SampleRuns
) -> None:
    # Loaded again: what the graph begins at is where the run stands then.
    show(page, open_waiting(page, sample_system))
    closer = page.get_by_test_id("graph").get_by_role("button", name="Zoom In")
    for _ in range(4):
        closer.click()
    expect(node(page, "plan")).not_to_be_in_viewport()
    page.get_by_test_id("direction-down").focus()
    page.keyboard.press("Tab")
    expect(node(page, "plan").get_by_role("button")).to_be_focused()
    expect(node(page, "plan")).to_be_in_viewport(ratio=0.9)


def test_the_direction_of_graphs_is_remembered(page: Page, sample_system: SampleRuns) -> None:
    open_waiting(page, sample_system)
    for direction in ("right", "down"):
        page.get_by_test_id(f"direction-{direction}").click()
        expect(page.get_by_test_id("graph")).to_have_attribute("data-direction", direction.upper())
    page.reload()
    expect(page.get_by_test_id("direction-down")).to_have_attribute("aria-pressed", "true")
    expect(page.get_by_test_id("graph")).to_have_attribute("data-direction", "DOWN")


def test_a_run_that_is_not_there_is_a_problem_with_a_way_out(page: Page) -> None:
    page.goto("/runs/nobody")
    expect(page.get_by_test_id("problem")).to_contain_text("There is no run nobody.")
    expect(page.get_by_test_id("run-missing")).to_contain_text("deleted")
    check_appearance(page, "run-missing")


@pytest.mark.parametrize("width", [1024, 390])
def test_on_a_smaller_screen_what_is_known_of_a_chosen_step_is_in_sight(
    browser: Browser, sample_system: SampleRuns, width: int
) -> None:
    sample_system.open_gate()
    with watched_page(browser, sample_system.url, width=width, height=768) as page:
        show(page, open_waiting(page, sample_system))
        expect(node(page, "harbour")).to_be_in_viewport(ratio=0.99)
        graph, chart = (
            page.get_by_test_id("graph").bounding_box(),
            page.get_by_test_id("gantt").bounding_box(),
        )
        assert graph is not None
        assert chart is not None
        assert graph["y"] + graph["height"] <= chart["y"]
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert viewport_of(page)[2] >= READABLE
        assert_no_overlap(page)
        check_appearance(page, f"run-{width}")
        press(node(page, "harbour").get_by_role("button").first)
        expect(page.get_by_test_id("inspected")).to_have_text("harbour")
        expect(page.get_by_test_id("inspected")).to_be_in_viewport(ratio=0.99)
        fit_view(page)
        assert_no_overlap(page)
        check_appearance(page, f"run-{width}-chosen")
