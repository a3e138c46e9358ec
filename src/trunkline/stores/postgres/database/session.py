"""
One session with PostgreSQL: statements through asyncpg, typed, with texts and errors translated.

The driver prepares each statement once for a session and keeps it. Values of a batch travel as arrays, one for each
column: one statement for any number of rows. `combined` makes several statements one, because a round trip costs more
than most of them. All parts see the database as it was before, so none may need what another one writes.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias, cast

import asyncpg

from trunkline.stores.postgres.database.errors import explained
from trunkline.stores.postgres.database.text_encoding import escaped
from trunkline.stores.rows import Row

Value: TypeAlias = str | bytes | int | float | bool | None
Column: TypeAlias = list[Any]


class Session:
    def __init__(self, connection: asyncpg.Connection, place: str) -> None:
        self._connection = connection
        self.place = place

    async def rows(self, sql: str, *values: Value | Column) -> list[Row]:
        try:
            found = await self._connection.fetch(sql, *map(_accepted, values))  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType] - untyped
        except Exception as exc:
            raise self._explained(exc) from exc
        return cast("list[Row]", found)

    async def first(self, sql: str, *values: Value | Column) -> Row | None:
        found = await self.rows(sql, *values)
        return found[0] if found else None

    async def execute(self, sql: str, *values: Value | Column) -> int:
        """Runs one statement; how many rows it changed."""
        try:
            status = await self._connection.execute(sql, *map(_accepted, values))  # pyright: ignore[reportUnknownMemberType] - untyped
        except Exception as exc:
            raise self._explained(exc) from exc
        return int(status.rpartition(" ")[2])

    async def execute_many(self, sql: str, rows: Iterable[Sequence[Value]]) -> None:
        """Runs one statement for each row, all on their way at once."""
        try:
            await self._connection.executemany(sql, [[*map(_accepted, row)] for row in rows])  # pyright: ignore[reportUnknownMemberType] - untyped
        except Exception as exc:
            raise self._explained(exc) from exc

    async def stream(self, sql: str) -> AsyncGenerator[Row]:
        """Rows as they are needed, inside a transaction."""
        try:
            async for row in self._connection.cursor(sql, prefetch=_PREFETCH):  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType] - untyped
                yield cast("Row", row)
        except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError) as exc:
            raise self._explained(exc) from exc

    async def command(self, script: str) -> str:
        """Runs statements that take no values, in one round trip; what the last one has to say for itself."""
        try:
            return await self._connection.execute(script)  # pyright: ignore[reportUnknownMemberType] - untyped
        except Exception as exc:
            raise self._explained(exc) from exc

    async def listen(self, channel: str, on_text: Callable[[str], None], on_end: Callable[[], None]) -> None:
        """Calls `on_text` for each text on the channel, and `on_end` when the session has ended."""

        def received(connection: object, pid: int, channel: str, payload: str) -> None:
            del connection, pid, channel
            on_text(payload)

        def ended(connection: object) -> None:
            del connection
            on_end()

        self._connection.add_termination_listener(ended)  # pyright: ignore[reportUnknownMemberType] - untyped
        try:
            await self._connection.add_listener(channel, received)  # pyright: ignore[reportUnknownMemberType] - untyped
        except Exception as exc:
            raise self._explained(exc) from exc

    def _explained(self, exc: Exception) -> Exception:
        if isinstance(exc, asyncpg.InternalClientError):
            # The driver does not know any more what the server is about to say, e.g. after a crash in mid-sentence.
            self.terminate()
        return explained(exc, self.place) or exc

    @property
    def is_closed(self) -> bool:
        return self._connection.is_closed()

    def terminate(self) -> None:
        """Hangs up without a word; the server rolls back what is open."""
        self._connection.terminate()

    async def close(self) -> None:
        try:
            await self._connection.close(timeout=_CLOSE_SECONDS)  # pyright: ignore[reportUnknownMemberType] - untyped
        except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError):
            self.terminate()


_PREFETCH = 100
# A server that does not answer must not keep us from ending.
_CLOSE_SECONDS = 2.0


def columns(rows: Iterable[Sequence[Value]], count: int) -> list[Column]:
    """The same values by column; always `count` columns, even without rows."""
    turned = [list(column) for column in zip(*rows, strict=True)]
    return turned or [[] for _ in range(count)]


def _accepted(value: Value | Column) -> Value | Column:
    if isinstance(value, str):
        return escaped(value)
    if isinstance(value, list) and value and not isinstance(value[0], bytes | int):
        return [escaped(member) if isinstance(member, str) else member for member in value]
    return value


_PLACE = re.compile(r"\$(\d+)")


class StatementPart(NamedTuple):
    """A statement that writes, with the values of its own `$1`, `$2` and so on."""

    sql: str
    values: Sequence[Column]


def combined(parts: Sequence[StatementPart], last: str | None = None) -> tuple[str, list[Column]]:
    """
    One statement, and its values.

    `last` comes after all parts, and may read what they return as `part_1` and so on; the parts may read of those
    before them.
    """
    values = [column for part in parts for column in part.values]
    return _combined(tuple((part.sql, len(part.values)) for part in parts), last), values


# Few combinations ever occur: each is made, and prepared by the server, once.
@lru_cache(maxsize=256)
def _combined(parts: tuple[tuple[str, int], ...], last: str | None) -> str:
    statements: list[str] = []
    used = 0
    for sql, count in parts:
        statements.append(_shifted(sql, used))
        used += count
    if last is None:
        last = statements.pop()
    if not statements:
        return last
    named = ", ".join(f"part_{number} AS ({sql})" for number, sql in enumerate(statements, 1))
    return f"WITH {named} {last}"


def _shifted(sql: str, by: int) -> str:
    return _PLACE.sub(lambda match: f"${int(match[1]) + by}", sql)
