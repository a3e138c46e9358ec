"""
The files of an output that are in the blob store, as bytes again: callers cannot follow a reference.

    {"name" | "filename", …, "blob": {"run", "id", "bytes", "href"}}   becomes   {…, "bytes" | "raw": "<base64>"}

Only files of the run itself and of related runs are read. A caller could otherwise send a reference to the file of
another run through a workflow that repeats what it gets.
"""

from __future__ import annotations

import asyncio
from base64 import b64encode
from collections.abc import Iterator
from itertools import chain

from trunkline.ids import RunId
from trunkline.jsontypes import Json, JsonObject
from trunkline.stores.base import RunReads
from trunkline.stores.blobs import BlobStore

_REFERENCE = "blob"
# Of one answer: it is made in memory, and so is its JSON. Agents answer at most as much by default.
MAX_FILE_BYTES = 64 * 1024 * 1024


class StoredFiles:
    def __init__(self, blobs: BlobStore | None, runs: RunReads, most_bytes: int = MAX_FILE_BYTES) -> None:
        self._blobs = blobs
        self._runs = runs
        self._most_bytes = most_bytes

    async def load(self, run_id: RunId, *outputs: Json) -> None:
        """Puts their files into the outputs. A file that is gone, or too much, is replaced by a text."""
        left = self._most_bytes
        for part in chain.from_iterable(map(_parts_in, outputs)):
            holder = part.get("file") if isinstance(part.get("file"), dict) else part
            found = _reference(holder)
            if found is None or not isinstance(holder, dict):
                continue
            content = await self._content(run_id, *found, left)
            if content is None:
                part.clear()
                part["text"] = "The file is too large, or no longer exists."
                continue
            left -= len(content)
            del holder[_REFERENCE]
            name = "raw" if holder is part else "bytes"
            holder[name] = (await asyncio.to_thread(b64encode, content)).decode()

    async def _content(self, run_id: RunId, owner: RunId, digest: str, most_bytes: int) -> bytes | None:
        if self._blobs is None or not await self._is_related(run_id, owner):
            return None
        content = await self._blobs.get(owner, digest)
        return content if content is None or len(content) <= most_bytes else None

    async def _is_related(self, run_id: RunId, owner: RunId) -> bool:
        if run_id == owner:
            return True
        root = await self._runs.root(run_id)
        return root is not None and root == await self._runs.root(owner)


def _reference(holder: Json) -> tuple[RunId, str] | None:
    match holder:
        case {"blob": {"run": str(run_id), "id": str(digest), "href": str()}}:
            return RunId(run_id), digest
        case _:
            return None


def _parts_in(output: Json) -> Iterator[JsonObject]:
    """The parts of all artifacts, and of an agent's messages."""
    if not isinstance(output, dict):
        return
    artifacts = output.get("artifacts")
    messages = (output.get("message"), output.get("status_message"))
    for holder in [*(artifacts if isinstance(artifacts, list) else []), *messages]:
        parts = holder.get("parts") if isinstance(holder, dict) else None
        for part in parts if isinstance(parts, list) else []:
            if isinstance(part, dict):
                yield part
