"""Files of agents on the command line."""

from __future__ import annotations

from base64 import b64encode
from pathlib import Path

import pytest
from tests.scenarios.cli.test_command_line import Trunkline, trunkline, workflow

from trunkline.jsontypes import Json
from trunkline.testing import ScriptedAgent
from trunkline.testing.agents import Call

# With PostgreSQL files stay in the outputs unless a place is named for them.
pytestmark = [pytest.mark.anyio, pytest.mark.embedded_only]

__all__ = ["trunkline"]

# Longer than what stays in an output.
CONTENT = bytes(range(256)) * 2_048


def with_file(call: Call) -> Json:
    file: Json = {"name": "a.bin", "mimeType": "application/x-test", "bytes": b64encode(CONTENT).decode()}
    result: Json = {
        "kind": "task",
        "id": "remote-1",
        "contextId": "c",
        "status": {"state": "completed"},
        "artifacts": [{"artifactId": "f", "parts": [{"kind": "file", "file": file}]}],
    }
    return {"jsonrpc": "2.0", "id": call.id, "result": result}


async def test_a_long_file_is_written_where_the_user_wants_it(trunkline: Trunkline, tmp_path: Path) -> None:
    async with ScriptedAgent(with_file) as agent:
        await trunkline("agents", "create", "Filer", agent.url, "--protocol", "jsonrpc-2.0")
        output = "${ steps.only.output.artifacts[0].parts[0].file.blob.id }"
        file = workflow("filer", f"only: {{agent: Filer}}\noutput: {output}")
        run = (await trunkline("run", file, "--follow", "--json")).json
        got = await trunkline("runs", "file", str(run["id"]), str(run["output"]), "-o", "a.bin")
        missing = await trunkline("runs", "file", str(run["id"]), "0" * 64, "-o", "b.bin")
        nowhere = await trunkline("runs", "file", str(run["id"]), str(run["output"]), "-o", "no/such/folder")
    assert got.code == 0, got
    assert (tmp_path / "a.bin").read_bytes() == CONTENT
    assert (missing.code, nowhere.code) == (3, 2)
    assert not (tmp_path / "b.bin").exists()
