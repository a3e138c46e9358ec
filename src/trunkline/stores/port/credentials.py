"""What a store promises about named secrets: it keeps them sealed, and never learns what is in them."""

from __future__ import annotations

from typing import Protocol

import msgspec

from trunkline.clock import Instant


class Secret(msgspec.Struct, frozen=True, kw_only=True):
    """A secret by its name; `version` counts how often it has been set."""

    name: str
    sealed: bytes
    version: int
    created_at: Instant
    updated_at: Instant


class SecretWrites(Protocol):
    async def set_secret(self, name: str, sealed: bytes) -> Secret:
        """New, or in the place of the one before."""
        ...

    async def remove_secret(self, name: str) -> bool:
        """False: there was none."""
        ...


class SecretReads(Protocol):
    async def secrets(self, *, limit: int, after: str | None = None) -> list[Secret]:
        """In the order of their names; `after` is the last name seen."""
        ...

    async def secret(self, name: str) -> Secret | None: ...
