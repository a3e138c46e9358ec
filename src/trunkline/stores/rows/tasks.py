"""Tasks and their claims."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from trunkline.messages import AgentTask, TaskKey
from trunkline.stores.payloads import joined
from trunkline.stores.port.tasks import ClaimedTask, QueuedTask, TaskAnswer
from trunkline.stores.rows import Row, Value

_tasks: msgspec.json.Decoder[AgentTask] = msgspec.json.Decoder(AgentTask)


# Where the values of a task, and the columns of a claim, have the encoded task.
TASK_PAYLOADS = (6,)
CLAIM_PAYLOAD = 2


def key_of(item: QueuedTask) -> TaskKey:
    return TaskKey(item.task.task_id, item.task.attempt)


# A task's id is its run's id, its step and a number, with slashes between them.
def run_of(task_id: str) -> str:
    return task_id.partition("/")[0]


def step_of(task_id: str) -> str:
    return task_id.partition("/")[2].rpartition("/")[0]


def queued_task_values(item: QueuedTask) -> tuple[Value, ...]:
    """Task id, attempt, run id, agent, pool, at_most_once, payload."""
    task = item.task
    return (
        task.task_id,
        task.attempt,
        task.run_id,
        task.agent,
        task.pool,
        int(task.at_most_once),
        item.payload,
    )


def claimed_task(row: Row, bodies: Mapping[bytes, bytes]) -> ClaimedTask:
    """`bodies`: of the pieces of its payload."""
    task_id, attempt, payload, epoch, remote_task_id, context_id, deadline, called_at, polls = row
    payload = joined(payload, bodies)
    return ClaimedTask(
        key=TaskKey(task_id, attempt),
        task=_tasks.decode(payload),
        epoch=epoch,
        remote_task_id=remote_task_id,
        context_id=context_id,
        deadline=deadline,
        called_at=called_at,
        polls=polls,
        payload_bytes=len(payload),
    )


def answer_values(answer: TaskAnswer) -> tuple[Value, ...]:
    """
    Task id, attempt, epoch, status, poll_at, polls, deadline, result, remote task id, context id, called_at, ended_at,
    outcome, error code, payload.
    """
    return (
        answer.key.task_id,
        answer.key.attempt,
        answer.epoch,
        answer.new_status,
        answer.poll_at,
        answer.polls,
        answer.deadline,
        answer.result,
        answer.remote_task_id,
        answer.context_id,
        answer.called_at,
        answer.ended_at,
        answer.outcome,
        answer.error_code,
        answer.payload,
    )
