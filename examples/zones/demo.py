"""
`make demo-zones`: a verification zone hands chat messages to an execution zone, over https and over AWS's way.

Both zones are processes of their own. A recorder stands between them and checks every message by the contract. AWS
itself is not called: a local server stands in for its endpoint, and checks what AWS would check. The same messages are
sent over both ways, and the same messages must have travelled.
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
        "a long one: accepted, and asked for",
        {"event_id": "E2", "channel": "C1", "user_id": "U-grace", "text": "research tides"},
    ),
    (
        "the chat delivers it again: it is not run again",
        {"event_id": "E2", "channel": "C1", "user_id": "U-grace", "text": "research tides"},
    ),
    (
        "somebody who may not ask",
        {"event_id": "E3", "channel": "C1", "user_id": "U-mallory", "text": "everything"},
    ),
)


@dataclass(frozen=True)
class Told:
    """What one way has shown."""

    answers: list[tuple[int, Json]]
    exchanges: list[Exchange]
    complaints: list[str]


def say(text: str = "") -> None:
    print(text, flush=True)


@asynccontextmanager
async def running(name: str, *words: str, env: Mapping[str, str]) -> AsyncGenerator[str]:
    """A process that prints its URL when it is ready, and that ends when we do."""
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


async def tell(verification: str, recorder: Recorder) -> Told:
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
    return Told(answers, recorder.exchanges, recorder.complaints())


async def over_https(folder: Path, token: str) -> Told:
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
        return await tell(verification, recorder)


async def over_aws(folder: Path, token: str) -> Told:
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
        return await tell(verification, recorder)


def summary(exchanges: list[Exchange]) -> str:
    """What was asked and answered, with how often where it was the same again."""
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
    """What may be shown: some fields have other values."""
    match value:
        case dict():
            return {name: replaced.get(name) or without(item, replaced) for name, item in value.items()}
        case list():
            return [without(item, replaced) for item in value]
        case _:
            return value


def travelled(told: Told) -> list[tuple[Json, Json]]:
    """Each task and its end. How often one had to be asked for is a matter of time, not of the transport."""
    tasks: dict[str, Json] = {}
    ends: list[tuple[Json, Json]] = []
    for exchange in told.exchanges:
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


def show_first(told: Told) -> None:
    first = told.exchanges[0]
    shown = {"bot_token": HIDDEN}
    say(f"    -> {encode(without(as_object(first.request), shown)).decode()}")
    say(f"    <- {encode(as_object(first.response)).decode()}")


async def main() -> int:
    token = secrets.token_urlsafe(24)
    with TemporaryDirectory(prefix="trunkline-zones-") as name:
        folder = Path(name)
        say("Over https, with a signed token for each request:")
        https = await over_https(folder, token)
        show_first(https)
        say()
        say("Over aws-agentcore, with boto3 and a local server in the place of AWS:")
        aws = await over_aws(folder, token)
        show_first(aws)
    say()
    complaints = [*https.complaints, *aws.complaints]
    count = 2 * (len(https.exchanges) + len(aws.exchanges))
    same = https.answers == aws.answers and travelled(https) == travelled(aws)
    say(f"{count} messages between the zones, {len(complaints)} not as the contract has them.")
    for complaint in complaints:
        say(f"  {complaint}")
    say(f"The answers and the exchanges are {'the same' if same else 'NOT the same'} over both transports.")
    return 0 if same and not complaints and count else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
