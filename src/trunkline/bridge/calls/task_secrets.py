"""
The named secrets of one call: opened before anything is sent, and put into a copy of its input.

    task.secrets        {"/bot_token": "slack-bot"}        where they go; the input has {"$secret": "slack-bot"} there
    task.told_secrets   ["slack-bot"]                      the agent may have them from another message of the run

What is filled in lives as long as the call, and only where it is encoded: claims, records and logs have the task as it
came.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

from msgspec.structs import replace

from trunkline.errors import ConfigurationError
from trunkline.jsontypes import Json
from trunkline.messages import AgentTask, StepError, complete_fix, fix_for
from trunkline.services.security.secrets import OpenedSecret, Secrets
from trunkline.workflow import SECRET_KEY

# What is sent to a place of this name is found by it in the task.
_Values = Mapping[str, OpenedSecret]


class TaskSecrets:
    """Opened. What it holds is never shown."""

    def __init__(self, task: AgentTask, values: _Values) -> None:
        # The task as it is encoded; what is kept and shown of it is the other one.
        self.filled = _filled(task, values)
        self.hidden = tuple(text for opened in values.values() for text in opened.hidden)
        sent = ", ".join(sorted({*task.secrets.values()}))
        # For records, and for commands that are copied from them.
        self.notes = (f"The request body contained secrets, which are not shown: {sent}.",) if sent else ()


async def open_secrets(task: AgentTask, secrets: Secrets) -> TaskSecrets | StepError:
    """Why they cannot be had, if so; raises `Unavailable`."""
    values: dict[str, OpenedSecret] = {}
    for name in {*task.secrets.values()}:
        try:
            opened = await secrets.open(name)
        except ConfigurationError:
            return _error(
                "secret_unreadable", f"The secret {name} cannot be decrypted with the current key.", name
            )
        if opened is None:
            return _error("secret_missing", f"The secret {name} does not exist.", name)
        values[name] = opened
    for name in task.told_secrets:
        # What is gone cannot be hidden any more; this call does without it.
        with suppress(ConfigurationError):
            opened = await secrets.open(name)
            if opened is not None:
                values[name] = opened
    try:
        return TaskSecrets(task, values)
    except LookupError as exc:
        return StepError(
            code="request_not_encodable", message=str(exc.args[0]), fix=fix_for("request_not_encodable")
        )


def _error(code: str, message: str, name: str) -> StepError:
    error = StepError(code=code, message=message)
    complete_fix(error, secret=name)
    return error


def _filled(task: AgentTask, values: _Values) -> AgentTask:
    if not task.secrets:
        return task
    filled = task.input_data
    for pointer, name in task.secrets.items():
        keys = [key.replace("~1", "/").replace("~0", "~") for key in pointer.split("/")[1:]]
        filled = _with(filled, keys, name, values[name].value)
    return replace(task, input_data=filled)


def _with(value: Json, keys: list[str], name: str, secret: str) -> Json:
    """A copy along the path to the place; everything else is the same object."""
    if not keys:
        # Only what the definition has put there may be replaced: a place that holds anything else is not the place.
        if value != {SECRET_KEY: name}:
            raise LookupError(f"The input has no place for the secret {name} where the workflow says it is.")
        return secret
    key, rest = keys[0], keys[1:]
    match value:
        case dict() if key in value:
            return {**value, key: _with(value[key], rest, name, secret)}
        case list() if key.isdecimal() and int(key) < len(value):
            index = int(key)
            return [*value[:index], _with(value[index], rest, name, secret), *value[index + 1 :]]
        case _:
            raise LookupError(f"The input has no place for the secret {name} where the workflow says it is.")
