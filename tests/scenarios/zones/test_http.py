"""A zone behind its real HTTP server: statuses, limits, and a JSON-RPC response to whatever comes."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp
import pytest
from starlette.applications import Starlette
from starlette.routing import Mount

from trunkline.jsontypes import JsonObject, decode, encode
from trunkline.serving import base_url, listen, serving
from trunkline.zones import Zone
from trunkline.zones.access.policy import CallerRules, ZonePolicy
from trunkline.zones.documents import contract_schemas
from trunkline.zones.serving.http_server import ZoneConnection

# Nothing here has a store of the system's or a broker.
pytestmark = [pytest.mark.anyio, pytest.mark.embedded_only]

MOST_BYTES = 2_000
CALL = encode({"jsonrpc": "2.0", "id": "1", "method": "echo", "params": {"text": "hi"}})


class ImpatientClient(ZoneConnection):
    """Limits that a test can wait for."""

    head_seconds = 0.05
    body_seconds = 0.05


class Answer(NamedTuple):
    status: int
    headers: Any
    body: bytes

    @property
    def error(self) -> JsonObject:
        """Of a JSON-RPC response without an id."""
        response: Any = decode(self.body)
        assert self.headers["content-type"] == "application/json"
        assert set(response) == {"jsonrpc", "id", "error"}
        assert (response["jsonrpc"], response["id"]) == ("2.0", None)
        return response["error"]


class Client:
    def __init__(self, url: str, session: aiohttp.ClientSession) -> None:
        self.url = url
        self._session = session

    async def ask(self, method: str, path: str = "/", body: object = None, **headers: str) -> Answer:
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        async with self._session.request(method, self.url + path, data=body, headers=sent) as response:
            return Answer(response.status, response.headers, await response.read())

    async def raw(self, sent: bytes) -> Answer:
        """What comes until the server ends the connection."""
        reader, writer = await asyncio.open_connection("127.0.0.1", int(self.url.rpartition(":")[2]))
        writer.write(sent)
        answer = await asyncio.wait_for(reader.read(), 60)
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()
        head, _, body = answer.partition(b"\r\n\r\n")
        first, *lines = head.decode().split("\r\n")
        headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}
        return Answer(int(first.split()[1]), headers, body)


def make_zone(**options: Any) -> Zone:
    zone = Zone("execution", max_body_bytes=MOST_BYTES, **options)
    schema: JsonObject = {"type": "object", "required": ["text"], "properties": {"text": {"type": "string"}}}

    @zone.method("echo", params=schema)
    async def echo(params: JsonObject) -> JsonObject:  # pyright: ignore[reportUnusedFunction] - the zone has it
        return {"response_text": str(params["text"])}

    return zone


@asynccontextmanager
async def served(
    zone: Zone, folder: Path, connection: type[ZoneConnection] = ZoneConnection
) -> AsyncGenerator[Client]:
    with listen("127.0.0.1", 0) as listener:
        async with (
            zone.running(folder),
            serving(zone, listener, connection),
            aiohttp.ClientSession() as session,
        ):
            yield Client(base_url(listener), session)


@pytest.mark.parametrize("path", ["/", "/invocations", "/?qualifier=DEFAULT"])
@pytest.mark.parametrize(
    "content_type",
    ["application/json", "text/plain", "application/x-www-form-urlencoded", "application/json-rpc"],
)
async def test_a_call_is_answered_wherever_and_however_it_comes(
    tmp_path: Path, path: str, content_type: str
) -> None:
    async with served(make_zone(), tmp_path) as client:
        answer = await client.ask("POST", path, CALL, Content_Type=content_type)
    assert answer.status == 200
    assert answer.headers["content-type"] == "application/json"
    assert answer.body == b'{"jsonrpc":"2.0","id":"1","result":{"status":"success","response_text":"hi"}}'


async def test_an_answer_comes_in_one_piece(tmp_path: Path) -> None:
    head = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n"
    async with served(make_zone(), tmp_path) as client:
        reader, writer = await asyncio.open_connection("127.0.0.1", int(client.url.rpartition(":")[2]))
        for number in range(20):
            body = CALL.replace(b'"1"', b"%d" % number)
            writer.write(head % len(body) + body)
            assert (await reader.read(65_536)).endswith(b'"response_text":"hi"}}')
        writer.close()


@pytest.mark.parametrize(
    "body", [b"", b"nonsense", b"[]", b"\xff", CALL.replace(b"echo", b"nope"), b'{"a":1,"a":2}']
)
async def test_what_a_zone_says_about_a_request_is_200(tmp_path: Path, body: bytes) -> None:
    async with served(make_zone(), tmp_path) as client:
        answer = await client.ask("POST", "/", body)
    assert answer.status == 200
    assert b'"error"' in answer.body


@pytest.mark.parametrize(
    "path", ["/nowhere", "/invocations/", "//", "/schemas/", "/schemas/../zone.db", "/%2e%2e"]
)
@pytest.mark.parametrize("method", ["GET", "POST", "PUT"])
async def test_an_address_that_is_none_is_404(tmp_path: Path, path: str, method: str) -> None:
    async with served(make_zone(), tmp_path) as client:
        answer = await client.raw(
            f"{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode()
        )
    assert answer.status == 404
    assert answer.error["code"] == -32600


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("GET", "/", "POST"),
        ("PUT", "/", "POST"),
        ("OPTIONS", "/", "POST"),
        ("GET", "/invocations", "POST"),
        ("POST", "/ping", "GET"),
        ("DELETE", "/openrpc.json", "GET"),
        ("POST", "/schemas/request.json", "GET"),
    ],
)
async def test_another_http_method_is_405_and_says_which_one(
    tmp_path: Path, method: str, path: str, allowed: str
) -> None:
    async with served(make_zone(), tmp_path) as client:
        answer = await client.ask(method, path, CALL if method == "POST" else None)
    assert answer.status == 405
    assert answer.headers["allow"] == allowed
    assert answer.error["code"] == -32600


async def test_a_body_that_is_too_large_is_413_whether_or_not_it_says_its_size(tmp_path: Path) -> None:
    async def in_pieces() -> AsyncGenerator[bytes]:
        for _ in range(10):
            yield b" " * (MOST_BYTES // 5)

    async with served(make_zone(), tmp_path) as client:
        just_right = CALL.replace(b"hi", b"x" * (MOST_BYTES - len(CALL) + 2))
        assert len(just_right) == MOST_BYTES
        assert (await client.ask("POST", "/", just_right)).status == 200
        for body in (just_right + b" ", in_pieces()):
            answer = await client.ask("POST", "/", body)
            assert answer.status == 413
            assert answer.error["code"] == -32600
        assert (await client.ask("POST", "/", CALL)).status == 200


async def test_a_browser_is_turned_away(tmp_path: Path) -> None:
    async with served(make_zone(), tmp_path) as client:
        answer = await client.ask("POST", "/", CALL, Origin="http://localhost")
    assert answer.status == 403
    assert answer.error["code"] == -32000
    assert "access-control-allow-origin" not in answer.headers


async def test_an_unauthenticated_request_is_401_before_its_body_is_read(tmp_path: Path) -> None:
    zone = make_zone(
        policy=ZonePolicy(callers={"verification": CallerRules(certificates=("spiffe://zones/v",))})
    )
    async with served(zone, tmp_path) as client:
        for body in (CALL, b"nonsense"):
            answer = await client.ask("POST", "/", body, Authorization="Bearer xoxb-canary")
            assert answer.status == 401
            assert answer.headers["www-authenticate"] == "Bearer"
            assert answer.error["code"] == -32000
            assert b"canary" not in answer.body


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"\x00\x01garbage\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: -5\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nhi", 400),
        (b"GET / HTTP/1.1\r\nX: " + b"x" * 70_000 + b"\r\n\r\n", 431),
        (b"POST / HTTP/1.1\r\nHost: x\r\n", 408),
        (b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 20\r\n\r\nonly so much", 408),
    ],
    ids=["garbage", "negative", "two_lengths", "large_head", "half_a_head", "half_a_body"],
)
async def test_what_is_no_whole_http_request_is_answered_in_json_rpc(
    tmp_path: Path, sent: bytes, status: int
) -> None:
    async with served(make_zone(), tmp_path, ImpatientClient) as client:
        answer = await client.raw(sent)
    assert answer.status == status
    assert answer.error["code"] == -32600


async def test_the_platform_learns_whether_work_goes_on(tmp_path: Path) -> None:
    gate = asyncio.Event()
    zone = make_zone(accept_after=0.01)

    @zone.method("wait")
    async def wait(params: JsonObject) -> str:  # pyright: ignore[reportUnusedFunction] - the zone has it
        await gate.wait()
        return str(params)

    async with served(zone, tmp_path) as client:
        idle: Any = decode((await client.ask("GET", "/ping")).body)
        await client.ask("POST", "/", CALL.replace(b"echo", b"wait"))
        busy: Any = decode((await client.ask("GET", "/ping")).body)
        gate.set()
        while (after := (await client.ask("GET", "/ping")).body) == encode(busy):
            await asyncio.sleep(0)
    assert idle["status"] == "Healthy"
    assert busy["status"] == "HealthyBusy"
    assert b'"Healthy"' in after
    assert isinstance(idle["time_of_last_update"], int)


async def test_the_documents_are_served_and_refer_to_one_another(tmp_path: Path) -> None:
    async with served(make_zone(), tmp_path) as client:
        openrpc: Any = decode((await client.ask("GET", "/openrpc.json")).body)
        methods = {method["name"]: method for method in openrpc["methods"]}
        assert set(methods) == {"echo", "get_task_result"}
        [text] = methods["echo"]["params"]
        assert (text["name"], text["required"], methods["echo"]["paramStructure"]) == (
            "text",
            True,
            "by-name",
        )
        path, _, pointer = text["schema"]["$ref"].partition("#")
        schema: Any = decode((await client.ask("GET", f"/{path}")).body)
        assert pointer == "/properties/text"
        assert schema["properties"]["text"] == {"type": "string"}
        for name, content in contract_schemas().items():
            assert decode((await client.ask("GET", f"/schemas/{name}.json")).body) == content
        head = await client.ask("HEAD", "/openrpc.json")
        assert (head.status, head.body) == (200, b"")


async def test_a_caller_that_goes_away_does_not_end_the_work(tmp_path: Path) -> None:
    began, gate, ended = asyncio.Event(), asyncio.Event(), asyncio.Event()
    zone = make_zone()

    @zone.method("wait")
    async def wait(params: JsonObject) -> str:  # pyright: ignore[reportUnusedFunction] - the zone has it
        began.set()
        await gate.wait()
        ended.set()
        return str(params["text"])

    body = CALL.replace(b"echo", b"wait")
    head = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body)
    async with served(zone, tmp_path) as client:
        _, writer = await asyncio.open_connection("127.0.0.1", int(client.url.rpartition(":")[2]))
        writer.write(head + body)
        await asyncio.wait_for(began.wait(), 60)
        writer.transport.abort()
        again = asyncio.create_task(client.ask("POST", "/", body))
        gate.set()
        await asyncio.wait_for(ended.wait(), 60)
        assert b'"response_text":"hi"' in (await again).body


async def test_a_zone_can_be_mounted_in_another_application(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRUNKLINE_DATA", str(tmp_path))
    zone = make_zone()
    app = Starlette(routes=[Mount("/zones/execution", zone)])
    with listen("127.0.0.1", 0) as listener:
        async with serving(app, listener, ZoneConnection), aiohttp.ClientSession() as session:
            client = Client(base_url(listener), session)
            answers = await asyncio.gather(*(client.ask("POST", "/zones/execution/", CALL) for _ in range(5)))
            document = await client.ask("GET", "/zones/execution/openrpc.json")
    assert {answer.status for answer in answers} == {200}
    assert len({answer.body for answer in answers}) == 1
    assert document.status == 200


async def test_a_zone_that_cannot_start_still_answers_in_json_rpc(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRUNKLINE_DATA", str(tmp_path))
    async with make_zone().running():
        with listen("127.0.0.1", 0) as listener:
            async with serving(make_zone(), listener, ZoneConnection), aiohttp.ClientSession() as session:
                answer = await Client(base_url(listener), session).ask("POST", "/", CALL)
    assert answer.status == 500
    assert answer.error == {"code": -32603, "message": "Internal error"}
