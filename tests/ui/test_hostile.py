"""Whatever agents and their callers write, the page shows it and does nothing else with it."""

from __future__ import annotations

import base64
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import pytest
from playwright.sync_api import Browser, Page, expect
from tests.ui.agents import ThreadedAgents
from tests.ui.browser import watched_page
from tests.ui.hostile_texts import ALL, FORMS, HTML, SVG, TAKEN
from tests.ui.wheel_install import trunkline_up

from trunkline.cli.follow import follow_run
from trunkline.cli.rest.client import Client
from trunkline.jsontypes import Json, JsonObject, encode
from trunkline.testing.agents import Call, Reply

AGENT, WORKFLOW = FORMS[13], FORMS[14]


@dataclass(frozen=True)
class HostileSystem:
    client: Client
    completed: str
    failed: str
    waiting: str


def packed(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def answer(call: Call) -> Reply | Json:
    """As the message asks: an answer full of it, an error, or a question."""
    asked = str(call.message)
    if "wish-fail" in asked:
        return {
            "jsonrpc": "2.0",
            "id": call.id,
            "error": {"code": -32000, "message": ALL, "data": list(FORMS)},
        }
    parts: list[Json] = [{"kind": "text", "text": ALL}]
    if "wish-ask" in asked:
        message: JsonObject = {"kind": "message", "role": "agent", "messageId": "m", "parts": parts}
        status: JsonObject = {"state": "input-required", "message": message}
        task: JsonObject = {"kind": "task", "id": "t", "contextId": "c", "status": status}
    else:
        files: list[Json] = [
            {"kind": "file", "file": {"name": FORMS[0], "mimeType": "image/svg+xml", "bytes": packed(SVG)}},
            {"kind": "file", "file": {"name": "page.html", "mimeType": "text/html", "bytes": packed(HTML)}},
            {"kind": "file", "file": {"name": FORMS[16], "mimeType": FORMS[17], "bytes": packed(HTML)}},
            {"kind": "file", "file": {"name": "link", "uri": FORMS[38]}},
            {"kind": "data", "data": {key: list(FORMS[:3]) for key in FORMS}},
        ]
        artifact: JsonObject = {"artifactId": FORMS[1], "name": FORMS[3], "parts": [*parts, *files]}
        task = {
            "kind": "task",
            "id": "t",
            "contextId": "c",
            "status": {"state": "completed"},
            "artifacts": [artifact],
        }
    body = encode({"jsonrpc": "2.0", "id": call.id, "result": task})
    return Reply(
        body=body, headers={"Content-Type": "application/json", "X-Words": FORMS[13], "Server": FORMS[18]}
    )


@pytest.fixture(scope="module")
def hostile(
    agents: ThreadedAgents, session_folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> Generator[HostileSystem]:
    with trunkline_up(session_folder, tmp_path_factory.mktemp("hostile")) as url:
        client = Client(url)
        spec: JsonObject = {"name": AGENT, "url": agents.start(answer).url, "protocol": "jsonrpc-2.0"}
        client.create_agent(spec | {"description": ALL})
        for name, wish in ((WORKFLOW, "wish-go"), ("failing", "wish-fail"), ("asking", "wish-ask")):
            step: JsonObject = {
                "agent": AGENT,
                "input": {"wish": wish, "all": "${ input.all }"},
                "retry": {"max_attempts": 1},
            }
            client.save_workflow(encode({"name": name, "description": ALL, "steps": {"only": step}}))
        runs = [client.execute(name, {"all": ALL})["id"] for name in (WORKFLOW, "failing", "asking")]
        statuses = [follow_run(client, run, show="nothing")["status"] for run in runs]
        assert statuses == ["COMPLETED", "FAILED", "WAITING"]
        yield HostileSystem(client, *runs)


@pytest.fixture
def page(browser: Browser, hostile: HostileSystem) -> Generator[Page]:
    with watched_page(browser, hostile.client.url) as page:
        page.on("dialog", lambda dialog: pytest.fail(f"A dialog says {dialog.message}"))
        yield page
        assert page.evaluate(TAKEN) is False


def shown_as_text(page: Page, text: str) -> None:
    """Somewhere on the page, as it was written."""
    expect(page.get_by_text(text).first).to_be_visible()
    assert page.evaluate(TAKEN) is False


def test_names_in_lists_are_text(page: Page) -> None:
    page.goto("/runs")
    shown_as_text(page, WORKFLOW)
    page.goto("/workflows")
    shown_as_text(page, WORKFLOW)
    page.goto("/agents")
    shown_as_text(page, AGENT)


def test_a_search_that_is_markup_is_text(page: Page) -> None:
    for form in FORMS:
        page.goto(f"/runs?q={quote(form, safe='')}")
        expect(page.get_by_role("heading", name="Runs")).to_be_visible()
        assert page.evaluate(TAKEN) is False


@pytest.mark.parametrize(
    ("which", "tab"),
    [
        *(("completed", tab) for tab in ("input", "output", "wire")),
        *(("failed", tab) for tab in ("error", "wire")),
        *(("waiting", tab) for tab in ("output", "wire")),
    ],
)
def test_what_an_agent_has_said_is_text_in_every_tab(
    page: Page, hostile: HostileSystem, which: str, tab: str
) -> None:
    page.goto(f"/runs/{getattr(hostile, which)}?step=only&attempt=1&tab={tab}")
    expect(page.get_by_test_id("inspector")).to_contain_text("window.taken=1")
    expect(page.get_by_test_id("loading")).to_have_count(0)
    assert page.evaluate(TAKEN) is False


@pytest.mark.parametrize("tab", ["events", "logs"])
def test_the_message_of_a_failure_is_shown_as_text(page: Page, hostile: HostileSystem, tab: str) -> None:
    page.goto(f"/runs/{hostile.failed}?tab={tab}")
    expect(page.get_by_test_id("inspector")).to_contain_text("StepFailed" if tab == "events" else "only")
    assert page.evaluate(TAKEN) is False


def test_an_agent_and_a_workflow_with_such_names_have_pages(page: Page) -> None:
    page.goto(f"/agents/{quote(AGENT, safe='')}")
    shown_as_text(page, AGENT)
    for place in ("", "/edit", "/start"):
        page.goto(f"/workflows/{quote(WORKFLOW, safe='')}{place}")
        shown_as_text(page, WORKFLOW)


def test_a_question_is_text(page: Page) -> None:
    page.goto("/inbox")
    shown_as_text(page, FORMS[0])


def test_files_of_agents_are_never_documents_of_our_origin(hostile: HostileSystem, page: Page) -> None:
    """Opened by themselves they run nothing either: they come as downloads, or in a sandbox."""
    page.goto(f"/runs/{hostile.completed}?step=only&tab=output")
    expect(page.get_by_test_id("inspector")).to_be_visible()
    addresses = page.evaluate(
        "() => [...document.querySelectorAll('a[href], iframe, object, embed')].map(e => e.href ?? e.src ?? e.data)"
    )
    assert [
        address
        for address in addresses
        if str(address).lower().startswith(("javascript", "data", "vbscript"))
    ] == []
    assert page.locator("iframe, object, embed").count() == 0
