"""
A caller built with the A2A project's Python SDK 1.x: URL VERSION. Prints what it has been told, as one JSON object.

With VERSION 0.3 it takes the card's offer of that version, as callers do who have not moved on.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys

import httpx
from a2a.client import A2ACardResolver, Client, ClientConfig, ClientFactory
from a2a.helpers.proto_helpers import get_artifact_text, get_message_text, new_text_message
from a2a.types import (
    CancelTaskRequest,
    GetTaskRequest,
    Part,
    Role,
    SendMessageRequest,
    Task,
    TaskPushNotificationConfig,
    TaskState,
)
from a2a.utils.errors import TaskNotFoundError


def text_of(task: Task) -> str:
    return "".join(get_artifact_text(artifact, "") for artifact in task.artifacts)


def state_of(task: Task) -> str:
    return TaskState.Name(task.status.state).removeprefix("TASK_STATE_").lower().replace("_", "-")


async def sent(client: Client, text: str, task_id: str | None = None, *more: Part) -> tuple[Task, list[str]]:
    """The task as it is at the end, and what the events were."""
    request = SendMessageRequest(message=new_text_message(text, task_id=task_id, role=Role.ROLE_USER))
    request.message.parts.extend(more)
    task, kinds = "", []
    async for event in client.send_message(request):
        kind = event.WhichOneof("payload")
        kinds.append({"status_update": "status-update", "artifact_update": "artifact-update"}.get(kind, kind))
        task = event.task.id or task
    return await client.get_task(GetTaskRequest(id=task)), kinds


async def long_task(polls: Client) -> tuple[bool, str]:
    """A task that goes on while the caller does something else: whether it did, and its text."""
    task, _ = await sent(polls, "long")
    was_long = state_of(task) != "completed"
    await sent(polls, "go on")
    while state_of(task) != "completed":
        task = await polls.get_task(GetTaskRequest(id=task.id))
    return was_long, text_of(task)


async def copied(client: Client) -> tuple[str, str, str]:
    file = Part(raw=b"hello", media_type="text/plain", filename="a.txt")
    task, _ = await sent(client, "copy", None, file)
    found = task.artifacts[0].parts[0]
    return found.filename, found.media_type, found.raw.decode()


async def main() -> None:
    async with httpx.AsyncClient(timeout=60) as http:
        card = await A2ACardResolver(http, sys.argv[1]).get_agent_card()
        offered = [one for one in card.supported_interfaces if one.protocol_version.startswith(sys.argv[2])]
        del card.supported_interfaces[:]
        card.supported_interfaces.extend(offered)
        streams = ClientFactory(ClientConfig(httpx_client=http)).create(card)
        waits = ClientFactory(ClientConfig(httpx_client=http, streaming=False)).create(card)
        polls = ClientFactory(ClientConfig(httpx_client=http, streaming=False, polling=True)).create(card)
        streamed, kinds = await sent(streams, "hello")
        waited, _ = await sent(waits, "hello")
        failed, _ = await sent(waits, "fail")
        asking, _ = await sent(streams, "ask")
        replied, _ = await sent(streams, "Rome", asking.id)
        polled, _ = await sent(polls, "wait")
        canceled = await polls.cancel_task(CancelTaskRequest(id=polled.id))
        if "PUSH_URL" in os.environ:
            config = TaskPushNotificationConfig(url=os.environ["PUSH_URL"], token="a-token")
            pushed = ClientConfig(httpx_client=http, streaming=False, push_notification_config=config)
            await sent(ClientFactory(pushed).create(card), "hello")
        code = 0
        try:
            await polls.get_task(GetTaskRequest(id="unknown"))
        except TaskNotFoundError:
            code = -32001
        told = {
            "name": card.name,
            "kinds": kinds,
            "streamed": text_of(streamed),
            "waited": text_of(waited),
            "failed": [state_of(failed), get_message_text(failed.status.message)],
            "asking": [state_of(asking), get_message_text(asking.status.message)],
            "replied": text_of(replied),
            "canceled": state_of(canceled),
            "unknown": code,
            "long": await long_task(polls),
            "file": await copied(waits),
        }
        print(json.dumps(told))  # noqa: T201 - the test reads it


if __name__ == "__main__":
    asyncio.run(main())
