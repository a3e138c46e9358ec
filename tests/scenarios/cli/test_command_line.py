"""The program as people and scripts use it: arguments in; stdout, stderr and an exit code out."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import NamedTuple, cast

import pytest
from tests.forked_program import trunkline_command

from trunkline.jsontypes import Json, JsonObject
from trunkline.testing import ScriptedAgent, jsonrpc_task, simple_error, simple_success
from trunkline.testing.agents import Call, Reply, Stream

pytestmark = pytest.mark.anyio


class Result(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, object]:
        return json.loads(self.out)


Trunkline = Callable[..., Coroutine[None, None, Result]]


async def start(url: str, *arguments: str) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        *trunkline_command(),
        *arguments,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, "TRUNKLINE_URL": url},
    )


@pytest.fixture
def trunkline(trunkline_url: str) -> Trunkline:
    async def call(*arguments: str) -> Result:
        process = await start(trunkline_url, *arguments)
        out, err = await process.communicate()
        return Result(process.returncode or 0, out.decode(), err.decode())

    return call


def workflow(name: str, *steps: str) -> str:
    text = f"name: {name}\nsteps:\n" + "".join(f"  {step}\n" for step in steps)
    Path(f"{name}.yaml").write_text(text)
    return f"{name}.yaml"


async def test_runs_are_labelled_and_found_by_their_labels(trunkline: Trunkline) -> None:
    text = "name: order\nlabels: {team: billing}\nsteps: {a: {set: {x: 1}}}\n"
    Path("order.yaml").write_text(text)
    run = (await trunkline("run", "order.yaml", "--label", "customer:acme", "--label", "ref:a b")).out.strip()
    other = (await trunkline("run", "order", "--label", "customer:other")).out.strip()
    listed = await trunkline("runs", "list", "--label", "customer:acme", "--label", "team:billing")
    assert (run in listed.out, other in listed.out) == (True, False)
    assert "LABELS" in listed.out
    shown = await trunkline("runs", "show", run)
    assert "team:billing, customer:acme, ref:a b" in shown.out
    changed = await trunkline("runs", "label", run, "team:sales", "--remove", "ref")
    assert (changed.code, changed.out) == (0, "team:sales, customer:acme\n")
    assert (await trunkline("runs", "list", "--label", "team:sales", "--json")).json["items"]
    for wrong in (("runs", "label", run), ("runs", "label", run, "sales")):
        assert (await trunkline(*wrong)).code == 2
    refused = await trunkline("runs", "list", "--label", "sales")
    assert refused.code != 0
    assert "a label is written as key:value" in refused.err


async def test_what_an_agent_says_is_shown_while_it_still_works(
    trunkline: Trunkline, trunkline_url: str
) -> None:
    seen = asyncio.Event()

    def stream(call: Call) -> Stream:
        def said(**result: Json) -> Json:
            known: JsonObject = {"taskId": "t-1", "contextId": "c-1", **result}
            return {"jsonrpc": "2.0", "id": call.id, "result": known}

        message: JsonObject = {
            "kind": "message",
            "role": "agent",
            "messageId": "m",
            "parts": [{"kind": "text", "text": "Looking it up"}],
        }
        artifact: JsonObject = {
            "artifactId": "a",
            "name": "story",
            "parts": [{"kind": "text", "text": "Once"}],
        }
        return Stream(
            said(kind="status-update", status={"state": "working", "message": message}, final=False),
            said(kind="artifact-update", artifact=artifact),
            seen,
            said(kind="status-update", status={"state": "completed"}, final=True),
        )

    async with ScriptedAgent(stream) as agent:
        card: JsonObject = {"name": "Storyteller", "url": agent.url, "protocolVersion": "0.3.0", "skills": []}
        agent.publish({**card, "preferredTransport": "JSONRPC", "capabilities": {"streaming": True}})
        await trunkline("agents", "create", "Storyteller", agent.url)
        run = await trunkline("run", workflow("told", "tell: {agent: Storyteller}"), "--json")
        watch = await start(trunkline_url, "runs", "watch", str(run.json["id"]))
        assert watch.stdout is not None
        lines: list[str] = []
        while not any("Once" in line for line in lines):
            line = await watch.stdout.readline()
            assert line, lines
            lines.append(line.decode())
        seen.set()
        rest, _ = await watch.communicate()
    assert "tell says: Looking it up" in "".join(lines)
    assert "sends an artifact (story): Once" in "".join(lines)
    assert "tell completed" in rest.decode()
    assert watch.returncode == 0


async def test_an_export_is_all_there_is_about_a_run(trunkline: Trunkline) -> None:
    async with ScriptedAgent(simple_success({"text": "hello"})) as agent:
        await trunkline("agents", "create", "Exported", agent.url, "--protocol", "simple-a2a")
        run = await trunkline("run", workflow("exported", "hi: {agent: Exported}"), "--wait", "30s", "--json")
        export = await trunkline("runs", "export", str(run.json["id"]))
    assert export.code == 0
    assert export.json["run"] == run.json
    assert [event["type"] for event in cast("list[dict[str, object]]", export.json["events"])] == [
        "RunStarted", "StepStarted", "StepCompleted", "RunCompleted",
    ]  # fmt: skip
    assert len(cast("list[object]", export.json["wire"])) == 1


async def test_the_items_of_a_loop_are_listed_a_page_at_a_time_and_exported(trunkline: Trunkline) -> None:
    async with ScriptedAgent(simple_success({"text": "hello"})) as agent:
        await trunkline("agents", "create", "Looped", agent.url, "--protocol", "simple-a2a")
        steps = "each: {agent: Looped, for_each: [a, b, c]}"
        run = await trunkline("run", workflow("looped", steps), "--wait", "30s", "--json")
        run_id = str(run.json["id"])
        shown = await trunkline("runs", "show", run_id)
        page = await trunkline("runs", "items", run_id, "each", "--limit", "2")
        rest = await trunkline("runs", "items", run_id, "each", "--limit", "2", "--cursor", "2", "--json")
        export = await trunkline("runs", "export", run_id)
    assert "3 of 3 items" in shown.out
    assert [f"each[{index}]" in page.out for index in range(3)] == [True, True, False]
    assert f"trunkline runs items {run_id} each --cursor 2" in page.err
    assert [item["name"] for item in cast("list[dict[str, object]]", rest.json["items"])] == ["each[2]"]
    exported = cast("dict[str, list[dict[str, object]]]", export.json["items"])
    assert [item["input"] for item in exported["each"]] == ["a", "b", "c"]


async def test_from_an_agent_to_a_result(trunkline: Trunkline) -> None:
    async with ScriptedAgent(simple_success({"text": "hello"})) as agent:
        added = await trunkline("agents", "create", "Greeter", agent.url, "--protocol", "simple-a2a")
        assert (added.code, added.err) == (0, "")
        file = workflow("greet", "hi: {agent: Greeter}", "bye: {agent: Greeter, needs: [hi]}")
        run = await trunkline("run", file, "-i", "name=Ann", "-i", "age=3", "--follow")
    assert run.code == 0
    assert "hi started (attempt 1, Greeter)" in run.out
    assert "bye completed (attempt 1, " in run.out
    assert agent.calls[0].body["input"] == {"name": "Ann", "age": 3}

    listed = await trunkline("runs", "list", "--workflow", "greet", "--json")
    (summary,) = listed.json["items"]  # pyright: ignore[reportGeneralTypeIssues, reportUnknownVariableType]
    run_id = str(summary["id"])  # pyright: ignore[reportUnknownArgumentType]
    shown = await trunkline("runs", "show", run_id)
    assert "greet v1" in shown.out
    assert "simple-a2a" in shown.out
    events = await trunkline("runs", "events", run_id)
    assert events.out.splitlines()[-1].split()[3] == "completed"


async def test_a_failed_run_is_exit_10_and_says_why_and_what_to_do(trunkline: Trunkline) -> None:
    async with ScriptedAgent(simple_error("no paper left")) as agent:
        await trunkline("agents", "create", "Printer", agent.url, "--protocol", "simple-a2a")
        run = await trunkline("run", workflow("print", "out: {agent: Printer}"), "--wait", "60s")
    assert run.code == 10
    assert run.out == ""
    assert "no paper left" in run.err
    assert "fix: " in run.err


async def test_a_question_is_shown_answered_and_the_run_goes_on(trunkline: Trunkline) -> None:
    async with ScriptedAgent(
        jsonrpc_task("Which tone?", state="input-required"), jsonrpc_task("Dear Sir")
    ) as agent:
        await trunkline("agents", "create", "Asker", agent.url, "--protocol", "jsonrpc-2.0")
        asked = await trunkline("run", workflow("ask", "letter: {agent: Asker}"), "--follow", "--json")
        assert asked.code == 13
        run_id = str(asked.json["id"])
        assert "letter asks: Which tone?" in (await trunkline("runs", "show", run_id)).out
        replied = await trunkline("runs", "reply", run_id, "letter", "--text", "Formal")
        assert replied.code == 0
        ended = await trunkline("runs", "watch", run_id)
    assert ended.code == 0
    assert "letter received its reply" in ended.out
    assert agent.calls[1].message["parts"] == [{"kind": "text", "text": "Formal"}]
    again = await trunkline("runs", "reply", run_id, "letter", "--text", "Formal")
    assert again.code == 4
    assert again.err.startswith("error: ")


async def test_the_printed_curl_command_repeats_the_request(trunkline: Trunkline) -> None:
    async with ScriptedAgent(simple_success({"text": "it's $HOME `here`"})) as agent:
        await trunkline("agents", "create", "Echo", agent.url, "--protocol", "simple-a2a")
        file = workflow("echo", "say: {agent: Echo}")
        run = await trunkline("run", file, "-i", 'text=it\'s "$HOME" `here` \\n ü', "--wait", "60s", "--json")
        assert run.code == 0
        wire = await trunkline("runs", "wire", str(run.json["id"]), "say", "--curl")
        shell = await asyncio.create_subprocess_shell(wire.out, stdout=asyncio.subprocess.PIPE)
        await shell.communicate()
    assert shell.returncode == 0
    assert agent.calls[1].body == agent.calls[0].body


async def test_a_paused_run_is_resumed_and_a_running_one_cancelled(trunkline: Trunkline) -> None:
    called, go_on = asyncio.Event(), asyncio.Event()

    async def slow(call: Call) -> dict[str, object]:
        called.set()
        await go_on.wait()
        return {"task_id": call.id, "status": "success", "output": {"text": "done"}, "error": None}

    async with ScriptedAgent(slow) as agent:  # pyright: ignore[reportArgumentType] - a dict is JSON
        await trunkline("agents", "create", "Slow", agent.url, "--protocol", "simple-a2a")
        file = workflow("slow", "first: {agent: Slow}", "second: {agent: Slow, needs: [first]}")
        run_id = (await trunkline("run", file)).out.strip()
        await called.wait()
        timed_out = await trunkline("runs", "watch", run_id, "--wait", "0.2s")
        assert timed_out.code == 12
        paused = await trunkline("runs", "pause", run_id, "--json")
        assert paused.json["status"] == "PAUSED"
        called.clear()
        go_on.set()
        assert (await trunkline("runs", "resume", run_id)).code == 0
        await called.wait()
        ended = await trunkline("runs", "watch", run_id)
        assert ended.code == 0
        go_on.clear()
        called.clear()
        run_id = (await trunkline("run", "slow")).out.strip()
        await called.wait()
        assert (await trunkline("runs", "cancel", run_id)).code == 0
        assert (await trunkline("runs", "watch", run_id)).code == 11
        assert (await trunkline("runs", "cancel", run_id)).code == 4
        go_on.set()
        retried = await trunkline("runs", "retry", run_id, "--json")
        assert retried.json["retry_of"] == run_id
        assert (await trunkline("runs", "watch", str(retried.json["id"]))).code == 0


async def test_ctrl_c_leaves_the_run_running_and_says_so(trunkline: Trunkline, trunkline_url: str) -> None:
    go_on = asyncio.Event()

    async def slow(call: Call) -> dict[str, object]:
        await go_on.wait()
        return {"task_id": call.id, "status": "success", "output": {"text": "done"}, "error": None}

    async with ScriptedAgent(slow) as agent:  # pyright: ignore[reportArgumentType] - a dict is JSON
        await trunkline("agents", "create", "Patient", agent.url, "--protocol", "simple-a2a")
        following = await start(trunkline_url, "run", workflow("slow", "wait: {agent: Patient}"), "--follow")
        assert following.stdout is not None
        line = await following.stdout.readline()
        # Other tests on the same server save workflows of that name.
        assert re.search(rb"run started \(slow v\d+, ", line)
        following.send_signal(signal.SIGINT)
        _, err = await following.communicate()
        assert following.returncode == 130
        assert b"The run continues. Watch it with: trunkline runs watch " in err
        run_id = err.decode().split()[-1]
        go_on.set()
        assert (await trunkline("runs", "watch", run_id)).code == 0


async def test_the_seeds_agents_file_is_applied_as_printed(trunkline: Trunkline) -> None:
    Path("agents.yaml").write_text(
        """# Agent configuration example
agents:
  - name: "LegacyAgent"
    url: "http://legacy:8080"
    protocol: "simple-a2a"
  
  - name: "ModernAgent"
    url: "http://modern:8001"
    protocol: "jsonrpc-2.0"
    protocol_config:
      method: "message/send"
      version: "2.0"
"""  # noqa: W293  (as it is printed)
    )
    first = await trunkline("agents", "apply", "agents.yaml")
    assert (first.code, first.out.split()[2:]) == (0, ["LegacyAgent", "created", "ModernAgent", "created"])
    second = await trunkline("agents", "apply", "agents.yaml", "--json")
    assert second.json["items"] == [
        {"name": "LegacyAgent", "change": "unchanged"},
        {"name": "ModernAgent", "change": "unchanged"},
    ]
    assert (await trunkline("agents", "delete", "LegacyAgent")).code == 0
    assert (await trunkline("agents", "show", "LegacyAgent")).code == 3
    health = await trunkline("agents", "health", "ModernAgent")
    assert health.code == 6


async def test_a_secret_is_never_shown_again(trunkline: Trunkline, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CANARY", "canary-5e31")
    async with ScriptedAgent(simple_success({"text": "ok"})) as agent:
        added = await trunkline(
            "agents", "create", "Guarded", agent.url, "--protocol", "simple-a2a", "--auth-type", "bearer",
            "--auth-env", "CANARY",
        )  # fmt: skip
        run = await trunkline("run", workflow("guarded", "call: {agent: Guarded}"), "--wait", "60s", "--json")
    assert agent.calls[0].headers["Authorization"] == "Bearer canary-5e31"
    run_id = str(run.json["id"])
    shown = [
        added,
        run,
        await trunkline("agents", "show", "Guarded", "--json"),
        await trunkline("runs", "wire", run_id),
        await trunkline("runs", "wire", run_id, "--curl"),
        await trunkline("runs", "wire", run_id, "--json"),
    ]
    for result in shown:
        assert result.code == 0
        assert "canary-5e31" not in result.out + result.err
    assert "$TRUNKLINE_SECRET" in shown[4].out


async def test_a_wrong_file_is_refused_where_it_is_wrong(trunkline: Trunkline) -> None:
    file = workflow("wrong", "a: {agent: A, neds: [b]}")
    applied = await trunkline("workflows", "apply", file)
    assert applied.code == 7
    assert f"{file}:3:17: " in applied.err
    large = Path(workflow("large", "a: {agent: A}"))
    large.write_text(f"{large.read_text()}# {'x' * 9_000_000}\n")
    refused = await trunkline("workflows", "apply", str(large))
    assert (refused.code, "The body is larger than" in refused.err) == (7, True), refused.err
    assert (await trunkline("run", "no-such-workflow")).code == 3
    assert (await trunkline("runs", "show", "no-such-run")).code == 3


async def test_an_agent_is_tried_out_and_what_it_did_in_a_run_is_logged(trunkline: Trunkline) -> None:
    async with ScriptedAgent(simple_success({"text": "hello"})) as agent:
        await trunkline("agents", "create", "Tried", agent.url, "--protocol", "simple-a2a")
        tried = await trunkline("agents", "try", "Tried", "--text", "hi", "--wire")
        run = await trunkline("run", workflow("logged", "say: {agent: Tried}"), "--wait", "30s", "--json")
        run_id = str(run.json["id"])
        logs = await trunkline("runs", "logs", run_id, "say", "--attempt", "1")
        first = await trunkline("runs", "logs", run_id, "--limit", "1", "--json")
        rest = await trunkline("runs", "logs", run_id, "--cursor", str(first.json["next_cursor"]))
    assert tried.code == 0
    assert f"> POST {agent.url}" in tried.out
    assert '"text": "hello"' in tried.out
    assert agent.calls[0].body["input"] == {"text": "hi"}
    assert logs.code == 0
    assert "Attempt 1 started: calling Tried." in logs.out
    assert f"POST {agent.url}: HTTP 200" in logs.out
    assert "The run started." not in logs.out + rest.out
    assert "The run completed." in rest.out
    assert (await trunkline("agents", "try", "Nobody", "--text", "hi")).code == 3
    assert (await trunkline("runs", "logs", "no-such-run")).code == 3


async def test_an_operator_sees_how_the_system_stands_and_who_has_changed_what(trunkline: Trunkline) -> None:
    await trunkline("agents", "create", "Audited", "http://127.0.0.1:9", "--protocol", "simple-a2a")
    await trunkline("agents", "delete", "Audited")
    state = await trunkline("system")
    assert state.code == 0
    assert "alive" in state.out
    assert "COMPLETED" in state.out
    audit = await trunkline("audit", "--kind", "agent", "--subject", "Audited")
    assert audit.code == 0
    assert [line.split()[4] for line in audit.out.splitlines()[1:]] == ["delete", "create"]


async def test_the_doctor_finds_nothing_wrong(trunkline: Trunkline) -> None:
    result = await trunkline("doctor")
    assert result.code == 0
    assert "accepts work" in result.out


# A SQLite file belongs to one process; PostgreSQL and Kafka are there for several.
@pytest.mark.embedded_only
async def test_a_data_folder_in_use_is_exit_4_with_the_reason_also_as_json(trunkline: Trunkline) -> None:
    first = await start("", "up", "--port", "0", "--data", "data")
    assert first.stdout is not None
    url = (await first.stdout.readline()).decode()
    assert url.startswith("http://127.0.0.1:")
    for flags in ([], ["--json"]):
        second = await trunkline("up", "--port", "0", "--data", "data", *flags)
        assert (second.code, second.out) == (4, "")
        assert "in use" in second.err
    first.send_signal(signal.SIGTERM)
    rest, _ = await first.communicate()
    assert (first.returncode, rest) == (0, b"")


async def test_an_agents_options_are_applied_shown_and_added(trunkline: Trunkline) -> None:
    Path("careful.yaml").write_text(
        """agents:
  - name: Careful
    url: http://careful:8001/a2a
    resend: never
    endpoint_override: http://careful:8001/rpc/
    allow_card_origin: HTTPS://cards.example:443
    rate: {per_second: 5}
    breaker: true
"""
    )
    applied = await trunkline("agents", "apply", "careful.yaml")
    assert "created" in applied.out
    again = await trunkline("agents", "apply", "careful.yaml")
    assert "unchanged" in again.out
    shown = (await trunkline("agents", "show", "Careful", "--json")).json
    assert (shown["resend"], shown["endpoint_override"]) == ("never", "http://careful:8001/rpc/")
    assert shown["allow_card_origin"] == ["https://cards.example"]
    assert shown["rate"] == {"per_second": 5.0, "burst": 1}
    assert "resend             never" in (await trunkline("agents", "show", "Careful")).out

    added = await trunkline(
        "agents", "create", "Added", "http://added:1", "--resend", "same_message", "--rate", "2", "--burst", "4",
        "--allow-card-origin", "http://a:1", "--allow-card-origin", "http://b:2", "--breaker", "--json",
    )  # fmt: skip
    assert added.code == 0
    assert added.json["allow_card_origin"] == ["http://a:1", "http://b:2"]
    assert added.json["rate"] == {"per_second": 2.0, "burst": 4}
    assert isinstance(added.json["breaker"], dict)
    assert added.json["breaker"]["failures"] == 5
    assert (await trunkline("agents", "create", "X", "http://x:1", "--burst", "4")).code == 2
    wrong = await trunkline("agents", "create", "X", "http://x:1", "--allow-card-origin", "http://x:1/path")
    assert wrong.code == 7
    assert "did you mean http://x:1?" in wrong.err


async def test_an_agents_transport_is_applied_shown_and_added(trunkline: Trunkline) -> None:
    arn = "arn:aws:bedrock-agentcore:eu-central-1:123456789012:runtime/zone-a1B2c3D4e5"
    Path("zones.yaml").write_text(
        f"agents:\n  - {{name: Far, url: '{arn}?qualifier=blue', transport: aws-agentcore, protocol: jsonrpc-2.0}}\n"
    )
    assert "created" in (await trunkline("agents", "apply", "zones.yaml")).out
    assert "unchanged" in (await trunkline("agents", "apply", "zones.yaml")).out
    assert "aws-agentcore" in (await trunkline("agents", "show", "Far")).out
    health = await trunkline("agents", "health", "Far")
    assert (health.code, "unknown" in health.out) == (0, True)

    near = ("agents", "create", "Near", "stdio:near", "--transport", "stdio")
    added = await trunkline(*near, "--protocol", "jsonrpc-2.0", "--json")
    assert (added.code, added.json["transport"]) == (0, "stdio")
    assert (await trunkline("agents", "health", "Near")).code == 6
    for wrong in (("agents", "create", "X", arn, "--protocol", "jsonrpc-2.0"), near):
        refused = await trunkline(*wrong)
        assert refused.code == 7
        assert "transport" in refused.err or "auto is not supported over stdio" in refused.err


async def test_a_zone_is_registered_with_its_profile(trunkline: Trunkline) -> None:
    def answer(call: Call) -> Json:
        return {
            "jsonrpc": "2.0",
            "id": call.id,
            "result": {"status": "success", "response_text": f"{call.method}!"},
        }

    Path("schema.json").write_text('{"required": ["n"], "properties": {"n": {"type": "integer"}}}')
    async with ScriptedAgent(answer) as zone:
        added = await trunkline(
            "agents", "create", "Zone", zone.url, "--protocol", "jsonrpc-2.0", "--config", "profile=@schema.json",
            "--config", "method=count", "--json",
        )  # fmt: skip
        assert added.code == 0
        assert added.json["protocol_config"] == {
            "profile": {"required": ["n"], "properties": {"n": {"type": "integer"}}},
            "method": "count",
        }
        named = await trunkline(
            "agents", "create", "Slack", zone.url, "--protocol", "jsonrpc-2.0", "--config", "profile=slack", "--json",
        )  # fmt: skip
        assert named.json["protocol_config"] == {"profile": "slack"}
        counted = await trunkline(
            "run", workflow("counting", "count: {agent: Zone, input: {n: 3}}"), "--wait", "60s", "--json"
        )
        refused = await trunkline(
            "run", workflow("miscounting", "count: {agent: Zone, input: {n: three}}"), "--wait", "60s"
        )
    assert counted.code == 0
    assert "count!" in counted.out
    assert refused.code == 10
    assert 'n the value is not of type "integer"' in refused.out + refused.err
    assert len(zone.calls) == 1


@pytest.mark.parametrize(
    ("config", "words"),
    [
        (["profile=slak"], "did you mean 'slack'?"),
        (["profile=slack", 'batch={"max": 2}'], "zones do not accept batches"),
        (["profile=slack", "method=rpc.run"], "begins with 'rpc.'"),
    ],
)
async def test_a_zone_that_makes_no_sense_is_exit_7(
    trunkline: Trunkline, config: list[str], words: str
) -> None:
    flags = [word for pair in config for word in ("--config", pair)]
    refused = await trunkline(
        "agents", "create", "Wrong", "http://127.0.0.1:9/", "--protocol", "jsonrpc-2.0", *flags
    )
    assert refused.code == 7
    assert words in refused.err


async def test_an_operator_looks_again_what_an_agent_speaks(trunkline: Trunkline) -> None:
    async with ScriptedAgent({}) as agent:
        await trunkline("agents", "create", "Looked", agent.url)
        refreshed = await trunkline("agents", "refresh", "Looked")
        assert refreshed.code == 0
        assert "detected protocol   simple-a2a" in refreshed.out
        assert "GET /.well-known/agent.json" in refreshed.out
        agent.publish(Reply(503))
        unclear = await trunkline("agents", "refresh", "Looked")
        assert unclear.code == 6
        assert "HTTP 503 at /.well-known/agent-card.json" in unclear.err
        assert "detected protocol   simple-a2a" in (await trunkline("agents", "show", "Looked")).out
