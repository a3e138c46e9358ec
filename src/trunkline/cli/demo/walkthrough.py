"""
What `trunkline demo` shows, step by step.

It uses the same client and the same output as the other commands: everything in it can be done by hand.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Generator, Mapping
from contextlib import ExitStack, contextmanager
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, NamedTuple

from trunkline.api.middleware.web_ui_files import is_there
from trunkline.cli.demo.processes import running
from trunkline.cli.follow import follow_run, progress_for_people
from trunkline.cli.options import API_KEY
from trunkline.cli.rendering.exchanges import exchange_lines
from trunkline.cli.rendering.output import print_now, print_text, print_value
from trunkline.cli.rendering.run import error_lines, print_steps
from trunkline.cli.rest.client import Client

if TYPE_CHECKING:
    from trunkline.api.resources.runs import RunResource
    from trunkline.jsontypes import JsonObject

WORKFLOW = "workflow.yaml"
INPUT: JsonObject = {"topic": "tidal power", "language": "en"}
APPROVAL = "approval.yaml"
ASKING_STEP = "approve"
ANSWER: JsonObject = {
    "answer": "approve",
    "data": {"headline": "Tidal power works"},
    "comment": "Well written",
}
# The step whose wire is shown: one request, one answer.
SHOWN_STEP = "research"


class DemoAgent(NamedTuple):
    name: str
    module: str
    # None: Trunkline finds out.
    protocol: str | None
    what: str


AGENTS = (
    DemoAgent("Researcher", "jsonrpc_agent", "jsonrpc-2.0", "responds immediately"),
    DemoAgent("Statistician", "working_agent", "jsonrpc-2.0", "responds with working first, and is polled"),
    DemoAgent("FactChecker", "flaky_agent", "simple-a2a", "fails twice, then works"),
    DemoAgent("Writer", "simple_a2a_agent", None, "its protocol is detected"),
)


@contextmanager
def demo_system(url: str | None = None) -> Generator[Client]:
    """Trunkline, or the one at `url`, and the four agents, registered; all that is ours is gone afterwards."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="trunkline-demo-")))
        if url is None:
            arguments = ["trunkline", "up", "--port", "0", "--data", str(folder / "data")]
            own = stack.enter_context(running("Trunkline", arguments, folder / "trunkline.log"))
            client = Client(own)
        else:
            client = Client(url, api_key=os.environ.get(API_KEY))
        print_now(f"Trunkline runs at {client.url}")
        for agent in AGENTS:
            module = f"trunkline.cli.demo.{agent.module}"
            agent_url = stack.enter_context(running(agent.name, [module], folder / f"{agent.name}.log"))
            _register(client, agent, agent_url)
            if url is not None:
                stack.callback(client.delete_agent, agent.name)
        yield client


def run_demo(client: Client) -> RunResource:
    """Saves the workflow, runs it, and shows the progress and the result."""
    saved, _ = client.save_workflow(workflow_text())
    print_now(f"\nSaved the workflow {saved['name']} v{saved['version']}. Running it:\n")
    started = client.execute(saved["name"], INPUT)
    run = follow_run(client, started["id"], show=progress_for_people())
    print_now("\nSteps, with the protocol of the agent and the number of attempts:\n")
    print_steps(run["steps"])
    for line in error_lines(run):
        print_text(line)
    print_now(f"\nThe requests and responses of {SHOWN_STEP}:\n")
    for exchange in client.wire(run["id"]).items:
        if exchange["step"] == SHOWN_STEP:
            print_text("\n".join(exchange_lines(exchange)))
    print_now("\nThe result:\n")
    print_value(run["output"])
    return run


def run_approval(client: Client, report: RunResource) -> RunResource:
    """A workflow that asks a person, and the answer, which the demo gives itself."""
    saved, _ = client.save_workflow(workflow_text(APPROVAL))
    print_now(f"\nThe workflow {saved['name']} asks a person before it publishes the result:\n")
    given: JsonObject = {"topic": INPUT["topic"], "report": report["output"]}
    run_id = client.execute(saved["name"], given)["id"]
    follow_run(client, run_id, show="nothing")
    task = client.waiting_step(run_id, ASKING_STEP)
    program, _ = commands_of_this_program()
    print_now(f"  {task.get('title')}")
    print_now("  A person would answer in the inbox of the web UI, or with this command:")
    print_now(f"  {program} inbox answer {run_id} {ASKING_STEP}")
    print_now(f"  The demo answers for you: {ANSWER['answer']} ({ANSWER['comment']})\n")
    client.reply(run_id, ASKING_STEP, {**ANSWER, "item": task["id"]})
    run = follow_run(client, run_id, show=progress_for_people())
    print_now("")
    print_steps(run["steps"])
    return run


def workflow_text(name: str = WORKFLOW) -> bytes:
    return files("trunkline.cli.demo").joinpath(name).read_bytes()


def how_to_go_on(run: RunResource, url: str | None) -> Mapping[str, str]:
    """What to type next, by what it is for; `url` is that of a demo that stays."""
    program, python = commands_of_this_program()
    if url is not None:
        return {
            "use this Trunkline": f"export TRUNKLINE_URL={url}",
            "show the run": f"{program} runs show {run['id']}",
            "repeat a request with curl": f"{program} runs wire {run['id']} {SHOWN_STEP} --curl",
            "run the workflow again": f"{program} run demo -i topic=glaciers -i language=en --follow",
        }
    return {
        "explore the demo, also in a browser": f"{program} demo --keep",
        "start Trunkline": f"{program} up",
        "start an agent": f"{python} -m trunkline.cli.demo.simple_a2a_agent --port 8080",
        "register the agent": f"{program} agents create Writer http://127.0.0.1:8080/agent",
        "write a workflow": "echo '{name: hello, steps: {write: {agent: Writer}}}' > hello.yaml",
        "run the workflow": f"{program} run hello.yaml -i topic='tidal power' --follow",
    }


def print_next_steps(run: RunResource, url: str | None) -> None:
    commands = how_to_go_on(run, url)
    width = max(map(len, commands))
    print_now("\nNext steps:\n")
    for purpose, command in commands.items():
        print_now(f"  {purpose:<{width}}  {command}")
    print_now("")


def where_to_look(run: RunResource, url: str) -> str:
    """The run in the web UI, or how to get one: a checkout has it only when it was built."""
    if is_there():
        return f"Open the run in a browser: {url}/runs/{run['id']}"
    return "To build the web UI, which needs Node.js: make ui"


def commands_of_this_program() -> tuple[str, str]:
    """What to type for `trunkline` and for the `python` that has it."""
    return _typed("trunkline"), _typed("python")


def _register(client: Client, agent: DemoAgent, url: str) -> None:
    spec: JsonObject = {"name": agent.name, "url": url, "description": f"A demo agent: {agent.what}."}
    if agent.protocol is not None:
        spec["protocol"] = agent.protocol
    client.create_agent(spec)
    print_now(f"  {agent.name:<13} {agent.protocol or 'auto':<12} {url:<33} {agent.what}")


def _typed(name: str) -> str:
    own_script = Path(sys.executable).with_name(name)
    found = shutil.which(name)
    if found is not None and Path(found) == own_script:
        return name
    if not own_script.exists():
        return f"{sys.executable} -m trunkline" if name == "trunkline" else sys.executable
    relative = os.path.relpath(own_script)
    return str(own_script) if relative.startswith("..") else relative
