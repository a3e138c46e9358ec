"""`trunkline zone serve` as a user runs it, called by others' programs: curl, and jsonrpcclient from PyPI."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from jsonrpcclient import Error, Ok, parse_json, request_json, request_json_uuid

from trunkline.cli.demo.processes import running

# Nothing here has a store of the system's or a broker.
pytestmark = pytest.mark.embedded_only

CANARY = "xoxb-canary-4711"
MODULE = '''
"""A zone as a user writes it."""

import asyncio
import logging

from trunkline.zones import Zone, ZoneFault

zone = Zone("execution", accept_after=0.2, stop_timeout=20.0)
SCHEMA = {
    "type": "object",
    "required": ["channel", "text", "bot_token"],
    "properties": {name: {"type": "string"} for name in ("channel", "text", "bot_token", "correlation_id")},
}


@zone.method("execute_task", params=SCHEMA)
async def execute_task(params):
    if params["text"] == "slow":
        await asyncio.sleep(1)
    if params["text"] == "broken":
        raise RuntimeError("no luck with " + params["bot_token"])
    if params["text"] == "refused":
        raise ZoneFault(-32050, "No such channel")
    return {"status": "success", "response_text": params["text"].upper()}


@zone.method("blocking")
def blocking(params):
    return "from a thread"


not_a_zone = {}
'''


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("zone")
    (folder / "execution.py").write_text(MODULE)
    (folder / "broken.py").write_text("import nothing_of_this_name\n")
    return folder


@pytest.fixture(scope="module")
def url(folder: Path) -> Generator[str]:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for name in [name for name in os.environ if name.startswith("TRUNKLINE_")]:
            patch.delenv(name)
        arguments = ["trunkline", "zone", "serve", "execution:zone", "--port", "0", "--data", "data"]
        with running("The zone", [*arguments, "--log-level", "debug"], folder / "log") as url:
            yield url


def curl(*arguments: str) -> tuple[int, Any]:
    """The status and the JSON that came."""
    command = [
        "curl",
        "--silent",
        "--show-error",
        "--max-time",
        "60",
        "--write-out",
        "\n%{http_code}",
        *arguments,
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    body, _, status = done.stdout.rpartition("\n")
    return int(status), json.loads(body)


def post(url: str, text: str) -> str:
    with urllib.request.urlopen(url, text.encode(), timeout=60) as response:
        return response.read().decode()


def params(text: str, **more: str) -> dict[str, str]:
    return {"channel": "C1", "text": text, "bot_token": CANARY, **more}


def test_curl_gets_a_result(url: str) -> None:
    request = {"jsonrpc": "2.0", "id": "7a1c", "method": "execute_task", "params": params("hi")}
    status, answer = curl("--json", json.dumps(request), url)
    assert status == 200
    assert answer == {
        "jsonrpc": "2.0", "id": "7a1c", "result": {"status": "success", "response_text": "HI"}
    }  # fmt: skip


@pytest.mark.parametrize(
    ("data", "code"),
    [
        ('{"jsonrpc": "2.0", "method": "foobar, "params": "bar", "baz]', -32700),
        ('{"jsonrpc": "2.0", "method": 1, "params": "bar"}', -32600),
        ("[]", -32600),
        ("[1,2,3]", -32600),
        ('{"jsonrpc": "2.0", "method": "foobar", "id": "1"}', -32601),
        ('{"jsonrpc": "2.0", "method": "execute_task", "params": [1], "id": 1.5}', -32602),
    ],
)
def test_curl_gets_the_errors_of_the_specification(url: str, data: str, code: int) -> None:
    status, answer = curl("--data", data, url)
    assert status == 200
    assert answer["error"]["code"] == code
    assert answer["id"] == {-32601: "1", -32602: 1.5}.get(code)


def test_curl_sees_statuses_with_json_rpc_bodies(url: str) -> None:
    assert [
        curl(*arguments)[0]
        for arguments in ((url,), (f"{url}/nowhere",), ("-H", "Origin: x", "-d", "{}", url))
    ] == [405, 404, 403]


def test_jsonrpcclient_gets_a_result(url: str) -> None:
    match parse_json(post(url, request_json_uuid("execute_task", params=params("hello")))):
        case Ok(result, _):
            assert result == {"status": "success", "response_text": "HELLO"}
        case other:
            pytest.fail(f"no result: {other}")


def test_jsonrpcclient_gets_an_error_with_its_data(url: str) -> None:
    answer = parse_json(
        post(url, request_json("execute_task", params={"text": "x", "correlation_id": "c-81"}, id=5))
    )
    assert isinstance(answer, Error)
    assert (answer.code, answer.message, answer.id) == (-32602, "Invalid params", 5)
    assert answer.data["correlation_id"] == "c-81"
    assert [field["path"] for field in answer.data["fields"]] == ["channel", "bot_token"]


def test_jsonrpcclient_asks_until_long_work_is_done(url: str) -> None:
    accepted = parse_json(post(url, request_json_uuid("execute_task", params=params("slow"))))
    assert isinstance(accepted, Ok)
    assert accepted.result["status"] == "accepted"
    question = {"task_id": accepted.result["task_id"]}
    until = time.monotonic() + 60
    while True:
        answer = parse_json(post(url, request_json_uuid("get_task_result", params=question)))
        assert isinstance(answer, Ok)
        if answer.result != accepted.result or time.monotonic() > until:
            break
    assert answer.result == {"status": "success", "response_text": "SLOW"}


def test_the_secret_of_a_call_is_in_no_answer_no_log_and_no_file(url: str, folder: Path) -> None:
    answers = [
        post(url, request_json_uuid("execute_task", params=params(text, correlation_id="c-81")))
        for text in ("hi", "broken", "refused")
    ]
    answers += [
        post(url, request_json_uuid("execute_task", params=params("x") | {"channel": [CANARY]})),
        post(url, request_json_uuid("nowhere", params=params("x"))),
        post(url, request_json_uuid("execute_task", params=[CANARY])),
        post(url, request_json_uuid("execute_task", params=params("x"))[:-1]),
    ]
    log = (folder / "log").read_text()
    assert "zone_handler_failed" in log
    assert '"zone_call"' in log
    assert "canary" not in "".join(answers)
    assert "canary" not in log
    for file in (folder / "data").iterdir():
        assert b"canary" not in file.read_bytes(), file.name


def trunkline(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("TRUNKLINE_")}
    command = [sys.executable, "-m", "trunkline", "zone", "serve", *arguments]
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120, check=False
    )


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["nowhere:zone"], 3, "Module nowhere is neither in"),
        (["execution:other"], 3, "has no other"),
        (["execution:not_a_zone"], 7, "is of the type dict, not Zone"),
        (["execution"], 2, "is not of the form module:attribute"),
        (["execution:"], 2, "is not of the form module:attribute"),
        (["../execution:zone"], 2, "is not of the form module:attribute"),
        (["broken:zone"], 1, "No module named 'nothing_of_this_name'"),
        (["execution:zone", "--host", "0.0.0.0", "--port", "0"], 5, "has no authentication"),
        (["execution:zone", "--tls-key", "key.pem"], 7, "--tls-cert"),
        (["execution:zone", "--tls-cert", "missing.pem"], 7, "missing.pem"),
        (["execution:zone", "--policy", "missing.toml"], 7, "missing.toml"),
        (["execution:zone", "--port", "70000"], 7, "port"),
    ],
    ids=[
        "no_module",
        "no_attribute",
        "no_zone",
        "no_colon",
        "nothing_after_it",
        "a_path",
        "broken_module",
        "any_address",
        "key_alone",
        "no_certificate",
        "no_policy",
        "bad_port",
    ],
)
def test_what_cannot_be_served_is_said_with_its_exit_code(
    folder: Path, arguments: list[str], code: int, said: str
) -> None:
    done = trunkline(folder, *arguments)
    assert done.returncode == code, done.stderr
    assert said in done.stderr
    assert done.stdout == ""


def test_a_port_or_a_folder_in_use_is_said(url: str, folder: Path) -> None:
    same_port = trunkline(folder, "execution:zone", "--port", url.rpartition(":")[2], "--data", "other")
    assert same_port.returncode == 7
    assert "Cannot listen" in same_port.stderr
    same_data = trunkline(folder, "execution:zone", "--port", "0", "--data", "data")
    assert same_data.returncode == 4
    assert "--data" in same_data.stderr


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["SIGTERM", "SIGINT"])
def test_a_stop_lets_the_work_end_and_its_caller_have_the_answer(
    folder: Path, tmp_path: Path, number: int
) -> None:
    (folder / "patient.py").write_text(
        "import asyncio\nfrom trunkline.zones import Zone\n"
        "zone = Zone('patient', accept_after=60, stop_timeout=60)\n"
        "@zone.method('wait')\n"
        "async def wait(params):\n"
        "    print('begun', flush=True)\n"
        "    await asyncio.sleep(2)\n"
        "    return 'waited'\n"
    )
    command = [
        sys.executable,
        "-m",
        "trunkline",
        "zone",
        "serve",
        "patient:zone",
        "--port",
        "0",
        "--data",
        str(tmp_path),
    ]
    with subprocess.Popen(
        command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as zone:
        assert zone.stdout is not None
        url = zone.stdout.readline().strip()
        with subprocess.Popen(
            ["curl", "--silent", "--data", request_json("wait", params={}, id="1"), url],
            stdout=subprocess.PIPE,
        ) as caller:
            assert zone.stdout.readline() == "begun\n"
            zone.send_signal(number)
            answer, _ = caller.communicate(timeout=60)
        assert json.loads(answer)["result"]["response_text"] == "waited"
        assert zone.wait(timeout=60) == 0


@pytest.mark.parametrize(
    ("flags", "used"), [([], "its-own"), (["--data", "given"], "given")], ids=["own", "given"]
)
def test_the_zones_own_folder_is_used_unless_another_is_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flags: list[str], used: str
) -> None:
    monkeypatch.chdir(tmp_path)
    text = "from trunkline.zones import Zone\nprint('hello')\nzone = Zone('own', data='its-own')\n"
    (tmp_path / "own.py").write_text(text)
    arguments = ["trunkline", "zone", "serve", "own:zone", "--port", "0", *flags]
    with running("The zone", arguments, tmp_path / "log") as url:
        assert url.startswith("http://127.0.0.1:")
    assert (tmp_path / used / "zone.db").exists()
    assert "hello" in (tmp_path / "log").read_text()


def test_another_asgi_server_runs_it_too(folder: Path, tmp_path: Path) -> None:
    environment = {**os.environ, "TRUNKLINE_DATA": str(tmp_path)}
    command = [sys.executable, "-m", "uvicorn", "execution:zone", "--port", "0", "--log-level", "info"]
    with subprocess.Popen(command, cwd=folder, env=environment, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        line = next(line for line in server.stderr if "running on" in line)
        url = next(word for word in line.split() if word.startswith("http://"))
        answer = parse_json(post(url, request_json_uuid("blocking", params={})))
        server.terminate()
        rest = server.stderr.read()
    assert isinstance(answer, Ok)
    assert answer.result["response_text"] == "from a thread"
    assert "Application shutdown complete" in rest
    assert (tmp_path / "zone.db").exists()
