"""Server-sent events, read line by line. Pure: the lines come from whoever has the connection."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple


class ServerEvent(NamedTuple):
    id: str | None
    data: str


def read_events(lines: Iterable[bytes]) -> Iterator[ServerEvent]:
    """
    The complete events in a stream; comments (`: ping`) and what a cut left unfinished are dropped.

    An id holds for the events after it too, as the standard has it.
    """
    last_id: str | None = None
    data: list[str] = []
    for raw in lines:
        line = raw.decode("utf-8", "replace").rstrip("\r\n")
        if not line:
            if data:
                yield ServerEvent(last_id, "\n".join(data))
            data = []
            continue
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if field == "id":
            last_id = value
        elif field == "data":
            data.append(value)
