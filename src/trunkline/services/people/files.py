"""
Files of people: uploaded for the answer to an inbox item, and kept in the file store as long as the run.

The answer's data contains a reference in the form that step outputs have (`bridge/calls/attachments.py`), so a step
can pass a file on to an agent as a part of a message.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from trunkline.clock import Clock
from trunkline.errors import Conflict, Finding, Invalid
from trunkline.ids import RunId
from trunkline.jsontypes import Json, JsonObject
from trunkline.services.operations.audit_log import audit_entry
from trunkline.services.people.comments import MAX_COMMENTS
from trunkline.services.runs.inbox import Inbox
from trunkline.stores.base import Store
from trunkline.stores.blobs import BlobStore
from trunkline.stores.port.human_tasks import HumanTaskKey, TaskComment
from trunkline.workflow.actions.form_fields import FormField, form_of_schema

# A request is in memory as a whole.
MAX_FILE_BYTES = 20 * 1024 * 1024
MAX_FILE_NAME = 255
_MEDIA_TYPE = re.compile(r"[A-Za-z0-9!#$&^_.+-]{1,127}/[A-Za-z0-9!#$&^_.+-]{1,127}")
_DIGEST = re.compile(r"[0-9a-f]{64}")


class AnswerFiles:
    def __init__(self, store: Store, inbox: Inbox, blobs: BlobStore | None, clock: Clock) -> None:
        self._store = store
        self._inbox = inbox
        self._blobs = blobs
        self._clock = clock

    async def put(
        self, item: str, name: str, media_type: str, content: bytes, *, by: str | None
    ) -> JsonObject:
        """
        The reference, for the answer's data. The item shows the upload as a comment, and counts it as one.

        Raises `NotFound`, `Invalid` and `Conflict`.
        """
        entry = await self._inbox.get(item)
        _check(name, media_type, content)
        if self._blobs is None:
            raise Conflict(
                "The file cannot be uploaded, because this server has no place for files.",
                fix="Set TRUNKLINE_BLOBS to a folder or to s3://bucket/prefix, or answer without the file.",
            )
        key = HumanTaskKey(entry.run_id, entry.step, entry.attempt, entry.replies)
        if len(await self._store.human_tasks.comments(key)) >= MAX_COMMENTS:
            raise _too_many(entry.id)
        digest = await self._blobs.put(entry.run_id, content)
        uploaded = TaskComment(at=self._clock.now(), by=by, text=f"Uploaded {name} ({len(content):,} bytes)")
        async with self._store.transaction() as tx:
            if not await tx.human_tasks.comment(key, uploaded, most=MAX_COMMENTS):
                raise _too_many(entry.id)
            await tx.audit.put(
                [audit_entry("run", "upload", entry.run_id, who=by, step=entry.step, file=digest)]
            )
        href = f"/api/v1/runs/{entry.run_id}/blobs/{digest}"
        blob: JsonObject = {"run": entry.run_id, "id": digest, "bytes": len(content), "href": href}
        return {"name": name, "mediaType": media_type, "blob": blob}


def _check(name: str, media_type: str, content: bytes) -> None:
    findings: list[Finding] = []
    if not 1 <= len(name) <= MAX_FILE_NAME or not name.isprintable() or "/" in name:
        message = f"must be a file name of 1 to {MAX_FILE_NAME} characters without slashes"
        findings.append(Finding(path="name", message=message))
    if not _MEDIA_TYPE.fullmatch(media_type):
        findings.append(Finding(path="Content-Type", message=f"{media_type[:100]!r} is not a media type"))
    if not 1 <= len(content) <= MAX_FILE_BYTES:
        size = f"has {len(content):,} bytes, but the limit is {MAX_FILE_BYTES:,}"
        findings.append(Finding(path="body", message=size if content else "is empty"))
    if findings:
        why = "; ".join(f"{finding.path} {finding.message}" for finding in findings)
        raise Invalid(f"The file cannot be uploaded: {why}.", findings=findings)


def _too_many(item: str) -> Conflict:
    return Conflict(
        f"The item {item} has {MAX_COMMENTS} comments and files, which is the limit.",
        fix="Answer it with the files that it has.",
    )


def file_findings(form: JsonObject, data: Json, run_id: RunId) -> Iterator[Finding]:
    """Files of an answer that were not uploaded for its run."""
    yield from _findings(form_of_schema(form), data, "data", run_id)


def _findings(field: FormField, value: Json, path: str, run_id: RunId) -> Iterator[Finding]:
    match field.kind:
        case "file":
            if value is not None and not _is_file_of(value, run_id):
                message = "is not a file that was uploaded for this run; upload it, and send the answer of the upload"
                yield Finding(path=path, message=message)
        case "group" if isinstance(value, dict):
            for each in field.fields:
                if each.name in value:
                    yield from _findings(each, value[each.name], f"{path}.{each.name}", run_id)
        case "list" if isinstance(value, list):
            for index, each in enumerate(value):
                yield from _findings(field.item, each, f"{path}[{index}]", run_id)
        case _:
            pass


def _is_file_of(value: Json, run_id: RunId) -> bool:
    match value:
        case {"blob": {"run": run, "id": str(digest)}}:
            return run == run_id and _DIGEST.fullmatch(digest) is not None
        case _:
            return False
