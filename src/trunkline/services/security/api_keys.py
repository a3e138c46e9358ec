"""
API keys: they authenticate clients of the REST interface, each with a role.

A key is random, so its digest is enough to find it by and nothing to guess it from; the key itself is shown once, when
it is made, and is nowhere in the system after that.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import AsyncGenerator
from datetime import timedelta

from trunkline.clock import Clock, Instant, after
from trunkline.errors import Invalid, NotAllowed, NotFound
from trunkline.id_generation import new_id
from trunkline.services.operations.audit_log import audit_entry
from trunkline.stores.base import ApiKey, KeyRole, Store
from trunkline.telemetry.metrics import Metrics

# So that people and secret scanners recognise a key in a file.
_PREFIX = "tl_"
_RANDOM_BYTES = 32
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,99}")
_PAGE = 1_000
# How long a revoked key can still be taken for a good one.
_REMEMBERED = timedelta(seconds=2)

CREATE_ONE = "trunkline keys create NAME --role admin"


def digest_of(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()


class ApiKeys:
    def __init__(self, store: Store) -> None:
        self._store = store

    async def create(self, name: str, role: KeyRole) -> tuple[ApiKey, str]:
        """The key's record, and the key itself, which is shown only this once."""
        if not _NAME.fullmatch(name):
            raise Invalid(
                f"{name!r} is not a valid name for an API key.",
                fix="Use up to 100 letters, digits, dots, dashes, underscores or @, starting with a "
                "letter or digit.",
            )
        text = _PREFIX + secrets.token_urlsafe(_RANDOM_BYTES)
        async with self._store.transaction() as tx:
            key = ApiKey(id=new_id(), name=name, role=role, digest=digest_of(text), created_at=tx.now)
            await tx.keys.insert(key)
            await tx.audit.put([audit_entry("key", "create", name, role=role)])
        return key, text

    async def revoke(self, name_or_id: str) -> ApiKey:
        async with self._store.transaction() as tx:
            key = await tx.keys.revoke(name_or_id)
            if key is not None:
                await tx.audit.put([audit_entry("key", "revoke", key.name, role=key.role)])
        if key is None:
            raise NotFound(
                f"There is no active API key {name_or_id}.", fix="List the API keys: trunkline keys list."
            )
        return key

    async def list(self) -> list[ApiKey]:
        """In the order of their creation, revoked ones too."""
        return [key async for key in self._all()]

    async def any_in_use(self) -> bool:
        async for key in self._all():
            if key.revoked_at is None:
                return True
        return False

    async def _all(self) -> AsyncGenerator[ApiKey]:
        last: str | None = None
        while True:
            page = await self._store.keys.page(limit=_PAGE, after=last)
            for key in page:
                yield key
            if len(page) < _PAGE:
                return
            last = page[-1].id


class ApiKeyLookup:
    """Finds the key that a caller shows, and counts those who are refused."""

    def __init__(self, store: Store, clock: Clock, metrics: Metrics) -> None:
        self._store = store
        self.clock = clock
        self._refusals = metrics.refusals
        # Only existing keys are cached, so unknown callers cannot fill it.
        self._known: dict[bytes, tuple[ApiKey, Instant]] = {}

    async def find(self, text: str) -> ApiKey | None:
        """The key, revoked or not; what it says is at most two seconds old."""
        digest = digest_of(text)
        now = self.clock.now()
        key, read_at = self._known.get(digest, (None, now))
        # A clock that was set back makes nothing last longer.
        if key is not None and read_at <= now < after(read_at, _REMEMBERED):
            return key
        key = await self._store.keys.get(digest)
        if key is None:
            self._known.pop(digest, None)
        else:
            self._known[digest] = (key, now)
        return key

    def count_refusal(self, reason: str) -> None:
        self._refusals.labels(reason).inc()


async def keys_for_listener(
    host: str, *, needed: bool, store: Store, clock: Clock, metrics: Metrics
) -> ApiKeyLookup | None:
    """
    The keys that the door at `host` asks for; None where nobody needs one.

    Raises `NotAllowed` when keys are required and none exists: no one could connect, and the operator meant
    to let somebody in.
    """
    if not needed:
        return None
    if not await ApiKeys(store).any_in_use():
        raise NotAllowed(
            f"Trunkline does not listen on {host} without an API key, because anyone who can reach "
            "it could run workflows.",
            fix=f"Create a key: {CREATE_ONE}, or listen on 127.0.0.1.",
        )
    return ApiKeyLookup(store, clock, metrics)
