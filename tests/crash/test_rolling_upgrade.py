"""
Old and new together: the program of the revision before goes on while the database is upgraded under it, and works
next to the new one.

The old program comes from this repository's own history; where that is missing (a source archive) there is none.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import subprocess
from asyncio.subprocess import PIPE
from collections.abc import AsyncGenerator, Generator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web
from deploy.local.postgres import PostgresServer
from prometheus_client.parser import text_string_to_metric_families
from tests.crash.client import TrunklineClient
from tests.crash.server import PROGRAM

from trunkline.messages import TopicNames
from trunkline.stores.migrations import HEAD

pytestmark = pytest.mark.anyio

# The program as it was with the revision before.
PREVIOUS = "8a429b1f8e344c3c9d69cc69a91eaf67a2019004"
PREVIOUS_REVISION = "0007"

_ROOT = Path(__file__).parents[2]
_BATCH = 20
WORKFLOW = """
name: relay-race
steps:
  first: {agent: runner, input: {text: "${ input.key }"}}
  second: {agent: runner, input: {text: "${ steps.first.output.text }"}}
  third: {agent: runner, input: {text: "${ steps.second.output.text }"}}
output: ${ steps.third.output.text }
"""


@pytest.fixture(scope="module")
def old_source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("previous")
    known = subprocess.run(
        ["git", "cat-file", "-e", f"{PREVIOUS}^{{commit}}"], cwd=_ROOT, capture_output=True, check=False
    )
    if known.returncode != 0:
        pytest.skip("The repository's history, and with it the previous program, is not here.")
    archive = subprocess.run(
        ["git", "archive", PREVIOUS, "src"], cwd=_ROOT, stdout=subprocess.PIPE, check=True
    )
    subprocess.run(["tar", "-x", "-C", str(folder)], input=archive.stdout, check=True)
    return folder / "src"


@pytest.fixture
def empty_database(postgres: PostgresServer) -> Generator[str]:
    name = f"test_{secrets.token_hex(8)}"
    postgres.create_database(name)
    yield postgres.url(name)
    postgres.drop_database(name)


@pytest.fixture
def new(empty_database: str, kafka_servers: str, topics: TopicNames, tmp_path: Path) -> dict[str, str]:
    """The environment of the new program."""
    return {
        **{name: value for name, value in os.environ.items() if not name.startswith("TRUNKLINE_")},
        "TRUNKLINE_STORE": empty_database,
        "TRUNKLINE_BROKER": f"kafka://{kafka_servers}",
        "TRUNKLINE_TASKS_TOPIC": topics.tasks,
        "TRUNKLINE_RESULTS_TOPIC": topics.results,
        "TRUNKLINE_EVENTS_TOPIC": topics.events,
        "TRUNKLINE_KAFKA_GROUP": topics.tasks,
        "TRUNKLINE_TOPIC_PARTITIONS": "4",
        "TRUNKLINE_DATA": str(tmp_path),
        "TRUNKLINE_ALLOWED_NETWORKS": "127.0.0.0/8",
    }


@pytest.fixture
def old(new: dict[str, str], old_source: Path) -> dict[str, str]:
    """The same for the old one: its source comes before the one that is installed."""
    return {**new, "PYTHONPATH": str(old_source)}


class Runner:
    """An agent that holds every call until it may answer."""

    def __init__(self) -> None:
        self.may_answer = asyncio.Event()
        self.held = 0

    async def answer(self, request: web.Request) -> web.Response:
        task = await request.json()
        self.held += 1
        await self.may_answer.wait()
        text = f"{task['input']['text']}+"
        return web.json_response({"task_id": task["task_id"], "status": "success", "output": {"text": text}})


@asynccontextmanager
async def serving(runner: Runner) -> AsyncGenerator[str]:
    app = web.Application()
    app.router.add_post("/", runner.answer)
    running = web.AppRunner(app)
    await running.setup()
    site = web.TCPSite(running, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"http://127.0.0.1:{running.addresses[0][1]}/"
    finally:
        await running.cleanup()


async def command(env: Mapping[str, str], *words: str) -> str:
    process = await asyncio.create_subprocess_exec(
        str(PROGRAM), *words, env=dict(env), stdout=PIPE, stderr=PIPE
    )
    printed, errors = await process.communicate()
    assert process.returncode == 0, f"trunkline {words}: {errors.decode()}"
    return printed.decode()


@asynccontextmanager
async def role(env: Mapping[str, str], name: str) -> AsyncGenerator[str]:
    """Its URL; at the end of the block it is asked to stop, and does."""
    process = await asyncio.create_subprocess_exec(
        str(PROGRAM), "serve", "--role", name, "--port", "0", "--log-level", "warning",
        env=dict(env), stdout=PIPE, stderr=None,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        url = (await process.stdout.readline()).decode().strip()
        assert url.startswith("http://"), f"the {name} did not start"
        yield url
        process.terminate()
        assert await process.wait() == 0
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def finished_runs(session: aiohttp.ClientSession, url: str) -> float:
    """How many runs this executor has brought to their end."""
    async with session.get(f"{url}/metrics") as response:
        text = await response.text()
    return sum(
        sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name == "trunkline_runs_finished_total"
    )


async def check(client: TrunklineClient, run_ids: Sequence[str]) -> None:
    for run_id in run_ids:
        types = [event.type async for event in client.follow(run_id)]
        run = await client.run(run_id)
        assert (run["status"], str(run["output"])[-3:]) == ("COMPLETED", "+++")
        assert types.count("StepCompleted") == 3
        events = await client.call("GET", f"/runs/{run_id}/events?limit=1000")
        items = events["items"]
        assert isinstance(items, list)
        assert [item["seq"] for item in items if isinstance(item, dict)] == list(range(1, len(types) + 1))


async def start(client: TrunklineClient, name: str) -> list[str]:
    return [await client.start("relay-race", f"{name}-{number}") for number in range(_BATCH)]


@pytest.mark.timeout(600)
async def test_the_old_version_works_next_to_the_new_one_across_an_upgrade(
    old: Mapping[str, str], new: Mapping[str, str], session: aiohttp.ClientSession
) -> None:
    await command(old, "db", "upgrade")
    assert PREVIOUS_REVISION in await command(old, "db", "check")
    runner = Runner()
    async with AsyncExitStack() as olds, AsyncExitStack() as news, serving(runner) as agent:
        api, old_executor, _ = [
            await olds.enter_async_context(role(old, name)) for name in ("api", "executor", "bridge")
        ]
        client = TrunklineClient(session, api)
        await client.call("POST", "/agents", {"name": "runner", "url": agent, "protocol": "simple-a2a"})
        await client.call("POST", "/workflows", WORKFLOW.encode())
        under_way = await start(client, "before")
        while runner.held < _BATCH:
            await asyncio.sleep(0.05)

        await command(new, "db", "upgrade")
        assert HEAD in await command(new, "db", "check")
        new_executor = await news.enter_async_context(role(new, "executor"))
        await news.enter_async_context(role(new, "bridge"))
        new_api = await news.enter_async_context(role(new, "api"))
        runner.may_answer.set()
        await check(client, under_way)

        batches = 0
        while not (await finished_runs(session, old_executor) and await finished_runs(session, new_executor)):
            batches += 1
            await check(client, await start(client, f"together-{batches}"))

        await olds.aclose()
        client = TrunklineClient(session, new_api)
        await check(client, await start(client, "after"))
