"""
What a handler can give back, yield or raise.

    "text", {"json": …}     the answer; a text that is yielded is a piece of it
    Artifact(name, …)       a result with a name: a text, data or a file
    Status("Looking")       yielded: what goes on
    Question("Which?")      yielded: what the caller sends next is what `yield` gives
                            returned: the handler is called again with what the caller sends next
    AgentError("why")       raised: the task has failed
    Rejected("why")         raised: the task is not taken on
"""

from __future__ import annotations

from typing import cast

import msgspec
from msgspec import UNSET, UnsetType

from trunkline.agentkit.json_values import Json, encode
from trunkline.agentkit.parts import Data, File, Part, clean


class Artifact:
    """A result with a name; exactly one of `text`, `data` and `file`."""

    def __init__(
        self,
        name: str,
        text: str | None = None,
        *,
        data: object = UNSET,
        file: File | None = None,
        description: str | None = None,
    ) -> None:
        if (text is not None) + (data is not UNSET) + (file is not None) != 1:
            raise ValueError("An artifact has exactly one of text, data and file.")
        self.name = name
        self.description = description
        self.part: Part
        if text is not None:
            self.part = clean(text)
        else:
            self.part = Data(data=plain(data)) if file is None else file


class Status(msgspec.Struct, frozen=True):
    text: str


class Question(msgspec.Struct, frozen=True):
    text: str


class AgentError(Exception):
    """The task has failed; the message is for the caller."""


class Rejected(Exception):
    """The task is not taken on; the message is for the caller."""


def artifacts_of(given: object) -> list[Artifact]:
    """What a handler has given, as artifacts; raises a `TypeError` for what is not JSON."""
    if given is None:
        return []
    if isinstance(given, Artifact):
        return [given]
    if isinstance(given, list | tuple):
        items = cast("list[object] | tuple[object, ...]", given)
        if all(isinstance(item, Artifact) for item in items):
            return cast("list[Artifact]", list(items))
    if isinstance(given, str):
        return [Artifact("answer", given)]
    return [Artifact("answer", data=cast("object", given))]


def plain(value: object | UnsetType) -> Json:
    """The value as JSON; also of dataclasses, structs, dates and the like."""
    try:
        built = cast("Json", msgspec.to_builtins(value, str_keys=True, builtin_types=()))
        # What is JSON by its types may still have a text in it that cannot be written.
        encode(built)
    except (TypeError, ValueError, RecursionError) as exc:
        raise TypeError(
            f"A handler must return a string, a JSON value or an Artifact, not {type(value).__name__}: {exc}"
        ) from exc
    return built
