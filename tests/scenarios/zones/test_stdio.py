"""`trunkline zone serve --stdio`, as a process: requests and answers are lines, and nothing else is among them."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from trunkline.jsontypes import Json, JsonObject, decode, encode

# A zone has neither a store nor a broker of the system.
pytestmark = [pytest.mark.embedded_only, pytest.mark.anyio]

HERE = Path(__file__).parent
# Long enough for any machine: only a hang reaches it.
AMPLE = 60.0


@asynccontextmanager
async def serving(data: Path, *flags: str) -> AsyncGenerator[Process]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "trunkline", "zone", "serve", "chatty_zone:zone", "--stdio"),
        *("--data", str(data), *flags),
        stdin=PIPE,
        stdout=PIPE,
        stderr=PIPE,
        cwd=HERE,
        limit=1_000_000,
    )
    try:
        async with asyncio.timeout(AMPLE):
            yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


def request(number: Json, method: str = "execute_task", params: Json = None) -> bytes:
    return encode({"jsonrpc": "2.0", "id": number, "method": method, "params": params or {}}) + b"\n"


def success(number: Json, params: JsonObject | None = None) -> JsonObject:
    return {"jsonrpc": "2.0", "id": number, "result": {"params": params or {}, "status": "success"}}


def answers(out: bytes) -> list[Json]:
    assert out.endswith(b"\n") or not out
    return [decode(line) for line in out.splitlines()]


async def ask(process: Process, text: bytes) -> None:
    assert process.stdin is not None
    process.stdin.write(text)
    await process.stdin.drain()


async def next_message(process: Process) -> JsonObject:
    assert process.stdout is not None
    answer = decode(await process.stdout.readline())
    assert isinstance(answer, dict)
    return answer


async def test_only_answers_are_on_the_standard_output(tmp_path: Path) -> None:
    async with serving(tmp_path) as process:
        out, err = await process.communicate(request(1))
    assert answers(out) == [success(1)]
    assert process.returncode == 0
    said = err.decode().splitlines()
    assert {"imported", "a print", "a library", "a program"} <= set(said)
    assert [json.loads(line)["event"] for line in said if line.startswith("{")] == ["ready", "stopping"]


async def test_an_answer_does_not_wait_for_those_before_it(tmp_path: Path) -> None:
    file: JsonObject = {"file": str(tmp_path / "go")}
    async with serving(tmp_path / "data") as process:
        await ask(process, request("slow", "wait", file) + request("fast"))
        assert await next_message(process) == success("fast")
        (tmp_path / "go").touch()
        assert await next_message(process) == success("slow", file)


async def test_what_was_asked_before_the_end_of_the_input_is_answered(tmp_path: Path) -> None:
    async with serving(tmp_path) as process:
        # The last one has no line break behind it.
        text = b"".join(request(number) for number in range(20)).removesuffix(b"\n")
        out, _ = await process.communicate(text)
    assert sorted(answers(out), key=str) == sorted([success(number) for number in range(20)], key=str)
    assert process.returncode == 0


async def test_a_line_that_is_too_long_is_refused_and_passed_over(tmp_path: Path) -> None:
    async with serving(tmp_path) as process:
        await ask(process, b"x" * 11_000)
        refused = await next_message(process)
        # Its end has not come yet.
        await ask(process, b"x" * 5_000_000 + b"\r\n\n" + request(1))
        assert await next_message(process) == success(1)
    assert refused == {
        "jsonrpc": "2.0",
        "id": None,
        "error": {
            "code": -32600,
            "message": "Invalid Request",
            "data": {"detail": "A request can have at most 10000 bytes. Send a smaller one."},
        },
    }


async def test_what_is_no_request_is_answered_too(tmp_path: Path) -> None:
    async with serving(tmp_path) as process:
        out, _ = await process.communicate(b"\x00\xff\n[]\n")
    assert {json.loads(line)["error"]["code"] for line in out.splitlines()} == {-32700, -32600}


async def test_the_process_that_started_it_is_the_caller(tmp_path: Path) -> None:
    policy = tmp_path / "policy.json"
    policy.write_text('{"callers": {"parent": {"methods": ["wait"]}}}')
    async with serving(tmp_path, "--policy", str(policy)) as process:
        await ask(process, request(1))
        refused = await next_message(process)
        await ask(process, request(2, "wait", {"file": str(policy)}))
        assert await next_message(process) == success(2, {"file": str(policy)})
    assert refused["id"] == 1
    assert "may not call this method" in str(refused["error"])


async def test_sigterm_lets_what_is_under_way_end(tmp_path: Path) -> None:
    file: JsonObject = {"file": str(tmp_path / "go")}
    async with serving(tmp_path / "data") as process:
        await ask(process, request(1, "wait", file) + request(2))
        assert await next_message(process) == success(2)
        process.send_signal(signal.SIGTERM)
        assert process.stderr is not None
        while b"stopping" not in await process.stderr.readline():
            pass
        (tmp_path / "go").touch()
        assert await next_message(process) == success(1, file)
        assert await process.wait() == 0


async def test_it_ends_when_its_answers_are_not_read(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "trunkline", "zone", "serve", "chatty_zone:zone", "--stdio"),
        *("--data", str(tmp_path)),
        stdin=PIPE,
        stdout=writing,
        stderr=PIPE,
        cwd=HERE,
    )
    os.close(writing)
    os.close(reading)
    await ask(process, request(1))
    assert process.stderr is not None
    said = await asyncio.wait_for(process.stderr.read(), AMPLE)
    assert b"zone_output_closed" in said
    assert await process.wait() == 0


@pytest.mark.parametrize("flags", [("--port", "0"), ("--host", "127.0.0.1"), ("--open",)])
async def test_stdio_cannot_be_combined_with_an_address(tmp_path: Path, flags: tuple[str, ...]) -> None:
    async with serving(tmp_path, *flags) as process:
        out, err = await process.communicate()
    assert (process.returncode, out) == (2, b"")
    assert b"--stdio cannot be combined with --host" in err
