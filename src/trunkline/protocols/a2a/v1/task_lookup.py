"""
Our task among those that an agent lists.

    {"tasks": [{"id", "contextId", "history": [{"messageId": "msg-<task id>", …}], …}], "nextPageToken": ""}

The task that has our message in its history is ours. In a context that we made up for this one task, every task
is; of several the one that moved last, which agents list first. In a context that others have used before us, a
task without history may be theirs: then the task cannot be identified.
"""

from __future__ import annotations

from trunkline.jsontypes import Json, JsonObject
from trunkline.messages import AgentTask
from trunkline.protocols.a2a.v1.request import has_own_context, message_id
from trunkline.protocols.answer_json import NotJson, json_kind


class TaskNotIdentifiable(Exception):
    """The agent's list does not show whether it has our task."""


def find_task(listed: Json, task: AgentTask) -> str | None:
    """The id of our task; None: the agent does not have it. Raises `TaskNotIdentifiable`, or `NotJson` for no list."""
    tasks = _tasks_in(listed)
    ours = message_id(task)
    for item in tasks:
        if ours in _message_ids(item):
            return _id_of(item)
    if has_own_context(task):
        return _id_of(tasks[0]) if tasks else None
    if isinstance(listed, dict) and (listed.get("nextPageToken") or listed.get("next_page_token")):
        raise TaskNotIdentifiable("The agent has more tasks in this context than fit on one page of its list")
    if any(not _message_ids(item) for item in tasks):
        raise TaskNotIdentifiable("The agent lists its tasks without their messages")
    return None


def _tasks_in(listed: Json) -> list[JsonObject]:
    tasks = listed.get("tasks", []) if isinstance(listed, dict) else listed
    if not isinstance(tasks, list):
        raise NotJson(f"The list of tasks is {json_kind(tasks)}, not an array")
    return [item for item in tasks if isinstance(item, dict) and _id_of(item) is not None]


def _id_of(item: JsonObject) -> str | None:
    name = item.get("id")
    return name if isinstance(name, str) and name else None


def _message_ids(item: JsonObject) -> set[str]:
    history = item.get("history")
    messages = (
        [message for message in history if isinstance(message, dict)] if isinstance(history, list) else []
    )
    named = [message.get("messageId", message.get("message_id")) for message in messages]
    return {name for name in named if isinstance(name, str)}
