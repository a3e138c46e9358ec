"""Human tasks as REST shows them, and the answers of people to them and to the questions of agents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, ClassVar, TypedDict, cast

import msgspec
from msgspec import UNSET, Meta, UnsetType

from trunkline.api.resources.common import JsonMapping, JsonValue, Timestamp
from trunkline.jsontypes import JsonObject
from trunkline.machine.events import shown_human_task
from trunkline.machine.state import WaitingFor
from trunkline.services.people.answers import MAX_ANSWER, MAX_COMMENT


class HumanTaskFields(TypedDict, total=False):
    """What a step with `ask` has given to people. Items of other kinds have only some of it."""

    title: Annotated[str, Meta(description="What the person has to do, in one line.")]
    options: Annotated[Sequence[str], Meta(description="The possible answers. Empty: any text.")]
    form: Annotated[JsonValue, Meta(description="The JSON Schema of the answer's `data`. Null: any JSON.")]
    assignees: Annotated[Sequence[str], Meta(description="The people or groups who should answer.")]
    due: Annotated[Timestamp | None, Meta(description="When the task becomes overdue.")]
    required: Annotated[int, Meta(description="How many people must give the first option.")]
    exclude_starter: Annotated[
        bool, Meta(description="Whether the person who started the run cannot answer.")
    ]
    only_assignees: Annotated[bool, Meta(description="Whether only the assignees can answer.")]
    answers: Annotated[Sequence[JsonValue], Meta(description="The answers so far.")]
    claimed_by: Annotated[
        str | None, Meta(description="Who works on it. Other people cannot answer until it is released.")
    ]
    claimed_at: Timestamp | None


class ReplyRequest(msgspec.Struct, forbid_unknown_fields=True):
    """
    To an agent's question: at least one of `text`, `data` and `parts`.

    To a human task: at least one of `answer`, `data` and `comment`, as its options and its form require.
    """

    SCHEMA: ClassVar[JsonObject] = {
        "anyOf": [{"required": [name]} for name in ("text", "data", "parts", "answer", "comment")]
    }

    text: str | UnsetType = UNSET
    data: JsonMapping | list[JsonValue] | str | int | float | bool | UnsetType = UNSET
    # An empty text is a valid reply, but a message needs at least one part.
    parts: (
        Annotated[
            list[JsonMapping],
            Meta(
                min_length=1,
                description="Parts as in a step's input: {text}, {data}, {raw, mediaType}, {url, mediaType}.",
            ),
        ]
        | UnsetType
    ) = UNSET
    answer: (
        Annotated[
            str,
            Meta(
                min_length=1, max_length=MAX_ANSWER, description="One of the task's options, if it has some."
            ),
        ]
        | UnsetType
    ) = UNSET
    comment: Annotated[str, Meta(max_length=MAX_COMMENT)] | UnsetType = UNSET
    item: (
        Annotated[
            str,
            Meta(
                description="Id of the inbox item to answer. If the step now asks another question, the "
                "request fails."
            ),
        ]
        | UnsetType
    ) = UNSET


def human_task_fields(waiting: WaitingFor, form: JsonObject | None) -> HumanTaskFields:
    """Empty if the wait is for something else, and has no assignees and no claim."""
    if waiting.human_task is None:
        return {}
    shown = shown_human_task(waiting.human_task)
    return cast("HumanTaskFields", {**shown, "form": form} if waiting.kind == "person" else shown)
