"""The parts of a run's page, as a test finds them, and what holds of all of them."""

from __future__ import annotations

from datetime import datetime

from playwright.sync_api import Locator, Page, Route, expect
from tests.ui.sample_runs import LEGS, SampleRuns

# A bar of the chart is at least as wide, in pixels.
SEEN = 7


def node(page: Page, step: str) -> Locator:
    return page.get_by_test_id(f"graph-step-{step}")


def press(part: Locator) -> None:
    """As a person does: of the graph, what is out of its frame is under something else, and is not to be pressed."""
    expect(part).to_be_in_viewport(ratio=0.9)
    part.click()


def row(page: Page, step: str) -> Locator:
    return page.get_by_test_id(f"gantt-row-{step}")


def expect_status(page: Page, status: str) -> None:
    expect(page.get_by_test_id("run-status").get_by_test_id("status")).to_have_attribute(
        "data-status", status
    )


def show(page: Page, run: str) -> None:
    """All of the page is there, which is not the same as that all has happened."""
    page.goto(f"/runs/{run}")
    expect(page.locator("[data-testid^=graph-step-]").first).to_be_visible()
    expect(page.locator("[data-testid^=gantt-row-]").first).to_be_visible()
    expect(page.get_by_test_id("connection")).not_to_have_attribute("data-connection", "connecting")


def open_waiting(page: Page, samples: SampleRuns, *, legs: int = LEGS) -> str:
    """The page of a voyage that waits for an answer."""
    run = samples.start("voyage", legs=legs)
    show(page, run)
    expect_status(page, "WAITING")
    return run


def viewport_of(page: Page) -> list[float]:
    """Where the graph is in its frame, and how large."""
    return page.locator(".react-flow__viewport").evaluate(
        "each => { const {e, f, a} = new DOMMatrix(getComputedStyle(each).transform); return [e, f, a]; }"
    )


def corner(place: Locator) -> tuple[int, int]:
    box = place.bounding_box()
    assert box is not None
    return round(box["x"]), round(box["y"])


def fit_view(page: Page) -> None:
    page.get_by_test_id("graph").get_by_role("button", name="Fit View").click()


def shown_statuses(page: Page, run: str) -> dict[str, str | None]:
    badge = page.get_by_test_id("run-status").get_by_test_id("status")
    shown = {run: badge.get_attribute("data-status")}
    for kind in ("graph-step-", "gantt-row-"):
        for found in page.locator(f"[data-testid^={kind}]").all():
            name = (found.get_attribute("data-testid") or "").removeprefix(kind)
            status = found.get_attribute("data-status")
            assert shown.setdefault(name, status) == status, f"graph and chart differ in {name}"
    return shown


def kinds_of(page: Page, step: str) -> list[str | None]:
    return [bar.get_attribute("data-kind") for bar in row(page, step).get_by_test_id("bar").all()]


def moment(text: str | None) -> float:
    assert text is not None
    return datetime.fromisoformat(text).timestamp()


def assert_no_overlap(page: Page) -> None:
    """Nothing that lies upon the graph covers what is seen of a step or an item of it."""
    page.wait_for_function(
        """() => {
            const boxes = (what) => [...document.querySelectorAll(what)].map((each) => each.getBoundingClientRect());
            const apart = (one, other) => one.right <= other.left || other.right <= one.left
                || one.bottom <= other.top || other.bottom <= one.top;
            const [frame] = boxes(".react-flow");
            const seen = boxes("[data-testid^=graph-step-], [data-testid^=graph-item-]")
                .filter((each) => !apart(each, frame))
                .map(({left, top, right, bottom}) => ({
                    left: Math.max(left, frame.left), right: Math.min(right, frame.right),
                    top: Math.max(top, frame.top), bottom: Math.min(bottom, frame.bottom),
                }));
            const upon = boxes(".react-flow__panel, [data-testid=graph] [role=group]");
            return seen.length > 0 && upon.every((each) => seen.every((step) => apart(each, step)));
        }"""
    )


def assert_inside(page: Page, inner: str, outer: str) -> None:
    """The row is below the other one, its name further to the right, and its bars within the other's, in time."""
    expect(row(page, inner)).to_have_attribute("data-status", "COMPLETED")
    # All at once: the ruler of a run that goes on moves.
    outer_name, outer_bar, inner_name, *inner_bars = page.evaluate(
        """([outer, inner]) => {
            const boxes = (step, what) => [...document.querySelectorAll(`[data-row="${step}"] ${what}`)]
                .map((each) => each.getBoundingClientRect());
            return [boxes(outer, "[data-chooser] svg")[0], boxes(outer, "[data-kind=child]")[0],
                boxes(inner, "[data-chooser] svg")[0], ...boxes(inner, "[data-testid=bar]")];
        }""",
        [outer, inner],
    )
    assert outer_name["x"] < inner_name["x"]
    assert outer_name["y"] < inner_name["y"]
    assert inner_bars
    for bar in inner_bars:
        assert outer_bar["left"] - SEEN <= bar["left"]
        assert bar["right"] <= outer_bar["right"] + SEEN


def assert_not_truncated(step: Locator) -> None:
    """All that the head of a step says can be read."""
    spans = step.get_by_role("button").first.locator("span")
    assert (
        spans.evaluate_all("spans => spans.filter((each) => each.scrollWidth > each.clientWidth + 1).length")
        == 0
    )


def delay_events(page: Page, run: str) -> list[Route]:
    """The page of a run whose history is asked for, and does not come; each state that is shown is written down."""
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    page.route("**/events", hold)
    with page.expect_request("**/events"):
        page.goto(f"/runs/{run}")
    expect(page.locator("[data-testid^=gantt-row-]").first).to_be_visible()
    expect(page.locator("[data-testid^=graph-step-]").first).to_be_visible()
    page.evaluate(
        """() => {
            const badge = () => document.querySelector("[data-testid=run-status] [data-status]").dataset.status;
            window.shown = [badge()];
            const write = () => { if (badge() !== window.shown.at(-1)) window.shown.push(badge()); };
            new MutationObserver(write).observe(document.body, {subtree: true, childList: true, attributes: true});
        }"""
    )
    assert len(held) == 1
    return held
