"""Agents that are real programs: each answer goes to its own request, and at the end nothing is left running."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from trunkline.agents.authentication.credentials import TlsConfig
from trunkline.agents.stdio_programs import StdioProgram
from trunkline.jsontypes import Json, JsonObject, decode, encode
from trunkline.protocols.base import AgentAnswer
from trunkline.transports.base import StreamLimits, TransportError
from trunkline.transports.stdio import StdioTransport

# Nothing here has a store or a broker.
pytestmark = [pytest.mark.embedded_only, pytest.mark.anyio]

PROGRAMS = Path(__file__).parent / "programs.py"
URL = "stdio:worker"
# Long enough for any machine: only a hang reaches it.
AMPLE = 60.0
SHORT = 0.3


def command(kind: str, folder: Path) -> tuple[str, ...]:
    return (sys.executable, str(PROGRAMS), kind, str(folder))


def lives(folder: Path) -> list[int]:
    """The process ids of all that have been started."""
    return [int(note.name) for note in folder.iterdir()]


def is_running(pid: int) -> bool:
    try:
        os.killpg(pid, 0)
    except ProcessLookupError:
        return False
    return True


@asynccontextmanager
async def running(
    kind: str,
    folder: Path,
    *,
    environment: tuple[str, ...] = (),
    max_answer_bytes: int = 1_000_000,
    end_seconds: float = AMPLE,
) -> AsyncGenerator[StdioTransport]:
    """When it is left, not one process of it is."""
    program = StdioProgram(command(kind, folder), environment)
    async with StdioTransport(
        {"worker": program}, max_answer_bytes=max_answer_bytes, end_seconds=end_seconds
    ) as transport:
        yield transport
    # Whoever inherits what a program has started takes a moment to bury it.
    async with asyncio.timeout(AMPLE):
        while any(is_running(pid) for pid in lives(folder)):
            await asyncio.sleep(0.01)


def request(number: Json, method: str = "execute_task", params: Json = None) -> bytes:
    return encode({"jsonrpc": "2.0", "id": number, "method": method, "params": params})


async def post(transport: StdioTransport, body: bytes, timeout: float = AMPLE) -> AgentAnswer:
    return await transport.post(URL, body, {}, timeout)


async def result(transport: StdioTransport, body: bytes) -> Json:
    answer = decode((await post(transport, body)).body)
    assert isinstance(answer, dict)
    return answer["result"]


async def error(transport: StdioTransport, body: bytes, timeout: float = AMPLE) -> TransportError:
    with pytest.raises(TransportError) as raised:
        await post(transport, body, timeout)
    return raised.value


async def unanswered(transport: StdioTransport, body: bytes) -> TransportError:
    """Of a program that does not answer this, however long it takes to start."""
    while not (failed := await error(transport, body, SHORT)).sent:
        pass
    return failed


# --- answers


async def test_a_line_is_answered_by_a_line_and_the_program_stays(tmp_path: Path) -> None:
    async with running("echo", tmp_path) as transport:
        for number in range(3):
            assert await post(transport, request(number, params={"text": "é\n"})) == AgentAnswer(
                200, {}, b'{"jsonrpc": "2.0", "id": %d, "result": {"text": "\\u00e9\\n"}}' % number
            )
    assert len(lives(tmp_path)) == 1


async def test_simple_a2a_is_matched_by_its_task_id(tmp_path: Path) -> None:
    async with running("simple", tmp_path) as transport:
        bodies = [encode({"task_id": name, "input": name}) for name in ("a", "b")]
        answers = await asyncio.gather(*(post(transport, body) for body in bodies))
    assert [decode(answer.body) for answer in answers] == [
        {"task_id": name, "status": "success", "output": name} for name in ("a", "b")
    ]


async def test_answers_in_another_order_go_each_to_its_own_request(tmp_path: Path) -> None:
    ids: list[Json] = ["1", 1, 2.5]
    async with running("backwards", tmp_path) as transport:
        answers = await asyncio.gather(
            *(result(transport, request(number, params=[number])) for number in ids)
        )
    assert answers == [[number] for number in ids]


async def test_the_same_id_twice_is_answered_twice(tmp_path: Path) -> None:
    async with running("backwards", tmp_path) as transport:
        answers = await asyncio.gather(*(result(transport, request("same", params=7)) for _ in range(3)))
    assert answers == [7, 7, 7]


async def test_an_answer_without_an_id_goes_to_the_oldest(tmp_path: Path) -> None:
    async with running("unreadable", tmp_path) as transport:
        oldest = asyncio.create_task(post(transport, request(1)))
        await asyncio.sleep(0)
        assert await result(transport, request(2, "end")) == "end"
        refused = json.loads((await oldest).body)
    assert refused["error"]["code"] == -32600


async def test_what_is_no_answer_is_logged_and_passed_over(tmp_path: Path) -> None:
    async with running("chatty", tmp_path) as transport:
        with capture_logs() as logs:
            assert await result(transport, request(1)) == "done"
    ignored = [line["line"] for line in logs if line["event"] == "program_line_ignored"]
    assert ignored == [
        "working on it",
        '{"level": "info"}',
        '{"jsonrpc": "2.0", "id": "nobody\'s", "result": "?"}',
    ]


async def test_a_late_answer_is_not_given_to_another_request(tmp_path: Path) -> None:
    async with running("backwards", tmp_path) as transport:
        assert (await unanswered(transport, request("late"))).code == "agent_timeout"
        answers = await asyncio.gather(*(result(transport, request(n, params=n)) for n in (1, 2)))
    assert answers == [1, 2]


async def test_a_late_answer_without_an_id_is_not_given_to_another_request(tmp_path: Path) -> None:
    async with running("unreadable", tmp_path) as transport:
        assert await result(transport, request(1, "begin")) == "begun"
        assert (await error(transport, request(2), SHORT)).code == "agent_timeout"
        answer = json.loads((await post(transport, request(3, "end"))).body)
    assert answer == {"jsonrpc": "2.0", "id": 3, "result": "end"}


async def test_headers_and_tls_are_not_for_programs(tmp_path: Path) -> None:
    async with running("echo", tmp_path) as transport:
        answer = await transport.post(URL, request(1), {"A": "b\n"}, AMPLE, TlsConfig(authority="none"))
    assert answer.status == 200


# --- what is not sent


@pytest.mark.parametrize(
    ("body", "why"),
    [
        pytest.param(b'{"id":1,\n"method":"m"}', "a line break", id="line feed"),
        pytest.param(b'{"id":1,\r"method":"m"}', "a line break", id="carriage return"),
        pytest.param(b'{"method":"m"}', "neither an id nor a task_id", id="no id"),
        pytest.param(b'{"id":null,"method":"m"}', "neither an id nor a task_id", id="null"),
        pytest.param(b'{"id":true,"method":"m"}', "not a JSON object whose id", id="a boolean"),
        pytest.param(b'[{"id":1,"method":"m"}]', "not a JSON object whose id", id="a batch"),
        pytest.param(b'{"id":1,"bot_token":"xoxb-hidden', "not a JSON object whose id", id="no JSON"),
    ],
)
async def test_a_request_that_cannot_be_matched_with_its_answer_is_not_sent(
    tmp_path: Path, body: bytes, why: str
) -> None:
    async with running("echo", tmp_path) as transport:
        refused = await error(transport, body)
    assert (refused.code, refused.sent) == ("request_not_encodable", False)
    assert why in refused.message
    assert "hidden" not in refused.message
    assert lives(tmp_path) == []


@pytest.mark.parametrize(
    ("url", "code", "why"),
    [
        ("stdio:other", "agent_program_unknown", "program other. It has: worker."),
        ("stdio:/bin/echo", "agent_url_invalid", "stdio:NAME"),
        ("stdio:worker?x", "agent_url_invalid", "stdio:NAME"),
        ("stdio:", "agent_url_invalid", "stdio:NAME"),
    ],
    ids=["unknown", "path", "query", "nothing"],
)
async def test_only_programs_of_the_settings_are_started(
    tmp_path: Path, url: str, code: str, why: str
) -> None:
    async with running("echo", tmp_path) as transport:
        with pytest.raises(TransportError) as refused:
            await transport.post(url, request(1), {}, AMPLE)
    assert (refused.value.code, refused.value.sent) == (code, False)
    assert why in refused.value.message
    assert lives(tmp_path) == []


async def test_a_program_has_no_pages_and_no_streams(tmp_path: Path) -> None:
    limits = StreamLimits(first_seconds=1, idle_seconds=1, total_seconds=1, total_bytes=1)
    async with running("echo", tmp_path) as transport:
        with pytest.raises(TransportError, match="support GET"):
            await transport.get(URL, {}, AMPLE)
        with pytest.raises(TransportError, match="support streaming"):
            transport.stream(URL, request(1), {}, limits)


@pytest.mark.parametrize(
    ("program", "why"), [("no-such-program", "No such file or directory"), ("/", "Permission denied")]
)
async def test_a_program_that_cannot_be_started_has_got_nothing(program: str, why: str) -> None:
    async with StdioTransport({"worker": StdioProgram((program,))}) as transport:
        for _ in range(2):
            failed = await error(transport, request(1))
            assert (failed.code, failed.sent) == ("agent_unreachable", False)
            assert failed.message == f"The program worker ({program}) cannot be started: {why}."


async def test_what_does_not_fit_into_the_pipe_of_one_that_does_not_read_is_not_sent(tmp_path: Path) -> None:
    body = request(1, params="x" * 1_000_000)
    async with running("deaf", tmp_path, end_seconds=SHORT) as transport:
        assert (await unanswered(transport, body)).code == "agent_timeout"
        unsent = await error(transport, body, SHORT)
    assert (unsent.code, unsent.sent) == ("agent_unreachable", False)
    assert "does not read its input" in unsent.message


# --- deaths


async def test_a_program_that_dies_fails_what_was_under_way_and_is_started_for_the_next(
    tmp_path: Path,
) -> None:
    async with running("dies", tmp_path) as transport:
        first = await result(transport, request(1))
        lost = await error(transport, request(2))
        assert (lost.code, lost.sent) == ("agent_connection_lost", True)
        assert "ended with exit code 3 before it answered" in lost.message
        second = await result(transport, request(3))
    assert sorted([first, second], key=str) == sorted(lives(tmp_path), key=str)


async def test_every_request_under_way_learns_of_the_death(tmp_path: Path) -> None:
    async with running("killed", tmp_path) as transport:
        failures = await asyncio.gather(*(error(transport, request(number)) for number in range(5)))
    assert {failure.code for failure in failures} == {"agent_connection_lost"}
    assert "was ended by SIGKILL" in failures[0].message


async def test_a_program_that_dies_at_once_is_started_again_later_each_time() -> None:
    async with StdioTransport({"worker": StdioProgram(("sh", "-c", "read line"))}) as transport:
        for number in range(4):
            assert (await error(transport, request(number))).code == "agent_connection_lost"
        # Its next start is 800 ms away; on a machine so slow that it seemed to live, one of the later ones.
        unsent = await error(transport, request(4), timeout=0.05)
        while unsent.code == "agent_connection_lost":
            unsent = await error(transport, request(5), timeout=0.05)
    assert (unsent.code, unsent.sent) == ("agent_unreachable", False)
    assert "is not running" in unsent.message


async def test_a_start_without_a_waiting_caller_ends_without_an_error() -> None:
    complaints: list[str] = []
    loop = asyncio.get_running_loop()
    before = loop.get_exception_handler()
    loop.set_exception_handler(lambda _, context: complaints.append(context["message"]))
    try:
        async with StdioTransport({"worker": StdioProgram(("sh", "-c", "read line"))}) as transport:
            for number in range(4):
                await error(transport, request(number))
            await error(transport, request(4), timeout=0.05)
        gc.collect()
    finally:
        loop.set_exception_handler(before)
    assert complaints == []


async def test_a_line_without_an_end_ends_the_program_and_not_us(tmp_path: Path) -> None:
    async with running("endless", tmp_path, max_answer_bytes=100_000) as transport:
        alone = await error(transport, request(1))
        assert (alone.code, alone.message) == (
            "agent_answer_too_large",
            "The agent's answer is larger than 100000 bytes.",
        )
        several = await asyncio.gather(*(error(transport, request(number)) for number in (1, 2)))
    assert {failure.code for failure in several} == {"agent_connection_lost"}
    assert len(lives(tmp_path)) == 2


async def test_a_program_whose_child_holds_its_output_open_is_dead_all_the_same(tmp_path: Path) -> None:
    async with running("leaves_a_child", tmp_path) as transport:
        lost = await error(transport, request(1))
    assert (lost.code, lost.sent) == ("agent_connection_lost", True)
    assert "ended with exit code 5" in lost.message


async def test_a_program_is_started_again_only_when_its_last_life_is_over(tmp_path: Path) -> None:
    """Its data may be for one process at a time."""
    async with running("alone", tmp_path) as transport:
        first = await result(transport, request(1))
        hanging = asyncio.create_task(error(transport, request(2, "hang")))
        second = first
        while second == first:
            with suppress(TransportError):
                second = json.loads((await post(transport, request(3), SHORT)).body)["result"]
        assert (await hanging).code == "agent_connection_lost"
    assert isinstance(first, dict)
    [again] = [pid for pid in lives(tmp_path) if pid != first["me"]]
    assert second == {"me": again, "others": []}


# --- the end


async def test_a_program_that_does_not_read_is_terminated(tmp_path: Path) -> None:
    with capture_logs() as logs:
        async with running("deaf", tmp_path, end_seconds=SHORT) as transport:
            await unanswered(transport, request(1))
    assert [line["how"] for line in logs if line["event"] == "program_ended"] == ["was ended by SIGTERM"]


async def test_a_program_that_ignores_sigterm_is_killed(tmp_path: Path) -> None:
    with capture_logs() as logs:
        async with running("stubborn", tmp_path, end_seconds=SHORT) as transport:
            await result(transport, request(1))
    assert [line["how"] for line in logs if line["event"] == "program_ended"] == ["was ended by SIGKILL"]


async def test_what_is_under_way_at_the_end_learns_of_it(tmp_path: Path) -> None:
    async with running("silent", tmp_path) as transport:
        under_way = asyncio.create_task(error(transport, request(1)))
        await result(transport, request(2, "end"))
    assert (await under_way).code == "agent_connection_lost"


async def test_a_call_that_is_cancelled_leaves_the_program_to_the_others(tmp_path: Path) -> None:
    async with running("silent", tmp_path) as transport:
        call = asyncio.create_task(post(transport, request(1)))
        assert await result(transport, request(2, "end")) == "end"
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert await result(transport, request(3, "end")) == "end"
    assert len(lives(tmp_path)) == 1


async def test_nothing_is_started_after_the_end(tmp_path: Path) -> None:
    async with running("echo", tmp_path) as transport:
        pass
    assert "has been stopped" in (await error(transport, request(1))).message
    assert lives(tmp_path) == []


# --- secrets


async def test_a_program_gets_no_variable_that_is_not_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRUNKLINE_SECRET_KEY", "ours")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "anybody's")
    monkeypatch.setenv("WORKER_KEY", "its own")
    monkeypatch.setenv("LC_TIME", "C")
    async with running("environment", tmp_path, environment=("WORKER_KEY",)) as transport:
        got = await result(transport, request(1))
    assert isinstance(got, dict)
    assert (got["WORKER_KEY"], got["LC_TIME"], got["PATH"]) == ("its own", "C", os.environ["PATH"])
    assert {name for name in got if name.startswith(("TRUNKLINE_", "AWS_"))} == set()


async def test_a_program_gets_no_file_that_we_have_open(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.set_inheritable(writing, True)
    try:
        async with running("descriptors", tmp_path) as transport:
            assert await result(transport, request(1)) == [0, 1, 2]
    finally:
        os.close(reading)
        os.close(writing)


async def test_what_a_program_says_is_logged_without_its_secrets_and_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WORKER_KEY", "its-own-key")
    params: JsonObject = {"bot_token": 'xoxb-"1234"', "channel": "C1"}
    with capture_logs() as logs:
        async with running("talks", tmp_path, environment=("WORKER_KEY",)) as transport:
            await result(transport, request(1, params=params))
    said = [line["line"] for line in logs if line["event"] == "program_output"]
    assert len(said) == 2
    assert '"bot_token": "[redacted]", "channel": "C1"' in said[0]
    assert said[1].startswith("variable [redacted] xxx")
    assert len(said[1]) == 4_096
    assert "1234" not in str(logs)
    assert "its-own-key" not in str(logs)


async def test_a_program_that_talks_too_much_does_not_fill_the_log(tmp_path: Path) -> None:
    with capture_logs() as logs:
        async with running("floods", tmp_path) as transport:
            await result(transport, request(1))
    said = [line for line in logs if line["event"] == "program_output"]
    dropped = sum(line["lines"] for line in logs if line["event"] == "program_lines_dropped")
    assert len(said) < 2_000
    assert len(said) + dropped == 2_000
