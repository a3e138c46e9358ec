"""A2A over gRPC: the A2A project's own client takes the interface that the card offers, and all operations work."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from importlib import import_module
from pathlib import Path
from typing import Protocol, cast

import httpx
import pytest
from deploy.local.ports import free_port
from tests.certificates import made
from tests.scenarios.api.test_keys import bearer, create_key
from tests.scenarios.kit_server import served
from tests.scenarios.publishing.receiver import receiving

from trunkline.agentkit import Agent, Message, Question, Task
from trunkline.errors import ConfigurationError
from trunkline.jsontypes import JsonObject
from trunkline.testing import RunningSystem, running_system
from trunkline.testing.system import objects_in

pytest.importorskip("grpc", reason="pip install 'trunkline[grpc]'")

from a2a.client import A2ACardResolver, Client, ClientCallContext, ClientConfig, ClientFactory
from a2a.client.errors import A2AClientError
from a2a.types import a2a_pb2 as pb
from a2a.utils.errors import A2AError, TaskNotCancelableError, TaskNotFoundError

# How tasks travel between processes makes no difference to the binding.
pytestmark = [pytest.mark.anyio, pytest.mark.embedded_only]


class _Channels(Protocol):
    """Of grpc.aio, which has no types."""

    def insecure_channel(self, target: str) -> object: ...
    def secure_channel(self, target: str, credentials: object, options: list[tuple[str, str]]) -> object: ...


class _Credentials(Protocol):
    def ssl_channel_credentials(self, root_certificates: bytes) -> object: ...


channels = cast("_Channels", import_module("grpc.aio"))
grpc = cast("_Credentials", import_module("grpc"))


class Player:
    def __init__(self) -> None:
        self.may_end = asyncio.Event()

    async def play(self, task: Task) -> AsyncGenerator[object, Message]:
        match task.text:
            case "ask":
                reply = yield Question("Which city?")
                yield f"{reply.text} it is."
            case "wait":
                yield "Half of it, "
                await self.may_end.wait()
                yield "and the rest."
            case _:
                yield "Hello, world."


@pytest.fixture
async def player() -> AsyncGenerator[tuple[Player, str]]:
    player = Player()
    agent = Agent("Kit", description="Plays.")
    agent.handler(player.play)
    async with served(agent) as url:
        yield player, url


@asynccontextmanager
async def client_of(
    base: str,
    key: str = "",
    *,
    connect: Callable[[str], object] = channels.insecure_channel,
    verify: str | bool = True,
    **options: bool,
) -> AsyncGenerator[Client]:
    """The A2A project's client of the published agent, over gRPC alone."""
    async with httpx.AsyncClient(verify=verify) as http:
        card = await A2ACardResolver(http, f"{base}/a2a/agents/Kit").get_agent_card()
    config = ClientConfig(
        supported_protocol_bindings=["GRPC"],
        grpc_channel_factory=connect,  # type: ignore[arg-type]
        **options,  # type: ignore[arg-type]
    )
    client = ClientFactory(config).create(card)
    try:
        yield client
    finally:
        await client.close()


def request(text: str, message_id: str = "m-1", task_id: str = "") -> pb.SendMessageRequest:
    message = pb.Message(
        message_id=message_id, role=pb.ROLE_USER, parts=[pb.Part(text=text)], task_id=task_id
    )
    return pb.SendMessageRequest(message=message)


async def sent(client: Client, given: pb.SendMessageRequest) -> list[pb.StreamResponse]:
    return [event async for event in client.send_message(given)]


def text_of(task: pb.Task) -> str:
    return "".join(part.text for artifact in task.artifacts for part in artifact.parts)


async def state_in(client: Client, task_id: str, state: int) -> pb.Task:
    while True:
        task = await client.get_task(pb.GetTaskRequest(id=task_id))
        if task.status.state == state:
            return task
        await asyncio.sleep(0.02)


@pytest.fixture
async def system(player: tuple[Player, str], tmp_path: Path) -> AsyncGenerator[RunningSystem]:
    async with running_system(tmp_path / "data", grpc_port=free_port()) as running:
        await running.register("Kit", player[1], publish=True)
        yield running


async def test_messages_are_answered_and_questions_are_answered_by_callers(system: RunningSystem) -> None:
    async with client_of(system.url, streaming=False) as client:
        (done,) = await sent(client, request("hi"))
        assert (done.task.status.state, text_of(done.task)) == (pb.TASK_STATE_COMPLETED, "Hello, world.")
        (asking,) = await sent(client, request("ask", "m-2"))
        assert asking.task.status.state == pb.TASK_STATE_INPUT_REQUIRED
        (told,) = await sent(client, request("Rome", "m-3", asking.task.id))
        assert text_of(told.task) == "Rome it is."
        listed = await client.list_tasks(pb.ListTasksRequest(page_size=1, include_artifacts=True))
        assert ([task.id for task in listed.tasks], listed.total_size) == ([told.task.id], 2)
        found = await client.get_task(pb.GetTaskRequest(id=done.task.id, history_length=0))
        assert (text_of(found), len(found.history)) == ("Hello, world.", 0)
    run = await system.get(done.task.id)
    assert (run["status"], run["started_by"]) == ("COMPLETED", "a2a")
    count = await system.metric(
        "a2a_server_requests_total", method="SendMessage", version="1.0", binding="GRPC", code="ok"
    )
    assert count == 3


async def test_a_stream_has_every_update_and_can_be_followed_by_others(
    system: RunningSystem, player: tuple[Player, str]
) -> None:
    async with client_of(system.url) as client:
        events = client.send_message(request("wait"))
        task_id = (await anext(events)).task.id
        following = client.subscribe(pb.SubscribeToTaskRequest(id=task_id))
        snapshot = await anext(following)
        assert snapshot.task.id == task_id
        player[0].may_end.set()
        mine = [event async for event in events]
        others = [event async for event in following]
        assert mine[-1].status_update.status.state == pb.TASK_STATE_COMPLETED
        assert others[-1] == mine[-1]
        task = await client.get_task(pb.GetTaskRequest(id=task_id))
        assert text_of(task) == "Half of it, and the rest."


async def test_a_caller_that_disconnects_changes_nothing_and_can_cancel_later(system: RunningSystem) -> None:
    async with client_of(system.url) as client:
        events = client.send_message(request("wait"))
        task_id = (await anext(events)).task.id
    async with client_of(system.url) as client:
        await state_in(client, task_id, pb.TASK_STATE_WORKING)
        await system.wait_for_metric("a2a_server_open_streams", 0)
        canceled = await client.cancel_task(pb.CancelTaskRequest(id=task_id))
        assert canceled.status.state == pb.TASK_STATE_CANCELED
        with pytest.raises(TaskNotCancelableError):
            await client.cancel_task(pb.CancelTaskRequest(id=task_id))
        with pytest.raises(TaskNotFoundError):
            await client.get_task(pb.GetTaskRequest(id="unknown"))


async def test_updates_are_pushed_to_configs_that_were_created_over_grpc(system: RunningSystem) -> None:
    async with receiving() as receiver, client_of(system.url, streaming=False) as client:
        (asking,) = await sent(client, request("ask"))
        config = pb.TaskPushNotificationConfig(
            task_id=asking.task.id, id="mine", url=f"{receiver.url}/", token="t"
        )
        created = await client.create_task_push_notification_config(config)
        assert (created.id, created.url) == ("mine", f"{receiver.url}/")
        found = await client.get_task_push_notification_config(
            pb.GetTaskPushNotificationConfigRequest(task_id=asking.task.id, id="mine")
        )
        assert found == created
        await sent(client, request("Rome", "m-2", asking.task.id))
        assert await receiver.states() == ["working", "completed"]
        about = pb.DeleteTaskPushNotificationConfigRequest(task_id=asking.task.id, id="mine")
        await client.delete_task_push_notification_config(about)
        left = await client.list_task_push_notification_configs(
            pb.ListTaskPushNotificationConfigsRequest(task_id=asking.task.id)
        )
        assert list(left.configs) == []


async def test_what_cannot_be_read_is_refused_with_the_reason(system: RunningSystem) -> None:
    async with client_of(system.url, streaming=False) as client:
        for wrong, reason in (
            (request("hi", ""), "messageId is required"),
            (request("hi", "m", "unknown"), "Task not found"),
        ):
            with pytest.raises((A2AError, A2AClientError), match=reason):
                await sent(client, wrong)
        with pytest.raises((A2AError, A2AClientError), match="id is required"):
            await client.get_task(pb.GetTaskRequest())
        elsewhere = request("hi")
        for tenant, reason in (("nonsense", "tenant must name"), ("agents/Other", "Nothing is published")):
            elsewhere.tenant = tenant
            with pytest.raises((A2AError, A2AClientError), match=reason):
                await sent(client, elsewhere)


async def test_keys_and_tls_are_those_of_the_api(player: tuple[Player, str], tmp_path: Path) -> None:
    authority = made("Authority")
    certificate, own_key = made("localhost", signed_by=authority)
    own, key_file = tmp_path / "own.pem", tmp_path / "own.key"
    own.write_text(certificate)
    key_file.write_text(own_key)
    admin = await create_key(tmp_path / "data", "admin", "ann")
    key = await create_key(tmp_path / "data", "operator", "otto")
    port = free_port()
    async with running_system(
        tmp_path / "data", require_keys=True, grpc_port=port, tls_cert=own, tls_key=key_file
    ) as system:
        agent: JsonObject = {"name": "Kit", "url": player[1], "publish": True}
        await system.call("POST", "/agents", agent, bearer(admin))
        credentials = grpc.ssl_channel_credentials(authority[0].encode())

        def connect(target: str) -> object:
            del target
            return channels.secure_channel(f"127.0.0.1:{port}", credentials, [])

        async with client_of(system.url, connect=connect, streaming=False) as client:
            with pytest.raises(A2AClientError, match="UNAUTHENTICATED"):
                await sent(client, request("hi"))
            context = ClientCallContext(service_parameters={"authorization": f"Bearer {key}"})
            (done,) = [event async for event in client.send_message(request("hi"), context=context)]
            assert text_of(done.task) == "Hello, world."
            card = await client.get_extended_agent_card(pb.GetExtendedAgentCardRequest(), context=context)
            assert card.name == "Kit"
        runs = objects_in((await system.call("GET", "/runs", headers=bearer(admin))).json["items"])
        assert [run["started_by"] for run in runs] == ["a2a:otto"]


async def test_a_port_that_is_taken_is_an_error_that_says_so(system: RunningSystem, tmp_path: Path) -> None:
    card = (await system.call("GET", "//a2a/agents/Kit/.well-known/agent-card.json")).json
    (offered,) = [each for each in objects_in(card["supportedInterfaces"]) if "tenant" in each]
    assert (offered["protocolBinding"], offered["tenant"]) == ("GRPC", "agents/Kit")
    port = int(str(offered["url"]).rpartition(":")[2])
    with pytest.raises(ConfigurationError, match="cannot listen"):
        async with running_system(tmp_path / "other", grpc_port=port):
            pass


async def test_cards_can_name_another_address(tmp_path: Path) -> None:
    public = "a2a.example:443"
    async with running_system(tmp_path / "data", grpc_port=free_port(), grpc_public_address=public) as system:
        await system.save({"name": "front", "publish": True, "steps": {"only": {"set": {"x": 1}}}})
        card = (await system.call("GET", "//a2a/workflows/front/.well-known/agent-card.json")).json
    offered = [each["url"] for each in objects_in(card["supportedInterfaces"])]
    assert offered[-1] == public
