"""
Encrypts every stored secret again with the vault's first key: named secrets, and the credentials of agents and of push
notification configs.

It runs while the system does, in small transactions. What already has the key is skipped, so a rekey that was
interrupted continues where it ended when it is started again. A row is only replaced by the same secret: if someone
changes it meanwhile, the change wins, and the row is looked at again in the next pass.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from typing import TypeAlias

import msgspec

from trunkline.agents import Agent
from trunkline.errors import ConfigurationError
from trunkline.services.callbacks.push_configs import push_config_owner
from trunkline.services.operations.audit_log import audit_entry
from trunkline.services.security.secrets import secret_owner
from trunkline.services.security.vault import Vault
from trunkline.stores.base import Store, Transaction
from trunkline.stores.port.keys_and_secrets import Secret
from trunkline.stores.port.push_configs import PushConfig, PushConfigKey

# Short enough that a transaction does not delay others.
BATCH = 100
# The first pass does the work; the next one sees what was changed meanwhile. More only if a process still
# encrypts with an old key, and then no number of them is enough.
_MAX_PASSES = 3
# Enough to act on; the names of all could be any number.
_MAX_NAMES = 20


_Sealed: TypeAlias = Secret | Agent | PushConfig


class RekeyReport(msgspec.Struct, kw_only=True):
    key_id: str
    # In the last pass.
    checked: int = 0
    # In all passes of this call.
    rekeyed: int = 0
    # Still under another key after the last pass: some process encrypts with it.
    left: int = 0
    unreadable: int = 0
    # Of the first unreadable ones: "secret NAME", "agent NAME" or "push config RUN/ID".
    unreadable_names: list[str] = msgspec.field(default_factory=list[str])

    @property
    def is_complete(self) -> bool:
        """Whether no secret needs another key any more."""
        return self.left == 0 and self.unreadable == 0


class Rekeying:
    def __init__(
        self, store: Store, vault: Vault, *, progress: Callable[[RekeyReport], None], batch: int = BATCH
    ) -> None:
        """`progress` is called after every batch."""
        self._store = store
        self._vault = vault
        self._progress = progress
        self._batch = batch
        self._report = RekeyReport(key_id=vault.key_id)

    async def run(self) -> RekeyReport:
        report = self._report
        for _ in range(_MAX_PASSES):
            report.checked = report.left = report.unreadable = 0
            report.unreadable_names.clear()
            async for rows in self._batches():
                await self._rekey(rows)
                self._progress(report)
            if report.left == 0:
                break
        return report

    async def _batches(self) -> AsyncGenerator[Sequence[_Sealed]]:
        last: str | None = None
        while secrets := await self._store.secrets.page(limit=self._batch, after=last):
            yield secrets
            last = secrets[-1].name
        last = None
        while agents := await self._store.agents.page(limit=self._batch, after=last):
            yield agents
            last = agents[-1].name
        key: PushConfigKey | None = None
        while configs := await self._store.push_configs.page(limit=self._batch, after=key):
            yield configs
            key = configs[-1].key

    async def _rekey(self, rows: Sequence[_Sealed]) -> None:
        changes: list[tuple[_Sealed, bytes]] = []
        for row in rows:
            sealed = row.secret if isinstance(row, Agent) else row.sealed
            if sealed is None:
                continue
            self._report.checked += 1
            if self._vault.is_current(sealed):
                continue
            owner = _owner(row)
            try:
                changes.append((row, self._vault.seal(self._vault.open(sealed, owner=owner), owner=owner)))
            except ConfigurationError:
                self._note_unreadable(row)
        if not changes:
            return
        async with self._store.transaction() as tx:
            done = [await _replace(tx, row, sealed) for row, sealed in changes]
            if any(done):
                # In the transaction of the change: an interrupted rekey has its entries, too.
                await tx.audit.put([audit_entry("secret", "rekey", self._vault.key_id, count=sum(done))])
        self._report.rekeyed += sum(done)
        self._report.left += len(done) - sum(done)

    def _note_unreadable(self, row: _Sealed) -> None:
        self._report.unreadable += 1
        if len(self._report.unreadable_names) < _MAX_NAMES:
            self._report.unreadable_names.append(_name(row))


def _owner(row: _Sealed) -> str:
    match row:
        case Secret():
            return secret_owner(row.name)
        case Agent():
            return row.id
        case PushConfig():
            return push_config_owner(row.key)


def _name(row: _Sealed) -> str:
    match row:
        case Secret():
            return f"secret {row.name}"
        case Agent():
            return f"agent {row.name}"
        case PushConfig():
            return f"push config {row.key.run_id}/{row.key.id}"


async def _replace(tx: Transaction, row: _Sealed, sealed: bytes) -> bool:
    if isinstance(row, Secret):
        return await tx.secrets.reseal(row.name, sealed, expected=row.sealed)
    if isinstance(row, PushConfig):
        return await tx.push_configs.reseal(row.key, sealed, expected=row.sealed)
    # With a new version: a change that has read the old secret starts again, and does not write it back.
    changed = msgspec.structs.replace(row, secret=sealed, version=row.version + 1)
    return await tx.agents.update(changed, row.version)
