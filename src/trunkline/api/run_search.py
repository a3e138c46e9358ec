"""What a list of runs may be asked for, as a query."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Annotated

from fastapi import Query
from pydantic import AwareDatetime, BeforeValidator

from trunkline.clock import Instant
from trunkline.ids import RunId
from trunkline.machine.state import RunStatus
from trunkline.services.runs.search import RunSearch


def _as_text(value: object) -> object:
    """Pydantic would take a number for the seconds since 1970, which nobody has promised."""
    if isinstance(value, str) and not _DATE.match(value):
        raise ValueError("it is no time; write one such as 2026-03-01T12:00:00Z")
    return value


_DATE = re.compile(r"\d{4}-\d\d-\d\d[T ]", re.IGNORECASE)
Moment = Annotated[AwareDatetime, BeforeValidator(_as_text)]
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_LONGEST_TEXT = 200
_OF_CHILDREN = "A child run counts with the run above all others that has begun it."


def read_search(
    *,
    status: Annotated[
        list[RunStatus] | None, Query(description="Only runs in this state; several: in any of them.")
    ] = None,
    workflow: Annotated[str | None, Query(description="Only runs of this workflow: its name or id.")] = None,
    agent: Annotated[
        str | None, Query(description="Only runs of workflows that call this agent, in the version that ran.")
    ] = None,
    q: Annotated[
        str | None,
        Query(
            min_length=1,
            max_length=_LONGEST_TEXT,
            description=(
                "Only runs whose id begins with this, whose workflow's name has it (in capitals or not), or "
                "whose correlation id it is."
            ),
        ),
    ] = None,
    since: Annotated[
        Moment | None,
        Query(description=f"Only runs created at this time or later, to the millisecond. {_OF_CHILDREN}"),
    ] = None,
    until: Annotated[
        Moment | None,
        Query(description=f"Only runs created before this time, to the millisecond. {_OF_CHILDREN}"),
    ] = None,
    parent: Annotated[
        str | None, Query(description="Only runs that steps of this run have begun: its id.")
    ] = None,
    children: Annotated[
        bool, Query(description="`false`: only runs that no step of another run has begun.")
    ] = True,
) -> RunSearch:
    return RunSearch(
        statuses=tuple(dict.fromkeys(status or ())),
        workflow=workflow,
        agent=agent,
        text=q,
        since=_instant(since),
        until=_instant(until),
        parent=None if parent is None else RunId(parent),
        with_children=children,
    )


def _instant(time: datetime | None) -> Instant | None:
    return None if time is None else Instant((time - _EPOCH) // _MICROSECOND)
