"""Dead letters at the REST door and from the command line."""

from __future__ import annotations

import asyncio
import base64
import json
from dataclasses import replace
from pathlib import Path

import aiohttp
import pytest
from structlog.testing import capture_logs

from trunkline.api.app import create_app
from trunkline.api.server import base_url, listen, serving
from trunkline.cli.app import run_command_line
from trunkline.clock import Instant
from trunkline.id_generation import new_id
from trunkline.services.messaging.dead_letters import DeadLetters
from trunkline.settings import load_settings
from trunkline.stores.base import DeadLetter
from trunkline.testing import RunningSystem, objects_in
from trunkline.wiring import open_store

pytestmark = pytest.mark.anyio


async def put(data: Path, *values: bytes | None, key: bytes | None = b"run-1") -> list[str]:
    """As a consumer would put them; their ids."""
    letters = [
        DeadLetter(
            id=new_id(),
            topic="trunkline.tasks",
            partition=3,
            offset=number,
            key=key,
            value=value,
            headers=(("trunkline-type", b"agent-task"), ("Authorization", b"canary-4711"), ("odd", b"\xff")),
            reason="It is no task. Delete it.",
            at=Instant(1_767_225_600_000_000),
        )
        for number, value in enumerate(values)
    ]
    async with (
        open_store(load_settings({"data": data}), allow_in_use=True) as store,
        store.transaction() as tx,
    ):
        await tx.dead_letters.put(letters)
    return [letter.id for letter in letters]


async def test_a_letter_is_shown_with_its_origin_and_its_reason(
    system: RunningSystem, tmp_path: Path
) -> None:
    (letter_id,) = await put(tmp_path / "data", b'{"task": "\xc3\xbc"}')
    answer = await system.call("GET", f"/dead-letters/{letter_id}")
    assert answer.json == {
        "id": letter_id,
        "topic": "trunkline.tasks",
        "partition": 3,
        "offset": 0,
        "key": "run-1",
        "key_encoding": "utf-8",
        "size": 14,
        "reason": "It is no task. Delete it.",
        "at": "2026-01-01T00:00:00.000000Z",
        "value": '{"task": "ü"}',
        "encoding": "utf-8",
        "cut": False,
        "headers": [
            {"name": "trunkline-type", "value": "agent-task", "encoding": "utf-8"},
            {"name": "Authorization", "value": "[redacted]", "encoding": "utf-8"},
            {"name": "odd", "value": "/w==", "encoding": "base64"},
        ],
    }


async def test_what_is_no_text_is_shown_as_base64(system: RunningSystem, tmp_path: Path) -> None:
    binary, empty = await put(tmp_path / "data", b"\x00\xff", None, key=b"\xfe")
    shown = (await system.call("GET", f"/dead-letters/{binary}")).json
    assert (shown["encoding"], shown["key_encoding"]) == ("base64", "base64")
    assert base64.b64decode(str(shown["value"])) == b"\x00\xff"
    assert base64.b64decode(str(shown["key"])) == b"\xfe"
    assert (await system.call("GET", f"/dead-letters/{empty}")).json["value"] is None


@pytest.mark.parametrize("letter", ["x", "ü"])
async def test_a_long_value_is_cut_and_stays_text(system: RunningSystem, tmp_path: Path, letter: str) -> None:
    value = ("-" + letter * 100_000).encode()
    (letter_id,) = await put(tmp_path / "data", value)
    shown = (await system.call("GET", f"/dead-letters/{letter_id}")).json
    assert (shown["cut"], shown["size"], shown["encoding"]) == (True, len(value), "utf-8")
    assert value.decode().startswith(str(shown["value"]))
    assert 65_530 < len(str(shown["value"]).encode()) <= 65_536


async def test_letters_are_listed_page_by_page_and_counted(system: RunningSystem, tmp_path: Path) -> None:
    ids = sorted(await put(tmp_path / "data", b"a", b"b", b"c"))
    first = (await system.call("GET", "/dead-letters?limit=2")).json
    assert [item["id"] for item in objects_in(first["items"])] == [ids[2], ids[1]]
    assert all("value" not in item for item in objects_in(first["items"]))
    assert [item["id"] for item in await system.items("/dead-letters?limit=1")] == ids[::-1]
    assert await system.metric("trunkline_queue_depth", queue="dead_letters") == 3


async def test_a_deleted_letter_is_gone_for_good(system: RunningSystem, tmp_path: Path) -> None:
    (letter_id,) = await put(tmp_path / "data", b"a")
    assert (await system.call("DELETE", f"/dead-letters/{letter_id}")).status == 204
    for method in ("DELETE", "GET"):
        assert (await system.call(method, f"/dead-letters/{letter_id}")).status == 404


# What comes of a replay differs; tests/scenarios/distributed has it on a real Kafka.
@pytest.mark.embedded_only
async def test_without_a_broker_a_replay_is_a_conflict_with_its_reason(
    system: RunningSystem, tmp_path: Path
) -> None:
    (letter_id,) = await put(tmp_path / "data", b"a")
    answer = await system.call("POST", f"/dead-letters/{letter_id}/replay")
    assert answer.status == 409
    assert "no message broker" in str(answer.json["detail"])
    assert (await system.call("GET", f"/dead-letters/{letter_id}")).status == 200


# On Kafka a relay would be faster than the look into the outbox.
@pytest.mark.embedded_only
async def test_with_a_broker_a_letter_leaves_through_the_outbox(
    system: RunningSystem, tmp_path: Path
) -> None:
    (letter_id,) = await put(tmp_path / "data", b"a")
    async with open_store(load_settings({"data": tmp_path / "data"}), allow_in_use=True) as store:
        services = replace(system.embedded.api, dead_letters=DeadLetters(store, can_replay=True))
        with listen("127.0.0.1", 0) as listener:
            async with serving(create_app(services), listener), aiohttp.ClientSession() as session:
                url = f"{base_url(listener)}/api/v1/dead-letters/{letter_id}/replay"
                async with session.post(url) as response:
                    assert response.status == 202
                    assert (await response.json())["id"] == letter_id
                async with session.post(url) as response:
                    assert response.status == 404
        async with store.transaction() as tx:
            assert [(message.topic, message.value) for message in await tx.outbox.take(10)] == [
                ("trunkline.tasks", b"a")
            ]


# As the first of these.
@pytest.mark.embedded_only
async def test_the_command_line_shows_and_deletes_letters(
    system: RunningSystem, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async def trunkline(*arguments: str) -> tuple[int, str]:
        # The server's log would go to the same stdout.
        with capture_logs():
            code = await asyncio.to_thread(
                run_command_line, ["dead-letters", *arguments, "--url", system.url]
            )
        return code, capsys.readouterr().out

    (letter_id,) = await put(tmp_path / "data", b"some text")
    code, out = await trunkline("list")
    assert (code, letter_id in out, "trunkline.tasks/3/0" in out) == (0, True, True)
    code, out = await trunkline("show", letter_id)
    assert (code, "some text" in out, "canary-4711" in out) == (0, True, False)
    code, out = await trunkline("show", letter_id, "--json")
    assert (code, json.loads(out)["value"]) == (0, "some text")
    assert await trunkline("replay", letter_id) == (4, "")
    assert await trunkline("delete", letter_id) == (0, "")
    assert (await trunkline("show", letter_id))[0] == 3
    code, out = await trunkline("list", "--json")
    assert (code, json.loads(out)) == (0, {"items": [], "next_cursor": None})
