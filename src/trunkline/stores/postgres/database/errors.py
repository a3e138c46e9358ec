"""
What PostgreSQL says when it cannot go on, as what we tell our users.

Never the password: of an address only the host, the port and the name of the database are shown.
"""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import urlsplit

import asyncpg

from trunkline.errors import TrunklineError, Unavailable

_COMES_BACK = "Nothing is lost: it is tried again. See that PostgreSQL runs and can be reached."


class _Trouble(NamedTuple):
    what: str
    fix: str


_RETRIED = "Nothing is lost: it is tried again."
_SCHEMA = _Trouble(
    "the tables are not those that this program needs",
    "Run `trunkline db check`, then `trunkline db upgrade` or the newer version of Trunkline that wrote them.",
)
_LOGIN = _Trouble(
    "it refuses the login", "Correct the user and the password in TRUNKLINE_STORE (or PGPASSWORD)."
)
# By SQLSTATE; the longest beginning decides.
_BY_STATE = {
    "08": _Trouble("the connection was lost", _COMES_BACK),
    "25006": _Trouble(
        "the database is for reading only", "Point TRUNKLINE_STORE at the primary server, not at a standby."
    ),
    "25P03": _Trouble("this process was paused for too long inside a transaction", _RETRIED),
    "28": _LOGIN,
    "3D000": _Trouble(
        "there is no such database", "Create it (createdb), or correct its name in TRUNKLINE_STORE."
    ),
    "40001": _Trouble("another process changed the same rows", _RETRIED),
    "40P01": _Trouble("two processes waited for one another", _RETRIED),
    "42501": _Trouble(
        "the user may not do that",
        "Grant the user of TRUNKLINE_STORE the rights on the schema and its tables.",
    ),
    "42P01": _SCHEMA,
    "42703": _SCHEMA,
    "53": _Trouble("the server is short of something", _COMES_BACK),
    "53100": _Trouble("the disk is full", "Free some space on the database server; nothing is lost."),
    "53200": _Trouble("the server is out of memory", _COMES_BACK),
    "53300": _Trouble(
        "it takes no more connections", "Raise max_connections, or run fewer processes; it is tried again."
    ),
    "55P03": _Trouble("a lock was not given in time", _RETRIED),
    "57014": _Trouble("a statement took too long", _RETRIED),
    "57P": _Trouble("the server is starting or stopping", _COMES_BACK),
    "58": _Trouble("the server cannot read or write its files", "See PostgreSQL's own log."),
    "XX": _Trouble("the server reports damage", "See PostgreSQL's own log."),
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
            return _unavailable(place, _Trouble("its tables were changed meanwhile", _RETRIED), None)
        case asyncpg.PostgresError():
            # Set on every error that the server reports, and missing from the driver's annotations.
            state = str(getattr(exc, "sqlstate", ""))
            trouble = _BY_STATE.get(state) or _BY_STATE.get(state[:3]) or _BY_STATE.get(state[:2])
            return None if trouble is None else _unavailable(place, trouble, exc)
        case asyncpg.DataError() | asyncpg.UnsupportedClientFeatureError():
            return None
        case asyncpg.InterfaceError() | asyncpg.InternalClientError() | OSError():
            # A timeout is an OSError too.
            return _unavailable(place, _Trouble("it cannot be reached", _COMES_BACK), exc)
        case _:
            return None


def _unavailable(place: str, trouble: _Trouble, exc: Exception | None) -> Unavailable:
    said = "" if exc is None else str(exc).strip().splitlines()[:1]
    detail = f" ({said[0]})" if said else ""
    return Unavailable(f"PostgreSQL at {place}: {trouble.what}{detail}.", fix=trouble.fix)
