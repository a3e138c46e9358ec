"""
Tasks as callers see them, in the form of 1.0, made of runs.

    {"id": run id, "contextId", "status": {"state", "timestamp", "message"}, "artifacts", "history"}

A task that is not the caller's, or not of this publication, does not exist for it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from trunkline.clock import Instant
from trunkline.errors import NotFound
from trunkline.ids import RunId
from trunkline.jsontypes import Json, JsonObject, decode
from trunkline.machine.state import (
    FINAL_RUN_STATUSES,
    StepState,
    TaskState,
    WaitingFor,
    open_question,
    task_state,
)
from trunkline.messages import CallerMessage, decode_caller_message
from trunkline.publishing.answers import AnswerReader, PublishedAnswer
from trunkline.publishing.errors import A2AError, task_not_found
from trunkline.publishing.messages import message_json
from trunkline.services.runs.queries import RunQueries
from trunkline.stores.base import PublishedTask, RunRecord, Store, TaskFilter, TaskPlace

TERMINAL_STATES: frozenset[TaskState] = frozenset({"completed", "failed", "canceled", "rejected"})
# Counting more would take too long; a caller with as many tasks pages through them.
MAX_COUNTED = 10_000
# Of a context: the last one may not have called its agents yet.
_RECENT_TASKS = 5
INTERRUPTED_STATES: frozenset[TaskState] = frozenset({"input-required", "auth-required"})


def state_v1(state: TaskState) -> str:
    return f"TASK_STATE_{state.replace('-', '_').upper()}"


def timestamp(at: Instant) -> str:
    """UTC with milliseconds."""
    seconds, microseconds = divmod(at, 1_000_000)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{microseconds // 1_000:03d}Z"


class CallerTask(NamedTuple):
    """A run that a caller started, with what is stored of it as a task."""

    record: RunRecord
    steps: Sequence[StepState]
    message: CallerMessage
    stored: PublishedTask

    @property
    def state(self) -> TaskState:
        return task_state(self.record.status, self.record.error, self.steps)

    @property
    def is_terminal(self) -> bool:
        return self.record.status in FINAL_RUN_STATUSES

    @property
    def question(self) -> StepState | None:
        return open_question(self.steps) if self.state in INTERRUPTED_STATES else None


class TaskReader:
    def __init__(self, store: Store, queries: RunQueries, answers: AnswerReader) -> None:
        self._answers = answers
        self._store = store
        self._queries = queries

    async def answer(self, task: CallerTask) -> PublishedAnswer:
        """What became of the task, with all files. Empty as long as it is not completed."""
        return await self._answers.of(task.record, task.steps, of_agent=task.message.is_for_agent)

    async def bare_message(self, task: CallerTask) -> JsonObject | None:
        """What is said in place of the task, with all files."""
        return await self._answers.bare_message(task.record, task.steps, of_agent=task.message.is_for_agent)

    async def find(self, task_id: str, publication: str, caller: str) -> CallerTask:
        """Raises `A2AError` where there is no such task for this caller."""
        run_id = RunId(task_id)
        # Before the run: what is said of its last change is never newer than the run itself.
        stored = await self._store.published_tasks.get(run_id)
        if stored is None or stored.publication != publication or stored.caller != caller:
            raise task_not_found(task_id)
        try:
            record, steps = await self._queries.find(run_id)
        except NotFound as exc:
            raise task_not_found(task_id) from exc
        if record.message is None:
            raise task_not_found(task_id)
        return CallerTask(record, steps, decode_caller_message(record.message), stored)

    async def conversations(self, message: CallerMessage) -> dict[str, str]:
        """Those with agents that earlier tasks of the message's context have had: agent to context id."""
        where = TaskFilter(
            publication=message.publication, caller=message.caller, context_id=message.context_id
        )
        contexts: dict[str, str] = {}
        for task in reversed(await self._store.published_tasks.page(where, limit=_RECENT_TASKS)):
            found = await self._store.runs.get(task.run_id)
            contexts |= {} if found is None else found[0].contexts
        return contexts

    async def page(self, where: TaskFilter, *, limit: int, before: TaskPlace | None) -> list[PublishedTask]:
        return await self._store.published_tasks.page(where, limit=limit, before=before)

    async def count(self, where: TaskFilter) -> int:
        return await self._store.published_tasks.count(where, most=MAX_COUNTED)

    async def of(self, stored: PublishedTask) -> CallerTask | None:
        """None: it was deleted in the meantime."""
        try:
            return await self.find(stored.run_id, stored.publication, stored.caller)
        except A2AError:
            return None

    async def shown(
        self,
        task: CallerTask,
        *,
        history: int | None = None,
        artifacts: bool = True,
        partial: Sequence[JsonObject] = (),
    ) -> JsonObject:
        """`history`: how many of the last messages; None: all. `partial`: artifacts of a task that goes on."""
        shown: JsonObject = {
            "id": task.record.id,
            "contextId": task.message.context_id,
            "status": status_of(task),
        }
        # An agent may say more in its status than that it is done; a workflow does not.
        if artifacts or task.message.is_for_agent:
            answer = await self.answer(task)
            _add_answer(shown, task, answer)
            found = partial if task.record.output is None else answer.artifacts
            if found and artifacts:
                shown["artifacts"] = list(found)
        if history != 0:
            messages = await self._history(task)
            shown["history"] = messages if history is None else messages[-history:]
        return shown

    async def _history(self, task: CallerTask) -> list[Json]:
        run_id = task.record.id
        messages: list[Json] = [message_json(task.message, run_id)]
        # A run without a reply, which most are, has none.
        if any(step.replies or step.reply is not None for step in task.steps):
            for follow_up in await self._store.published_tasks.follow_ups(run_id):
                messages += [
                    decode(follow_up.question),
                    message_json(decode_caller_message(follow_up.answer), run_id),
                ]
        return messages


def _add_answer(shown: JsonObject, task: CallerTask, answer: PublishedAnswer) -> None:
    """What an agent has said of its task beyond the artifacts."""
    said = answer.status_message or answer.message
    if said is not None:
        shown["status"] = {**status_of(task), "message": said_message(task.record.id, task.message, said)}
    if answer.metadata is not None:
        shown["metadata"] = answer.metadata


def said_message(run_id: RunId, message: CallerMessage, said: JsonObject) -> JsonObject:
    """A message of an agent as a part of its caller's task."""
    return {"messageId": f"{run_id}/answer", **said, "taskId": run_id, "contextId": message.context_id}


def submitted(task: CallerTask) -> JsonObject:
    """A task as it was when its message was stored."""
    return {
        "id": task.record.id,
        "contextId": task.message.context_id,
        "status": {"state": state_v1("submitted"), "timestamp": timestamp(task.record.created_at)},
        "history": [message_json(task.message, task.record.id)],
    }


def status_of(task: CallerTask) -> JsonObject:
    state = task.state
    at = task.record.finished_at or task.stored.updated_at
    status: JsonObject = {"state": state_v1(state), "timestamp": timestamp(at)}
    message = status_message(task)
    if message is not None:
        status["message"] = message
    return status


def status_message(task: CallerTask) -> JsonObject | None:
    """The question of a task that waits, or why a task has failed."""
    step = task.question
    if step is not None and step.waiting_for is not None:
        parts = question_parts(step.waiting_for)
        return agent_message(task, f"question/{step.name}/{step.replies}", parts)
    error = task.record.error
    if task.record.status == "FAILED" and error is not None:
        return agent_message(task, "error", [{"text": failure_text(error.message)}])
    return None


def agent_message(task: CallerTask, name: str, parts: Sequence[JsonObject]) -> JsonObject:
    """`name`: unique in the task, and always the same for the same message."""
    return {
        "messageId": f"{task.record.id}/{name}",
        "contextId": task.message.context_id,
        "taskId": task.record.id,
        "role": "ROLE_AGENT",
        "parts": list(parts),
    }


def question_parts(waiting: WaitingFor) -> list[JsonObject]:
    parts: list[JsonObject] = [{"text": waiting.text}]
    if waiting.data is not None:
        parts.append({"data": waiting.data})
    return parts


_TASK_STATE = re.compile(r"Task state: [a-z_-]+: (.+)", re.DOTALL)


def failure_text(message: str) -> str:
    """
    What a caller reads: the message of an error, and of an agent's failed task the agent's own words.

    How to fix it is for the operator, who finds it with the run.
    """
    match = _TASK_STATE.fullmatch(message)
    return message if match is None else match[1]
