"""
The pictures of the documentation: `make screenshots` takes them from a real system with real runs.

    python -m tests.ui.screenshots [FOLDER]

With a folder, it also takes those of other views, to look at.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from playwright.sync_api import Browser, Page, expect, sync_playwright
from tests.ui.agents import ThreadedAgents, threaded_agents
from tests.ui.browser import open_browser, watched_page
from tests.ui.wheel_install import trunkline_up

from trunkline.cli.demo.processes import running
from trunkline.cli.demo.walkthrough import AGENTS, workflow_text
from trunkline.cli.follow import follow_run
from trunkline.cli.rest.client import Client
from trunkline.jsontypes import Json
from trunkline.testing.agents import Call, jsonrpc_error, jsonrpc_task, simple_success

IMAGES = Path(__file__).parents[2] / "docs" / "images"
TOPICS = ("tidal power", "glaciers", "salt marshes", "lighthouses", "river deltas")

_PRESS = """
name: press-release
description: A release that the editor agrees to before it goes out.
input: {type: object, required: [product], properties: {product: {type: string}}}
steps:
  draft: {agent: Writer, input: {topic: "${ input.product }", findings: "It ships."}}
  approve: {agent: Editor, input: {text: "${ steps.draft.output.text }"}}
  send: {agent: Mailer, needs: [approve], input: {text: "${ steps.draft.output.text }"}}
"""
_DIGEST = """
name: mail-digest
description: Sends the digest of the day to everybody.
steps:
  collect: {agent: Researcher, input: {query: "the news of the day"}}
  send: {agent: Mailer, needs: [collect], retry: {max_attempts: 2, first_delay: 100ms, jitter: false}}
"""
_REFUND = """
name: refund
description: Pays back what support has approved.
input: {type: object, required: [customer, amount], properties: {customer: {type: string}, amount: {type: number}}}
steps:
  approve:
    ask:
      title: Refund ${ input.amount } EUR to ${ input.customer }
      text: "The kettle leaked. The order: https://shop.example/orders/42"
      options: [approve, reject]
      form:
        type: object
        required: [amount]
        properties:
          amount: {type: number, title: Amount in EUR, maximum: 500}
          reason: {type: string, title: Reason}
      assignees: [support]
      due: 1d
  pay: {agent: Writer, when: steps.approve.output.answer == 'approve', input: {topic: "${ input.customer }"}}
"""
_POEM = """
name: poem
description: Drafts and reviews, round by round, until the review is good.
steps:
  write:
    repeat: {until: round >= 2, max_rounds: 5}
    steps:
      draft: {agent: Writer, input: {topic: the tide, findings: "${ string(round) }"}}
      review: {agent: Researcher, input: {query: "${ steps.draft.output.text }"}}
    output: ${ steps.draft.output }
  pick: {skill: research, input: {query: "${ steps.write.output.text }"}}
publish: true
"""
_TRIGGERS = {
    "morning-digest": """
workflow: mail-digest
schedule: {cron: 30 7 * * MON-FRI, timezone: Europe/Berlin}
""",
    "archive-sync": """
workflow: archive
schedule: {every: 6h}
concurrency: {limit: 1, on_limit: queue}
""",
    "new-return": """
workflow: refund
webhook: {verify: {scheme: none}}
input: {customer: "${ request.body.customer }", amount: "${ request.body.amount }"}
""",
    "product-ready": """
workflow: press-release
event: {type: product.ready}
input: {product: "${ event.key }"}
""",
}
_ARCHIVE = """
name: archive
description: Reads a collection page by page.
steps:
  read: {agent: Archivist}
  sum_up: {agent: Writer, needs: [read]}
"""


class ScreenshotSystem(NamedTuple):
    client: Client
    run: str
    question: str
    task: str
    rounds: str


class Screenshot(NamedTuple):
    name: str
    path: str
    # Is there when the view is complete.
    shows: str


@contextmanager
def screenshot_system() -> Generator[ScreenshotSystem]:
    """A system in the middle of a day: runs that are done, that go on, that failed, and one that waits for a person."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="trunkline-pictures-")))
        client = Client(stack.enter_context(trunkline_up(folder, folder)))
        for agent in AGENTS:
            module = f"trunkline.cli.demo.{agent.module}"
            url = stack.enter_context(running(agent.name, [module], folder / f"{agent.name}.log"))
            client.create_agent({"name": agent.name, "url": url, "protocol": agent.protocol or "auto"})
        _add_others(client, stack.enter_context(threaded_agents()))
        for text in (_PRESS, _DIGEST, _ARCHIVE, _REFUND, _POEM):
            client.save_workflow(text.encode())
        client.save_workflow(workflow_text())
        client.patch_agent("Researcher", {"skills": ["research"]}, None)
        rounds = follow_run(client, client.execute("poem", {})["id"], show="nothing")
        client.execute("archive", {})
        follow_run(client, client.execute("mail-digest", {})["id"], show="nothing")
        runs = [
            follow_run(
                client, client.execute("demo", {"topic": topic, "language": language})["id"], show="nothing"
            )
            for topic, language in zip(TOPICS, ("en", "de", "en", "fr", "en"), strict=True)
        ]
        question = follow_run(
            client, client.execute("press-release", {"product": "a tide table"})["id"], show="nothing"
        )
        refund = follow_run(
            client, client.execute("refund", {"customer": "Ada", "amount": 80})["id"], show="nothing"
        )
        task = client.waiting_step(refund["id"], "approve")["id"]
        client.add_comment(task, {"text": "I have seen the photo, the handle is broken."})
        for name, text in _TRIGGERS.items():
            client.save_trigger(name, f"name: {name}{text}".encode())
        client.fire_trigger("morning-digest", {})
        for key in ("tide table", "sea chart"):
            client.send_event({"type": "product.ready", "key": key, "data": {"ready": True}})
        yield ScreenshotSystem(client, runs[-1]["id"], question["id"], task, rounds["id"])


def _add_others(client: Client, agents: ThreadedAgents) -> None:
    never = agents.portal.call(asyncio.Event)

    async def read_on(call: Call) -> Json:
        await never.wait()
        return simple_success("never")(call)

    question = jsonrpc_task("May this go out? Answer yes, or say what to change.", state="input-required")
    for name, script, protocol in (
        ("Editor", question, "jsonrpc-2.0"),
        ("Mailer", jsonrpc_error(-32000, "The mail server refuses the sender"), "jsonrpc-2.0"),
        ("Archivist", read_on, "simple-a2a"),
    ):
        client.create_agent({"name": name, "url": agents.start(script).url, "protocol": protocol})


def shots(scene: ScreenshotSystem) -> tuple[Screenshot, ...]:
    return (
        Screenshot("runs", "/runs", "run"),
        Screenshot("run", f"/runs/{scene.run}?step=check&attempt=3&tab=wire", "graph-step-write"),
        Screenshot("workflow", "/workflows/demo", "graph-step-write"),
        Screenshot("agents", "/agents", "agent"),
        Screenshot("system", "/system", "process"),
        Screenshot("inbox", f"/inbox?item={scene.task}", "send-answer"),
        Screenshot("triggers", "/triggers", "planned-hour"),
    )


def other_views(scene: ScreenshotSystem) -> tuple[Screenshot, ...]:
    """Views to look at that the documentation does not show."""
    return (
        Screenshot("question", f"/runs/{scene.question}", "graph-step-approve"),
        Screenshot("rounds", f"/runs/{scene.rounds}?step=pick", "inspector"),
        Screenshot("trigger", "/triggers/morning-digest", "next-firings"),
        Screenshot("trigger-editor", "/triggers/archive-sync/edit", "trigger-text"),
        Screenshot("events", "/events", "event-row"),
        Screenshot("published", "/workflows/poem?tab=published", "published-card"),
        Screenshot("migration", "/migration", "board"),
    )


def take(browser: Browser, scene: ScreenshotSystem, folder: Path) -> None:
    views = shots(scene) + (() if folder == IMAGES else other_views(scene))
    for scheme in ("light", "dark"):
        with watched_page(browser, scene.client.url, height=860) as page:
            page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
            for shot in views:
                page.goto(shot.path)
                _settled(page, shot)
                page.screenshot(path=folder / f"ui-{shot.name}-{scheme}.png")
                sys.stderr.write(f"ui-{shot.name}-{scheme}.png\n")


def _settled(page: Page, shot: Screenshot) -> None:
    expect(page.get_by_test_id(shot.shows).first).to_be_visible()
    expect(page.get_by_test_id("loading")).to_have_count(0)


def main(folder: Path) -> None:
    with sync_playwright() as playwright, screenshot_system() as taken:
        browser = open_browser(playwright)
        take(browser, taken, folder)
        browser.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else IMAGES)
