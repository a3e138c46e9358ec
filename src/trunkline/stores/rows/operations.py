"""Keys, secrets, entries of the audit log, processes and jobs."""

from __future__ import annotations

from datetime import timedelta

import msgspec

from trunkline.clock import Instant, after
from trunkline.jsontypes import encode
from trunkline.stores.port.automation.jobs import Job
from trunkline.stores.port.keys_and_secrets import ApiKey, Secret
from trunkline.stores.port.operations import AuditEntry, NewAuditEntry, Process, SeenProcess
from trunkline.stores.rows import Row, Value

_publications = msgspec.json.Decoder(tuple[str, ...])


def api_key(row: Row) -> ApiKey:
    key_id, name, role, digest, created_at, revoked_at, expires_at, last_used_at, publications = row
    return ApiKey(
        id=key_id,
        name=name,
        role=role,
        digest=digest,
        created_at=created_at,
        revoked_at=revoked_at,
        expires_at=expires_at,
        last_used_at=last_used_at,
        publications=() if publications is None else _publications.decode(publications),
    )


def api_key_values(key: ApiKey) -> tuple[Value, ...]:
    return (
        key.id,
        key.name,
        key.role,
        key.digest,
        key.created_at,
        key.revoked_at,
        key.expires_at,
        key.last_used_at,
        encode(key.publications).decode() if key.publications else None,
    )


def secret_record(row: Row) -> Secret:
    name, sealed, version, created_at, updated_at = row
    return Secret(name=name, sealed=sealed, version=version, created_at=created_at, updated_at=updated_at)


def audit_entry(row: Row) -> AuditEntry:
    entry_id, at, who, kind, action, subject, detail = row
    return AuditEntry(
        id=entry_id, at=Instant(at), who=who, kind=kind, action=action, subject=subject, detail=detail
    )


def audit_values(entry: NewAuditEntry, now: Instant) -> tuple[Value, ...]:
    return (entry.id, now, entry.who, entry.kind, entry.action, entry.subject, entry.detail)


def process_record(row: Row, now: Instant) -> SeenProcess:
    process_id, name, roles, pool, version, started_at, seen_at, until = row
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


def process_values(process: Process, now: Instant, lasts: timedelta) -> tuple[Value, ...]:
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


def job(row: Row) -> Job:
    """From id, status, request, progress, created_by, created_at, started_at, finished_at, epoch."""
    job_id, status, request, progress, created_by, created_at, started_at, finished_at, epoch = row
    return Job(
        id=job_id,
        status=status,
        request=bytes(request),
        progress=bytes(progress),
        created_by=created_by,
        created_at=Instant(created_at),
        started_at=None if started_at is None else Instant(started_at),
        finished_at=None if finished_at is None else Instant(finished_at),
        epoch=epoch,
    )
