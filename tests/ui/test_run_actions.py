"""What one can do with a run from its page: pause, resume, cancel, retry, answer; and what is refused, and why."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect
from tests.ui.agents import ThreadedAgents
from tests.ui.browser import check_appearance, watched_page
from tests.ui.conftest import DemoSystem
from tests.ui.wheel_install import trunkline_up

from trunkline.api.resources.runs import RunResource
from trunkline.cli.follow import follow_run
from trunkline.cli.rest.client import Client
from trunkline.jsontypes import Json, encode
from trunkline.testing.agents import Call, Hangup, ScriptedAgent, jsonrpc_task, simple_error, simple_success

# A double has no room for its last digit.
MANY = 2**53 + 1
CHAIN = b"""
name: chain
input: {type: object, properties: {n: {type: integer}}}
steps:
  first: {agent: First, input: {text: "${ 'n is ' + string(input.n) }"}}
  second: {agent: Second, input: {text: "${ steps.first.output.text }", n: "${ input.n }"}, retry: {max_attempts: 1}}
  third: {agent: First, input: {text: "${ steps.second.output.text }"}}
"""
SLOW = b"{name: slow, steps: {only: {agent: Slow, input: {text: go}}, then: {agent: First, needs: [only]}}}"
ASK = b"{name: ask, steps: {only: {agent: Asker, input: {text: go}}}}"
ONCE = b"{name: once, steps: {pay: {agent: Bank, delivery: at_most_once, input: {text: pay}}}}"


class CallGate:
    """Answers a call when it is opened."""

    def __init__(self) -> None:
        self.open = asyncio.Event()

    async def __call__(self, call: Call) -> Json:
        await self.open.wait()
        return simple_success({"text": "late"})(call)


@dataclass
class ControlledSystem:
    client: Client
    agents: ThreadedAgents
    slow: ScriptedAgent
    first: ScriptedAgent
    second: ScriptedAgent
    asker: ScriptedAgent
    bank: ScriptedAgent

    def start(self, workflow: str, given: Json = None) -> str:
        return self.client.execute(workflow, {} if given is None else given)["id"]

    def end(self, run: str) -> RunResource:
        return follow_run(self.client, run, show="nothing")

    def failed(self) -> str:
        """A run of three steps whose second has failed."""
        self.second.script(simple_error("no"))
        run = self.start("chain", {"n": MANY})
        assert self.end(run)["status"] == "FAILED"
        self.second.script(simple_success({"text": "two"}))
        return run

    def held(self) -> tuple[str, CallGate]:
        """A run whose first step waits for the gate."""

        async def make() -> CallGate:
            return CallGate()

        gate = self.agents.portal.call(make)
        self.slow.script(gate)
        run = self.start("slow")
        calls = len(self.slow.calls)
        self.agents.portal.call(self.slow.called, max(calls, 1))
        return run, gate

    def release(self, gate: CallGate) -> None:
        self.agents.portal.call(gate.open.set)


@pytest.fixture(scope="module")
def controlled(demo: DemoSystem, agents: ThreadedAgents) -> ControlledSystem:
    stage = ControlledSystem(
        demo.client,
        agents,
        slow=agents.start(simple_success({"text": "fast"})),
        first=agents.start(simple_success({"text": "one"})),
        second=agents.start(simple_success({"text": "two"})),
        asker=agents.start(jsonrpc_task("Which one?", state="input-required")),
        bank=agents.start(Hangup()),
    )
    for name in ("slow", "first", "second", "asker", "bank"):
        protocol = "jsonrpc-2.0" if name == "asker" else "simple-a2a"
        agent: ScriptedAgent = getattr(stage, name)
        demo.client.create_agent({"name": name.title(), "url": agent.url, "protocol": protocol})
    for definition in (CHAIN, SLOW, ASK, ONCE):
        demo.client.save_workflow(definition)
    return stage


def open_run(page: Page, run: str, status: str) -> None:
    page.goto(f"/runs/{run}")
    expect(page.get_by_test_id("run-status").locator(f"[data-status={status}]")).to_be_visible()


def expect_status(page: Page, status: str) -> None:
    expect(page.get_by_test_id("run-status").locator(f"[data-status={status}]")).to_be_visible()


def new_run(page: Page, old: str) -> str:
    """The page goes to the run that was started."""
    expect(page).to_have_url(re.compile(rf"/runs/(?!{old})[0-9a-f-]{{36}}"))
    return page.url.rpartition("/")[2]


def test_a_run_is_paused_and_goes_on(page: Page, controlled: ControlledSystem) -> None:
    run, gate = controlled.held()
    open_run(page, run, "RUNNING")
    page.get_by_test_id("pause").click()
    expect_status(page, "PAUSED")
    expect(page.get_by_test_id("toast")).to_contain_text("is paused")
    controlled.release(gate)
    page.get_by_test_id("resume").click()
    expect_status(page, "COMPLETED")
    assert controlled.end(run)["status"] == "COMPLETED"


def test_cancelling_asks_first_and_cannot_be_taken_back(page: Page, controlled: ControlledSystem) -> None:
    run, gate = controlled.held()
    open_run(page, run, "RUNNING")
    page.get_by_test_id("cancel").click()
    expect(page.get_by_test_id("cancel-dialog")).to_contain_text("cannot be resumed")
    check_appearance(page, "cancel")
    page.get_by_role("button", name="Keep running").click()
    expect(page.get_by_test_id("cancel-dialog")).to_have_count(0)
    assert controlled.client.run(run)["status"] == "RUNNING"
    page.get_by_test_id("cancel").click()
    page.get_by_test_id("confirm-cancel").click()
    expect_status(page, "CANCELLED")
    controlled.release(gate)


def test_what_got_no_answer_is_not_known_to_be_done_and_is_pressed_again(
    browser: Browser, controlled: ControlledSystem
) -> None:
    run, gate = controlled.held()
    with watched_page(browser, controlled.client.url, cuts_are_expected=True) as page:
        open_run(page, run, "RUNNING")
        page.get_by_test_id("cancel").click()
        page.context.set_offline(True)
        page.get_by_test_id("confirm-cancel").click()
        problem = page.get_by_test_id("cancel-dialog").get_by_test_id("problem")
        expect(problem).to_contain_text("Trunkline is not responding")
        expect(problem).to_contain_text("unknown whether the change was made")
        expect(problem).to_contain_text(
            "When Trunkline is reachable again, check whether the change was made"
        )
        expect(problem).not_to_contain_text("automatically")
        check_appearance(page, "cancel-unanswered")
        page.context.set_offline(False)
        expect(problem).to_contain_text("Trunkline is reachable again: check whether the change was made")
        expect(problem).to_contain_text("Trunkline did not respond")
        page.get_by_test_id("confirm-cancel").click()
        expect_status(page, "CANCELLED")
        expect(problem).to_have_count(0)
    controlled.release(gate)


def test_what_the_runs_state_forbids_is_disabled_and_says_why(
    page: Page, controlled: ControlledSystem
) -> None:
    run = controlled.failed()
    open_run(page, run, "FAILED")
    for action in ("pause", "cancel"):
        button = page.get_by_test_id(action)
        expect(button).to_have_attribute("aria-disabled", "true")
        expect(button).to_have_accessible_name(re.compile(r"The run has ended \(failed\)"))
    page.get_by_test_id("pause").focus()
    expect(page.get_by_role("tooltip")).to_contain_text("The run has ended")
    check_appearance(page, "run-actions")


def test_a_run_that_ended_meanwhile_is_a_conflict_that_is_explained(
    page: Page, controlled: ControlledSystem
) -> None:
    run, gate = controlled.held()
    # The page hears nothing of the run's history: it does not know that the run has ended.
    page.route(f"**/runs/{run}/events**", lambda _: None)
    open_run(page, run, "RUNNING")
    controlled.release(gate)
    assert controlled.end(run)["status"] == "COMPLETED"
    page.get_by_test_id("cancel").click()
    page.get_by_test_id("confirm-cancel").click()
    expect(page.get_by_test_id("problem")).to_contain_text("is COMPLETED and cannot be cancelled")
    page.get_by_role("button", name="Keep running").click()
    page.get_by_test_id("pause").click()
    expect(page.get_by_test_id("toast")).to_contain_text("is COMPLETED and cannot be paused")


def test_a_retry_says_what_it_keeps_and_calls_and_leads_to_the_new_run(
    page: Page, controlled: ControlledSystem
) -> None:
    old = controlled.failed()
    calls = len(controlled.first.calls)
    open_run(page, old, "FAILED")
    page.get_by_test_id("retry").click()
    dialog = page.get_by_test_id("retry-dialog")
    expect(dialog).to_contain_text("new run")
    expect(page.get_by_test_id("retry-consequences")).to_contain_text("Agents will be called again")
    expect(page.get_by_test_id("retry-kept")).to_have_text("Reused: first")
    expect(page.get_by_test_id("retry-again")).to_have_text(re.compile("second.*third"))
    check_appearance(page, "retry")
    page.get_by_test_id("confirm-retry").click()
    new = new_run(page, old)
    expect_status(page, "COMPLETED")
    assert controlled.client.run(new).get("retry_of") == old
    # The third step is of the same agent.
    assert len(controlled.first.calls) == calls + 1


def test_a_retry_from_a_step_can_give_it_another_input(page: Page, controlled: ControlledSystem) -> None:
    old = controlled.failed()
    page.goto(f"/runs/{old}?step=second")
    page.get_by_test_id("retry").click()
    expect(page.get_by_test_id("retry-from")).to_have_value("second")
    page.get_by_test_id("retry-other-step-input").check()
    editor = page.get_by_role("textbox", name="Input of second")
    expect(editor).to_contain_text('"text": "one"')
    expect(editor).to_contain_text(f'"n": {MANY}')
    editor.fill('{"text": ')
    expect(page.get_by_test_id("retry-step-input")).to_contain_text("Invalid JSON")
    expect(page.get_by_test_id("confirm-retry")).to_be_disabled()
    editor.fill(f'{{"text": "mine", "n": {MANY + 2}, "share": 1.0}}')
    check_appearance(page, "retry-step")
    page.get_by_test_id("confirm-retry").click()
    run = controlled.end(new_run(page, old))
    assert [step.get("input") for step in run["steps"]] == [
        None,
        {"text": "mine", "n": MANY + 2, "share": 1.0},
        {"text": "two"},
    ]
    # Which is no 1 for an expression.
    assert '"share":1.0' in encode(run["steps"][1].get("input")).decode()


def test_everything_runs_again_with_another_input(page: Page, controlled: ControlledSystem) -> None:
    old = controlled.failed()
    open_run(page, old, "FAILED")
    page.get_by_test_id("retry").click()
    page.get_by_test_id("retry-other-input").check()
    expect(page.get_by_test_id("retry-consequences")).to_contain_text("based on the old input")
    page.get_by_test_id("retry-all").check()
    expect(page.get_by_test_id("retry-kept")).to_have_text("Reused: none")
    page.get_by_role("textbox", name="Run input").fill('{"n": "seven"}')
    page.get_by_test_id("confirm-retry").click()
    expect(page.get_by_test_id("problem")).to_contain_text("input.n")
    page.get_by_role("textbox", name="Run input").fill('{"n": 7}')
    page.get_by_test_id("confirm-retry").click()
    run = controlled.end(new_run(page, old))
    assert run["input"] == {"n": 7}
    assert run["steps"][0].get("input") == {"text": "n is 7"}


def test_a_question_is_answered_from_the_runs_page(page: Page, controlled: ControlledSystem) -> None:
    controlled.asker.script(
        jsonrpc_task("Which one?", state="input-required"),
        jsonrpc_task("And when?", state="input-required"),
        jsonrpc_task("Then."),
    )
    run = controlled.start("ask")
    open_run(page, run, "WAITING")
    page.get_by_test_id("answer-step").click()
    expect(page.get_by_test_id("question")).to_have_text("Which one?")
    page.get_by_test_id("answer-text").fill("The left one")
    check_appearance(page, "answer-in-run")
    controlled.client.reply(run, "only", {"text": "The right one"})
    gone = page.get_by_test_id("inbox-gone")
    expect(gone).to_contain_text("The step has a new question: “And when?”")
    expect(page.get_by_test_id("answer-text")).to_have_value("The left one")
    expect(page.get_by_test_id("send-answer")).to_be_disabled()
    check_appearance(page, "answer-in-run-overtaken")
    page.get_by_test_id("next-question").click()
    expect(page.get_by_test_id("question")).to_have_text("And when?")
    page.get_by_test_id("answer-text").fill("Now")
    page.get_by_test_id("send-answer").click()
    expect_status(page, "COMPLETED")
    expect(page.get_by_test_id("answer")).to_have_count(0)


def test_an_unknown_outcome_is_called_again_from_the_runs_page(
    page: Page, controlled: ControlledSystem
) -> None:
    controlled.bank.script(Hangup(), simple_success({"text": "paid"}))
    run = controlled.start("once")
    open_run(page, run, "WAITING")
    expect(page.get_by_test_id("answer-step")).to_have_text("Resolve pay")
    page.get_by_test_id("answer-step").click()
    page.get_by_label("Call the agent again").check()
    page.get_by_test_id("send-outcome").click()
    expect_status(page, "COMPLETED")


def make_key(store: Path, role: str) -> str:
    command = [
        sys.executable,
        "-m",
        "trunkline",
        "keys",
        "create",
        role,
        "--role",
        role,
        "--data",
        str(store),
    ]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def test_a_viewers_key_shows_its_limits_before_a_refusal(
    browser: Browser, agents: ThreadedAgents, session_folder: Path, tmp_path: Path
) -> None:
    viewer, admin = (make_key(tmp_path / "trunkline", role) for role in ("viewer", "admin"))
    asker = agents.start(jsonrpc_task("Which one?", state="input-required"))
    with trunkline_up(session_folder, tmp_path, flags=["--require-keys"]) as url:
        client = Client(url, api_key=admin)
        client.create_agent({"name": "Asker", "url": asker.url, "protocol": "jsonrpc-2.0"})
        client.save_workflow(ASK)
        run = client.execute("ask", {})["id"]
        with watched_page(browser, url) as page:
            page.add_init_script(f"sessionStorage.setItem('trunkline.key', '{viewer}')")
            open_run(page, run, "WAITING")
            for action in ("pause", "cancel", "retry"):
                refused = re.compile("Requires the role operator")
                expect(page.get_by_test_id(action)).to_have_accessible_name(refused)
            page.get_by_test_id("answer-step").click()
            page.get_by_test_id("answer-text").fill("This one")
            expect(page.get_by_test_id("send-answer")).to_be_disabled()
            expect(page.get_by_test_id("answer").get_by_test_id("not-allowed")).to_contain_text(
                "Requires the role operator"
            )
            check_appearance(page, "answer-not-allowed")
            page.goto("/workflows/ask/start")
            expect(page.get_by_test_id("start")).to_be_disabled()
            expect(page.get_by_test_id("not-allowed")).to_contain_text("Requires the role operator")
            check_appearance(page, "start-not-allowed")
