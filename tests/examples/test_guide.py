"""The migration guide's own tests, and what each example's README says, done as they stand there."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable

import pytest
from deploy.local.errors import ServiceMissing
from tests.examples.conftest import Caller
from tests.examples.processes import Side
from tests.examples.test_after import answered
from tests.interop.environments import EXAMPLES as FOLDERS
from tests.interop.environments import go_tool
from tests.services import needed

from trunkline.jsontypes import Json, JsonObject, decode

CURL = r"""curl -X POST http://localhost:8080/agent \
  -H "Content-Type: application/json" \
  -d '{
    "jsonrpc": "2.0",
    "id": "test-123",
    "method": "message/send",
    "params": {
      "message": {
        "role": "user",
        "messageId": "msg-test-123",
        "parts": [
          {
            "kind": "text",
            "text": "{\"query\": \"test query\"}"
          }
        ]
      }
    }
  }'
"""
ASKED: JsonObject = {"kind": "text", "text": '{"query": "test query"}'}
TOLD: JsonObject = {"kind": "text", "text": '{"result": "Processed: test query"}'}
EXPECTED: Json = {
    "jsonrpc": "2.0",
    "id": "test-123",
    "result": {
        "status": {"state": "completed"},
        "artifacts": [{"parts": [TOLD]}],
        "history": [{"role": "user", "parts": [ASKED]}, {"role": "agent", "parts": [TOLD]}],
    },
}

_COMMAND_AND_ANSWER = re.compile(r"^```sh\n(curl .*?)^```\n\n^```json\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def run(command: str, url: str) -> Json:
    if shutil.which("curl") is None:
        raise ServiceMissing("curl is not installed: install it, by Debian's name curl")
    done = subprocess.run(
        ["sh", "-c", command.replace("http://localhost:8080/agent", url)],
        capture_output=True,
        timeout=60,
        check=True,
    )
    return decode(done.stdout)


def test_curl_gives_the_answers_of_the_readme(example: str, url_of: Callable[[Side], str]) -> None:
    readme = (FOLDERS / example / "README.md").read_text()
    (before, simple), (after, rpc) = _COMMAND_AND_ANSWER.findall(readme)
    assert (after, decode(rpc.encode())) == (CURL, EXPECTED)
    with needed():
        assert run(before, url_of("before")) == decode(simple.encode())
        assert answered(run(after, url_of("after"))) == answered(EXPECTED)


def test_the_guides_test_script_passes(after: Caller) -> None:
    request: JsonObject = {
        "jsonrpc": "2.0",
        "id": "test-1",
        "method": "message/send",
        "params": {
            "message": {
                "role": "user",
                "messageId": "msg-test-1",
                "parts": [{"kind": "text", "text": '{"query": "test"}'}],
            }
        },
    }
    answer = after.post(request)
    assert answer.status == 200
    assert (answer.json["jsonrpc"], answer.json["id"]) == ("2.0", "test-1")
    result = answer.json["result"]
    assert isinstance(result, dict)
    assert result["status"] == {"state": "completed"}
    assert result["artifacts"]

    for change, code in (({"jsonrpc": "1.0"}, -32600), ({"method": "invalid/method"}, -32601)):
        error = after.post({**request, **change}).json["error"]
        assert isinstance(error, dict)
        assert error["code"] == code


def test_the_go_code_is_formatted() -> None:
    with needed():
        gofmt = go_tool("gofmt")
    done = subprocess.run(
        [gofmt, "-l", FOLDERS / "go-net-http"], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout == ""


@pytest.mark.parametrize("lock_file", ["node-express/package-lock.json", "python-flask/requirements.lock"])
def test_no_lock_file_names_a_registry(lock_file: str) -> None:
    locked = (FOLDERS / lock_file).read_text()
    assert "sha" in locked
    assert "resolved" not in locked
    assert "index-url" not in locked
