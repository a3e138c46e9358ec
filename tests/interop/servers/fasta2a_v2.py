"""
An agent built with fasta2a: PORT FOLDER.

fasta2a answers a send at once and works afterwards. It knows no second message to a task: what a person answers
begins a task of its own in the same context, so the script looks there for an open question.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from fasta2a import FastA2A, Worker
from fasta2a.broker import InMemoryBroker
from fasta2a.schema import Artifact, Message, Part, TaskIdParams, TaskSendParams
from fasta2a.storage import InMemoryStorage
from script import listen, run_script, serve

# A worker does one thing after the other: the cancel of a task would wait for its end.
_WORKERS = 8


class FastA2AReplyChannel:
    def __init__(self, worker: ScriptedWorker, task_id: str, context_id: str) -> None:
        self._worker = worker
        self._task_id = task_id
        self._context_id = context_id
        self._story: list[Part] = []

    async def say(self, text: str) -> None:
        # It has no message without a task: what the agent says stands in the history.
        await self._worker.storage.update_task(
            self._task_id, "completed", new_messages=[_agent_message(text)]
        )

    async def work(self, text: str | None = None) -> None:
        await self._worker.storage.update_task(self._task_id, "working")
        message = None if text is None else _agent_message(text)
        await self._worker.publish_status(self._task_id, self._context_id, "working", message)

    async def give(self, text: str | None, others: Sequence[Any] = ()) -> None:
        parts: list[Part] = [*([] if text is None else [Part(text=text)]), *others]
        await self._publish(Artifact(artifact_id=str(uuid.uuid4()), name="echo", parts=parts))

    async def give_chunk(self, text: str, *, append: bool, last: bool) -> None:
        self._story.append(Part(text=text))
        chunk = Artifact(artifact_id="story", parts=[Part(text=text)])
        await self._worker.publish_artifact(
            self._task_id, self._context_id, chunk, append=append, last_chunk=last
        )
        if last:
            await self._keep(Artifact(artifact_id="story", parts=self._story))

    async def complete(self) -> None:
        await self._worker.storage.update_task(self._task_id, "completed")

    async def fail(self, text: str) -> None:
        await self._worker.storage.update_task(self._task_id, "failed", new_messages=[_agent_message(text)])

    async def ask(self, text: str) -> None:
        self._worker.asked.add(self._context_id)
        question = _agent_message(text)
        await self._worker.storage.update_task(self._task_id, "input-required", new_messages=[question])
        await self._worker.publish_status(self._task_id, self._context_id, "input-required", question)

    async def _publish(self, artifact: Artifact) -> None:
        await self._worker.publish_artifact(self._task_id, self._context_id, artifact)
        await self._keep(artifact)

    async def _keep(self, artifact: Artifact) -> None:
        await self._worker.storage.update_task(self._task_id, "working", new_artifacts=[artifact])


def _agent_message(text: str) -> Message:
    return Message(role="agent", parts=[Part(text=text)], message_id=str(uuid.uuid4()))


class ScriptedWorker(Worker[None]):
    def __init__(self, broker: InMemoryBroker, storage: InMemoryStorage[None]) -> None:
        super().__init__(broker, storage)
        # The contexts with an open question.
        self.asked: set[str] = set()
        self._playing: dict[str, asyncio.Task[None]] = {}

    async def run_task(self, params: TaskSendParams) -> None:
        task_id, context_id, message = params["id"], params["context_id"], params["message"]
        answers = context_id in self.asked
        self.asked.discard(context_id)
        playing = asyncio.create_task(
            run_script(
                FastA2AReplyChannel(self, task_id, context_id),
                "\n".join(part["text"] for part in message["parts"] if "text" in part),
                [part for part in message["parts"] if "text" not in part],
                context_id,
                message["message_id"],
                answers=answers,
            )
        )
        self._playing[task_id] = playing
        try:
            await asyncio.wait([playing])
        finally:
            playing.cancel()
            del self._playing[task_id]
        if not playing.cancelled():
            playing.result()

    async def cancel_task(self, params: TaskIdParams) -> None:
        if playing := self._playing.get(params["id"]):
            playing.cancel()
            await asyncio.wait([playing])
            await self.storage.update_task(params["id"], "canceled")

    def build_message_history(self, history: list[Message]) -> list[Any]:
        return list(history)

    def build_artifacts(self, result: Any) -> list[Artifact]:
        return [Artifact(artifact_id=str(uuid.uuid4()), parts=[Part(text=str(result))])]


def main() -> None:
    listener, url = listen()
    broker, storage = InMemoryBroker(), InMemoryStorage[None]()

    @asynccontextmanager
    async def lifespan(app: FastA2A) -> AsyncIterator[None]:
        worker = ScriptedWorker(broker, storage)
        async with app.task_manager, AsyncExitStack() as running:
            for _ in range(_WORKERS):
                await running.enter_async_context(worker.run())
            yield

    serve(FastA2A(storage=storage, broker=broker, url=f"{url}/", lifespan=lifespan), listener, url)


if __name__ == "__main__":
    main()
