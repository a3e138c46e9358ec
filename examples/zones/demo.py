"""
`make demo-zones`: a verification zone passes chat messages to an execution zone, over HTTPS and over AWS AgentCore.

Each zone is a process. A recorder between them checks every message against the contract. Instead of AWS, the demo
calls a local server, which checks what AWS would check. The demo sends the same messages over both transports and
compares the results.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import ssl
import sys
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import cast

import aiohttp
from deploy.local.agentcore import StandIn
from examples.zones.certificates import make_certificate, make_signing_keys, server_context
from examples.zones.recorder import Exchange, Recorder

from trunkline.jsontypes import Json, JsonObject, decode, encode

HERE = Path(__file__).parent
ARN = "arn:aws:bedrock-agentcore:eu-central-1:123456789012:runtime/execution"
START_SECONDS = 60.0
STOP_SECONDS = 15.0
HIDDEN = "[hidden]"

POLICY = """
[callers.verification]
methods = ["execute_task"]
profiles = ["slack"]
rate = {per_second = 20, burst = 20}
keys = [{file = "verification.pub"}]
"""

MESSAGES = (
    ("a short task", {"event_id": "E1", "channel": "C1", "user_id": "U-ada", "text": "hello"}),
    (
        "a long task: accepted, then polled",
        {"event_id": "E2", "channel": "C1", "user_id": "U-grace", "text": "research tides"},
    ),
    (
        "the chat delivers it again: it does not run again",
        {"event_id": "E2", "channel": "C1", "user_id": "U-grace", "text": "research tides"},
    ),
    (
        "a user who is not allowed to send messages",
        {"event_id": "E3", "channel": "C1", "user_id": "U-mallory", "text": "everything"},
    ),
)


@dataclass(frozen=True)
class TransportResult:
    """The messages and answers over one transport."""

    answers: list[tuple[int, Json]]
    exchanges: list[Exchange]
    complaints: list[str]


def say(text: str = "") -> None:
    print(text, flush=True)


@asynccontextmanager
async def running(name: str, *words: str, env: Mapping[str, str]) -> AsyncGenerator[str]:
    """A process that prints its URL when it is ready; it is stopped at the end."""
    child = await asyncio.create_subprocess_exec(
        sys.executable, *words, stdout=asyncio.subprocess.PIPE, cwd=HERE, env={**os.environ, **env}
    )
    stdout = cast("asyncio.StreamReader", child.stdout)
    try:
        async with asyncio.timeout(START_SECONDS):
            line = await stdout.readline()
        if not line:
            raise SystemExit(f"{name} did not start; see above.")
        yield line.decode().strip()
    finally:
        if child.returncode is None:
            child.terminate()
        try:
            async with asyncio.timeout(STOP_SECONDS):
                await child.wait()
        except TimeoutError:
            child.kill()
            await child.wait()


async def send_messages(verification: str, recorder: Recorder) -> TransportResult:
    answers: list[tuple[int, Json]] = []
    async with aiohttp.ClientSession() as session:
        for what, message in MESSAGES:
            before = len(recorder.exchanges)
            began = time.perf_counter()
            async with session.post(f"{verification}/messages", json=message) as answer:
                said = decode(await answer.read())
            answers.append((answer.status, said))
            between = recorder.exchanges[before:]
            say(f"  {message['user_id']}: {message['text']!r} - {what}")
            say(f"    {answer.status} {encode(said).decode()} ({time.perf_counter() - began:.1f} s)")
            say(f"    between the zones: {summary(between) or 'nothing'}")
    return TransportResult(answers, recorder.exchanges, recorder.complaints())


async def over_https(folder: Path, token: str) -> TransportResult:
    certificate, key = make_certificate(folder)
    private, _ = make_signing_keys(folder)
    (folder / "policy.toml").write_text(POLICY)
    trusted = ssl.create_default_context(cafile=str(certificate))
    async with AsyncExitStack() as stack:
        execution = await stack.enter_async_context(
            running(
                "The execution zone",
                *("-m", "trunkline", "zone", "serve", "execution:zone", "--port", "0"),
                *("--data", str(folder / "https"), "--policy", str(folder / "policy.toml")),
                *("--tls-cert", str(certificate), "--tls-key", str(key)),
                env={"TRUNKLINE_LOG_LEVEL": "error"},
            )
        )
        recorder = await stack.enter_async_context(
            Recorder(execution, server=server_context(certificate, key), client=trusted)
        )
        verification = await stack.enter_async_context(
            running(
                "The verification zone",
                *("verification.py", recorder.url, "--key", str(private), "--authority", str(certificate)),
                env={"BOT_TOKEN": token},
            )
        )
        return await send_messages(verification, recorder)


async def over_aws(folder: Path, token: str) -> TransportResult:
    async with AsyncExitStack() as stack:
        execution = await stack.enter_async_context(
            running(
                "The execution zone",
                *("-m", "trunkline", "zone", "serve", "execution:zone", "--port", "0"),
                *("--data", str(folder / "aws")),
                env={"TRUNKLINE_LOG_LEVEL": "error"},
            )
        )
        recorder = await stack.enter_async_context(Recorder(execution))
        stand_in = await stack.enter_async_context(StandIn(recorder.url))
        verification = await stack.enter_async_context(
            running("The verification zone", "verification.py", ARN, env={"BOT_TOKEN": token, **stand_in.env})
        )
        return await send_messages(verification, recorder)


def summary(exchanges: list[Exchange]) -> str:
    """The requests and results in order; repetitions are counted."""
    told = [(key, len(list(same))) for key, same in groupby(map(in_words, exchanges))]
    return ", ".join(words if times == 1 else f"{words} ({times} times)" for words, times in told)


def in_words(exchange: Exchange) -> str:
    request, response = as_object(exchange.request), as_object(exchange.response)
    result = response.get("result")
    came = result.get("status") if isinstance(result, dict) else "error"
    return f"{request['method']} -> {came}"


def as_object(message: bytes) -> JsonObject:
    return cast("JsonObject", decode(message))


def without(value: Json, replaced: Mapping[str, str]) -> Json:
    """The value with some fields replaced, so that it can be shown."""
    match value:
        case dict():
            return {name: replaced.get(name) or without(item, replaced) for name, item in value.items()}
        case list():
            return [without(item, replaced) for item in value]
        case _:
            return value


def ends_of_tasks(sent: TransportResult) -> list[tuple[Json, Json]]:
    """Each task and its end. How often a task is polled depends on the timing, not on the transport."""
    tasks: dict[str, Json] = {}
    ends: list[tuple[Json, Json]] = []
    for exchange in sent.exchanges:
        request, response = as_object(exchange.request), as_object(exchange.response)
        result = response.get("result")
        is_accepted = isinstance(result, dict) and result.get("status") == "accepted"
        if request["method"] == "execute_task":
            asked = without(request, {"bot_token": HIDDEN})
            if isinstance(result, dict) and is_accepted:
                tasks[str(result["task_id"])] = asked
        else:
            asked = tasks[str(cast("JsonObject", request["params"])["task_id"])]
        if not is_accepted:
            ends.append((asked, result or response.get("error")))
    return ends


def show_first(sent: TransportResult) -> None:
    first = sent.exchanges[0]
    shown = {"bot_token": HIDDEN}
    say(f"    -> {encode(without(as_object(first.request), shown)).decode()}")
    say(f"    <- {encode(as_object(first.response)).decode()}")


async def main() -> int:
    token = secrets.token_urlsafe(24)
    with TemporaryDirectory(prefix="trunkline-zones-") as name:
        folder = Path(name)
        say("Over HTTPS, with a signed token for each request:")
        https = await over_https(folder, token)
        show_first(https)
        say()
        say("Over AWS AgentCore, with boto3 and a local server instead of AWS:")
        aws = await over_aws(folder, token)
        show_first(aws)
    say()
    complaints = [*https.complaints, *aws.complaints]
    count = 2 * (len(https.exchanges) + len(aws.exchanges))
    same = https.answers == aws.answers and ends_of_tasks(https) == ends_of_tasks(aws)
    say(f"{count} messages between the zones, {len(complaints)} violate the contract.")
    for complaint in complaints:
        say(f"  {complaint}")
    say(f"The answers and the exchanges are {'the same' if same else 'NOT the same'} over both transports.")
    return 0 if same and not complaints and count else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
