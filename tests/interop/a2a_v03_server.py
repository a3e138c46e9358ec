"""
An agent built with the A2A project's own SDK (0.3): repeats, asks or fails as it is told.

Run as a program: prints its URL when it listens.
"""

from __future__ import annotations

import socket

import uvicorn
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.apps import A2AStarletteApplication
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types import AgentCapabilities, AgentCard, AgentSkill, Part, TextPart
from a2a.utils import new_agent_text_message, new_task


class Parrot(AgentExecutor):
    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        words = context.get_user_input()
        if words.startswith("say: "):
            # A direct message instead of a task.
            await event_queue.enqueue_event(new_agent_text_message(words.removeprefix("say: ")))
            return
        task = context.current_task
        if task is None:
            assert context.message is not None
            task = new_task(context.message)
            await event_queue.enqueue_event(task)
        updater = TaskUpdater(event_queue, task.id, task.context_id)
        await updater.start_work()
        if words.startswith("ask: "):
            question = updater.new_agent_message([Part(root=TextPart(text=words.removeprefix("ask: ")))])
            await updater.requires_input(question, final=True)
        elif words.startswith("fail: "):
            reason = updater.new_agent_message([Part(root=TextPart(text=words.removeprefix("fail: ")))])
            await updater.failed(reason)
        else:
            await updater.add_artifact([Part(root=TextPart(text=f"Heard: {words}"))], name="echo")
            await updater.complete()

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        assert context.task_id is not None
        assert context.context_id is not None
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()


def main() -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/"
        card = AgentCard(
            name="Parrot",
            description="Repeats what it hears.",
            url=url,
            version="1.0.0",
            default_input_modes=["text"],
            default_output_modes=["text"],
            capabilities=AgentCapabilities(streaming=True),
            skills=[AgentSkill(id="echo", name="Echo", description="Repeats.", tags=["echo"])],
        )
        handler = DefaultRequestHandler(agent_executor=Parrot(), task_store=InMemoryTaskStore())
        app = A2AStarletteApplication(agent_card=card, http_handler=handler).build()
        listener.listen()
        print(url, flush=True)  # noqa: T201 - the line that the test waits for
        uvicorn.Server(uvicorn.Config(app, log_level="warning")).run(sockets=[listener])


if __name__ == "__main__":
    main()
