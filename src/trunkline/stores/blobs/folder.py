"""
Files in a folder: `<run>/<digest>`.

Files are written under another name and renamed when they are on the disk, so a file is always complete.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from trunkline.errors import Unavailable
from trunkline.id_generation import new_id
from trunkline.ids import RunId
from trunkline.stores.blobs.base import digest_of

_DIGEST = re.compile(r"[0-9a-f]{64}")
_RUN = re.compile(r"[0-9a-f-]{36}")

_Done = TypeVar("_Done")


class BlobFolder:
    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def put(self, run_id: RunId, content: bytes) -> str:
        return await self._do(lambda: self._put(run_id, content))

    async def get(self, run_id: RunId, digest: str) -> bytes | None:
        return await self._do(lambda: self._get(run_id, digest))

    async def runs(self, *, limit: int, after: RunId | None = None) -> Sequence[RunId]:
        return await self._do(lambda: self._runs(limit, after))

    async def delete(self, run_id: RunId) -> None:
        await self._do(lambda: self._delete(run_id))

    async def _do(self, work: Callable[[], _Done]) -> _Done:
        try:
            return await asyncio.to_thread(work)
        except OSError as exc:
            raise Unavailable(
                f"Cannot use the attachments folder {self._folder}: {exc.strerror or exc}.",
                fix="Make the folder writable, or free some disk space.",
            ) from exc

    def _place(self, run_id: RunId) -> Path | None:
        # A name from outside must not lead elsewhere.
        return self._folder / run_id if _RUN.fullmatch(run_id) else None

    def _put(self, run_id: RunId, content: bytes) -> str:
        digest = digest_of(content)
        place = self._place(run_id)
        if place is None:
            raise ValueError(f"{run_id!r} is not a run id")
        if (place / digest).exists():
            return digest
        place.mkdir(parents=True, exist_ok=True)
        unfinished = place / f".{new_id()}"
        with unfinished.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        unfinished.rename(place / digest)
        for folder in (place, self._folder):
            _sync(folder)
        return digest

    def _get(self, run_id: RunId, digest: str) -> bytes | None:
        place = self._place(run_id)
        if place is None or not _DIGEST.fullmatch(digest):
            return None
        try:
            return (place / digest).read_bytes()
        except FileNotFoundError:
            return None

    def _runs(self, limit: int, after: RunId | None) -> list[RunId]:
        try:
            names = sorted(entry.name for entry in os.scandir(self._folder) if _RUN.fullmatch(entry.name))
        except FileNotFoundError:
            return []
        return [RunId(name) for name in names if after is None or name > after][:limit]

    def _delete(self, run_id: RunId) -> None:
        place = self._place(run_id)
        if place is not None:
            with suppress(FileNotFoundError):
                shutil.rmtree(place)


def _sync(folder: Path) -> None:
    """The new name itself is on the disk then."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
