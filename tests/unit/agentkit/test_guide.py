"""What the guide and the examples show of the kit is run here as it stands there."""

from __future__ import annotations

import re
import signal
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any, cast
from urllib.request import Request, urlopen

import pytest
from deploy.local.ports import free_port
from deploy.local.processes import ServiceProcess
from tests.unit.agentkit.asgi import post, result_of
from tests.unit.agentkit.versions import V1, texts, words

from trunkline.agentkit import Agent
from trunkline.jsontypes import Json, JsonObject, decode, encode

ROOT = Path(__file__).parents[3]
GUIDE = ROOT / "docs/guides/writing-an-agent.md"
EXAMPLE = ROOT / "examples/agents/python-kit/agent.py"
_START_SECONDS = 60.0
_STOP_SECONDS = 20.0
_BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def shown(number: int) -> Agent:
    """The agent of one of the guide's code blocks."""
    namespace: dict[str, Any] = {"__name__": "greeter"}
    exec(_BLOCK.findall(GUIDE.read_text())[number], namespace)  # noqa: S102 - it is our own guide
    return cast("Agent", namespace["agent"])


@pytest.mark.anyio
async def test_the_guides_first_agent_greets_in_every_dialect() -> None:
    agent = shown(0)
    assert texts(V1.task(await result_of(agent, V1.send, V1.params("Ann")))) == ["Hello, Ann!"]
    answer = await post(agent, {"task_id": "t", "input": {"text": "Bob"}})
    assert answer.json["output"] == {"text": "Hello, Bob!"}
    assert (await post(agent, {"task_id": "t", "input": ""})).json["error"] == "The text is empty."


@pytest.mark.anyio
async def test_the_guides_second_agent_asks_and_answers() -> None:
    agent = shown(1)
    asking = V1.task(await result_of(agent, V1.send, V1.params("weather")))
    assert words(asking) == "Which city?"
    reply = V1.params("Rome", "m-2", taskId=asking["id"])
    assert texts(V1.task(await result_of(agent, V1.send, reply))) == ["Rome will be sunny."]


@pytest.fixture
def example(tmp_path: Path) -> Generator[str]:
    """The address of the example, started as its readers start it."""
    port = free_port()
    log = tmp_path / "agent.log"
    process = ServiceProcess([sys.executable, str(EXAMPLE), str(port)], log)
    try:
        process.wait_until(lambda: "Uvicorn running" in log.read_text(), _START_SECONDS, "the example")
        yield f"http://127.0.0.1:{port}/"
    finally:
        process.end(signal.SIGTERM, _STOP_SECONDS)


def asked(url: str, body: Json) -> JsonObject:
    with urlopen(Request(url, encode(body)), timeout=30) as response:
        answer = decode(response.read())
    assert isinstance(answer, dict)
    return answer


def test_the_example_forecasts_for_callers_of_simple_a2a_and_of_json_rpc(example: str) -> None:
    simple = asked(example, {"task_id": "t-1", "input": {"text": "Rome", "days": 2}})
    assert simple["output"] == {"text": "Rome: sunny, clear"}
    failed = asked(example, {"task_id": "t-2", "input": {"text": "Atlantis"}})
    assert failed["error"] == "No station in Atlantis. There are some in Rome and Oslo."
    message = V1.message({"data": {"days": 1}})
    body: JsonObject = {"jsonrpc": "2.0", "id": 1, "method": V1.send, "params": {"message": message}}
    assert "Which city?" in str(asked(example, body)["result"])
