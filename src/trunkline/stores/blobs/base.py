"""
What keeps long files. The store's rows name them, so a file is there before the row is committed.

A file is known by its run and by the SHA-256 of its content: putting it twice is putting it once.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from typing import Protocol

from trunkline.ids import RunId


def digest_of(content: bytes) -> str:
    return sha256(content).hexdigest()


class BlobStore(Protocol):
    """Every method raises `Unavailable` when the place cannot be reached."""

    async def put(self, run_id: RunId, content: bytes) -> str:
        """Its digest; it is durable when this returns."""
        ...

    async def get(self, run_id: RunId, digest: str) -> bytes | None: ...

    async def runs(self, *, limit: int, after: RunId | None = None) -> Sequence[RunId]:
        """Runs that have files here, in the order of their ids."""
        ...

    async def delete(self, run_id: RunId) -> None:
        """Everything of this run."""
        ...
