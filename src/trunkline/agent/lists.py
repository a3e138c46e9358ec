"""
`ListTasks`: the tasks of one context, the one that moved last first.

    {"contextId", "status", "statusTimestampAfter", "pageSize", "pageToken", "historyLength", "includeArtifacts"}
    -> {"tasks", "nextPageToken", "pageSize", "totalSize"}

The context must be named: whoever knows it has taken part in it, and the tasks of others are not theirs to see.
"""

from __future__ import annotations

from datetime import UTC, datetime

from trunkline.agent.a2a_v1 import STATES
from trunkline.agent.dialect import Dialect, flag_in
from trunkline.agent.refusals import invalid_params
from trunkline.agent.shelf import Shelf
from trunkline.agent.values import Json, JsonObject
from trunkline.agent.work import Work

_PAGE = 50
_MAX_PAGE = 100


def list_tasks(shelf: Shelf, dialect: Dialect, params: JsonObject) -> JsonObject:
    context_id = params.get("contextId")
    if not isinstance(context_id, str) or not context_id:
        raise invalid_params("contextId is missing: this agent lists the tasks of one context")
    history = dialect.history_length(params)
    artifacts = flag_in(params, "includeArtifacts") or False
    size = _page_size(params)
    found = _wanted(shelf.in_context(context_id), params)
    rest = _after(found, params.get("pageToken"))
    page = rest[:size]
    tasks: list[Json] = [dialect.task(work, history, artifacts=artifacts) for work in page]
    more = page[-1].id if len(rest) > size else ""
    return {"tasks": tasks, "nextPageToken": more, "pageSize": size, "totalSize": len(found)}


def _page_size(params: JsonObject) -> int:
    size = params.get("pageSize", _PAGE)
    if not isinstance(size, int) or isinstance(size, bool) or not 0 <= size <= _MAX_PAGE:
        raise invalid_params(f"pageSize must be a whole number from 1 to {_MAX_PAGE}")
    # As ProtoJSON writes what nobody has set.
    return size or _PAGE


def _wanted(works: list[Work], params: JsonObject) -> list[Work]:
    state = params.get("status")
    if state not in (None, "", "TASK_STATE_UNSPECIFIED"):
        if state not in STATES.values():
            raise invalid_params("status is none of the states of a task")
        works = [work for work in works if STATES[work.state] == state]
    after = params.get("statusTimestampAfter")
    if after is None:
        return works
    try:
        since = datetime.fromisoformat(str(after))
    except ValueError as exc:
        raise invalid_params("statusTimestampAfter is not a time") from exc
    since = since if since.tzinfo is not None else since.replace(tzinfo=UTC)
    return [work for work in works if work.status.at >= since]


def _after(works: list[Work], token: Json) -> list[Work]:
    if token in (None, ""):
        return works
    places = [index for index, work in enumerate(works) if work.id == token]
    if not places:
        raise invalid_params("pageToken is not known")
    return works[places[0] + 1 :]
