"""Every exchange with an agent, byte by byte; and a copied request that is run arrives as it was recorded."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Locator, Page, Route, expect
from tests.har_schema import check_har
from tests.ui.agents import ThreadedAgents
from tests.ui.browser import check_appearance
from tests.ui.inspected_run import HOSTILE_TEXT, ITEMS, InspectedRun, begin_slow_run
from tests.ui.request_capture import RequestCapture, request_capture

from trunkline.bridge.wire.exchanges import to_curl
from trunkline.jsontypes import Json, JsonObject, decode, encode
from trunkline.services.runs.har import to_har
from trunkline.services.runs.stored_exchanges import convert_exchange
from trunkline.testing.system import objects_in

SECRET = "u$er:s3cret `x`"
VARIABLE = "TRUNKLINE_SECRET_A"
HEADERS = {
    "Content-Type": "application/json",
    "Accept": "application/json",
    "X-Correlation-ID": 'it\'s "$HOME" `id` \\ !',
    "X-Empty": "",
    "X-At": "@file",
    "X-Equals": "=x:y=z",
    "Authorization": f"Bearer ${VARIABLE}",
    "Accept-Encoding": "identity",
    "User-Agent": "trunkline/0.1.0",
}
BODIES = [
    "{}",
    "",
    "@/etc/passwd",
    "-d leading dash",
    'it\'s "quoted" $HOME `id` $(id) \\n %s !!\n\ttwo lines\n',
    '{"text":"Grüße, 世界 🙂"}',
    "nul \x00 escape \x1b[31m bell \x07 back\\slash \\0101 %b",
    "é" * 30_000,
]


@pytest.fixture
def page(inspected_page: Page) -> Page:
    return inspected_page


def open_wire(page: Page, inspected: InspectedRun, query: str) -> Locator:
    page.goto(f"/runs/{inspected.run}?{query}")
    expect(page.get_by_test_id("wire-count")).to_be_visible()
    return page.get_by_test_id("exchange")


def open_up(row: Locator) -> Locator:
    row.get_by_role("button").first.click()
    return row.get_by_test_id("exchange-detail")


def test_every_exchange_is_shown_with_all_that_was_on_the_wire(page: Page, inspected: InspectedRun) -> None:
    exchanges = open_wire(page, inspected, "step=flaky&tab=wire")
    expect(page.get_by_test_id("wire-count")).to_have_text("6 exchanges")
    expect(exchanges).to_have_count(3)
    expect(exchanges.nth(0)).to_contain_text("503")
    expect(exchanges.nth(1)).to_contain_text("No response")
    expect(page.get_by_test_id("whose")).to_have_text(
        ["Attempt 1 · ", "Attempt 2 · ", "Attempt 3 · ", "Attempt 3 · "]
    )
    page.get_by_test_id("times").click()
    began = [
        each["started_at"][11:19] for each in inspected.client.wire(inspected.run, step="flaky").items[:4]
    ]
    expect(page.get_by_test_id("wire").locator("time")).to_have_text(began)
    refused = open_up(exchanges.nth(0))
    expect(refused).to_contain_text("connected after")
    expect(refused).to_contain_text("first byte after")
    expect(refused.get_by_test_id("exchange-notes")).to_have_text("The agent answered HTTP 503: busy")
    request = refused.get_by_test_id("request")
    expect(request.get_by_test_id("headers")).to_contain_text("X-Correlation-ID")
    expect(request.get_by_test_id("body")).to_contain_text('"method": "message/send"')
    request.get_by_text("Raw", exact=True).click()
    expect(request.get_by_test_id("body")).to_contain_text('"method":"message/send"')
    expect(refused.get_by_test_id("response").get_by_test_id("body")).to_have_text("busy")
    lost = open_up(exchanges.nth(1))
    expect(lost.get_by_test_id("exchange-error")).to_have_text(
        "The agent closed the connection without an answer."
    )
    expect(lost.get_by_test_id("response")).to_contain_text("No response.")
    check_appearance(page, "wire")
    # What is open is in the address.
    expect(page).to_have_url(re.compile(r"[?&]exchange=\d+%2C\d+$"))
    page.get_by_test_id("attempts").get_by_text("3", exact=True).click()
    expect(page.get_by_test_id("polls")).to_be_visible()
    expect(page.get_by_test_id("exchange-detail")).to_have_count(0)
    page.go_back()
    expect(page.get_by_test_id("exchange-detail")).to_have_count(2)
    page.reload()
    expect(lost.get_by_test_id("exchange-error")).to_be_in_viewport()
    expect(refused).to_be_visible()
    exchanges.nth(0).get_by_role("button").first.click()
    expect(page).to_have_url(re.compile(r"[?&]exchange=\d+$"))


def test_an_exchange_is_found_by_its_number_on_whatever_page_it_is(
    page: Page, inspected: InspectedRun
) -> None:
    def in_small_pages(route: Route) -> None:
        route.continue_(url=route.request.url.replace("limit=200", "limit=1"))

    page.route("**/wire?*", in_small_pages)
    second = inspected.client.wire(inspected.run, step="flaky").items[1]
    exchanges = open_wire(page, inspected, f"step=flaky&tab=wire&exchange={second.get('id')}")
    expect(page.get_by_test_id("exchange-error")).to_have_text(
        "The agent closed the connection without an answer."
    )
    expect(exchanges).to_have_count(2)
    open_wire(page, inspected, "step=flaky&attempt=1&tab=wire&exchange=999999999")
    expect(page.get_by_test_id("no-exchange")).to_have_text("Exchange 999999999 is not in attempt 1.")


def test_polls_that_follow_each_other_are_one_row_until_it_is_opened(
    page: Page, inspected: InspectedRun
) -> None:
    exchanges = open_wire(page, inspected, "step=flaky&attempt=3&tab=wire")
    polls = page.get_by_test_id("polls")
    expect(polls).to_contain_text("Polled the task 3 times")
    expect(exchanges).to_have_count(1)
    polls.get_by_role("button").click()
    expect(exchanges).to_have_count(4)
    expect(open_up(exchanges.last).get_by_test_id("request")).to_contain_text('"method": "tasks/get"')
    page.reload()
    expect(exchanges.last.get_by_test_id("request")).to_contain_text('"method": "tasks/get"')
    polls.get_by_role("button").first.click()
    expect(exchanges).to_have_count(1)
    expect(page).not_to_have_url(re.compile("exchange="))


def test_a_stream_is_shown_event_by_event_with_what_was_negotiated(
    page: Page, inspected: InspectedRun
) -> None:
    exchanges = open_wire(page, inspected, "step=stream&tab=wire")
    expect(exchanges).to_have_count(3)
    stream = open_up(page.locator("[data-kind=stream]"))
    frames = stream.get_by_test_id("frame")
    expect(frames).to_have_count(4)
    expect(frames.first).to_contain_text("+")
    expect(frames.first).to_contain_text("Looking it up")
    frames.nth(1).get_by_role("button").first.click()
    expect(frames.nth(1).get_by_test_id("body")).to_contain_text('"kind": "artifact-update"')
    page.get_by_test_id("why-dialect").click()
    expect(page.get_by_test_id("evidence")).to_contain_text("offers A2A 0.3.0 over JSON-RPC")
    expect(page.get_by_test_id("evidence")).to_contain_text("HTTP 200, a card")
    check_appearance(page, "wire-stream")


def test_a_body_that_was_cut_says_so(page: Page, inspected: InspectedRun) -> None:
    # The only exchange is open at once.
    open_wire(page, inspected, "step=long&tab=wire")
    expect(page.get_by_test_id("exchange-notes")).to_contain_text(
        re.compile(
            r"The response body is cut: it has [\d,]+ bytes, and 65,536 are kept\. "
            r"The limit is the setting max_wire_bytes\."
        )
    )
    # The request is whole.
    expect(page.get_by_test_id("copy-curl")).to_be_visible()
    expect(page.get_by_test_id("cut-command")).to_have_count(0)
    page.get_by_test_id("exchange").get_by_role("button").first.click()
    expect(page).to_have_url(re.compile("[?&]exchange=none$"))
    page.reload()
    expect(page.get_by_test_id("exchange").get_by_role("button")).to_have_attribute("aria-expanded", "false")


def test_what_agents_write_on_the_wire_is_text(page: Page, inspected: InspectedRun) -> None:
    open_wire(page, inspected, "step=broken&tab=wire")
    expect(page.get_by_test_id("response").get_by_test_id("body")).to_contain_text(HOSTILE_TEXT)
    expect(page.get_by_test_id("exchange-notes")).to_contain_text(HOSTILE_TEXT)
    assert page.get_by_test_id("wire").locator("img, script, iframe, a[href]").count() == 0


def test_two_attempts_are_laid_side_by_side(page: Page, inspected: InspectedRun) -> None:
    open_wire(page, inspected, "step=flaky&attempt=1&tab=wire")
    page.get_by_test_id("compare").click()
    expect(page.get_by_test_id("attempt-diff")).to_be_visible()
    expect(page).to_have_url(re.compile("[?&]compare=1%2C3$"))
    before, after = page.get_by_label("Attempt 1", exact=True), page.get_by_label("Attempt 3", exact=True)
    expect(before).to_contain_text("send: HTTP 503")
    expect(after).to_contain_text('"state": "working"')
    check_appearance(page, "wire-compare")
    page.get_by_text("Result", exact=True).click()
    expect(before).to_contain_text("The agent answered HTTP 503: busy")
    expect(after).to_contain_text('"text": "Calm at last"')
    page.get_by_text("Requests", exact=True).click()
    expect(before).to_contain_text("message/send")


def test_a_body_is_laid_out_with_every_name_and_number_as_it_was(page: Page, inspected: InspectedRun) -> None:
    first: JsonObject = {"method": "POST", "url": "http://agent", "headers": {}}
    body = '{"10":1.0,"2":[12345678901234567890,1E2,{}],"1":"\\u00e9, \\"x\\": {"}'
    lines = ["{", '  "10": 1.0,', '  "2": [', "    12345678901234567890,", "    1E2,", "    {}", "  ],"]
    fake_exchanges(page, [exchange_of({**first, "body": body})])
    open_wire(page, inspected, "step=flaky&tab=wire")
    shown = page.get_by_test_id("request").get_by_test_id("body")
    assert shown.text_content() == "\n".join([*lines, '  "1": "\\u00e9, \\"x\\": {"', "}"])
    fake_exchanges(page, [exchange_of({**first, "body": body.replace("1.0", "1")})], "*attempt=2*")
    open_wire(page, inspected, "step=flaky&tab=wire&compare=1,2&part=request")
    expect(page.get_by_label("Attempt 1", exact=True)).to_contain_text('"10": 1.0,')
    expect(page.get_by_label("Attempt 2", exact=True)).to_contain_text('"10": 1,')


def test_what_is_compared_is_in_the_address(page: Page, inspected: InspectedRun) -> None:
    open_wire(page, inspected, "step=flaky&tab=wire")
    page.get_by_test_id("compare").click()
    diff = page.get_by_test_id("attempt-diff")
    page.get_by_role("combobox", name="Left attempt").click()
    page.get_by_role("option", name="Attempt 1").click()
    page.get_by_text("Requests", exact=True).click()
    expect(page).to_have_url(re.compile("[?&]compare=1%2C3&part=request$"))
    page.reload()
    expect(page.get_by_label("Attempt 1", exact=True)).to_contain_text("message/send")
    expect(page.get_by_label("Attempt 3", exact=True)).to_contain_text("/flaky/1")
    page.go_back()
    expect(diff).to_have_count(0)
    page.go_forward()
    expect(page.get_by_label("Attempt 3", exact=True)).to_contain_text("/flaky/1")
    page.keyboard.press("Escape")
    expect(diff).to_have_count(0)
    expect(page).to_have_url(f"{inspected.url}/runs/{inspected.run}?step=flaky&tab=wire")
    open_wire(page, inspected, "step=flaky&tab=wire&compare=1,9")
    expect(diff.get_by_test_id("no-attempt")).to_have_text("There is no attempt 9: flaky has 3 attempts.")
    check_appearance(page, "wire-compare-no-attempt")


@pytest.mark.parametrize(
    ("step", "attempt", "count"), [("stream", None, 3), ("flaky", 3, 4), (None, None, ITEMS + 12)]
)
def test_the_archive_is_the_one_that_the_command_line_makes(
    page: Page, inspected: InspectedRun, step: str | None, attempt: int | None, count: int
) -> None:
    def in_small_pages(route: Route) -> None:
        route.continue_(url=route.request.url.replace("limit=500", "limit=20"))

    page.route("**/wire?format=har*", in_small_pages)
    chosen = {"step": step, "attempt": attempt, "tab": "wire"}
    open_wire(
        page, inspected, urlencode({name: value for name, value in chosen.items() if value is not None})
    )
    with page.expect_download() as download:
        page.get_by_test_id("har").click()
    archive = decode(Path(download.value.path()).read_bytes())
    check_har(archive)
    exchanges = [
        convert_exchange(exchange) for exchange in inspected.client.wire(inspected.run, step=step).items
    ]
    expected = to_har(each for each in exchanges if attempt in (None, each.attempt))
    assert entries(archive) == entries(expected)
    assert len(entries(archive)) == count


def entries(archive: Json) -> list[JsonObject]:
    assert isinstance(archive, dict)
    log = archive["log"]
    assert isinstance(log, dict)
    # Two that began in the same microsecond have no order.
    return sorted(
        objects_in(log["entries"]), key=lambda entry: (str(entry["startedDateTime"]), str(entry["_step"]))
    )


@pytest.fixture
def captured() -> Generator[RequestCapture]:
    with request_capture() as server:
        yield server


def exchange_of(request: JsonObject) -> JsonObject:
    return {
        "step": "flaky",
        "attempt": 1,
        "started_at": "2026-01-01T00:00:00.000000Z",
        "duration_ms": 1.0,
        "request": request,
        "response": {"status": 200, "headers": {}, "body": ""},
        "error": None,
        "notes": [],
        "kind": "send",
        "frames": None,
    }


def fake_exchanges(page: Page, exchanges: list[JsonObject], query: str = "*") -> None:
    """What no agent of ours is sent, but another may be."""
    answer = {"items": exchanges, "next_cursor": None}
    page.route(f"**/api/v1/runs/*/wire?{query}", lambda route: route.fulfill(json=answer))


def test_loaded_pages_stay_while_the_step_changes_and_the_server_is_silent(
    page: Page, inspected: InspectedRun, agents: ThreadedAgents
) -> None:
    run = begin_slow_run(inspected, agents)
    one = exchange_of({"method": "POST", "url": run.agent_url, "headers": {}, "body": "{}"})
    second = [one]
    refused = False

    def answer(route: Route) -> None:
        if refused:
            problem: JsonObject = {"title": "No", "status": 403, "detail": "Not now.", "fix": ""}
            route.fulfill(status=403, content_type="application/problem+json", body=encode(problem))
        elif "cursor=2" in route.request.url:
            route.fulfill(json={"items": second, "next_cursor": None})
        else:
            route.fulfill(json={"items": [one], "next_cursor": "2"})

    page.route("**/api/v1/runs/*/wire?*", answer)
    page.goto(f"/runs/{run.id}?step=only&tab=wire")
    exchanges = page.get_by_test_id("exchange")
    page.get_by_role("button", name="Load more exchanges").click()
    expect(exchanges).to_have_count(2)
    refused = True
    problem = page.get_by_test_id("wire").get_by_test_id("problem")
    expect(problem).to_contain_text("Not now.")
    expect(exchanges).to_have_count(2)
    refused = False
    problem.get_by_role("button", name="Try again").click()
    expect(problem).to_have_count(0)
    second.append(one)
    run.let_answer()
    expect(page.get_by_test_id("inspector").get_by_text("Completed")).to_be_visible()
    expect(exchanges).to_have_count(3)


def copied(page: Page, row: Locator, form: str) -> str:
    button = row.get_by_test_id(f"copy-{form}")
    button.click()
    expect(button).to_have_text("Copied")
    return str(page.evaluate("navigator.clipboard.readText()"))


def run(form: str, text: str, folder: Path) -> None:
    done = pasted(form, text, folder)
    assert done.returncode == 0, f"{done.stderr}\n{text[:2_000]}"


def pasted(form: str, text: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """As a person would run it, in that folder."""
    if form == "curl" and shutil.which("curl") is None:
        assert "CI" not in os.environ, "curl is not installed"
        pytest.skip("curl is not installed")
    # HTTPie would ask another host for its newest version.
    (folder / "config.json").write_text('{"disable_update_warnings": true}', "utf-8")
    words = [sys.executable, "-c", text] if form == "python" else ["sh", "-c", text]
    environment = {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "HTTPIE_CONFIG_DIR": str(folder),
        "NO_PROXY": "*",
        "LANG": "C.UTF-8",
        VARIABLE: SECRET,
    }
    return subprocess.run(
        words, env=environment, cwd=folder, capture_output=True, text=True, check=False, timeout=60
    )


@pytest.mark.parametrize("form", ["curl", "httpie", "python"])
def test_a_copied_request_arrives_as_it_was_recorded(
    page: Page, inspected: InspectedRun, captured: RequestCapture, tmp_path: Path, form: str
) -> None:
    requests: list[JsonObject] = [
        {"method": "POST", "url": f"{captured.url}/agent?q={place}", "headers": {**HEADERS}, "body": body}
        for place, body in enumerate(BODIES)
    ]
    fake_exchanges(page, [exchange_of(request) for request in requests])
    rows = open_wire(page, inspected, "step=flaky&attempt=1&tab=wire")
    for place, body in enumerate(BODIES):
        open_up(rows.nth(place))
        text = copied(page, rows.nth(place), form)
        assert SECRET not in text
        assert text.startswith(
            f"# Set these environment variables first (secrets are not recorded): {VARIABLE}\n"
        )
        if form == "curl":
            assert text.endswith(to_curl(exchange_of(requests[place])))
        run(form, text, tmp_path)
        arrived = captured.take()
        assert (arrived.method, arrived.target, arrived.body) == ("POST", f"/agent?q={place}", body.encode())
        expected = {name.lower(): value for name, value in HEADERS.items()}
        expected["authorization"] = f"Bearer {SECRET}"
        assert {name: arrived.headers.get(name) for name in expected} == expected
        open_up(rows.nth(place))


CUT = (
    "The request body is cut: it has 300,074 bytes, and 65,536 are kept. "
    "The limit is the setting max_wire_bytes."
)


@pytest.mark.parametrize("form", ["curl", "httpie", "python"])
def test_a_request_that_is_cut_is_copied_with_a_file_for_its_body(
    page: Page, inspected: InspectedRun, captured: RequestCapture, tmp_path: Path, form: str
) -> None:
    request: JsonObject = {
        "method": "POST",
        "url": f"{captured.url}/agent",
        "headers": {},
        "body": "half of",
        "body_cut": True,
        "body_notes": [CUT],
    }
    exchange: JsonObject = {**exchange_of(request), "notes": [CUT]}
    fake_exchanges(page, [exchange])
    rows = open_wire(page, inspected, "step=flaky&attempt=1&tab=wire")
    expect(page.get_by_test_id("exchange-notes")).to_have_text(CUT)
    file = "body-of-flaky-attempt-1.txt"
    expect(page.get_by_test_id("cut-command")).to_contain_text(f"reads it from the file {file}")
    if form == "curl":
        check_appearance(page, "wire-cut")
    text = copied(page, rows.first, form)
    assert text.startswith(
        f"# {CUT}\n# Save the whole body as {file} first. Without that file nothing is sent.\n"
    )
    assert "half of" not in text
    if form == "curl":
        assert text == to_curl(exchange)
    assert pasted(form, text, tmp_path).returncode != 0
    body = "é" * 150_037
    (tmp_path / file).write_text(body, "utf-8")
    run(form, text, tmp_path)
    # The first that arrives: nothing was sent before.
    assert captured.take().body == body.encode()


@pytest.mark.parametrize("form", ["curl", "httpie", "python"])
def test_a_login_and_a_key_in_the_address_come_from_the_environment(
    page: Page, inspected: InspectedRun, captured: RequestCapture, tmp_path: Path, form: str
) -> None:
    request: JsonObject = {
        "method": "GET",
        "url": f"{captured.url}/card?key=${VARIABLE}",
        "headers": {"Authorization": f"Basic ${VARIABLE}", "X-Key": "[redacted]"},
        "body": "",
    }
    fake_exchanges(page, [exchange_of(request)])
    rows = open_wire(page, inspected, "step=flaky&attempt=1&tab=wire")
    text = copied(page, rows.first, form)
    assert "# Replace the redacted values: [redacted]\n" in text
    # A shell puts a key into an address as it is; this one would have to be encoded by whoever sets it.
    run(form, text.replace(f"key=${VARIABLE}", "key=k"), tmp_path)
    arrived = captured.take()
    assert arrived.method == "GET"
    assert arrived.headers["authorization"] == "Basic dSRlcjpzM2NyZXQgYHhg"
    assert arrived.target == ("/card?key=u%24er%3As3cret%20%60x%60" if form == "python" else "/card?key=k")


def test_what_cannot_be_repeated_has_no_command(page: Page, inspected: InspectedRun) -> None:
    program: JsonObject = {"method": "POST", "url": "stdio:zone", "headers": {}, "body": "{}"}
    fake_exchanges(page, [exchange_of(program)])
    open_wire(page, inspected, "step=flaky&attempt=1&tab=wire")
    expect(page.get_by_test_id("exchange-detail")).to_be_visible()
    expect(page.get_by_test_id("copy-curl")).to_have_count(0)
