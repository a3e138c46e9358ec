"""
The agents and workflows in a PostgreSQL database of litecone, for the importer.

Only reads: everything is read in one read-only transaction, so the definitions fit together even while litecone runs.
What the rows mean is the importer's business. Of the URL, only host, port and database name are ever shown.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import NamedTuple, cast
from urllib.parse import urlsplit

import asyncpg

from trunkline.errors import ConfigurationError, Invalid, TrunklineError, Unavailable

_CONNECT_SECONDS = 10
_STATEMENT_SECONDS = 60
_ROWS_AT_ONCE = 100
# litecone's own setting may name a driver: postgresql+asyncpg://…
_SCHEME = re.compile(r"^postgres(?:ql)?(?:\+[a-z0-9]+)?://", re.IGNORECASE)

# Whole rows: columns that came with a later version are in them too, and the importer reports what it does not know.
_AGENTS = """
    SELECT CASE WHEN octet_length(content) <= $1 THEN content END AS content, name
    FROM (
        SELECT to_jsonb(agents)::text AS content, name FROM agents
        WHERE status IS DISTINCT FROM 'deleted' ORDER BY name LIMIT $2
    ) AS found
"""
_WORKFLOWS = """
    SELECT CASE WHEN octet_length(content) <= $1 THEN content END AS content, name
    FROM (
        SELECT DISTINCT ON (name) to_jsonb(workflow_definitions)::text AS content, name
        FROM workflow_definitions WHERE status IS DISTINCT FROM 'deleted' ORDER BY name, version DESC LIMIT $2
    ) AS found
"""


class _Refusal(NamedTuple):
    """What the database says, in our words."""

    error: type[TrunklineError]
    what: str
    fix: str


_NOT_LITECONE = _Refusal(
    Invalid,
    "it has no tables 'agents' and 'workflow_definitions' of litecone",
    "Name litecone's own database: the one in its DATABASE_URL.",
)
# By SQLSTATE; the longest beginning decides.
_REFUSALS = {
    "28": _Refusal(
        ConfigurationError, "it rejected the credentials", "Correct the user and the password in the URL."
    ),
    "3D000": _Refusal(ConfigurationError, "the database does not exist", "Correct its name in the URL."),
    "42501": _Refusal(
        ConfigurationError,
        "permission denied",
        "Grant the user in the URL SELECT on the tables agents and workflow_definitions.",
    ),
    "42P01": _NOT_LITECONE,
    "42703": _NOT_LITECONE,
    "57014": _Refusal(
        Unavailable,
        f"a query took longer than {_STATEMENT_SECONDS} seconds",
        "Try again when it is less busy.",
    ),
}


class ReadLimits(NamedTuple):
    """How much is read; beyond it nothing is."""

    # Of each table: far more definitions than people maintain by hand.
    rows: int = 10_000
    # As long as a file of definitions may be.
    row_bytes: int = 8 * 1024 * 1024
    total_bytes: int = 64 * 1024 * 1024


class LiteconeRows(NamedTuple):
    # Where they were found, without user and password.
    place: str
    # Each row as a JSON text.
    agents: tuple[str, ...]
    workflows: tuple[str, ...]


async def read_litecone(url: str, limits: ReadLimits = ReadLimits()) -> LiteconeRows:  # noqa: B008 - immutable
    """The agents, and the latest version of each workflow; raises `TrunklineError`."""
    place = _place(url)
    found: dict[str, tuple[str, ...]] = {}
    size = 0
    async with _transaction(_SCHEME.sub("postgresql://", url), place) as connection:
        for what, sql in {"agents": _AGENTS, "workflows": _WORKFLOWS}.items():
            texts: list[str] = []
            async for content, name in _rows(connection, sql, limits):
                if content is None:
                    raise _too_much(
                        place, f"the row {name!r} of its {what} has more than {limits.row_bytes:,} bytes"
                    )
                texts.append(content)
                size += len(content)
                if len(texts) > limits.rows:
                    raise _too_much(place, f"it has more than {limits.rows:,} {what}")
                if size > limits.total_bytes:
                    raise _too_much(place, f"its definitions have more than {limits.total_bytes:,} bytes")
            found[what] = tuple(texts)
    return LiteconeRows(place, found["agents"], found["workflows"])


def _place(url: str) -> str:
    try:
        parts = urlsplit(url)
        host = parts.hostname or "the local socket"
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        raise _bad_url() from None
    if "@" in parts.path + parts.query + parts.fragment:
        # A '/', '?' or '#' in the password: what follows it would be taken for something else, and shown.
        raise _bad_url()
    return f"{host}{port}{parts.path}"


def _bad_url() -> ConfigurationError:
    return ConfigurationError(
        "The URL of litecone's database is not valid.",
        fix="Use postgresql://user:password@host:port/database. Write special characters in the password as %XX.",
    )


@asynccontextmanager
async def _transaction(url: str, place: str) -> AsyncGenerator[asyncpg.Connection]:
    try:
        untyped = await asyncpg.connect(url, timeout=_CONNECT_SECONDS, command_timeout=_STATEMENT_SECONDS + 5)  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType] - untyped
    except (asyncpg.ClientConfigurationError, ValueError):
        # Its own words may hold the password.
        raise _bad_url() from None
    except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError) as exc:
        raise _explained(exc, place) from exc
    connection = cast("asyncpg.Connection", untyped)
    try:
        async with connection.transaction(isolation="repeatable_read", readonly=True):  # pyright: ignore[reportUnknownMemberType] - untyped
            await connection.execute(f"SET LOCAL statement_timeout = '{_STATEMENT_SECONDS}s'")  # pyright: ignore[reportUnknownMemberType] - untyped
            yield connection
    except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError) as exc:
        raise _explained(exc, place) from exc
    finally:
        connection.terminate()


def _rows(
    connection: asyncpg.Connection, sql: str, limits: ReadLimits
) -> AsyncIterator[tuple[str | None, str]]:
    """Each row's text, or None where it is too long, and its name; one more row than is allowed, if there are more."""
    untyped = connection.cursor(sql, limits.row_bytes, limits.rows + 1, prefetch=_ROWS_AT_ONCE)  # pyright: ignore[reportUnknownMemberType] - untyped
    return cast("AsyncIterator[tuple[str | None, str]]", untyped)


def _too_much(place: str, what: str) -> Invalid:
    return Invalid(
        f"The litecone database at {place}: {what}.",
        fix="Export the definitions with litecone's REST API, and import the files in parts.",
    )


def _explained(exc: Exception, place: str) -> TrunklineError:
    state = str(getattr(exc, "sqlstate", None) or "")
    refusal = _REFUSALS.get(state) or _REFUSALS.get(state[:2])
    if refusal is None:
        refusal = _Refusal(
            Unavailable, "it cannot be read", "Check that PostgreSQL is running and that the URL is right."
        )
    said = str(exc).strip().splitlines()[:1]
    detail = f" ({said[0]})" if said else ""
    return refusal.error(f"The litecone database at {place}: {refusal.what}{detail}.", fix=refusal.fix)
