"""
`ListTasks`: a caller's tasks of one publication, last changed first.

    params   {"contextId", "status", "statusTimestampAfter", "pageSize", "pageToken", "historyLength",
              "includeArtifacts"}
    result   {"tasks", "nextPageToken": "" at the end, "pageSize", "totalSize"}
"""

from __future__ import annotations

import binascii
import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from datetime import UTC, datetime, timedelta
from typing import get_args

from trunkline.clock import Instant
from trunkline.ids import RunId
from trunkline.jsontypes import Json, JsonObject, encode
from trunkline.machine.state import TaskState
from trunkline.publishing.errors import A2AError, ErrorKind, invalid_params
from trunkline.publishing.messages import field_of, flag, history_length, text_field, whole_number
from trunkline.publishing.operations import Caller, PublishedOperations
from trunkline.publishing.publications import Publication
from trunkline.publishing.tasks import state_v1
from trunkline.stores.base import PublishedTask, TaskFilter, TaskPlace

DEFAULT_PAGE_SIZE = 50
MAX_PAGE_SIZE = 100
# As in the lists of the API: a page with long tasks ends earlier.
MAX_PAGE_BYTES = 8 * 1024 * 1024

_STATES: dict[str, TaskState] = {state_v1(state): state for state in get_args(TaskState)}
_NO_STATE = "TASK_STATE_UNSPECIFIED"
_WRONG_TOKEN = "pageToken is not one that this list has returned"  # noqa: S105 - a message
# The stores compare with whole numbers of 64 bits.
_PLACE = re.compile(r"([0-9]{1,18})/([0-9a-zA-Z-]{1,100})")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class TaskLists:
    def __init__(self, operations: PublishedOperations) -> None:
        self._operations = operations

    async def page(
        self, publication: Publication, caller: Caller, params: JsonObject, version: str
    ) -> JsonObject:
        if caller.is_anonymous:
            raise A2AError(ErrorKind.UNSUPPORTED_OPERATION, "Listing tasks needs an API key.")
        limit = _page_size(params)
        where = TaskFilter(
            publication=publication.key,
            caller=caller.key_id,
            context_id=text_field(params, "contextId"),
            state=_state(params),
            since=_since(params),
        )
        history = history_length(params, version)
        artifacts = flag(params, "includeArtifacts") is True
        stored = await self._operations.stored(where, limit=limit + 1, before=_place(params))
        tasks: list[Json] = []
        size, read = 0, 0
        for each in stored[:limit]:
            read += 1
            task = await self._operations.of(each)
            if task is not None:
                shown = await self._operations.shown(task, history=history, artifacts=artifacts)
                size += len(encode(shown))
                tasks.append(shown)
            if size > MAX_PAGE_BYTES:
                break
        return {
            "tasks": tasks,
            "nextPageToken": _token(stored[read - 1]) if read < len(stored) else "",
            "pageSize": limit,
            "totalSize": await self._operations.count(where),
        }


def _page_size(params: JsonObject) -> int:
    value = field_of(params, "pageSize")
    if value is None:
        return DEFAULT_PAGE_SIZE
    size = whole_number(value)
    if size is None or not 1 <= size <= MAX_PAGE_SIZE:
        raise invalid_params(f"pageSize must be from 1 to {MAX_PAGE_SIZE}")
    return size


def _state(params: JsonObject) -> TaskState | None:
    value = text_field(params, "status")
    if value is None or value == _NO_STATE:
        return None
    if value not in _STATES:
        raise invalid_params(f"status must be one of {', '.join(_STATES)}")
    return _STATES[value]


def _since(params: JsonObject) -> Instant | None:
    value = text_field(params, "statusTimestampAfter")
    if value is None:
        return None
    try:
        at = datetime.fromisoformat(value)
    except ValueError as exc:
        raise invalid_params("statusTimestampAfter must be a time such as 2026-03-01T12:00:00Z") from exc
    # Timestamps may lack a zone; then they are in UTC.
    passed = (at if at.tzinfo is not None else at.replace(tzinfo=UTC)) - _EPOCH
    return Instant(passed // timedelta(microseconds=1))


def _token(last: PublishedTask) -> str:
    place = TaskPlace(last.updated_at, last.run_id)
    return urlsafe_b64encode(f"{place.updated_at}/{place.run_id}".encode()).decode().rstrip("=")


def _place(params: JsonObject) -> TaskPlace | None:
    token = text_field(params, "pageToken")
    if token is None:
        return None
    try:
        text = urlsafe_b64decode(token + "=" * (-len(token) % 4)).decode()
    except (binascii.Error, ValueError) as exc:
        raise invalid_params(_WRONG_TOKEN) from exc
    place = _PLACE.fullmatch(text)
    if place is None:
        raise invalid_params(_WRONG_TOKEN)
    return TaskPlace(Instant(int(place[1])), RunId(place[2]))
