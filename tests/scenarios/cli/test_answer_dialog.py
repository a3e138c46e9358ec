"""`trunkline inbox answer` in a real terminal: the form is asked for field by field, until the answer is accepted."""

from __future__ import annotations

import asyncio
import os
import pty
import subprocess
import sys
import termios
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from tests.scenarios.test_human_tasks import ask

from trunkline.jsontypes import JsonObject
from trunkline.testing import RunningSystem, ScriptedAgent, jsonrpc_task
from trunkline.testing.system import objects_in, step_of

pytestmark = [pytest.mark.anyio, pytest.mark.embedded_only]

INVOICE: JsonObject = {
    "name": "invoice",
    "steps": {
        "ok": {
            "ask": {
                "title": "Enter the invoice",
                "options": ["approve", "reject"],
                "form": {
                    "type": "object",
                    "required": ["amount", "day", "address", "receipt"],
                    "properties": {
                        "amount": {"type": "number", "title": "Amount in EUR", "maximum": 100},
                        "day": {"type": "string", "format": "date", "title": "Day"},
                        "speed": {"title": "Speed", "oneOf": [{"const": 1, "title": "Slow"}, {"const": 2}]},
                        "paid": {"type": "boolean", "title": "Paid"},
                        "address": {
                            "type": "object",
                            "title": "Address",
                            "required": ["city"],
                            "properties": {"city": {"type": "string", "title": "City"}},
                        },
                        "lines": {"type": "array", "title": "Lines", "items": {"type": "string"}},
                        "receipt": {"type": "object", "format": "file", "title": "Receipt"},
                    },
                },
            }
        }
    },
}


class Terminal:
    """A program in a terminal, and what it shows."""

    def __init__(self, process: subprocess.Popen[bytes], end: int) -> None:
        self.process = process
        self.shown = ""
        self._seen = 0
        self._end = end

    async def until(self, text: str) -> None:
        """Until this appears, behind what has been waited for before."""
        while (place := self.shown.find(text, self._seen)) < 0:
            read = await asyncio.to_thread(self._read)
            if not read:
                raise AssertionError(f"It has ended without {text!r}:\n{self.shown}")
            self.shown += read.decode(errors="replace")
        self._seen = place + len(text)

    async def type(self, *dialog: tuple[str, str]) -> None:
        """Each line when its prompt has appeared."""
        for prompt, line in dialog:
            await self.until(prompt)
            os.write(self._end, f"{line}\n".encode())

    async def ended(self) -> int:
        while read := await asyncio.to_thread(self._read):
            self.shown += read.decode(errors="replace")
        return await asyncio.to_thread(self.process.wait)

    def _read(self) -> bytes:
        try:
            return os.read(self._end, 65_536)
        except OSError:
            # Linux says so when the other end is closed.
            return b""


@asynccontextmanager
async def terminal(arguments: Sequence[str]) -> AsyncGenerator[Terminal]:
    mine, theirs = pty.openpty()
    # Typed text is shown once, by nobody.
    attributes = termios.tcgetattr(theirs)
    attributes[3] &= ~termios.ECHO
    termios.tcsetattr(theirs, termios.TCSANOW, attributes)
    command = [sys.executable, "-m", "trunkline", *arguments]
    process = subprocess.Popen(
        command, stdin=theirs, stdout=theirs, stderr=theirs, env={**os.environ, "TERM": "dumb"}
    )
    os.close(theirs)
    try:
        yield Terminal(process, mine)
    finally:
        process.kill()
        process.wait()
        os.close(mine)


async def test_a_form_is_filled_in_field_by_field(system: RunningSystem, tmp_path: Path) -> None:
    run_id = await ask(system, INVOICE)
    receipt = tmp_path / "receipt.txt"
    receipt.write_text("Thank you")
    async with terminal(["inbox", "answer", run_id, "ok", "--url", system.url]) as person:
        await person.type(
            ("Amount in EUR: ", "700"),
            ("! 700 is greater than the maximum of 100", ""),
            ("! Amount in EUR is required.", "7.5"),
            ("Day (such as 2026-03-01): ", "tomorrow"),
            ('is not a "date"', "2026-03-02"),
            ("1) Slow", "1"),
            ("Paid [y/n] (optional): ", "y"),
            ("City: ", "Bonn"),
            ("Add to Lines? [y/N]: ", "y"),
            ("Lines 1: ", "First"),
            ("Add another one? [y/N]: ", ""),
            ("Receipt (path of a file): ", str(tmp_path / "none.txt")),
            ("! Cannot read ", str(receipt)),
            ("2) reject", "approve"),
            ("Comment (optional): ", "Looks good"),
        )
        assert await person.ended() == 0, person.shown
    output = step_of(await system.wait_for(run_id), "ok")["output"]
    assert isinstance(output, dict)
    data = output["data"]
    assert isinstance(data, dict)
    file = data.pop("receipt")
    assert isinstance(file, dict)
    assert isinstance(file["blob"], dict)
    assert (output["answer"], output["comment"]) == ("approve", "Looks good")
    address: JsonObject = {"city": "Bonn"}
    assert data == {
        "amount": 7.5, "day": "2026-03-02", "speed": 1, "paid": True, "address": address, "lines": ["First"],
    }  # fmt: skip
    assert (file["name"], file["mediaType"], file["blob"]["run"]) == ("receipt.txt", "text/plain", run_id)
    stored = await system.call("GET", f"/{file['blob']['href']}")
    assert stored.body == b"Thank you"
    comments = await system.call("GET", f"/inbox/{run_id}.ok.1.0/comments")
    assert [each["text"] for each in objects_in(comments.json["items"])] == ["Uploaded receipt.txt (9 bytes)"]


async def test_the_question_of_an_agent_is_answered_with_a_line(system: RunningSystem) -> None:
    async with ScriptedAgent(
        jsonrpc_task("Which tone?", state="input-required"), jsonrpc_task("Done")
    ) as agent:
        await system.register("Writer", agent.url, protocol="jsonrpc-2.0")
        run_id = await ask(system, {"name": "letter", "steps": {"ok": {"agent": "Writer"}}})
        async with terminal(["inbox", "answer", run_id, "ok", "--url", system.url]) as person:
            await person.type(("Which tone?", ""), ("! Answer is required.", "Formal"))
            assert await person.ended() == 0, person.shown
        assert (await system.wait_for(run_id))["status"] == "COMPLETED"
    assert agent.calls[1].message["parts"] == [{"kind": "text", "text": "Formal"}]


async def test_the_end_of_the_input_sends_nothing(system: RunningSystem) -> None:
    run_id = await ask(system, INVOICE)
    async with terminal(["inbox", "answer", run_id, "ok", "--url", system.url]) as person:
        await person.type(("Amount in EUR: ", "\x04"))
        assert await person.ended() == 2, person.shown
    assert "The answer was not sent" in person.shown
    assert step_of(await system.get(run_id), "ok")["status"] == "WAITING"


async def test_without_a_terminal_it_says_what_is_missing(system: RunningSystem) -> None:
    run_id = await ask(system, INVOICE)
    command = [sys.executable, "-m", "trunkline", "inbox", "answer", run_id, "ok", "--url", system.url]
    failed = await asyncio.to_thread(
        subprocess.run, command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    assert failed.returncode == 2
    assert (
        "The answer is missing: answer (one of approve, reject), data.amount (number), data.day (date), "
        "data.address (group), data.receipt (file)"
    ) in failed.stderr
