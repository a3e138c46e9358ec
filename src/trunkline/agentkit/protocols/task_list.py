"""
`ListTasks`: the tasks of one context, the one that moved last first.

    {"contextId", "status", "statusTimestampAfter", "pageSize", "pageToken", "historyLength", "includeArtifacts"}
    -> {"tasks", "nextPageToken", "pageSize", "totalSize"}

The context is required: a caller that knows it takes part in it, and must not see the tasks of other callers.
"""

from __future__ import annotations

from datetime import UTC, datetime

from trunkline.agentkit.errors import invalid_params
from trunkline.agentkit.json_values import Json, JsonObject
from trunkline.agentkit.protocols.a2a_v1 import STATES
from trunkline.agentkit.protocols.base import A2ADialect, flag_in
from trunkline.agentkit.task_execution import TaskExecution
from trunkline.agentkit.task_store import InMemoryTaskStore

_PAGE = 50
_MAX_PAGE = 100


def list_tasks(store: InMemoryTaskStore, dialect: A2ADialect, params: JsonObject) -> JsonObject:
    context_id = params.get("contextId")
    if not isinstance(context_id, str) or not context_id:
        raise invalid_params("contextId is missing: this agent lists the tasks of one context")
    history = dialect.history_length(params)
    artifacts = flag_in(params, "includeArtifacts") or False
    size = _page_size(params)
    found = _wanted(store.in_context(context_id), params)
    rest = _after(found, params.get("pageToken"))
    page = rest[:size]
    tasks: list[Json] = [dialect.task(execution, history, artifacts=artifacts) for execution in page]
    more = page[-1].id if len(rest) > size else ""
    return {"tasks": tasks, "nextPageToken": more, "pageSize": size, "totalSize": len(found)}


def _page_size(params: JsonObject) -> int:
    size = params.get("pageSize", _PAGE)
    if not isinstance(size, int) or isinstance(size, bool) or not 0 <= size <= _MAX_PAGE:
        raise invalid_params(f"pageSize must be a whole number from 1 to {_MAX_PAGE}")
    # As ProtoJSON writes a field that is not set.
    return size or _PAGE


def _wanted(executions: list[TaskExecution], params: JsonObject) -> list[TaskExecution]:
    state = params.get("status")
    if state not in (None, "", "TASK_STATE_UNSPECIFIED"):
        if state not in STATES.values():
            raise invalid_params("status is not a task state")
        executions = [execution for execution in executions if STATES[execution.state] == state]
    after = params.get("statusTimestampAfter")
    if after is None:
        return executions
    try:
        since = datetime.fromisoformat(str(after))
    except ValueError as exc:
        raise invalid_params("statusTimestampAfter is not a time") from exc
    since = since if since.tzinfo is not None else since.replace(tzinfo=UTC)
    return [execution for execution in executions if execution.status.at >= since]


def _after(executions: list[TaskExecution], token: Json) -> list[TaskExecution]:
    if token in (None, ""):
        return executions
    places = [index for index, execution in enumerate(executions) if execution.id == token]
    if not places:
        raise invalid_params("pageToken is not known")
    return executions[places[0] + 1 :]
