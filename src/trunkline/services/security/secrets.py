"""
Named secrets: values that workflows send to agents and that are shown to no one, such as a bot's token.

    {"$secret": "slack-bot"}    in a step's input; the bridge puts the value there while it encodes the call

A value comes in and never goes out again: the bridge alone gets it (`open`). It is kept sealed, bound to its name. The
value before the last change is kept with it, until the next one: a task that was given it may still repeat it, and
what a call repeats is hidden.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import NamedTuple

import structlog

from trunkline.clock import Clock, Instant, after
from trunkline.errors import ConfigurationError, Finding, Invalid, NotFound
from trunkline.jsontypes import Json, JsonObject
from trunkline.services.operations.audit_log import audit_entry
from trunkline.services.security.vault import Vault
from trunkline.stores.base import Store
from trunkline.stores.port.keys_and_secrets import Secret
from trunkline.telemetry import log_events
from trunkline.workflow import SECRET_NAME_RULE, is_secret_name

log = structlog.stdlib.get_logger()

# A shorter one could not be hidden: replacing it everywhere would leave nothing to read of a record.
MIN_VALUE_CHARACTERS = 4
MAX_VALUE_CHARACTERS = 64 * 1024
# How long a value that was changed by another process can still be sent.
_FRESH_FOR = timedelta(seconds=2)
# Names come from workflows, so they are few.
_MAX_CACHED = 1_000

LIST_THEM = "List the secrets: trunkline secrets list."


class OpenedSecret(NamedTuple):
    """For the bridge, and for what checks signatures."""

    value: str
    # What must not be shown: the value, and the one before it.
    hidden: tuple[str, ...]

    def __repr__(self) -> str:
        return "OpenedSecret(…)"


class _CachedSecret(NamedTuple):
    opened: OpenedSecret
    read_at: Instant


class Secrets:
    def __init__(self, store: Store, vault: Vault, clock: Clock) -> None:
        self._store = store
        self._vault = vault
        self._clock = clock
        self._kept: dict[str, _CachedSecret] = {}
        self._changes = 0

    async def set(self, name: str, value: str) -> Secret:
        """Raises `Invalid`, which never says the value."""
        _check(name, value)
        earlier = await self._store.secrets.get(name)
        hidden = () if earlier is None else self._hidden(earlier)
        before: list[Json] = [text for text in hidden if text != value]
        content: JsonObject = {"value": value, "before": before[:1]}
        async with self._store.transaction() as tx:
            secret = await tx.secrets.put(name, self._vault.seal(content, owner=secret_owner(name)))
            await tx.audit.put([audit_entry("secret", "set", name, version=secret.version)])
        self._forget(name)
        log.info(log_events.SECRET_SET, secret=name, version=secret.version)
        return secret

    async def remove(self, name: str) -> None:
        async with self._store.transaction() as tx:
            removed = await tx.secrets.delete(name)
            if removed:
                await tx.audit.put([audit_entry("secret", "remove", name)])
        self._forget(name)
        if not removed:
            raise NotFound(f"There is no secret {name!r}.", fix=LIST_THEM)
        log.info(log_events.SECRET_REMOVED, secret=name)

    async def list(self, *, limit: int, after: str | None = None) -> Sequence[Secret]:
        """In the order of their names; `after` is the last name seen."""
        return await self._store.secrets.page(limit=limit, after=after)

    async def open(self, name: str) -> OpenedSecret | None:
        """
        The value, at most two seconds old; None: there is none.

        Raises `ConfigurationError` when it was sealed with another key.
        """
        now = self._clock.now()
        kept = self._kept.get(name)
        # A clock that was set back makes nothing last longer.
        if kept is not None and kept.read_at <= now < after(kept.read_at, _FRESH_FOR):
            return kept.opened
        changes = self._changes
        secret = await self._store.secrets.get(name)
        if secret is None:
            self._kept.pop(name, None)
            return None
        opened = self._opened(secret)
        # Something was written while we read: what we have may be of before.
        if changes == self._changes:
            if len(self._kept) >= _MAX_CACHED:
                self._kept.clear()
            self._kept[name] = _CachedSecret(opened, now)
        return opened

    def _forget(self, name: str) -> None:
        self._changes += 1
        self._kept.pop(name, None)

    def _hidden(self, secret: Secret) -> tuple[str, ...]:
        try:
            return self._opened(secret).hidden
        except ConfigurationError:
            # Lost with its key; that is why it is given again.
            return ()

    def _opened(self, secret: Secret) -> OpenedSecret:
        content = self._vault.open(secret.sealed, owner=secret_owner(secret.name))
        value, before = str(content["value"]), content.get("before")
        earlier = (str(text) for text in before) if isinstance(before, list) else ()
        return OpenedSecret(value, (value, *earlier))


def secret_owner(name: str) -> str:
    """What its sealed value is bound to."""
    return f"secret:{name}"


def _check(name: str, value: str) -> None:
    if not is_secret_name(name):
        raise Invalid(f"{name[:100]!r} is not a valid secret name.", fix=f"Use {SECRET_NAME_RULE}.")
    problem = None
    if not MIN_VALUE_CHARACTERS <= len(value) <= MAX_VALUE_CHARACTERS:
        problem = (
            f"must have {MIN_VALUE_CHARACTERS} to {MAX_VALUE_CHARACTERS} characters, because "
            "shorter values cannot be redacted reliably"
        )
    elif any("\ud800" <= character <= "\udfff" for character in value):
        problem = "contains an unpaired surrogate, which is not valid text"
    if problem is not None:
        raise Invalid(
            f"The value of the secret {name} {problem}.",
            findings=[Finding(path="value", message=problem)],
            fix="Use another value. This one was not stored.",
        )
