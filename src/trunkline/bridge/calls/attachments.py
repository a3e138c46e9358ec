"""
Files in what agents say and in what they are sent.

    {"kind": "file", "file": {"name", "mimeType", "bytes": "<base64>"}}      A2A 0.x
    {"filename", "mediaType", "raw": "<base64>"}                              A2A 1.0

Content that is too long for a step's output goes to the blob store and is replaced by a reference:

    "blob": {"run": "<run id>", "id": "<sha-256>", "bytes": 1048576, "href": "/api/v1/runs/<run id>/blobs/<sha-256>"}

A reference in a step's input becomes the content again before it is sent. Only we write references: one that an agent
answers loses its `href`, and without it is data like any other. A few bytes could otherwise make us load a large
file thousands of times, or send an agent the files of runs that are not its own.
"""

from __future__ import annotations

import asyncio
import binascii
from base64 import b64decode, b64encode
from collections import Counter
from collections.abc import Iterator

import msgspec
from msgspec.structs import replace

from trunkline.bridge.calls.results import step_error
from trunkline.ids import RunId
from trunkline.jsontypes import Json, JsonObject, decode, encode
from trunkline.messages import AgentTask
from trunkline.protocols import Succeeded
from trunkline.stores.base import RunReads
from trunkline.stores.blobs import BlobStore

_CONTENT = ("bytes", "raw")
_WITH_FILES = ("artifacts", "response", "history", "message", "status_message")
_REFERENCE = "blob"
_HREF = "href"
# Below this many bytes, JSON is decoded and encoded in the event loop: a thread would cost more.
_SMALL_BYTES = 64 * 1024
# JSON text without either of these does not contain the key `blob`: escaped, its letters are \u0062, \u006c, \u006f.
_SIGNS_OF_A_REFERENCE = (b"blob", b"\\u006")
_NOT_EXPANDED = "The response contains references to stored files. They are kept as data, without href."


class AttachmentsNotSent(Exception):
    """Files that the input names cannot be sent, so nothing was."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.error = step_error(code, message)


class Reference(msgspec.Struct, frozen=True):
    """What names a stored file."""

    run_id: RunId
    digest: str


class Attachments:
    """
    `max_inline_bytes`: the largest file that stays in an output; without a blob store all do.

    `max_request_bytes`: how much the files of one request may have together, each counted as often as it is named.
    """

    def __init__(
        self, blobs: BlobStore | None, runs: RunReads, *, max_inline_bytes: int, max_request_bytes: int
    ) -> None:
        self._blobs = blobs
        self._runs = runs
        self._max_inline_bytes = max_inline_bytes
        self._max_request_bytes = max_request_bytes

    def may_change(self, outcome: Succeeded) -> bool:
        """Whether the output may hold a file that is too large for it, or a reference that is not ours."""
        return self._may_hold_files(outcome) or any(sign in outcome.output for sign in _SIGNS_OF_A_REFERENCE)

    def _may_hold_files(self, outcome: Succeeded) -> bool:
        return self._blobs is not None and len(outcome.output) > self._max_inline_bytes

    async def store_files(self, run_id: str, outcome: Succeeded) -> Succeeded:
        """The output with references instead of large files; raises `Unavailable` when they cannot be stored."""
        if not self.may_change(outcome):
            return outcome
        output = await _decode(outcome.output)
        disarmed = _disarm_references(output)
        if disarmed:
            outcome = replace(outcome, warnings=(*outcome.warnings, _NOT_EXPANDED))
        moved = await self._move_files(run_id, output) if self._may_hold_files(outcome) else False
        if not moved and not disarmed:
            return outcome
        return replace(outcome, output=await asyncio.to_thread(encode, output))

    async def _move_files(self, run_id: str, output: Json) -> bool:
        assert self._blobs is not None  # noqa: S101 - asked before
        moved = False
        for holder, key in _contents(output):
            content = await asyncio.to_thread(_decoded, holder[key])
            if content is None or len(content) <= self._max_inline_bytes:
                continue
            digest = await self._blobs.put(RunId(run_id), content)
            del holder[key]
            holder[_REFERENCE] = {
                "run": run_id,
                "id": digest,
                "bytes": len(content),
                _HREF: _href(run_id, digest),
            }
            moved = True
        return moved

    async def load_files(self, task: AgentTask) -> AgentTask:
        """The task with every file that its input names; raises `AttachmentsNotSent` and `Unavailable`."""
        if not any(True for _ in _references(task.input_data)):
            return task
        given = await _decode(encode(task.input_data))
        found = list(_references(given))
        contents = await self._load(task, [reference for _, reference in found])
        for holder, reference in found:
            del holder[_REFERENCE]
            key = "raw" if "mediaType" in holder or "filename" in holder else "bytes"
            holder[key] = contents[reference]
        return replace(task, input_data=given)

    async def _load(self, task: AgentTask, references: list[Reference]) -> dict[Reference, str]:
        """The content of each, loaded once, in base64."""
        loaded: dict[Reference, str] = {}
        size_bytes = 0
        for run_id in {reference.run_id for reference in references}:
            await self._check_related(RunId(task.run_id), run_id)
        for reference, times in Counter(references).items():
            content = await self._content(reference)
            size_bytes += len(content) * times
            if size_bytes > self._max_request_bytes:
                raise AttachmentsNotSent(
                    "attachments_too_large",
                    f"The files of the request have more than {self._max_request_bytes:,} bytes "
                    f"(max_request_bytes). It names {len(references):,} files.",
                )
            loaded[reference] = (await asyncio.to_thread(b64encode, content)).decode()
        return loaded

    async def _content(self, reference: Reference) -> bytes:
        content = None if self._blobs is None else await self._blobs.get(reference.run_id, reference.digest)
        if content is None:
            raise AttachmentsNotSent(
                "blob_missing",
                f"The file {reference.digest} of run {reference.run_id} no longer exists.",
            )
        return content

    async def _check_related(self, run_id: RunId, other: RunId) -> None:
        """They are the same run, or come from the same one: by steps that start runs, or by retries."""
        if run_id == other:
            return
        root = await self._runs.root(run_id)
        if root is None or root != await self._runs.root(other):
            raise AttachmentsNotSent(
                "blob_missing",
                f"The input names a file of run {other}, which does not exist or is not related to run {run_id}.",
            )


async def _decode(text: bytes) -> Json:
    # Not in the event loop if it is long: so much JSON would delay all other calls.
    return decode(text) if len(text) <= _SMALL_BYTES else await asyncio.to_thread(decode, text)


def _disarm_references(output: Json) -> bool:
    """Whether there was any."""
    found = [holder for holder in _objects(output) if _reference(holder) is not None]
    for holder in found:
        reference = holder[_REFERENCE]
        if isinstance(reference, dict):
            del reference[_HREF]
    return bool(found)


def _href(run_id: str, digest: str) -> str:
    return f"/api/v1/runs/{run_id}/blobs/{digest}"


def _reference(holder: JsonObject) -> Reference | None:
    match holder.get(_REFERENCE):
        case {"run": str(run_id), "id": str(digest), "href": str(href)} if href == _href(run_id, digest):
            return Reference(RunId(run_id), digest)
        case _:
            return None


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


def _references(given: Json) -> Iterator[tuple[JsonObject, Reference]]:
    parts = given.get("parts") if isinstance(given, dict) else None
    for holder in _objects(parts):
        reference = _reference(holder)
        if reference is not None:
            yield holder, reference


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
