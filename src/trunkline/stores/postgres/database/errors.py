"""
What PostgreSQL says when it cannot go on, as what we tell our users.

Never the password: of an address only the host, the port and the name of the database are shown.
"""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import urlsplit

import asyncpg

from trunkline.errors import TrunklineError, Unavailable

_COMES_BACK = "Nothing is lost: Trunkline tries again. Check that PostgreSQL is running and reachable."


class _ServerError(NamedTuple):
    what: str
    fix: str


_RETRIED = "Nothing is lost: Trunkline tries again."
_SCHEMA = _ServerError(
    "its schema does not match this version of Trunkline",
    "Run `trunkline db check`. Then run `trunkline db upgrade`, or install the newer version of "
    "Trunkline that created the schema.",
)
_LOGIN = _ServerError(
    "it rejected our credentials", "Correct the user and password in TRUNKLINE_STORE (or PGPASSWORD)."
)
# By SQLSTATE; the longest beginning decides.
_BY_STATE = {
    "08": _ServerError("the connection was lost", _COMES_BACK),
    "25006": _ServerError(
        "the database is read-only", "Point TRUNKLINE_STORE at the primary server, not at a standby."
    ),
    "25P03": _ServerError(
        "the transaction was idle for too long because this process was suspended", _RETRIED
    ),
    "28": _LOGIN,
    "3D000": _ServerError(
        "the database does not exist", "Create it (createdb), or correct its name in TRUNKLINE_STORE."
    ),
    "40001": _ServerError("another process changed the same rows", _RETRIED),
    "40P01": _ServerError("a deadlock was detected", _RETRIED),
    "42501": _ServerError(
        "permission denied",
        "Grant the user in TRUNKLINE_STORE privileges on the schema and its tables.",
    ),
    "42P01": _SCHEMA,
    "42703": _SCHEMA,
    "53": _ServerError("the server has insufficient resources", _COMES_BACK),
    "53100": _ServerError(
        "the disk is full", "Free some disk space on the database server. Nothing is lost."
    ),
    "53200": _ServerError("the server is out of memory", _COMES_BACK),
    "53300": _ServerError(
        "it has no free connection slots",
        "Raise max_connections, or run fewer processes. Trunkline tries again.",
    ),
    "55P03": _ServerError("timed out waiting for a lock", _RETRIED),
    "57014": _ServerError("a statement timed out", _RETRIED),
    "57P": _ServerError("the server is starting up or shutting down", _COMES_BACK),
    "58": _ServerError("the server cannot read or write its files", "See PostgreSQL's log."),
    "XX": _ServerError("the server reports data corruption", "See PostgreSQL's log."),
}


def place_of(url: str) -> str:
    """Where the database is, without who logs in."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or "the local socket"
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return "TRUNKLINE_STORE"
    return f"{host}{port}{parts.path}"


def explained(exc: Exception, place: str) -> TrunklineError | None:
    """The error to raise instead; None for one that is about the statement or its values, not about the server."""
    match exc:
        case asyncpg.InvalidCachedStatementError() | asyncpg.OutdatedSchemaCacheError():
            return _unavailable(
                place, _ServerError("its schema changed while the process was running", _RETRIED), None
            )
        case asyncpg.PostgresError():
            # Set on every error that the server reports, and missing from the driver's annotations.
            state = str(getattr(exc, "sqlstate", ""))
            server_error = _BY_STATE.get(state) or _BY_STATE.get(state[:3]) or _BY_STATE.get(state[:2])
            return None if server_error is None else _unavailable(place, server_error, exc)
        case asyncpg.DataError() | asyncpg.UnsupportedClientFeatureError():
            return None
        case asyncpg.InterfaceError() | asyncpg.InternalClientError() | OSError():
            # A timeout is an OSError too.
            return _unavailable(place, _ServerError("it cannot be reached", _COMES_BACK), exc)
        case _:
            return None


def _unavailable(place: str, server_error: _ServerError, exc: Exception | None) -> Unavailable:
    said = "" if exc is None else str(exc).strip().splitlines()[:1]
    detail = f" ({said[0]})" if said else ""
    return Unavailable(f"PostgreSQL at {place}: {server_error.what}{detail}.", fix=server_error.fix)
