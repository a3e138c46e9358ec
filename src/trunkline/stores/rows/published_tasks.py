"""Tasks of A2A callers, their follow-up messages, and their push notification configs."""

from __future__ import annotations

from trunkline.clock import Instant
from trunkline.ids import RunId
from trunkline.machine.state import RunState, task_state
from trunkline.messages import decode_caller_message
from trunkline.stores.port.published_tasks import FollowUp, PublishedTask
from trunkline.stores.port.push_configs import PushConfig, PushConfigKey
from trunkline.stores.port.runs import NewRun
from trunkline.stores.rows import Row, Value

TASK_COLUMNS = "run_id, publication, caller, context_id, state, updated_at"
PUSH_CONFIG_COLUMNS = "run_id, id, sealed, created_at, failures, error, disabled_at"


def new_task_values(run: NewRun) -> tuple[Value, ...] | None:
    """Run id, publication, caller, context id, state, updated_at; None: no caller started the run."""
    if run.message is None or run.block is not None:
        return None
    message = decode_caller_message(run.message)
    return (run.id, message.publication, message.caller, message.context_id, "submitted", run.created_at)


def task_change_values(state: RunState, at: Instant) -> tuple[Value, ...] | None:
    """State, updated_at, run id; None: no caller started the run."""
    if state.message is None or state.block is not None:
        return None
    return (task_state(state.status, state.error, state.steps.values()), at, state.id)


def published_task(row: Row) -> PublishedTask:
    run_id, publication, caller, context_id, state, updated_at = row
    return PublishedTask(
        run_id=run_id,
        publication=publication,
        caller=caller,
        context_id=context_id,
        state=state,
        updated_at=updated_at,
    )


def follow_up_values(follow_up: FollowUp) -> tuple[Value, ...]:
    """Run id, key, at, question, answer."""
    return (follow_up.run_id, follow_up.key, follow_up.at, follow_up.question, follow_up.answer)


def follow_up(row: Row) -> FollowUp:
    run_id, key, at, question, answer = row
    return FollowUp(run_id=RunId(run_id), key=key, at=Instant(at), question=question, answer=answer)


def push_config(row: Row) -> PushConfig:
    """From `PUSH_CONFIG_COLUMNS`."""
    run_id, identity, sealed, created_at, failures, error, disabled_at = row
    return PushConfig(
        key=PushConfigKey(RunId(run_id), identity),
        sealed=bytes(sealed),
        created_at=Instant(created_at),
        failures=failures,
        error=error,
        disabled_at=disabled_at,
    )
