"""A caller built with the A2A project's Python SDK 0.3: URL [CARD]. Prints what it was told, as JSON."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from base64 import b64decode, b64encode
from uuid import uuid4

import httpx
from a2a.client import A2ACardResolver, Client, ClientConfig, ClientFactory
from a2a.client.errors import A2AClientJSONRPCError
from a2a.types import (
    FilePart,
    FileWithBytes,
    Message,
    Part,
    PushNotificationConfig,
    Role,
    Task,
    TaskIdParams,
    TaskQueryParams,
    TextPart,
)


def message(text: str, task_id: str | None = None, *more: FilePart) -> Message:
    parts = [Part(root=part) for part in (TextPart(text=text), *more)]
    return Message(role=Role.user, message_id=str(uuid4()), parts=parts, task_id=task_id)


def text_in(parts: list[Part]) -> str:
    return "".join(part.root.text for part in parts)


def text_of(task: Task) -> str:
    return "".join(text_in(artifact.parts) for artifact in task.artifacts or [])


async def sent(
    client: Client, text: str, task_id: str | None = None, *more: FilePart
) -> tuple[Task, list[str]]:
    """The task as it stands at the end, and what the events were."""
    events = [event async for event in client.send_message(message(text, task_id, *more))]
    return events[-1][0], ["task" if update is None else update.kind for _, update in events]


async def long_task(polls: Client) -> tuple[bool, str]:
    """A task that goes on while the caller does something else: whether it did, and its text."""
    task, _ = await sent(polls, "long")
    was_long = task.status.state.value != "completed"
    await sent(polls, "go on")
    while task.status.state.value != "completed":
        task = await polls.get_task(TaskQueryParams(id=task.id))
    return was_long, text_of(task)


async def copied(client: Client) -> tuple[str, str, str]:
    file = FileWithBytes(bytes=b64encode(b"hello").decode(), mime_type="text/plain", name="a.txt")
    task, _ = await sent(client, "copy", None, FilePart(file=file))
    found = task.artifacts[0].parts[0].root.file
    return found.name, found.mime_type, b64decode(found.bytes).decode()


async def main() -> None:
    async with httpx.AsyncClient(timeout=60) as http:
        card = await A2ACardResolver(http, sys.argv[1], *sys.argv[2:]).get_agent_card()
        streams = ClientFactory(ClientConfig(httpx_client=http)).create(card)
        waits = ClientFactory(ClientConfig(httpx_client=http, streaming=False)).create(card)
        polls = ClientFactory(ClientConfig(httpx_client=http, streaming=False, polling=True)).create(card)
        streamed, kinds = await sent(streams, "hello")
        waited, _ = await sent(waits, "hello")
        failed, _ = await sent(waits, "fail")
        asking, _ = await sent(streams, "ask")
        replied, _ = await sent(streams, "Rome", asking.id)
        polled, _ = await sent(polls, "wait")
        canceled = await polls.cancel_task(TaskIdParams(id=polled.id))
        if "PUSH_URL" in os.environ:
            config = PushNotificationConfig(url=os.environ["PUSH_URL"], token="a-token")
            pushed = ClientConfig(httpx_client=http, streaming=False, push_notification_configs=[config])
            await sent(ClientFactory(pushed).create(card), "hello")
        try:
            await polls.get_task(TaskQueryParams(id="unknown"))
        except A2AClientJSONRPCError as exc:
            code = exc.error.code
        told = {
            "name": card.name,
            "kinds": kinds,
            "streamed": text_of(streamed),
            "waited": text_of(waited),
            "failed": [failed.status.state.value, text_in(failed.status.message.parts)],
            "asking": [asking.status.state.value, text_in(asking.status.message.parts)],
            "replied": text_of(replied),
            "canceled": canceled.status.state.value,
            "unknown": code,
            "long": await long_task(polls),
            "file": await copied(waits),
        }
        print(json.dumps(told))  # noqa: T201 - the test reads it


if __name__ == "__main__":
    asyncio.run(main())
