"""The pages of agents: the list with how each stands, one agent with its card, checks and calls, and trying one out."""

from __future__ import annotations

import re
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, Route, expect
from tests.ui.agents import ThreadedAgents
from tests.ui.browser import check_appearance, watched_page
from tests.ui.conftest import DemoSystem
from tests.ui.wheel_install import trunkline_up

from trunkline.cli.follow import follow_run
from trunkline.testing import simple_success
from trunkline.testing.agents import Reply, ScriptedAgent

BUSY = Reply(503, b"busy", {"Content-Type": "text/plain"})
SCRIPT = "<img src=x onerror=alert(1)>"


@dataclass(frozen=True)
class AgentsSystem:
    """Beside the demo's agents: one that fails, with a breaker, and one with a card of many words."""

    failing_runs: frozenset[str]
    holder: ScriptedAgent


@pytest.fixture(scope="module")
def agents_system(demo: DemoSystem, agents: ThreadedAgents) -> AgentsSystem:
    client = demo.client
    fragile, holder = agents.start(BUSY), agents.start(simple_success({"text": "hi"}))
    client.create_agent(
        {"name": "fragile", "url": fragile.url, "protocol": "simple-a2a", "breaker": {"failures": 2}}
    )
    holder.publish(
        {
            "name": f"Holder {SCRIPT}",
            "description": "Keeps a card.",
            "url": holder.url,
            "protocolVersion": "0.3.0",
            "capabilities": {"streaming": True},
            "documentationUrl": "javascript:alert(1)",
            "provider": {"organization": "Cards Ltd", "url": "https://cards.example"},
            "skills": [{"id": "s", "name": "Says hello", "tags": ["greeting"], "examples": ["Hello!"]}],
        }
    )
    client.create_agent({"name": "holder", "url": holder.url, "description": "Has a card"})
    only = "{agent: fragile, retry: {max_attempts: 1}}"
    client.save_workflow(f"name: fails\nsteps:\n  first: {only}\n".encode())
    runs = [client.execute("fails", {})["id"] for _ in range(2)]
    assert [follow_run(client, run, show="nothing")["status"] for run in runs] == ["FAILED", "FAILED"]
    return AgentsSystem(frozenset(runs), holder)


@pytest.fixture
def listed(page: Page, agents_system: AgentsSystem) -> Page:
    del agents_system
    page.goto("/agents")
    expect(row(page, "fragile")).to_be_visible()
    return page


@pytest.fixture
def phone_page(browser: Browser, demo: DemoSystem, agents_system: AgentsSystem) -> Generator[Page]:
    del agents_system
    with watched_page(browser, demo.url, width=390, height=800) as page:
        yield page


def row(page: Page, agent: str) -> Locator:
    return page.locator(f'[data-testid=agent][data-agent="{agent}"]')


def breaker_state(demo: DemoSystem, agent: str) -> str | None:
    found, _ = demo.client.agent(agent)
    limits = found.get("limits")
    breaker = None if limits is None else limits["breaker"]
    return None if breaker is None else breaker["state"]


# --- the list


def test_the_list_shows_how_each_agent_stands(listed: Page) -> None:
    fragile, researcher = row(listed, "fragile"), row(listed, "Researcher")
    expect(fragile.get_by_test_id("standing")).to_have_text("Failing")
    expect(fragile.get_by_test_id("breaker")).to_have_text("Breaker open")
    expect(fragile.get_by_role("img", name=re.compile("2 in total, 2 failed"))).to_be_visible()
    expect(researcher.get_by_test_id("standing")).to_have_text("Healthy")
    expect(researcher.get_by_role("img", name=re.compile("^Latency per minute"))).to_be_visible()
    expect(row(listed, "holder").get_by_test_id("standing")).to_have_text("Never called")
    check_appearance(listed, "agents")


def test_search_and_filters_are_in_the_address(listed: Page, demo: DemoSystem) -> None:
    listed.get_by_test_id("search").fill("FRAG")
    expect(listed).to_have_url(f"{demo.url}/agents?q=FRAG")
    expect(listed.get_by_test_id("agent")).to_have_count(1)
    listed.reload()
    expect(listed.get_by_test_id("search")).to_have_value("FRAG")
    expect(listed.get_by_test_id("agent")).to_have_count(1)
    listed.goto("/agents?state=breaker")
    expect(listed.get_by_test_id("agent")).to_have_count(1)
    expect(row(listed, "fragile")).to_be_visible()
    listed.goto("/agents?q=nobody+has+this+name")
    expect(listed.get_by_test_id("no-agents")).to_be_visible()
    listed.get_by_role("link", name="Clear filters").click()
    expect(row(listed, "fragile")).to_be_visible()


def test_a_choice_of_state_leaves_the_others_out(listed: Page) -> None:
    listed.get_by_test_id("filter-state").click()
    listed.get_by_role("option", name="Never called").click()
    expect(row(listed, "holder")).to_be_visible()
    expect(row(listed, "fragile")).to_have_count(0)
    expect(listed).to_have_url(re.compile("state=unused"))


def test_the_list_is_readable_on_a_phone(phone_page: Page) -> None:
    def busier(route: Route) -> None:
        answer = route.fetch()
        page = answer.json()
        for agent in page["items"]:
            for minute in agent["activity"]["minutes"]:
                minute |= {"calls": minute["calls"] * 1322, "failures": minute["failures"] * 60}
        route.fulfill(response=answer, json=page)

    phone_page.route(re.compile(r"/api/v1/agents\?.*activity"), busier)
    phone_page.goto("/agents")
    expect(row(phone_page, "fragile").get_by_test_id("standing")).to_be_visible()
    figure = row(phone_page, "fragile").get_by_test_id("calls")
    expect(figure).to_contain_text("2,644, 120 failed")
    beyond = figure.evaluate(
        "(it) => [it, ...it.children].filter((each) => { const box = document.createRange();"
        " box.selectNodeContents(each); return box.getBoundingClientRect().right > innerWidth - 8; }).length"
    )
    assert beyond == 0
    wider = phone_page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    assert wider <= 0
    check_appearance(phone_page, "agents-phone")


def test_an_empty_list_shows_the_command_to_copy(
    browser: Browser, session_folder: Path, tmp_path: Path
) -> None:
    with trunkline_up(session_folder, tmp_path) as url, watched_page(browser, url) as page:
        page.goto("/agents")
        expect(page.get_by_test_id("no-agents")).to_contain_text("trunkline agents create")
        check_appearance(page, "agents-empty")
        page.get_by_test_id("copy-register").click()
        expect(page.get_by_text("Copied")).to_be_visible()
        assert page.evaluate("navigator.clipboard.readText()").startswith("trunkline agents create ")


# --- one agent


def test_an_agent_is_shown_with_its_activity_its_limits_and_how_it_is_known(
    page: Page, agents_system: AgentsSystem
) -> None:
    del agents_system
    page.goto("/agents/fragile")
    expect(page.get_by_test_id("agent-name")).to_have_text("fragile")
    expect(page.get_by_test_id("calls-total")).to_contain_text("2 calls, 2 failed")
    expect(page.get_by_role("img", name=re.compile("^Calls per minute: 2 in total"))).to_be_visible()
    expect(page.get_by_test_id("limits")).to_contain_text("2 consecutive failures")
    expect(page.get_by_test_id("registration")).to_contain_text("simple-a2a")
    check_appearance(page, "agent")
    page.get_by_text("24 h", exact=True).click()
    expect(page).to_have_url(re.compile("minutes=1440"))
    expect(page.get_by_test_id("calls-total")).to_contain_text("2 calls, 2 failed")
    # On a phone its tabs stand in one line.
    page.set_viewport_size({"width": 390, "height": 800})
    tabs = page.get_by_role("tab")
    assert len(set(tabs.evaluate_all("tabs => tabs.map((each) => each.offsetTop)"))) == 1
    expect(tabs.last).to_be_in_viewport(ratio=0.99)


def test_the_last_calls_lead_to_their_attempts(
    page: Page, agents_system: AgentsSystem, demo: DemoSystem
) -> None:
    page.goto("/agents/fragile?tab=calls")
    calls = page.get_by_test_id("agent-call")
    expect(calls).to_have_count(2)
    expect(calls.first).to_contain_text("agent_http_error")
    check_appearance(page, "agent-calls")
    page.set_viewport_size({"width": 390, "height": 800})
    to_run = calls.first.get_by_role(
        "link", name=re.compile(f"…({'|'.join(run[-12:] for run in agents_system.failing_runs)})$")
    )
    expect(to_run).to_be_in_viewport(ratio=0.99)
    # On one line, as is everything in the row; nothing lies beyond the edge.
    assert to_run.evaluate("link => link.getClientRects().length") == 1
    assert calls.first.evaluate("row => row.closest('table').scrollWidth <= innerWidth")
    expect(calls.first.get_by_text("attempt 1").filter(visible=True)).to_be_in_viewport(ratio=0.99)
    check_appearance(page, "agent-calls-phone")
    calls.first.get_by_role("link", name="first").click()
    expect(page).to_have_url(
        re.compile(f"{demo.url}/runs/({'|'.join(agents_system.failing_runs)}).*step=first")
    )


def test_a_breaker_is_closed_by_hand(page: Page, agents_system: AgentsSystem, demo: DemoSystem) -> None:
    del agents_system
    page.goto("/agents/fragile")
    expect(page.get_by_test_id("breaker").first).to_have_text("Breaker open")
    page.get_by_test_id("reset-breaker").click()
    expect(page.get_by_test_id("breaker").first).to_have_text("Breaker closed")
    assert breaker_state(demo, "fragile") == "closed"


def test_an_agent_is_asked_whether_it_is_there(page: Page, agents_system: AgentsSystem) -> None:
    del agents_system
    page.goto("/agents/holder")
    page.get_by_test_id("ask-health").click()
    expect(page.get_by_test_id("health")).to_have_attribute("data-value", "healthy")
    check_appearance(page, "agent-health")


def test_the_result_of_a_check_is_shown_with_the_agents_status(page: Page, demo: DemoSystem) -> None:
    demo.client.create_agent({"name": "nobody-there", "url": "http://127.0.0.1:9/", "protocol": "simple-a2a"})
    page.goto("/agents/nobody-there")
    expect(page.get_by_test_id("standing")).to_have_text("Never called")
    expect(page.get_by_test_id("health-check")).to_have_count(0)
    page.get_by_test_id("ask-health").click()
    expect(page.get_by_test_id("health")).to_have_attribute("data-value", "unhealthy")
    page.keyboard.press("Escape")
    expect(page.get_by_test_id("health-check")).to_contain_text("Not healthy")
    check_appearance(page, "agent-looked-at")
    page.get_by_test_id("nav-agents").click()
    expect(row(page, "nobody-there").get_by_test_id("health-check")).to_contain_text("Not healthy")


def test_a_card_is_shown_as_text_whatever_it_says(page: Page, agents_system: AgentsSystem) -> None:
    del agents_system
    page.goto("/agents/holder?tab=card")
    card = page.get_by_test_id("card")
    expect(card.get_by_role("heading", name=f"Holder {SCRIPT}")).to_be_visible()
    expect(card.get_by_test_id("skill")).to_contain_text("Says hello")
    expect(card.get_by_text("javascript:alert(1)")).to_be_visible()
    expect(card.get_by_role("link", name="javascript:alert(1)")).to_have_count(0)
    expect(card.get_by_role("link", name="https://cards.example")).to_have_attribute(
        "rel", re.compile("noopener")
    )
    expect(page.get_by_test_id("raw-card")).to_contain_text("protocolVersion")
    check_appearance(page, "agent-card")


def test_what_an_agent_speaks_is_decided_again_with_its_evidence(
    page: Page, agents_system: AgentsSystem
) -> None:
    del agents_system
    page.goto("/agents/holder")
    page.get_by_test_id("refresh-card").click()
    expect(page.get_by_test_id("evidence")).to_contain_text("a2a-0.3")
    expect(page.get_by_test_id("tried")).to_contain_text("HTTP 200, a card")


def test_an_agent_without_a_card_says_why_there_is_none(page: Page, agents_system: AgentsSystem) -> None:
    del agents_system
    page.goto("/agents/fragile?tab=card")
    expect(page.get_by_test_id("no-card")).to_contain_text("do not depend on a card")


def test_a_check_is_made_and_says_what_to_mend(page: Page, agents_system: AgentsSystem) -> None:
    del agents_system
    page.goto("/agents/holder?tab=checks")
    expect(page.get_by_test_id("no-checks")).to_be_visible()
    page.get_by_test_id("check-now").click()
    report = page.get_by_test_id("report")
    expect(report.get_by_test_id("grade")).to_contain_text("failed")
    failed = report.get_by_test_id("finding").first
    expect(failed.get_by_test_id("verdict")).to_have_text("Failed")
    expect(failed).to_contain_text("Fix")
    expect(page).to_have_url(re.compile("check="))
    check_appearance(page, "agent-check")
    page.get_by_test_id("show-all-findings").check()
    expect(report.get_by_test_id("verdict").filter(has_text="Skipped").first).to_be_visible()
    page.goto("/agents")
    expect(row(page, "holder").get_by_test_id("grade")).to_contain_text("failed")


# --- trying one out


def test_a_message_is_sent_and_its_answer_is_shown_with_the_wire(
    page: Page, agents_system: AgentsSystem, demo: DemoSystem
) -> None:
    del agents_system
    runs = len(demo.client.runs().items)
    page.goto("/agents/Researcher?tab=try")
    page.get_by_test_id("try-text").fill("What is a trunk line?")
    page.get_by_test_id("try-send").click()
    trial = page.get_by_test_id("trial")
    expect(trial).to_have_attribute("data-outcome", "success")
    expect(trial.get_by_role("heading", name="Output")).to_be_visible()
    expect(trial).to_contain_text("trunk line")
    expect(trial.get_by_role("heading", name="Exchanges")).to_be_visible()
    expect(trial).to_contain_text("POST")
    check_appearance(page, "agent-try")
    assert len(demo.client.runs().items) == runs


def test_an_error_of_a_trial_says_what_to_do(page: Page, agents_system: AgentsSystem) -> None:
    del agents_system
    page.goto("/agents/fragile?tab=try")
    page.get_by_text("JSON input").click()
    editor = page.get_by_test_id("try-input").get_by_role("textbox")
    editor.fill('{"anything": 1}')
    page.get_by_test_id("try-send").click()
    expect(page.get_by_test_id("trial-error")).to_contain_text("agent_http_error")
    expect(page.get_by_test_id("trial")).to_contain_text("503")
    check_appearance(page, "agent-try-error")


# --- registering, changing, removing


def test_an_agent_is_registered_changed_and_removed(
    page: Page, agents_system: AgentsSystem, demo: DemoSystem
) -> None:
    page.goto("/agents")
    page.get_by_test_id("new-agent").click()
    page.get_by_test_id("field-name").fill("by hand")
    page.get_by_test_id("field-url").fill("nowhere")
    page.get_by_test_id("save-agent").click()
    expect(page.get_by_test_id("problem")).to_be_visible()
    check_appearance(page, "agent-form")
    page.get_by_test_id("field-url").fill(agents_system.holder.url)
    page.get_by_test_id("save-agent").click()
    expect(page).to_have_url(f"{demo.url}/agents/by%20hand")
    page.get_by_test_id("edit-agent").click()
    expect(page.get_by_test_id("field-name")).to_have_value("by hand")
    page.get_by_test_id("field-description").fill("Changed in the browser")
    page.get_by_test_id("save-agent").click()
    expect(page.get_by_text("Changed in the browser")).to_be_visible()
    page.get_by_test_id("remove-agent").click()
    check_appearance(page, "agent-removal")
    page.get_by_test_id("confirm-remove").click()
    expect(page).to_have_url(f"{demo.url}/agents")
    expect(row(page, "by hand")).to_have_count(0)


def test_an_agent_that_is_not_there_says_so(page: Page) -> None:
    page.goto("/agents/nobody")
    expect(page.get_by_test_id("problem")).to_contain_text("There is no agent 'nobody'")
    page.get_by_role("link", name="All agents").click()
    expect(page.get_by_role("heading", name="Agents", level=1)).to_be_visible()


# --- publishing


def test_an_agent_is_published_with_a_switch(page: Page, demo: DemoSystem, agents: ThreadedAgents) -> None:
    greeter = agents.start(simple_success({"text": "hi"}))
    demo.client.create_agent({"name": "greeter", "url": greeter.url, "description": "Greets."})
    page.goto("/agents/greeter?tab=publish")
    switch = page.get_by_test_id("publish-switch")
    expect(switch).not_to_be_checked()
    check_appearance(page, "agent-not-published")
    switch.click(force=True)
    expect(page.get_by_test_id("published-url")).to_have_text(f"{demo.url}/a2a/agents/greeter")
    expect(page.get_by_test_id("first-message")).to_contain_text(f"curl -s {demo.url}/a2a/agents/greeter")
    expect(page.get_by_test_id("published-card")).to_contain_text("Greets.")
    expect(page.get_by_test_id("published-security")).to_have_text("No API key needed")
    check_appearance(page, "agent-published")
    switch.click(force=True)
    expect(page.get_by_test_id("published-card")).to_have_count(0)
    found, _ = demo.client.agent("greeter")
    assert found["publish"] is None


def test_a_workflow_is_published_with_a_switch(page: Page, demo: DemoSystem) -> None:
    demo.client.save_workflow(b"name: front\nsteps:\n  s: {agent: greeter}  # by text\n")
    page.goto("/workflows/front")
    page.get_by_test_id("tab-published").click()
    expect(page).to_have_url(re.compile("tab=published"))
    switch = page.get_by_test_id("publish-switch")
    expect(switch).not_to_be_checked()
    switch.click(force=True)
    expect(page.get_by_test_id("published-url")).to_have_text(f"{demo.url}/a2a/workflows/front")
    check_appearance(page, "workflow-published")
    assert "# by text" in demo.client.workflow("front")["source"]
    switch.click(force=True)
    expect(page.get_by_test_id("published-card")).to_have_count(0)
    assert demo.client.workflow("front")["version"] == 3


def test_a_run_shows_the_message_that_started_it(
    page: Page, demo: DemoSystem, agents: ThreadedAgents
) -> None:
    greeter = agents.start(simple_success({"text": "hi"}))
    demo.client.create_agent({"name": "teller", "url": greeter.url, "publish": True})
    message = {"messageId": "m-1", "role": "ROLE_USER", "parts": [{"text": "Tell me <b>more</b>."}]}
    body = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": message}}
    sent = page.request.post(f"{demo.url}/a2a/agents/teller", data=body).json()
    page.goto(f"/runs/{sent['result']['task']['id']}")
    page.get_by_test_id("caller-message").click()
    content = page.get_by_test_id("caller-message-content")
    expect(content).to_contain_text("Called without an API key as agents/teller")
    expect(content).to_contain_text("Tell me <b>more</b>.")
    check_appearance(page, "run-caller-message")
    expect(page.get_by_test_id("graph-step-call")).to_be_visible()
