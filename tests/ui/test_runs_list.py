"""The list of runs: what it shows, what it can be asked for, how it lives, and what can be done with many runs."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Generator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, Route, expect
from tests.ui.agents import ThreadedAgents
from tests.ui.browser import check_appearance, watched_page
from tests.ui.wheel_install import trunkline_up

from trunkline.cli.follow import follow_run
from trunkline.cli.rest.client import Client
from trunkline.jsontypes import Json, JsonObject, encode
from trunkline.testing.agents import Call, simple_error, simple_success

GUILD = ("Baker", "Carpenter", "Dyer", "Engraver", "Fletcher")
WORKFLOWS: tuple[JsonObject, ...] = (
    {"name": "weather", "steps": {"ask": {"agent": "Talker"}}},
    {"name": "guild", "steps": {name.lower(): {"agent": name} for name in GUILD}},
    {"name": "slow", "steps": {"sleep": {"agent": "Sleeper"}}},
    {"name": "broken", "steps": {"try": {"agent": "Grumbler", "retry": {"max_attempts": 1}}}},
    {
        "name": "labelled",
        "labels": {"customer": "acme, inc", "team": "billing"},
        "steps": {"a": {"set": {"x": 1}}},
    },
    {"name": "above", "steps": {"inner": {"workflow": "weather"}}},
)


@dataclass
class RunsSystem:
    """A Trunkline whose runs a test begins; `gate` is what the slow ones wait for."""

    client: Client
    agents: ThreadedAgents
    gate: asyncio.Event = field(default_factory=asyncio.Event)

    def start(self, workflow: str) -> str:
        return self.client.execute(workflow, {})["id"]

    def run(self, workflow: str) -> str:
        run = self.start(workflow)
        follow_run(self.client, run, show="nothing")
        return run

    def status(self, run: str) -> str:
        return self.client.run(run)["status"]

    def open_gate(self) -> None:
        self.agents.portal.call(self.gate.set)


@pytest.fixture(scope="module")
def runs_system(
    session_folder: Path, tmp_path_factory: pytest.TempPathFactory, agents: ThreadedAgents
) -> Generator[RunsSystem]:
    with trunkline_up(session_folder, tmp_path_factory.mktemp("runs")) as url:
        works = RunsSystem(Client(url), agents)

        async def sleep(call: Call) -> Json:
            await works.gate.wait()
            return {"task_id": call.id, "status": "success", "output": {}, "error": None}

        replying = agents.start(simple_success({"text": "sunny"}))
        scripts = {
            "Sleeper": agents.start(sleep),
            "Grumbler": agents.start(simple_error("It cannot be done.")),
        }
        for name in ("Talker", "Sleeper", "Grumbler", *GUILD):
            address = scripts.get(name, replying).url
            works.client.create_agent({"name": name, "url": address, "protocol": "simple-a2a"})
        for definition in WORKFLOWS:
            works.client.save_workflow(encode(definition))
        yield works
        works.open_gate()


@pytest.fixture
def page(browser: Browser, runs_system: RunsSystem) -> Generator[Page]:
    with watched_page(browser, runs_system.client.url) as page:
        yield page


def row(page: Page, run: str) -> Locator:
    return page.locator(f"[data-testid=run][data-run='{run}']")


def ids(page: Page) -> list[str]:
    return [str(each.get_attribute("data-run")) for each in page.get_by_test_id("run").all()]


def wait_until_live(page: Page) -> None:
    """Waits until the list hears of changes."""
    expect(page.get_by_test_id("live")).to_have_attribute("data-live", "true")


def move_pointer_away(page: Page) -> None:
    """Points at nothing in the list."""
    page.mouse.move(5, 5)


def refuse(route: Route) -> None:
    problem = {"title": "Conflict", "status": 409, "detail": "Not this one.", "fix": "Take another."}
    route.fulfill(status=409, content_type="application/problem+json", body=encode(problem))


def test_an_empty_list_shows_the_next_command_to_copy(
    browser: Browser, session_folder: Path, tmp_path: Path, agents: ThreadedAgents
) -> None:
    with trunkline_up(session_folder, tmp_path) as url, watched_page(browser, url) as page:
        client = Client(url)
        page.goto("/runs")
        command = page.get_by_test_id("next-command")
        expect(command).to_have_text(
            f"trunkline agents create my-agent http://localhost:8080/agent --url {url}"
        )
        check_appearance(page, "runs-empty")
        client.create_agent({"name": "A", "url": agents.start({}).url, "protocol": "simple-a2a"})
        page.reload()
        expect(command).to_have_text(f"trunkline workflows apply workflow.yaml --url {url}")
        client.save_workflow(encode({"name": "a report", "steps": {"one": {"agent": "A"}}}))
        page.reload()
        expect(command).to_have_text(f"trunkline run 'a report' --follow --url {url}")
        page.get_by_test_id("copy-command").click()
        expect(page.get_by_test_id("copy-command")).to_have_text("Copied")
        assert page.evaluate("navigator.clipboard.readText()") == command.inner_text()
        page.get_by_test_id("start-here").click()
        expect(page).to_have_url(re.compile("/workflows/a%20report/start$"))


def test_a_run_is_shown_with_all_that_tells_it_apart(page: Page, runs_system: RunsSystem) -> None:
    run, failed = runs_system.run("guild"), runs_system.run("broken")
    page.goto("/runs")
    shown = row(page, run)
    expect(shown.get_by_test_id("status")).to_have_text("Completed")
    expect(shown).to_contain_text("guild")
    expect(shown).to_contain_text("v1")
    expect(shown.get_by_test_id("run-agents")).to_contain_text("BakerCarpenterDyer")
    expect(shown.get_by_test_id("more-agents")).to_have_attribute("title", "Engraver, Fletcher")
    expect(shown.get_by_role("link", name=run, exact=True)).to_have_attribute("href", f"/runs/{run}")
    expect(shown.locator("time")).to_have_attribute("title", re.compile(r"\d\d:\d\d:\d\d"))
    expect(row(page, failed).get_by_test_id("run-error")).to_have_text("try: It cannot be done.")
    page.get_by_test_id("times").click()
    expect(shown.locator("time")).to_have_attribute("title", re.compile("UTC$"))
    check_appearance(page, "runs-list")
    shown.get_by_text("guild").click()
    expect(page).to_have_url(f"{runs_system.client.url}/runs/{run}")


def test_filters_stand_in_the_address_and_outlast_a_reload(page: Page, runs_system: RunsSystem) -> None:
    done, failed = runs_system.run("weather"), runs_system.run("broken")
    page.goto("/runs")
    page.get_by_test_id("filter-failed").click()
    expect(page).to_have_url(re.compile(r"\?status=FAILED$"))
    expect(row(page, failed)).to_be_visible()
    expect(row(page, done)).to_have_count(0)
    page.get_by_test_id("filter-completed").click()
    expect(page).to_have_url(re.compile(r"\?status=COMPLETED%2CFAILED$"))
    expect(row(page, done)).to_be_visible()
    page.go_back()
    expect(page).to_have_url(re.compile(r"\?status=FAILED$"))
    expect(page.get_by_test_id("filter-completed")).to_have_attribute("aria-pressed", "false")
    page.go_forward()
    page.get_by_test_id("filter-agent").click()
    page.get_by_role("option", name="Talker").click()
    expect(page).to_have_url(re.compile("agent=Talker"))
    expect(row(page, failed)).to_have_count(0)
    page.get_by_test_id("filter-workflow").click()
    page.get_by_role("option", name="weather").click()
    expect(page).to_have_url(re.compile("workflow=weather"))
    page.get_by_test_id("filter-time").click()
    page.get_by_role("option", name="Last hour").click()
    expect(page).to_have_url(re.compile("last=1h"))
    page.reload()
    expect(row(page, done)).to_be_visible()
    expect(row(page, failed)).to_have_count(0)
    expect(page.get_by_test_id("filter-failed")).to_have_attribute("aria-pressed", "true")
    expect(page.get_by_test_id("filter-agent")).to_have_value("Talker")
    expect(page.get_by_test_id("filter-workflow")).to_have_value("weather")
    expect(page.get_by_test_id("filter-time")).to_have_value("Last hour")
    check_appearance(page, "runs-filtered")
    page.get_by_test_id("clear-filters").click()
    expect(page).to_have_url(f"{runs_system.client.url}/runs")
    expect(row(page, failed)).to_be_visible()


def test_runs_are_found_by_their_labels(page: Page, runs_system: RunsSystem) -> None:
    other, run = runs_system.run("weather"), runs_system.run("labelled")
    page.goto("/runs")
    expect(row(page, run).get_by_test_id("run-labels")).to_contain_text("customer:acme, inc")
    expect(row(page, other).get_by_test_id("run-labels")).to_have_count(0)
    field = page.get_by_test_id("filter-label")
    field.fill("customer")
    field.press("Enter")
    expect(page.get_by_text("Write a label as key:value.")).to_be_visible()
    field.fill("customer:acme, inc")
    field.press("Enter")
    expect(row(page, other)).to_have_count(0)
    expect(row(page, run)).to_be_visible()
    check_appearance(page, "runs-by-label")
    page.reload()
    expect(row(page, run)).to_be_visible()
    expect(row(page, other)).to_have_count(0)
    page.goto(f"/runs/{run}")
    page.get_by_test_id("run-labels").get_by_text("team:billing").click()
    expect(row(page, run)).to_be_visible()
    expect(row(page, other)).to_have_count(0)


def test_what_is_typed_finds_ids_workflows_and_correlation_ids(page: Page, runs_system: RunsSystem) -> None:
    run, other = runs_system.run("guild"), runs_system.run("weather")
    page.goto("/runs")
    expect(row(page, other)).to_be_visible()
    page.keyboard.press("/")
    search = page.get_by_test_id("search")
    expect(search).to_be_focused()
    for text in (run[:30], "UIL", str(runs_system.client.run(run)["correlation_id"])):
        search.fill(text)
        expect(row(page, other)).to_have_count(0)
        expect(row(page, run)).to_be_visible()
        search.fill("")
        expect(row(page, other)).to_be_visible()
    search.fill("4711")
    expect(page).to_have_url(re.compile("q="))
    page.reload()
    expect(search).to_have_value("4711")
    expect(page.get_by_test_id("nothing-found")).to_contain_text("No runs match these filters.")
    check_appearance(page, "runs-nothing-found")
    page.get_by_test_id("show-all").click()
    expect(row(page, run)).to_be_visible()
    expect(search).to_have_value("")


def test_runs_between_two_times_are_asked_for_in_the_readers_zone(
    page: Page, runs_system: RunsSystem
) -> None:
    run = runs_system.run("weather")
    page.goto("/runs")
    page.get_by_test_id("times").click()
    page.get_by_test_id("filter-time").click()
    page.get_by_role("option", name="Custom range…").click()
    page.get_by_test_id("since").fill("2031-05-06T07:08:09")
    page.get_by_test_id("until").fill("2031-05-06T07:08:09")
    expect(page.get_by_text("Must be after the start time.")).to_be_visible()
    expect(page.get_by_test_id("apply-between")).to_be_disabled()
    page.get_by_test_id("until").fill("2031-05-06T08:00:00")
    check_appearance(page, "runs-between")
    page.get_by_test_id("apply-between").click()
    expect(page).to_have_url(re.compile(r"since=2031-05-06T07%3A08%3A09.000Z"))
    expect(page.get_by_test_id("nothing-found")).to_be_visible()
    page.goto("/runs?until=2031-05-06T08:00:00Z")
    expect(row(page, run)).to_be_visible()
    expect(page.get_by_test_id("filter-time")).to_have_value("Custom range…")


def test_child_runs_are_shown_when_one_wants_them(page: Page, runs_system: RunsSystem) -> None:
    above = runs_system.run("above")
    (child,) = [run["id"] for run in runs_system.client.runs({"parent": above}).items]
    page.goto("/runs?q=above")
    expect(row(page, above)).to_be_visible()
    page.goto(f"/runs?q={child}")
    expect(page.get_by_test_id("nothing-found")).to_contain_text("Child runs are hidden")
    page.get_by_test_id("show-children").click()
    expect(row(page, child).get_by_test_id("run-parent")).to_contain_text(f"child of inner in {above[-8:]}")
    page.goto(f"/runs?parent={above}")
    expect(row(page, child)).to_be_visible()
    assert ids(page) == [child]
    page.get_by_role("button", name="Remove this filter").click()
    expect(row(page, above)).to_be_visible()
    expect(row(page, child)).to_have_count(0)


def test_a_view_is_saved_by_name_and_deleted(page: Page, runs_system: RunsSystem) -> None:
    runs_system.run("broken")
    page.goto("/runs?status=FAILED&workflow=broken")
    expect(page.get_by_test_id("view")).to_have_text(["All runs"])
    expect(page.get_by_test_id("view")).not_to_have_attribute("aria-current", "page")
    page.get_by_test_id("save-view").click()
    page.get_by_test_id("view-name").fill("What broke")
    check_appearance(page, "runs-save-view")
    page.keyboard.press("Enter")
    expect(page.get_by_test_id("view")).to_have_text(["All runs", "What broke"])
    expect(page.get_by_test_id("save-view")).to_have_count(0)
    page.get_by_test_id("view").nth(0).click()
    expect(page).to_have_url(f"{runs_system.client.url}/runs")
    expect(page.get_by_test_id("view").nth(0)).to_have_attribute("aria-current", "page")
    page.reload()
    page.get_by_test_id("view").nth(1).click()
    expect(page).to_have_url(re.compile(r"\?status=FAILED&workflow=broken$"))
    expect(page.get_by_test_id("view").nth(1)).to_have_attribute("aria-current", "page")
    expect(page.get_by_test_id("filter-failed")).to_have_attribute("aria-pressed", "true")
    page.get_by_role("button", name="Delete view What broke").click()
    expect(page.get_by_test_id("view")).to_have_text(["All runs"])


def test_a_run_that_begins_and_ends_is_seen_at_once(page: Page, runs_system: RunsSystem) -> None:
    runs_system.run("weather")
    page.goto("/runs")
    move_pointer_away(page)
    wait_until_live(page)
    run = runs_system.start("slow")
    expect(row(page, run).get_by_test_id("status")).to_have_text("Running")
    assert ids(page)[0] == run
    expect(row(page, run).locator("td").nth(4)).to_have_text(re.compile(r"^[1-9]\d*\.\d s$"))
    runs_system.client.act(run, "cancel")
    expect(row(page, run).get_by_test_id("status")).to_have_text("Cancelled")


def test_rows_do_not_move_while_one_points_at_them(page: Page, runs_system: RunsSystem) -> None:
    run = runs_system.start("slow")
    page.goto("/runs?status=RUNNING")
    move_pointer_away(page)
    wait_until_live(page)
    row(page, run).hover()
    place = row(page, run).bounding_box()
    fresh = runs_system.start("slow")
    expect(page.get_by_test_id("new-runs")).to_have_text("Show 1 new run")
    expect(row(page, fresh)).to_have_count(0)
    runs_system.client.act(run, "cancel")
    expect(row(page, run)).to_contain_text("no longer matches")
    now = row(page, run).bounding_box()
    assert place is not None
    assert now is not None
    assert now["y"] == place["y"]
    # Whoever is on the way to it finds it still there.
    page.get_by_test_id("new-runs").hover()
    expect(row(page, run)).to_contain_text("no longer matches")
    page.get_by_test_id("new-runs").click()
    expect(row(page, fresh)).to_be_visible()
    expect(row(page, run)).to_have_count(0)
    row(page, fresh).hover()
    last = runs_system.start("slow")
    expect(page.get_by_test_id("new-runs")).to_be_visible()
    move_pointer_away(page)
    expect(row(page, last)).to_be_visible()
    expect(page.get_by_test_id("new-runs")).to_have_count(0)
    for each in (fresh, last):
        runs_system.client.act(each, "cancel")


def test_older_runs_come_page_by_page(page: Page, runs_system: RunsSystem) -> None:
    while len(runs_system.client.runs({"children": "false"}, limit=60).items) < 60:
        runs_system.run("weather")
    page.goto("/runs")
    expect(page.get_by_test_id("run")).to_have_count(50)
    expect(page.get_by_test_id("shown")).to_have_text("50 runs or more")
    page.get_by_test_id("older").click()
    expect(page.get_by_test_id("run").nth(59)).to_be_attached()
    move_pointer_away(page)
    page.evaluate("scrollTo(0, 900)")
    seen = ids(page)
    assert len(seen) == len(set(seen))
    assert seen == sorted(seen, reverse=True)
    place = page.evaluate("scrollY")
    again: list[str] = []
    page.on("request", lambda request: again.append(request.url) if "cursor=" in request.url else None)
    runs_system.run("weather")
    expect(page.get_by_test_id("new-runs")).to_be_visible()
    # What is over is not read again for a new run.
    assert again == []
    assert page.evaluate("scrollY") == place
    assert ids(page)[: len(seen)] == seen
    page.get_by_test_id("new-runs").click()
    expect(page.get_by_test_id("run").nth(0)).not_to_have_attribute("data-run", seen[0])
    assert page.evaluate("scrollY") == 0


def test_keys_go_from_run_to_run_select_and_open(page: Page, runs_system: RunsSystem) -> None:
    second, first = runs_system.run("weather"), runs_system.run("guild")
    page.goto("/runs")
    expect(row(page, first)).to_be_visible()
    page.keyboard.press("j")
    expect(row(page, first).get_by_role("link")).to_be_focused()
    page.keyboard.press("j")
    page.keyboard.press("x")
    expect(row(page, second).get_by_test_id("select-run")).to_be_checked()
    expect(page.get_by_test_id("selected")).to_have_text("1 selected")
    page.keyboard.press("k")
    page.keyboard.press("k")
    expect(row(page, first).get_by_role("link")).to_be_focused()
    page.keyboard.press("?")
    expect(page.get_by_test_id("shortcut").filter(has_text="Next run")).to_be_visible()
    page.keyboard.press("Escape")
    row(page, first).get_by_role("link").focus()
    page.keyboard.press("Enter")
    expect(page).to_have_url(f"{runs_system.client.url}/runs/{first}")


def test_the_way_back_leads_to_the_run_that_was_opened(page: Page, runs_system: RunsSystem) -> None:
    while len(runs_system.client.runs({"children": "false"}, limit=40).items) < 40:
        runs_system.run("weather")
    page.goto("/runs")
    expect(page.get_by_test_id("run").nth(39)).to_be_attached()
    opened = ids(page)[35]
    row(page, opened).get_by_text("v1", exact=True).click()
    expect(page).to_have_url(f"{runs_system.client.url}/runs/{opened}")
    expect(page.get_by_role("heading", level=1)).to_be_focused()
    page.go_back()
    expect(row(page, opened).get_by_role("link")).to_be_focused()
    expect(row(page, opened)).to_be_in_viewport()
    page.get_by_test_id("nav-agents").click()
    expect(page.get_by_role("heading", name="Agents")).to_be_focused()
    page.get_by_test_id("nav-runs").click()
    expect(page.get_by_role("heading", name="Runs")).to_be_focused()


def test_an_action_on_all_matching_runs_is_counted_confirmed_and_followed(
    page: Page, runs_system: RunsSystem
) -> None:
    runs = [runs_system.run("labelled") for _ in range(2)]
    page.goto("/runs?workflow=labelled")
    page.get_by_test_id("act-on-matching").click()
    page.get_by_test_id("matching-action").click()
    page.get_by_role("option", name="Label").click()
    page.get_by_test_id("matching-label").fill("state:checked")
    page.get_by_test_id("count-matching").click()
    total = len(ids(page))
    expect(page.get_by_test_id("matching-count")).to_have_text(f"{total} runs to label")
    check_appearance(page, "runs-act-on-matching")
    page.get_by_test_id("confirm-matching").click()
    expect(page.get_by_test_id("matching-progress")).to_have_text(f"{total} runs labelled.")
    page.get_by_test_id("close-matching").click()
    for run in runs:
        expect(row(page, run)).to_contain_text("checked")
    assert runs_system.client.run(runs[0])["labels"]["state"] == "checked"


def test_many_runs_are_cancelled_at_once(page: Page, runs_system: RunsSystem) -> None:
    done = runs_system.run("weather")
    slow = [runs_system.start("slow") for _ in range(3)]
    page.goto("/runs")
    for run in (done, *slow):
        row(page, run).get_by_test_id("select-run").check()
    page.get_by_test_id("bulk-cancel").click()
    dialog = page.get_by_role("dialog", name="Cancel 3 runs?")
    expect(dialog.get_by_test_id("left-alone")).to_contain_text("1 of 4 selected runs will be skipped")
    check_appearance(page, "runs-bulk-cancel")
    page.route(f"**/runs/{slow[0]}/cancel", refuse, times=1)
    dialog.get_by_test_id("confirm-bulk").click()
    expect(page.get_by_test_id("bulk-progress")).to_have_text("2 runs being cancelled, 1 failed.")
    page.get_by_test_id("bulk-again").click()
    expect(page.get_by_test_id("bulk-progress")).to_have_text("1 run being cancelled.")
    # The keyboard is still in the dialog.
    page.keyboard.press("Tab")
    expect(page.get_by_test_id("close-bulk")).to_be_focused()
    page.keyboard.press("Enter")
    for run in slow:
        expect(row(page, run).get_by_test_id("status")).to_have_text("Cancelled")
    expect(page.get_by_test_id("selected")).to_have_count(0)
    assert runs_system.status(done) == "COMPLETED"


def test_many_runs_are_retried_once_each_and_failures_are_reported(
    page: Page, runs_system: RunsSystem
) -> None:
    done = runs_system.run("weather")
    refused, lost, failed = (runs_system.run("broken") for _ in range(3))
    page.goto("/runs")
    for run in (done, refused, lost, failed):
        row(page, run).get_by_test_id("select-run").check()
    expect(page.get_by_test_id("bulk-cancel")).to_have_attribute("aria-disabled", "true")
    page.get_by_test_id("bulk-retry").click()
    expect(page.get_by_role("dialog", name="Retry 3 runs?")).to_be_visible()
    expect(page.get_by_test_id("bulk-consequences")).to_contain_text("already done: Grumbler.")
    page.get_by_test_id("bulk-all").check()
    expect(page.get_by_role("dialog", name="Retry 4 runs?")).to_be_visible()
    expect(page.get_by_test_id("bulk-consequences")).to_contain_text("already done: Grumbler and Talker.")
    check_appearance(page, "runs-bulk-retry")

    def lose_the_answer(route: Route) -> None:
        route.fetch()
        route.fulfill(status=502, body="Bad gateway")

    page.route(f"**/runs/{refused}/retry", refuse, times=1)
    page.route(f"**/runs/{lost}/retry", lose_the_answer)
    page.get_by_test_id("confirm-bulk").click()
    expect(page.get_by_test_id("bulk-progress")).to_have_text("2 runs retried, 2 failed.")
    failures = page.get_by_test_id("bulk-failure")
    expect(failures.filter(has_text=refused)).to_contain_text("Not this one. Take another.")
    expect(failures.filter(has_text=lost)).to_contain_text("Bad gateway")
    expect(page.get_by_test_id("bulk-left")).to_contain_text("does not start a second run")
    check_appearance(page, "runs-bulk-refused")
    page.get_by_test_id("close-bulk").click()
    expect(page.get_by_test_id("selected")).to_have_text("2 selected")
    for run in (refused, lost):
        expect(row(page, run).get_by_test_id("select-run")).to_be_checked()
    page.unroute(f"**/runs/{lost}/retry")
    page.get_by_test_id("bulk-retry").click()
    page.get_by_test_id("bulk-all").check()
    page.get_by_test_id("confirm-bulk").click()
    expect(page.get_by_test_id("bulk-progress")).to_have_text("2 runs retried.")
    page.get_by_test_id("close-bulk").click()
    expect(page.get_by_test_id("selected")).to_have_count(0)
    retries = [run.get("retry_of") for run in runs_system.client.runs(limit=20).items]
    assert [retries.count(run) for run in (done, refused, lost, failed)] == [1, 1, 1, 1]


def test_who_stops_half_way_finds_the_rest_still_selected(page: Page, runs_system: RunsSystem) -> None:
    runs = [runs_system.run("weather") for _ in range(6)]
    page.goto("/runs")
    for run in runs:
        row(page, run).get_by_test_id("select-run").check()
    page.get_by_test_id("bulk-retry").click()
    asked: list[Route] = []

    def hold(route: Route) -> None:
        asked.append(route)

    page.route("**/retry", hold)
    # Four are under way at a time.
    with page.expect_request(f"**/runs/{runs[3]}/retry"):
        page.get_by_test_id("confirm-bulk").click()
    page.get_by_test_id("stop-bulk").click()
    for each in asked:
        each.continue_()
    expect(page.get_by_test_id("bulk-progress")).to_have_text("4 runs retried. Stopped: 2 not processed.")
    expect(page.get_by_test_id("bulk-again")).to_have_text("Continue with 2 runs")
    page.get_by_test_id("close-bulk").click()
    expect(page.get_by_test_id("selected")).to_have_text("2 selected")
    for run in runs[4:]:
        expect(row(page, run).get_by_test_id("select-run")).to_be_checked()


def test_all_runs_shown_are_selected_and_none(page: Page, runs_system: RunsSystem) -> None:
    runs_system.run("weather")
    page.goto("/runs")
    expect(page.get_by_test_id("run").nth(0)).to_be_visible()
    page.get_by_test_id("select-all").check()
    expect(page.get_by_test_id("selected")).to_have_text(f"{len(ids(page))} selected")
    page.get_by_test_id("select-none").click()
    expect(page.get_by_test_id("selected")).to_have_count(0)
    page.get_by_test_id("select-run").nth(0).check()
    page.get_by_test_id("filter-completed").click()
    expect(page.get_by_test_id("shown")).to_be_visible()


def test_a_lost_notification_is_logged_and_recovered_from(browser: Browser, runs_system: RunsSystem) -> None:
    with watched_page(browser, runs_system.client.url, cuts_are_expected=True) as page:
        page.route("**/api/v1/runs/changes", lambda route: route.abort())
        page.goto("/runs")
        move_pointer_away(page)
        expect(page.get_by_test_id("live")).to_have_attribute("data-live", "false")
        run = runs_system.run("guild")
        # Without a bell the list is read again by itself.
        expect(row(page, run)).to_be_visible()
        page.unroute("**/api/v1/runs/changes")
        wait_until_live(page)


def test_an_error_says_what_to_do(page: Page) -> None:
    page.goto(f"/runs?q={'x' * 300}")
    expect(page.get_by_test_id("problem")).to_be_visible()
    check_appearance(page, "runs-problem")


@pytest.mark.parametrize("width", [390, 1024])
def test_a_small_screen_shows_all_of_it(browser: Browser, runs_system: RunsSystem, width: int) -> None:
    run = runs_system.run("guild")
    runs_system.run("broken")
    with watched_page(browser, runs_system.client.url, width=width) as page:
        page.goto("/runs")
        expect(row(page, run)).to_be_visible()
        for part in ("status", "run-agents"):
            expect(row(page, run).get_by_test_id(part)).to_be_in_viewport()
        expect(row(page, run).get_by_role("link", name=run, exact=True)).to_be_in_viewport()
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        check_appearance(page, f"runs-{width}")
