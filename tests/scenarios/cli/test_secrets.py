"""Named secrets on the command line: from stdin, a variable, a file or a hidden prompt, never from an argument."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from collections.abc import Generator, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.forked_program import trunkline_command
from tests.scenarios.cli.test_command_line import workflow

from trunkline.cli.demo.processes import running
from trunkline.testing import ScriptedAgent, simple_success

pytestmark = pytest.mark.anyio

CANARY = "canary-of-the-command-line"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("secrets")


@pytest.fixture(scope="module")
def server(shared_settings: Mapping[str, str], folder: Path) -> Generator[str]:
    """One that logs all it can: at the end nothing of it may have the secret."""
    log = folder / "log"
    arguments = ["trunkline", "up", "--port", "0", "--data", str(folder / "data"), "--log-level", "debug"]
    with running("Trunkline", arguments, log) as url:
        yield url
    assert CANARY not in log.read_text()


class Result(NamedTuple):
    code: int
    out: str
    err: str


def trunkline(url: str, *arguments: str, stdin: str = "", **environment: str) -> Result:
    done = subprocess.run(
        [*trunkline_command(), *arguments],
        capture_output=True,
        text=True,
        check=False,
        input=stdin,
        env={**os.environ, "TRUNKLINE_URL": url, **environment},
    )
    assert CANARY not in done.stdout + done.stderr
    return Result(done.returncode, done.stdout, done.stderr)


def test_a_secret_is_set_from_every_place_listed_and_removed(
    server: str, folder: Path, tmp_path: Path
) -> None:
    file = tmp_path / "value"
    file.write_text(f"{CANARY}\n")
    piped = trunkline(server, "secrets", "set", "from.stdin", "--json", stdin=f"{CANARY}\n")
    named = trunkline(server, "secrets", "set", "from-env", "--from-env", "MINE", MINE=CANARY)
    read = trunkline(server, "secrets", "set", "from_file", "--from-file", str(file))
    again = trunkline(server, "secrets", "set", "from_file", "--from-file", str(file))
    assert [result.code for result in (piped, named, read, again)] == [0] * 4
    assert set(json.loads(piped.out)) == {"name", "version", "created_at", "updated_at"}
    assert (read.err, again.err) == ("Created secret from_file\n", "Changed secret from_file\n")
    listed = trunkline(server, "secrets", "list", "--json")
    shown = [(item["name"], item["version"]) for item in json.loads(listed.out)["items"]]
    # Others of this file may have set theirs.
    assert [item for item in shown if item[0].startswith("from")] == [
        ("from-env", 1),
        ("from.stdin", 1),
        ("from_file", 2),
    ]
    assert "from.stdin" in trunkline(server, "secrets", "list").out
    for name in ("from-env", "from.stdin", "from_file"):
        assert trunkline(server, "secrets", "delete", name).code == 0
    gone = trunkline(server, "secrets", "delete", "from-env")
    assert (gone.code, "trunkline secrets list" in gone.err) == (3, True)
    assert {"secret_set", "secret_removed"} <= words_of(folder / "log")


@pytest.mark.parametrize(
    ("arguments", "stdin", "code", "said"),
    [
        (("short",), "abc", 7, "cannot be redacted reliably"),
        (("a b",), CANARY, 7, "is not a valid secret name"),
        (("x", "--from-env", "NO_SUCH_VARIABLE"), "", 2, "NO_SUCH_VARIABLE is not set"),
        (("x", "--from-file", "no-such-file"), "", 2, "Cannot read no-such-file"),
        (
            ("x", "--from-env", "HOME", "--from-file", "f"),
            "",
            2,
            "--from-env and --from-file cannot be combined",
        ),
    ],
)
def test_what_cannot_be_a_secret_is_said_without_it(
    server: str, arguments: tuple[str, ...], stdin: str, code: int, said: str
) -> None:
    result = trunkline(server, "secrets", "set", *arguments, stdin=stdin)
    assert result.code == code
    assert said in result.err


def test_a_value_is_no_argument(server: str) -> None:
    result = subprocess.run(
        [*trunkline_command(), "secrets", "set", "x", CANARY],
        capture_output=True,
        check=False,
        env={**os.environ, "TRUNKLINE_URL": server},
    )
    assert result.returncode == 2


def test_a_typed_value_is_not_shown(server: str) -> None:
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "trunkline", "secrets", "set", "typed"],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        # The prompt is on the terminal that the process belongs to.
        start_new_session=True,
        env={**os.environ, "TRUNKLINE_URL": server},
    )
    os.close(theirs)
    shown = b""
    while b"Value of typed: " not in shown:
        shown += os.read(ours, 1_000)
    os.write(ours, f"{CANARY}\n".encode())
    while process.poll() is None and b"Created secret typed" not in shown:
        shown += os.read(ours, 1_000)
    assert process.wait() == 0
    os.close(ours)
    assert CANARY.encode() not in shown


def words_of(log: Path) -> set[str]:
    return set(re.findall(r"\w+", log.read_text()))


async def test_a_workflow_that_names_a_secret_can_be_checked_drawn_and_run(server: str, folder: Path) -> None:
    step = "post: {agent: Poster, input: {text: hi, token: {$secret: poster}}}"
    file = workflow("posts", step)
    broken = workflow("broken", 'post: {agent: Poster, input: {token: {$secret: "${ input.name }"}}}')
    assert trunkline(server, "workflows", "validate", file).code == 0
    assert trunkline(server, "workflows", "graph", file).code == 0
    refused = trunkline(server, "workflows", "validate", broken)
    assert (refused.code, "cannot be an expression" in refused.out + refused.err) == (7, True)
    async with ScriptedAgent(simple_success({"ok": True})) as agent:
        trunkline(server, "agents", "create", "Poster", agent.url, "--protocol", "simple-a2a")
        trunkline(server, "secrets", "set", "poster", stdin=CANARY)
        run = subprocess.Popen(
            [*trunkline_command(), "run", file, "--follow", "--json"],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "TRUNKLINE_URL": server},
        )
        await agent.called()
        out, _ = run.communicate()
    run_id = json.loads(out)["id"]
    assert agent.calls[0].body["input"] == {"text": "hi", "token": CANARY}
    copied = trunkline(server, "runs", "wire", run_id, "--curl")
    assert "# The request body contained secrets, which are not shown: poster." in copied.out
    assert trunkline(server, "runs", "wire", run_id, "--har").code == 0
    assert "protocol_request_translation" in words_of(folder / "log")
