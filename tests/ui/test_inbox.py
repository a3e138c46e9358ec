"""The inbox: what waits for a person, how it is answered, and what somebody else's answer does to it."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect
from tests.ui.agents import ThreadedAgents
from tests.ui.browser import check_appearance
from tests.ui.conftest import DemoSystem

from trunkline.jsontypes import Json, JsonObject, encode
from trunkline.testing.agents import Call, Hangup, Script, ScriptedAgent, jsonrpc_task

QUESTION = "Which city do you mean?\nThere is more than one."
FORM: JsonObject = {
    "form": {
        "type": "object",
        "required": ["amount"],
        "properties": {"amount": {"type": "number", "title": "Amount"}, "urgent": {"type": "boolean"}},
    }
}


def asking(text: str, data: Json) -> Callable[[Call], Json]:
    """A question with data next to its text."""

    def answer(call: Call) -> Json:
        answered = jsonrpc_task(text, state="input-required")(call)
        assert isinstance(answered, dict)
        message: Json = {
            "kind": "message",
            "role": "agent",
            "messageId": "m-1",
            "parts": [{"kind": "text", "text": text}, {"kind": "data", "data": data}],
        }
        result = answered["result"]
        assert isinstance(result, dict)
        result["status"] = {"state": "input-required", "message": message}
        return answered

    return answer


class WaitingSystem:
    """Runs that wait for a person, each of an agent of its own."""

    def __init__(self, demo: DemoSystem, agents: ThreadedAgents) -> None:
        self.client = demo.client
        self._agents = agents

    def start(self, name: str, *scripts: Script, **fields: Json) -> tuple[str, ScriptedAgent]:
        agent = self._agents.start(*scripts)
        self.client.create_agent({"name": name, "url": agent.url, "protocol": "jsonrpc-2.0"})
        step: JsonObject = {"agent": name, "input": {"text": "go"}, **fields}
        self.client.save_workflow(_yaml({"name": f"{name}-flow", "steps": {"only": step}}))
        return self.execute(name, {}), agent

    def execute(self, name: str, given: JsonObject) -> str:
        """One more run of the workflow with that agent."""
        run = self.client.execute(f"{name}-flow", given)["id"]
        for event in self.client.follow(run):
            if event["type"] == "RunWaiting":
                return run
        raise AssertionError("The run has ended without a question.")

    def end(self, run: str) -> str:
        # To its last event, however often it waits before.
        for _ in self.client.follow(run):
            pass
        return self.client.run(run)["status"]


def _yaml(definition: JsonObject) -> bytes:
    # What is JSON is YAML, too.
    return encode(definition)


@pytest.fixture
def waiting(demo: DemoSystem, agents: ThreadedAgents) -> WaitingSystem:
    return WaitingSystem(demo, agents)


def test_an_empty_inbox_says_what_would_be_in_it(page: Page) -> None:
    page.goto("/inbox")
    expect(page.get_by_test_id("inbox-empty")).to_contain_text("No steps are waiting")
    expect(page.get_by_test_id("inbox-count")).to_have_count(0)
    check_appearance(page, "inbox-empty")


def test_a_question_is_counted_on_every_page_and_answered_in_words(
    page: Page, waiting: WaitingSystem
) -> None:
    page.goto("/runs")
    run, agent = waiting.start(
        "Guide", jsonrpc_task(QUESTION, state="input-required"), jsonrpc_task("Rome it is.")
    )
    expect(page.get_by_test_id("inbox-count")).to_have_text("1")
    expect(page).to_have_title("(1) Runs · Trunkline")
    page.get_by_test_id("inbox-count").click()
    expect(page.get_by_test_id("inbox-item")).to_contain_text("Question from Guide")
    expect(page.get_by_test_id("question")).to_have_text(QUESTION)
    expect(page.get_by_test_id("what-next")).to_contain_text("sent to Guide")
    expect(page.get_by_test_id("send-answer")).to_be_disabled()
    check_appearance(page, "inbox")
    page.get_by_test_id("answer-text").fill("Rome")
    page.get_by_test_id("send-answer").click()
    expect(page.get_by_test_id("toast")).to_contain_text("Reply sent")
    expect(page.get_by_test_id("inbox-empty")).to_be_visible()
    expect(page.get_by_test_id("inbox-count")).to_have_count(0)
    expect(page).to_have_title("Inbox · Trunkline")
    assert waiting.end(run) == "COMPLETED"
    assert agent.calls[1].message["parts"] == [{"kind": "text", "text": "Rome"}]


def test_a_question_with_a_schema_is_answered_by_a_form(page: Page, waiting: WaitingSystem) -> None:
    run, agent = waiting.start("Clerk", asking("Fill this in.", FORM), jsonrpc_task("Paid."))
    page.goto("/inbox")
    page.get_by_test_id("send-answer").click()
    expect(page.get_by_label("Amount")).to_have_accessible_description("This field is required.")
    page.get_by_label("Amount").fill("12.5")
    expect(page.get_by_label("Amount")).not_to_have_attribute("aria-invalid", "true")
    page.get_by_label("urgent").check()
    check_appearance(page, "inbox-form")
    page.get_by_test_id("send-answer").click()
    assert waiting.end(run) == "COMPLETED"
    assert agent.calls[1].message["parts"] == [{"kind": "data", "data": {"amount": 12.5, "urgent": True}}]


def test_a_login_request_is_distinguished(page: Page, waiting: WaitingSystem) -> None:
    run, _ = waiting.start(
        "Vault",
        jsonrpc_task("Log in at https://example.com/login.", state="auth-required"),
        jsonrpc_task("Open."),
    )
    page.goto("/inbox?kind=input")
    expect(page.get_by_test_id("inbox-empty")).to_be_visible()
    page.get_by_test_id("inbox-kind").get_by_text("Login requests").click()
    expect(page).to_have_url(re.compile(r"kind=auth"))
    expect(page.get_by_test_id("inbox-item")).to_contain_text("Login required by Vault")
    expect(page.get_by_test_id("what-next")).to_contain_text("enter passwords")
    expect(page.get_by_role("link", name="https://example.com/login")).to_have_attribute(
        "rel", "noopener noreferrer"
    )
    check_appearance(page, "inbox-auth")
    page.get_by_test_id("send-answer").click()
    assert waiting.end(run) == "COMPLETED"


def test_an_unknown_outcome_is_resolved_by_who_has_found_it_out(page: Page, waiting: WaitingSystem) -> None:
    run, agent = waiting.start("Bank", Hangup(), delivery="at_most_once")
    page.goto("/inbox")
    expect(page.get_by_test_id("send-outcome")).to_be_disabled()
    page.get_by_label("The call succeeded").check()
    page.get_by_role("textbox", name="Step output").fill('{"paid": true}')
    check_appearance(page, "inbox-outcome")
    page.get_by_test_id("send-outcome").click()
    assert waiting.end(run) == "COMPLETED"
    assert waiting.client.run(run)["output"] == {"paid": True}
    assert len(agent.calls) == 1


def test_the_second_reply_is_rejected_because_the_first_was_accepted(
    page: Page, waiting: WaitingSystem
) -> None:
    question = jsonrpc_task("Now?", state="input-required")
    run, _ = waiting.start("Twin", question, question, jsonrpc_task("Done."))
    item = waiting.client.waiting_step(run, "only")["id"]
    page.goto(f"/inbox?item={item}")
    page.get_by_test_id("answer-text").fill("mine")
    # What is asked for does not come in time: the page still shows the question.
    page.route("**/api/v1/inbox/**", lambda _: None)
    waiting.client.reply(run, "only", {"text": "theirs"})
    page.get_by_test_id("send-answer").click()
    expect(page.get_by_test_id("problem")).to_contain_text(
        re.compile("now asks another one|is not waiting for input")
    )
    page.unroute_all(behavior="ignoreErrors")
    page.goto(f"/inbox?item={item}")
    expect(page.get_by_test_id("inbox-gone")).to_contain_text("Someone else has responded")
    check_appearance(page, "inbox-gone")
    waiting.client.act(run, "cancel")


def test_a_draft_stays_when_someone_else_answers_and_leads_to_the_next_question(
    page: Page, waiting: WaitingSystem
) -> None:
    run, agent = waiting.start(
        "Overtaken",
        jsonrpc_task("Which way?", state="input-required"),
        jsonrpc_task("And then?", state="input-required"),
        jsonrpc_task("Done."),
    )
    # The only one is shown without being chosen.
    page.goto("/inbox")
    page.get_by_test_id("answer-text").fill("Left, by the old mill")
    waiting.client.reply(run, "only", {"text": "theirs"})
    gone = page.get_by_test_id("inbox-gone")
    expect(gone).to_contain_text("was not sent. You can still copy it")
    expect(page.get_by_test_id("answer-text")).to_have_value("Left, by the old mill")
    expect(page.get_by_test_id("send-answer")).to_be_disabled()
    expect(gone).to_contain_text("The step has a new question: “And then?”")
    check_appearance(page, "inbox-overtaken")
    page.get_by_test_id("next-question").click()
    expect(page.get_by_test_id("question")).to_have_text("And then?")
    expect(page.get_by_test_id("answer-text")).to_have_value("")
    page.get_by_test_id("answer-text").fill("mine")
    page.get_by_test_id("send-answer").click()
    assert waiting.end(run) == "COMPLETED"
    assert [call.message["parts"] for call in agent.calls[1:]] == [
        [{"kind": "text", "text": text}] for text in ("theirs", "mine")
    ]


def test_many_questions_are_a_list_with_one_chosen_in_the_address(page: Page, waiting: WaitingSystem) -> None:
    runs = [
        waiting.start(name, jsonrpc_task(f"{name}?", state="input-required"))[0] for name in ("One", "Two")
    ]
    page.goto("/inbox")
    expect(page.get_by_test_id("inbox-item")).to_have_count(2)
    page.get_by_test_id("inbox-item").filter(has_text="Question from Two").click()
    expect(page).to_have_url(re.compile(rf"item={runs[1]}"))
    expect(page.get_by_test_id("question")).to_have_text("Two?")
    page.get_by_test_id("to-run").click()
    expect(page).to_have_url(re.compile(rf"/runs/{runs[1]}\?step=only"))
    for run in runs:
        waiting.client.act(run, "cancel")


def test_runs_of_one_workflow_that_ask_the_same_are_distinguished(page: Page, waiting: WaitingSystem) -> None:
    question = jsonrpc_task("Which berth?", state="input-required")
    first, agent = waiting.start("Harbour", question)
    agent.script(question)
    second = waiting.execute("Harbour", {"ship": "Argo"})
    page.goto("/inbox")
    expect(page.get_by_test_id("inbox-item")).to_contain_text([f"…{run[-12:]}" for run in (first, second)])
    page.get_by_test_id("inbox-item").filter(has_text=second[-12:]).click()
    to_run = page.get_by_test_id("answer").get_by_role("link", name=second, exact=True)
    expect(to_run).to_have_attribute("href", f"/runs/{second}")
    expect(page.get_by_test_id("value")).to_have_count(0)
    page.get_by_test_id("show-input").click()
    expect(page.get_by_test_id("value")).to_contain_text('ship"Argo"')
    check_appearance(page, "inbox-alike")
    # A search in the input is no answer: nothing is said of one when somebody else answers.
    page.get_by_test_id("json-search").fill("Argo")
    waiting.client.act(second, "cancel")
    expect(page.get_by_test_id("inbox-gone")).not_to_contain_text("was not sent")
    waiting.client.act(first, "cancel")


TASK: JsonObject = {
    "title": "Refund Ada",
    "text": "She returned the bicycle.",
    "options": ["approve", "reject"],
    "form": {
        "type": "object",
        "required": ["amount"],
        "properties": {
            "amount": {"type": "number", "title": "Amount", "description": "In EUR", "maximum": 100},
            "day": {"type": "string", "format": "date", "title": "Day"},
            "method": {"enum": ["card", "cash"], "title": "Method"},
            "address": {"type": "object", "title": "Address", "properties": {"city": {"type": "string"}}},
            "items": {"type": "array", "title": "Items", "items": {"type": "string"}},
        },
    },
    "assignees": ["support"],
    "due": "1d",
}


def start_task(waiting: WaitingSystem, name: str, **fields: Json) -> str:
    task: JsonObject = {key: value for key, value in {**TASK, **fields}.items() if value is not None}
    waiting.client.save_workflow(_yaml({"name": f"{name}-flow", "steps": {"only": {"ask": task}}}))
    return waiting.execute(name, {})


def test_a_task_is_answered_by_its_form(page: Page, waiting: WaitingSystem) -> None:
    run = start_task(waiting, "refund")
    page.goto("/inbox?kind=person")
    expect(page.get_by_test_id("inbox-item")).to_contain_text("Refund Ada")
    expect(page.get_by_role("heading", name="Refund Ada")).to_be_visible()
    expect(page.get_by_test_id("question")).to_have_text("She returned the bicycle.")
    expect(page.get_by_test_id("task-assignees")).to_have_text("For support")
    expect(page.get_by_test_id("send-answer")).to_be_disabled()
    page.get_by_label("approve").check()
    page.get_by_test_id("send-answer").click()
    expect(page.get_by_label("Amount")).to_have_accessible_description(re.compile("This field is required."))
    page.get_by_label("Amount").fill("500")
    page.get_by_label("Day").fill("2026-03-01")
    page.get_by_label("city").fill("Rome")
    page.get_by_test_id("add-data.items").click()
    page.get_by_role("textbox", name="Items 1").fill("bicycle")
    page.get_by_test_id("task-comment").fill("Fine.")
    page.get_by_test_id("send-answer").click()
    # The server knows the maximum.
    expect(page.get_by_label("Amount")).to_have_accessible_description(re.compile("100"))
    page.get_by_label("Amount").fill("50")
    check_appearance(page, "inbox-task")
    page.get_by_test_id("send-answer").click()
    expect(page.get_by_test_id("toast")).to_contain_text("Answer sent")
    assert waiting.end(run) == "COMPLETED"
    output = waiting.client.run(run)["output"]
    assert isinstance(output, dict)
    assert {name: output[name] for name in ("answer", "data", "comment")} == {
        "answer": "approve",
        "data": {"amount": 50, "day": "2026-03-01", "address": {"city": "Rome"}, "items": ["bicycle"]},
        "comment": "Fine.",
    }


def test_who_answers_a_task_later_sees_that_it_was_answered(page: Page, waiting: WaitingSystem) -> None:
    run = start_task(waiting, "twice", form=None, options=["yes", "no"])
    item = waiting.client.waiting_step(run, "only")["id"]
    page.goto(f"/inbox?item={item}")
    page.get_by_label("yes").check()
    page.route("**/api/v1/inbox/**", lambda _: None)
    waiting.client.reply(run, "only", {"answer": "no"})
    page.get_by_test_id("send-answer").click()
    expect(page.get_by_test_id("problem")).to_contain_text("was answered with 'no'")
    page.unroute_all(behavior="ignoreErrors")


def test_the_page_of_a_run_asks_for_the_answer(page: Page, waiting: WaitingSystem) -> None:
    run = start_task(waiting, "paged")
    page.goto(f"/runs/{run}?step=only")
    expect(page.get_by_test_id("waiting-for")).to_contain_text(
        "Waiting for a person: She returned the bicycle."
    )
    check_appearance(page, "run-task")
    waiting.client.act(run, "cancel")
