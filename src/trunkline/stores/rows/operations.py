"""Entries of the audit and processes as the columns that every store has for them."""

from __future__ import annotations

from datetime import timedelta

from trunkline.clock import Instant, after
from trunkline.stores.port.operations import AuditEntry, AuditKind, NewAuditEntry, Process, SeenProcess


def written_entry(entry: NewAuditEntry, now: Instant) -> tuple[str | int | bytes | None, ...]:
    return (entry.id, now, entry.who, entry.kind, entry.action, entry.subject, entry.detail)


def read_entry(
    entry_id: str, at: int, who: str | None, kind: AuditKind, action: str, subject: str, detail: bytes
) -> AuditEntry:
    return AuditEntry(
        id=entry_id, at=Instant(at), who=who, kind=kind, action=action, subject=subject, detail=detail
    )


def written_process(process: Process, now: Instant, lasts: timedelta) -> tuple[str | int | None, ...]:
    return (
        process.id,
        process.name,
        ",".join(process.roles),
        process.pool,
        process.version,
        process.started_at,
        now,
        after(now, lasts),
    )


def read_process(
    now: Instant,
    process_id: str,
    name: str,
    roles: str,
    pool: str | None,
    version: str,
    started_at: int,
    seen_at: int,
    until: int,
) -> SeenProcess:
    return SeenProcess(
        id=process_id,
        name=name,
        roles=tuple(roles.split(",")),
        pool=pool,
        version=version,
        started_at=Instant(started_at),
        seen_at=Instant(seen_at),
        alive=until > now,
    )
