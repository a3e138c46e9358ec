"""
An agent built with the A2A project's Python SDK 1.x: PORT FOLDER [compat|http|push|http-push].

`compat` answers 0.3 at the same address too; `http` speaks HTTP+JSON and no JSON-RPC at all; `push` rings when a task
has moved on, and has no streams.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import httpx
from a2a.helpers.proto_helpers import new_task_from_user_message, new_text_message
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes, create_rest_routes
from a2a.server.tasks import (
    BasePushNotificationSender,
    InMemoryPushNotificationConfigStore,
    InMemoryTaskStore,
    TaskUpdater,
)
from a2a.types import (
    AgentCapabilities,
    AgentCard,
    AgentInterface,
    AgentSkill,
    Message,
    Part,
    Role,
    TaskState,
)
from script import listen, run_script, serve
from starlette.applications import Starlette


class SdkReplyChannel:
    def __init__(self, queue: EventQueue, context: RequestContext) -> None:
        self._queue = queue
        self._context = context
        self._updater = TaskUpdater(queue, context.task_id, context.context_id)

    async def say(self, text: str) -> None:
        await self._queue.enqueue_event(new_text_message(text, role=Role.ROLE_AGENT))

    async def work(self, text: str | None = None) -> None:
        if text is None and self._context.current_task is None:
            await self._queue.enqueue_event(new_task_from_user_message(self._context.message))
        await self._updater.start_work(self._message(text))

    async def give(self, text: str | None, others: Sequence[Any] = ()) -> None:
        await self._updater.add_artifact([*_text(text), *others], name="echo")

    async def give_chunk(self, text: str, *, append: bool, last: bool) -> None:
        await self._updater.add_artifact(_text(text), artifact_id="story", append=append, last_chunk=last)

    async def complete(self) -> None:
        await self._updater.complete()

    async def fail(self, text: str) -> None:
        await self._updater.failed(self._message(text))

    async def ask(self, text: str) -> None:
        await self._updater.requires_input(self._message(text))

    def _message(self, text: str | None) -> Message | None:
        return self._updater.new_agent_message(_text(text)) if text is not None else None


def _text(text: str | None) -> list[Part]:
    return [] if text is None else [Part(text=text)]


class Scripted(AgentExecutor):
    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        others = [part for part in context.message.parts if part.WhichOneof("content") != "text"]
        task = context.current_task
        answers = task is not None and task.status.state == TaskState.TASK_STATE_INPUT_REQUIRED
        await run_script(
            SdkReplyChannel(event_queue, context),
            context.get_user_input(),
            others,
            context.context_id,
            context.message.message_id,
            answers=answers,
        )

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()


def main() -> None:
    listener, url = listen()
    flavour = sys.argv[3] if len(sys.argv) > 3 else ""
    is_http, rings = flavour.startswith("http"), flavour.endswith("push")
    interfaces = [
        AgentInterface(
            url=url if is_http else f"{url}/",
            protocol_binding="HTTP+JSON" if is_http else "JSONRPC",
            protocol_version="1.0",
        )
    ]
    if flavour == "compat":
        interfaces.append(AgentInterface(url=f"{url}/", protocol_binding="JSONRPC", protocol_version="0.3"))
    card = AgentCard(
        name="Scripted",
        description="Does what its message says.",
        version="1.0.0",
        supported_interfaces=interfaces,
        default_input_modes=["text/plain", "application/json", "application/octet-stream"],
        default_output_modes=["text/plain", "application/json", "application/octet-stream"],
        capabilities=AgentCapabilities(streaming=not rings, push_notifications=rings),
        skills=[AgentSkill(id="script", name="Script", description="Plays.", tags=["script"])],
    )
    push_configs = InMemoryPushNotificationConfigStore()
    handler = DefaultRequestHandler(
        agent_executor=Scripted(),
        task_store=InMemoryTaskStore(),
        agent_card=card,
        push_config_store=push_configs if rings else None,
        push_sender=BasePushNotificationSender(httpx.AsyncClient(), push_configs) if rings else None,
    )
    routes = create_agent_card_routes(card)
    if is_http:
        routes += create_rest_routes(handler)
    else:
        routes += create_jsonrpc_routes(handler, "/", enable_v0_3_compat=flavour == "compat")
    serve(Starlette(routes=routes), listener, url)


if __name__ == "__main__":
    main()
