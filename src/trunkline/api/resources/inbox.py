"""The inbox: steps that wait for a person."""

from __future__ import annotations

from typing import Annotated, Literal, TypedDict, cast

import msgspec
from msgspec import Meta

from trunkline.api.resources.automation.human_tasks import HumanTaskFields, human_task_fields
from trunkline.api.resources.common import JsonValue, NextCursor, Timestamp, time_or_none
from trunkline.api.resources.runs import WorkflowReference
from trunkline.clock import rfc3339
from trunkline.durations import DURATION_PATTERN, format_duration
from trunkline.services.people.answer_links import DEFAULT_LIFETIME, MAX_LIFETIME, MAX_PERSON, AnswerLink
from trunkline.services.people.comments import MAX_COMMENT
from trunkline.services.runs.inbox import InboxEntry
from trunkline.stores.port.human_tasks import TaskComment

InboxKind = Literal["input", "auth", "outcome", "person", "compensation"]


class InboxItemResource(HumanTaskFields):
    """A step that waits for a person."""

    id: Annotated[
        str, Meta(description="Id of this question. If the step asks again, the next question has a new id.")
    ]
    run_id: str
    workflow: WorkflowReference
    step: str
    agent: Annotated[str, Meta(description="Empty if the step does not call an agent.")]
    protocol: Annotated[str | None, Meta(description="The dialect of the call.")]
    attempt: int
    kind: InboxKind
    text: Annotated[
        str,
        Meta(
            description="The agent's question, the text of the human task, or a description of the unknown outcome."
        ),
    ]
    data: Annotated[JsonValue, Meta(description="Structured data that the agent sent with its question.")]
    since: Timestamp
    until: Annotated[
        Timestamp | None,
        Meta(description="When the step fails if it gets no answer. Null if it waits indefinitely."),
    ]
    reply_url: Annotated[
        str,
        Meta(
            description="Where to answer: `reply` for a question or a human task, `resolve` for an unknown outcome.",
            examples=["/api/v1/runs/018f…/steps/approve/reply"],
        ),
    ]


class InboxPage(TypedDict):
    items: list[InboxItemResource]
    next_cursor: NextCursor


class CommentRequest(msgspec.Struct, forbid_unknown_fields=True):
    text: Annotated[str, Meta(min_length=1, max_length=MAX_COMMENT)]


class CommentResource(TypedDict):
    """What a person has written about an inbox item, for other people."""

    at: Timestamp
    by: Annotated[str | None, Meta(description="Null if the server requires no API keys.")]
    text: str


class CommentPage(TypedDict):
    items: list[CommentResource]
    next_cursor: NextCursor


def comment_resource(comment: TaskComment) -> CommentResource:
    return {"at": rfc3339(comment.at), "by": comment.by, "text": comment.text}


class FileBlob(TypedDict):
    run: str
    id: Annotated[str, Meta(description="The SHA-256 of the content.")]
    bytes: int
    href: Annotated[str, Meta(description="Where to download the file.")]


class UploadedFileResource(TypedDict):
    """A file for the answer to an inbox item. Send it as the value of the form's field."""

    name: str
    mediaType: str
    blob: FileBlob


class AnswerLinkRequest(msgspec.Struct, forbid_unknown_fields=True):
    person: Annotated[
        str,
        Meta(
            description="Who answers with the link: the name of a key, or any other name.",
            min_length=1,
            max_length=MAX_PERSON,
        ),
    ]
    expires_in: Annotated[
        str,
        Meta(
            description=f"How long the link works, up to {MAX_LIFETIME.days}d.",
            extra_json_schema={"pattern": DURATION_PATTERN},
        ),
    ] = format_duration(DEFAULT_LIFETIME)


class AnswerLinkResource(TypedDict):
    """An address at which one person can answer one question without an API key."""

    url: Annotated[str, Meta(description="A path if the setting `public_url` is not set.")]
    item: Annotated[str, Meta(description="Id of the inbox item.")]
    person: str
    expires_at: Timestamp


def answer_link_resource(link: AnswerLink, url: str) -> AnswerLinkResource:
    return {"url": url, "item": link.item, "person": link.person, "expires_at": rfc3339(link.expires_at)}


def inbox_item(entry: InboxEntry) -> InboxItemResource:
    waiting = entry.waiting_for
    answer = "resolve" if waiting.kind in {"outcome", "compensation"} else "reply"
    return {
        "id": entry.id,
        "run_id": entry.run_id,
        "workflow": {"name": entry.workflow_name, "version": entry.workflow_version},
        "step": entry.step,
        "agent": entry.agent,
        "protocol": entry.protocol,
        "attempt": entry.attempt,
        # The store lists only steps that wait for a person.
        "kind": cast("InboxKind", waiting.kind),
        "text": waiting.text,
        "data": waiting.data,
        "since": rfc3339(entry.since),
        "until": time_or_none(waiting.until),
        "reply_url": f"/api/v1/runs/{entry.run_id}/steps/{entry.step}/{answer}",
        **human_task_fields(waiting, entry.form),
    }
