"""What the API shows of the inbox, as JSON text. `schemas.inbox` describes the same shapes for OpenAPI."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from trunkline.api.views import page_json
from trunkline.clock import rfc3339
from trunkline.jsontypes import Json, encode
from trunkline.services.runs.inbox import InboxEntry


class _Workflow(msgspec.Struct):
    name: str
    version: int


class _Item(msgspec.Struct):
    id: str
    run_id: str
    workflow: _Workflow
    step: str
    agent: str
    protocol: str | None
    attempt: int
    kind: str
    text: str
    data: Json
    since: str
    until: str | None
    reply_url: str


def _item(entry: InboxEntry) -> _Item:
    waiting = entry.waiting_for
    answer = "resolve" if waiting.kind == "outcome" else "reply"
    return _Item(
        entry.id,
        entry.run_id,
        _Workflow(entry.workflow_name, entry.workflow_version),
        entry.step,
        entry.agent,
        entry.protocol,
        entry.attempt,
        waiting.kind,
        waiting.text,
        waiting.data,
        rfc3339(entry.since),
        None if waiting.until is None else rfc3339(waiting.until),
        f"/api/v1/runs/{entry.run_id}/steps/{entry.step}/{answer}",
    )


def inbox_item_json(entry: InboxEntry) -> bytes:
    return encode(_item(entry))


def inbox_json(entries: Sequence[InboxEntry], next_cursor: str | None) -> bytes:
    return page_json([_item(entry) for entry in entries], next_cursor)
