"""
What callers can do: send a message, get and cancel a task. Independent of versions and bindings.

A message is stored before it is answered. A caller that goes away ends its own waiting, and nothing else.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from trunkline.errors import Conflict, Invalid, NotFound
from trunkline.ids import RunId
from trunkline.jsontypes import Json, JsonObject
from trunkline.machine.state import StepState
from trunkline.messages import CallerMessage, ReplyMessage, TraceContext
from trunkline.publishing.answers import AnswerReader
from trunkline.publishing.errors import A2AError, ErrorKind, task_not_found
from trunkline.publishing.messages import ReceivedMessage, continued
from trunkline.publishing.publications import Publication
from trunkline.publishing.push.configs import GivenConfig
from trunkline.publishing.run_inputs import agent_input, workflow_input
from trunkline.publishing.tasks import CallerTask, TaskReader, said_message, status_message
from trunkline.publishing.updates import TaskUpdates
from trunkline.services.callbacks.push_configs import PushConfigs
from trunkline.services.operations.audit_log import acting
from trunkline.services.runs.queries import RunQueries
from trunkline.services.runs.runs import Runs, StartedRun
from trunkline.services.workflows import Workflows
from trunkline.stores.base import PublishedTask, TaskFilter, TaskPlace
from trunkline.stores.port.push_configs import PushConfig

# A notification may be lost or arrive in another process; reading once a second is the guarantee.
_LOOK_AGAIN_SECONDS = 1.0
# An executor takes an answer within milliseconds, unless there is none at the moment.
_TAKEN_SECONDS = 5.0
# A cancelled run may wait for its agents to confirm; the caller is answered before that ends at the latest.
_CANCEL_SECONDS = 10.0


# Of all callers without a key where keys are in use. Ids of keys are UUIDs.
ANONYMOUS = "public"


class Caller(NamedTuple):
    """Who calls, and on what."""

    # The id of the API key, or `ANONYMOUS`; empty: no keys are in use.
    key_id: str
    # What the audit log and `started_by` say.
    name: str
    correlation_id: str
    trace: TraceContext | None = None

    @property
    def is_anonymous(self) -> bool:
        """These callers cannot be distinguished: only the id of a task, which cannot be guessed, leads to it."""
        return self.key_id == ANONYMOUS


class TaskFinished(A2AError):
    """A message for a task that has ended."""


class AnsweredQuestion(NamedTuple):
    """The question that a message has answered."""

    # The last event of the run before.
    seq: int
    question: tuple[str, int, int]


class SentMessage(NamedTuple):
    run_id: RunId
    # None: the message has started the task.
    answered: AnsweredQuestion | None
    # False: the same message has started the task before.
    is_new: bool = True


class CancelledTask(NamedTuple):
    task: CallerTask
    # The first request to cancel this task.
    is_first: bool


class PublishedOperations:
    def __init__(
        self,
        runs: Runs,
        queries: RunQueries,
        workflows: Workflows,
        tasks: TaskReader,
        answers: AnswerReader,
        push_configs: PushConfigs,
        stopping: asyncio.Event,
    ) -> None:
        self._runs = runs
        self._queries = queries
        self._workflows = workflows
        self._tasks = tasks
        self._answers = answers
        self._push_configs = push_configs
        self._stopping = stopping

    async def send(
        self,
        publication: Publication,
        received: ReceivedMessage,
        caller: Caller,
        *,
        once: bool = False,
        push_config: GivenConfig | None = None,
    ) -> SentMessage:
        """
        Starts a task, or continues the one that the message names. Durable when it returns.

        `once`: a message with the same id and content has started the same task. `push_config`: where the updates of
        the task go from now on.
        """
        if push_config is not None:
            self._push_configs.check_address(push_config.receiver.url)
        with acting(caller.name):
            if received.task_id is not None:
                return await self._answer(publication, received, received.task_id, caller, push_config)
            message = received.message
            if caller.is_anonymous:
                # It would continue the conversation of another one that chose the same id, here or at the agent.
                message = msgspec.structs.replace(message, chose_context=False)
            started = await self._start(publication, message, caller, push_config, once=once)
            return SentMessage(started.run_id, None, is_new=started.created)

    async def _start(
        self,
        publication: Publication,
        message: CallerMessage,
        caller: Caller,
        push_config: GivenConfig | None,
        *,
        once: bool,
    ) -> StartedRun:
        def config_of(run_id: RunId) -> PushConfig | None:
            return None if push_config is None else self._new_config(run_id, push_config)

        try:
            started = await self._runs.execute_message(
                publication.saved,
                agent_input(message)
                if publication.kind == "agents"
                else workflow_input(message, publication.workflow, caller.correlation_id),
                message,
                contexts=await self._tasks.conversations(message) if message.chose_context else {},
                correlation_id=caller.correlation_id,
                idempotency_key=f"a2a/{message.caller}/{message.message_id}" if once else None,
                trace=caller.trace,
                push_config_of=config_of,
            )
        except Invalid as exc:
            if once and not exc.findings:
                raise A2AError(
                    ErrorKind.INVALID_PARAMS,
                    "A message with this messageId but different content has already started a task.",
                ) from exc
            raise
        config = None if started.created else config_of(started.run_id)
        if config is not None:
            await self._push_configs.put(config)
        return started

    def _new_config(self, run_id: RunId, given: GivenConfig) -> PushConfig:
        # Clients give no id where they mean the one config of the task.
        return self._push_configs.new(run_id, given.id or run_id, given.receiver)

    async def _answer(
        self,
        publication: Publication,
        received: ReceivedMessage,
        task_id: str,
        caller: Caller,
        push_config: GivenConfig | None,
    ) -> SentMessage:
        task = await self._tasks.find(task_id, publication.key, caller.key_id)
        message = continued(received.message, task.message.context_id)
        if task.is_terminal:
            raise TaskFinished(
                ErrorKind.UNSUPPORTED_OPERATION,
                f"The task is {task.state} and accepts no more messages. Send a message without taskId.",
            )
        step, question = task.question, status_message(task)
        if step is None:
            raise A2AError(
                ErrorKind.UNSUPPORTED_OPERATION,
                f"The task is {task.state} and does not wait for a message.",
            )
        if push_config is not None:
            # Before the answer, which leads to the next update.
            await self._push_configs.put(self._new_config(task.record.id, push_config))
        try:
            await self._runs.reply(
                task.record.id, step.name, _reply(message), _asked_inside(step), question=question
            )
        except Conflict as exc:
            raise A2AError(ErrorKind.UNSUPPORTED_OPERATION, exc.message) from exc
        return SentMessage(task.record.id, AnsweredQuestion(task.record.seq, _identity(step)))

    async def get(self, publication: Publication, task_id: str, caller: Caller) -> CallerTask:
        return await self._tasks.find(task_id, publication.key, caller.key_id)

    async def cancel(self, publication: Publication, task_id: str, caller: Caller) -> CancelledTask:
        """Returns when the task is canceled, or when its agents have not confirmed that in time."""
        task = await self._tasks.find(task_id, publication.key, caller.key_id)
        try:
            with acting(caller.name):
                await self._runs.cancel(task.record.id)
        except Conflict as exc:
            raise A2AError(
                ErrorKind.TASK_NOT_CANCELABLE, f"The task is {task.state} and cannot be canceled."
            ) from exc
        except NotFound as exc:
            raise task_not_found(task_id) from exc
        await self._queries.wait(task.record.id, _CANCEL_SECONDS)
        cancelled = await self._tasks.find(task_id, publication.key, caller.key_id)
        return CancelledTask(cancelled, task.record.cancel_requested_at is None)

    async def wait_until_settled(
        self, publication: Publication, sent: SentMessage, caller: Caller
    ) -> CallerTask:
        """The task when it has ended, or waits for its caller; when the process stops, as it is."""
        with self._queries.watch(sent.run_id) as watch:
            while True:
                task = await self._tasks.find(sent.run_id, publication.key, caller.key_id)
                if task.is_terminal or self._stopping.is_set() or _has_new_question(task, sent):
                    return task
                await watch.changed(_LOOK_AGAIN_SECONDS)

    async def wait_until_taken(self, sent: SentMessage) -> None:
        """Until an answer has reached the run, for as long as that should take: the task shows it then."""
        if sent.answered is None:
            return
        loop = asyncio.get_running_loop()
        end = loop.time() + _TAKEN_SECONDS
        with self._queries.watch(sent.run_id) as watch:
            while (left := end - loop.time()) > 0:
                _, seq = await self._queries.status(sent.run_id)
                if seq > sent.answered.seq:
                    return
                await watch.changed(min(left, _LOOK_AGAIN_SECONDS))

    async def stored(
        self, where: TaskFilter, *, limit: int, before: TaskPlace | None = None
    ) -> list[PublishedTask]:
        """Last changed first. Their runs can be large: read them one by one."""
        return await self._tasks.page(where, limit=limit, before=before)

    async def count(self, where: TaskFilter) -> int:
        return await self._tasks.count(where)

    async def of(self, stored: PublishedTask) -> CallerTask | None:
        """None: it was deleted in the meantime."""
        return await self._tasks.of(stored)

    async def updates(self, task: CallerTask) -> TaskUpdates:
        # The version that the task runs, which may not be the published one any more.
        record = task.record
        workflow = await self._workflows.compiled(record.workflow_id, record.workflow_version)
        return TaskUpdates(self._queries, self._answers, record.id, task.message, workflow)

    async def bare_message(self, task: CallerTask) -> JsonObject | None:
        """What an agent or a workflow says in place of the task."""
        said = await self._tasks.bare_message(task)
        if said is None:
            return None
        message = said_message(task.record.id, task.message, said)
        # The task exists, but the agent does not know of any: a client would send its next message there.
        del message["taskId"]
        return message

    async def shown(
        self,
        task: CallerTask,
        *,
        history: int | None = None,
        artifacts: bool = True,
        partial: Sequence[JsonObject] = (),
    ) -> JsonObject:
        return await self._tasks.shown(task, history=history, artifacts=artifacts, partial=partial)


def _identity(step: StepState) -> tuple[str, int, int]:
    """Tells one question of a task from the next."""
    return step.name, step.attempts, step.replies


def _asked_inside(step: StepState) -> str | None:
    """The question that the task shows, if it is inside the step: there may be others."""
    waiting = step.waiting_for
    return None if waiting is None or not waiting.inside else waiting.inside[0].item


def _has_new_question(task: CallerTask, sent: SentMessage) -> bool:
    """The task waits for its caller, and not for what the caller has just answered."""
    step = task.question
    return step is not None and (sent.answered is None or _identity(step) != sent.answered.question)


def _reply(message: CallerMessage) -> ReplyMessage:
    """The message as an answer to a question: text and data, or all its parts if there are files among them."""
    if message.has_files:
        return ReplyMessage(parts=message.parts, message=message)
    data: list[Json] = [part["data"] for part in message.parts if "data" in part]
    one_or_all: Json = data[0] if len(data) == 1 else data or None
    return ReplyMessage(text=message.text or None, data=one_or_all, message=message)
