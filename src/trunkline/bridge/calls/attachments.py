"""
Files in what agents say and in what they are sent.

    {"kind": "file", "file": {"name", "mimeType", "bytes": "<base64>"}}      A2A 0.x
    {"filename", "mediaType", "raw": "<base64>"}                              A2A 1.0

Content that is longer than a step's output should hold goes to the blob store, and a reference stands in its place:

    "blob": {"run": "<run id>", "id": "<sha-256>", "bytes": 1048576, "href": "/api/v1/runs/<run id>/blobs/<sha-256>"}

A reference in a step's input becomes the content again before it is sent.
"""

from __future__ import annotations

import asyncio
import binascii
from base64 import b64decode, b64encode
from collections.abc import Iterator

from msgspec.structs import replace

from trunkline.ids import RunId
from trunkline.jsontypes import Json, JsonObject, decode, encode
from trunkline.messages import AgentTask, StepError, fix_for
from trunkline.protocols import Succeeded
from trunkline.stores.blobs import BlobStore

_CONTENT = ("bytes", "raw")
_WITH_FILES = ("artifacts", "response", "history")
_REFERENCE = "blob"


class AttachmentMissing(Exception):
    """A file that the input names is gone; nothing was sent."""

    def __init__(self, reference: JsonObject) -> None:
        code = "blob_missing"
        message = f"The file {reference.get('id')} of run {reference.get('run')} is not there any more."
        super().__init__(message)
        self.error = StepError(code=code, message=message, fix=fix_for(code))


class Attachments:
    """`max_inline_bytes`: the largest file that stays in an output; without a blob store all do."""

    def __init__(self, blobs: BlobStore | None, max_inline_bytes: int) -> None:
        self._blobs = blobs
        self._max_inline_bytes = max_inline_bytes

    def may_store_files(self, outcome: Succeeded) -> bool:
        """Whether the output may hold a file that is too large for it."""
        return self._blobs is not None and len(outcome.output) > self._max_inline_bytes

    async def store_files(self, run_id: str, outcome: Succeeded) -> Succeeded:
        """The output with references instead of large files; raises `Unavailable` when they cannot be stored."""
        if self._blobs is None or not self.may_store_files(outcome):
            return outcome
        # Not in the event loop: so much JSON would delay all other calls.
        output = await asyncio.to_thread(decode, outcome.output)
        moved = False
        for holder, key in _contents(output):
            content = _decoded(holder[key])
            if content is None or len(content) <= self._max_inline_bytes:
                continue
            digest = await self._blobs.put(RunId(run_id), content)
            del holder[key]
            holder[_REFERENCE] = {
                "run": run_id,
                "id": digest,
                "bytes": len(content),
                "href": f"/api/v1/runs/{run_id}/blobs/{digest}",
            }
            moved = True
        if not moved:
            return outcome
        return replace(outcome, output=await asyncio.to_thread(encode, output))

    async def load_files(self, task: AgentTask) -> AgentTask:
        """The task with every file that its input names; raises `AttachmentMissing` and `Unavailable`."""
        if not lists_parts(task):
            return task
        given = decode(encode(task.input_data))
        found = list(_references(given))
        if not found:
            return task
        for holder in found:
            reference = holder.pop(_REFERENCE)
            assert isinstance(reference, dict)  # noqa: S101 - that is what was looked for
            run_id, digest = RunId(str(reference.get("run"))), str(reference.get("id"))
            content = None if self._blobs is None else await self._blobs.get(run_id, digest)
            if content is None:
                raise AttachmentMissing(reference)
            key = "raw" if "mediaType" in holder or "filename" in holder else "bytes"
            holder[key] = b64encode(content).decode()
        return replace(task, input_data=given)


def lists_parts(task: AgentTask) -> bool:
    """Whether the input says itself what the message's parts are: files are named only there."""
    given = task.input_data
    return isinstance(given, dict) and isinstance(given.get("parts"), list)


def _contents(output: Json) -> Iterator[tuple[JsonObject, str]]:
    if isinstance(output, dict):
        for name in _WITH_FILES:
            for holder in _objects(output.get(name)):
                for key in _CONTENT:
                    if isinstance(holder.get(key), str):
                        yield holder, key


def _references(given: Json) -> Iterator[JsonObject]:
    parts = given.get("parts") if isinstance(given, dict) else None
    for holder in _objects(parts):
        if isinstance(holder.get(_REFERENCE), dict):
            yield holder


def _objects(value: Json) -> Iterator[JsonObject]:
    """Every object in it; changing one does not disturb the walk."""
    waiting = [value]
    while waiting:
        match waiting.pop():
            case dict() as found:
                yield found
                waiting.extend(found.values())
            case list() as items:
                waiting.extend(items)
            case _:
                pass


def _decoded(text: Json) -> bytes | None:
    try:
        return b64decode(text, validate=True) if isinstance(text, str) else None
    except binascii.Error:
        return None
