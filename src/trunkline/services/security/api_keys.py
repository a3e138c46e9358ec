"""
API keys: they authenticate clients of the REST interface, each with a role.

A key is random, so its digest is enough to find it by and nothing to guess it from; the key itself is shown once, when
it is made, and is nowhere in the system after that.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
import secrets
from collections.abc import AsyncGenerator, Sequence
from datetime import timedelta

import structlog

from trunkline.clock import Clock, Instant, after, rfc3339
from trunkline.durations import MAX_DURATION
from trunkline.errors import Conflict, Finding, Invalid, NotAllowed, NotFound, Unavailable
from trunkline.id_generation import new_id
from trunkline.services.operations.audit_log import audit_entry
from trunkline.stores.base import ApiKey, KeyRole, Store
from trunkline.telemetry import log_events
from trunkline.telemetry.metrics import Metrics

log = structlog.stdlib.get_logger()

# So that people and secret scanners recognise a key in a file.
_PREFIX = "tl_"
_RANDOM_BYTES = 32
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,99}")
_PUBLICATION = re.compile(r"(agents|workflows)/[^/\x00-\x1f\x7f]{1,255}")
# Of one key: all are read with it.
MAX_PUBLICATIONS = 100
_PAGE = 1_000
# How long a revoked key can still be taken for a good one.
_REMEMBERED = timedelta(seconds=2)
# How often the last uses of keys are written. Each request would be a transaction otherwise.
_USES_EVERY = timedelta(minutes=1)

CREATE_ONE = "trunkline keys create NAME --role admin"


def digest_of(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()


class ApiKeys:
    def __init__(self, store: Store) -> None:
        self._store = store

    async def create(
        self,
        name: str,
        role: KeyRole,
        *,
        expires_at: Instant | None = None,
        lifetime: timedelta | None = None,
        publications: Sequence[str] = (),
    ) -> tuple[ApiKey, str]:
        """
        The key's record, and the key itself, which is shown only this once.

        It is refused from `expires_at` on, or when `lifetime` is over; without both, it never expires.
        """
        if not _NAME.fullmatch(name):
            raise Invalid(
                f"{name!r} is not a valid name for an API key.",
                fix="Use up to 100 letters, digits, dots, dashes, underscores or @, starting with a "
                "letter or digit.",
            )
        _check_publications(role, publications)
        text = _PREFIX + secrets.token_urlsafe(_RANDOM_BYTES)
        async with self._store.transaction() as tx:
            end = expires_at if lifetime is None else after(tx.now, lifetime)
            if end is not None and not tx.now < end <= after(tx.now, MAX_DURATION):
                raise Invalid(
                    "expires_at is in the past, or more than ten years ahead.",
                    findings=[Finding(path="expires_at", message="must be in the next ten years")],
                )
            key = ApiKey(
                id=new_id(),
                name=name,
                role=role,
                digest=digest_of(text),
                created_at=tx.now,
                expires_at=end,
                publications=tuple(dict.fromkeys(publications)),
            )
            await tx.keys.insert(key)
            shown_end = None if end is None else rfc3339(end)
            entry = audit_entry(
                "key",
                "create",
                name,
                role=role,
                expires_at=shown_end,
                publications=list(key.publications) or None,
            )
            await tx.audit.put([entry])
        return key, text

    async def revoke(self, name_or_id: str, *, caller: ApiKey | None = None) -> ApiKey:
        """`caller`: the key that asks for it, which must not lock its owner out."""
        async with self._store.transaction() as tx:
            key = await tx.keys.revoke(name_or_id)
            if key is not None and caller is not None and key.id == caller.id:
                # Raised inside the transaction, so nothing is written.
                raise Conflict(
                    f"The API key {key.name} authenticates this request, so the request cannot revoke it.",
                    fix=f"Use another admin key, or run on the server: trunkline keys revoke {key.name}.",
                )
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

    async def page(self, *, limit: int, after: str | None) -> Sequence[ApiKey]:
        """Like `list`; `after` is the last id seen."""
        return await self._store.keys.page(limit=limit, after=after)

    async def any_in_use(self, now: Instant) -> bool:
        async for key in self._all():
            if key.revoked_at is None and not key.is_expired(now):
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


def _check_publications(role: KeyRole, publications: Sequence[str]) -> None:
    if role != "caller":
        if publications:
            raise Invalid(
                f"A key with the role {role} cannot have publications.",
                fix="Leave them out, or use the role caller.",
                findings=[Finding(path="publications", message="only callers have publications")],
            )
        return
    wrong = [name for name in publications if not _PUBLICATION.fullmatch(name)]
    if wrong or not publications or len(publications) > MAX_PUBLICATIONS:
        what = f"{wrong[0]!r} is not one" if wrong else f"it has {len(publications)}"
        raise Invalid(
            f"A key with the role caller needs 1 to {MAX_PUBLICATIONS} publications, but {what}.",
            fix="Name what the key can call, such as agents/NAME or workflows/NAME.",
            findings=[Finding(path="publications", message="must be agents/NAME or workflows/NAME")],
        )


class ApiKeyLookup:
    """Finds the key that a caller shows, counts those who are refused, and records when keys were last used."""

    def __init__(self, store: Store, clock: Clock, metrics: Metrics) -> None:
        self._store = store
        self.clock = clock
        self._refusals = metrics.refusals
        # Only existing keys are cached, so unknown callers cannot fill it.
        self._known: dict[bytes, tuple[ApiKey, Instant]] = {}
        # By id: the last uses that are not written yet.
        self._uses: dict[str, Instant] = {}
        self._was_used = asyncio.Event()

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

    def note_use(self, key: ApiKey) -> None:
        self._uses[key.id] = self.clock.now()
        self._was_used.set()

    async def record_uses(self, every: timedelta = _USES_EVERY) -> None:
        """Writes the last uses, at most once in `every`, until it is cancelled; then those that are left."""
        try:
            while True:
                await self._was_used.wait()
                await self._write_uses()
                await asyncio.sleep(every.total_seconds())
        finally:
            await self._write_uses()

    async def _write_uses(self) -> None:
        uses, self._uses = self._uses, {}
        self._was_used.clear()
        if not uses:
            return
        try:
            async with self._store.transaction(durable=False) as tx:
                await tx.keys.note_uses(uses)
        except Unavailable as exc:
            # Written with the next ones; a later use of the same key counts.
            self._uses = uses | self._uses
            self._was_used.set()
            log.error(log_events.STORE_UNAVAILABLE, error=exc.message, fix=exc.fix)


async def keys_for_listener(
    host: str, *, needed: bool, store: Store, clock: Clock, metrics: Metrics
) -> ApiKeyLookup | None:
    """
    The keys that the listener at `host` accepts; None if it needs no key.

    Raises `NotAllowed` when keys are required and none exists: every request would be rejected, which cannot
    be what the operator wants.
    """
    if not needed:
        return None
    if not await ApiKeys(store).any_in_use(clock.now()):
        raise NotAllowed(
            f"Trunkline does not listen on {host} without an API key, because anyone who can reach "
            "it could run workflows.",
            fix=f"Create a key: {CREATE_ONE}, or listen on 127.0.0.1.",
        )
    return ApiKeyLookup(store, clock, metrics)
