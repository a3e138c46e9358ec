"""Keys of the API and named secrets. The store holds digests and sealed values only."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, Protocol

import msgspec

from trunkline.clock import Instant

KeyRole = Literal["caller", "viewer", "operator", "admin"]


class ApiKey(msgspec.Struct, frozen=True, kw_only=True):
    """A key of the API: never the key itself, only its digest."""

    id: str
    name: str
    role: KeyRole
    digest: bytes
    created_at: Instant
    revoked_at: Instant | None = None
    # None: never.
    expires_at: Instant | None = None
    # Written once a minute at most.
    last_used_at: Instant | None = None
    # Of a caller: what it may call, as `workflows/NAME` and `agents/NAME`.
    publications: tuple[str, ...] = ()

    def is_expired(self, now: Instant) -> bool:
        return self.expires_at is not None and self.expires_at <= now


class Secret(msgspec.Struct, frozen=True, kw_only=True):
    """A secret by its name; `version` counts how often it has been set."""

    name: str
    sealed: bytes
    version: int
    created_at: Instant
    updated_at: Instant


class KeyReads(Protocol):
    async def get(self, digest: bytes) -> ApiKey | None:
        """The key with that digest, revoked or not."""
        ...

    async def by_id(self, key_id: str) -> ApiKey | None:
        """The key with that id, revoked or not."""
        ...

    async def page(self, *, limit: int, after: str | None = None) -> list[ApiKey]:
        """In the order of their creation; `after` is the last id seen."""
        ...


class KeyWrites(Protocol):
    async def insert(self, key: ApiKey) -> None:
        """Raises `AlreadyExists` when a key of that name is in use."""
        ...

    async def revoke(self, name_or_id: str) -> ApiKey | None:
        """The key as it is now; None when no such key is in use."""
        ...

    async def note_uses(self, uses: Mapping[str, Instant]) -> None:
        """When keys were last used, by id. A later time that is stored already stays."""
        ...


class SecretReads(Protocol):
    async def get(self, name: str) -> Secret | None: ...

    async def page(self, *, limit: int, after: str | None = None) -> list[Secret]:
        """In the order of their names; `after` is the last name seen."""
        ...


class SecretWrites(Protocol):
    async def put(self, name: str, sealed: bytes) -> Secret:
        """Create it, or replace the value."""
        ...

    async def reseal(self, name: str, sealed: bytes, *, expected: bytes) -> bool:
        """Replace what was sealed as `expected` by the same value, sealed with another key; False if it differs."""
        ...

    async def delete(self, name: str) -> bool:
        """False when there is no such secret."""
        ...
