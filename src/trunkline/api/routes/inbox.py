"""The inbox: what waits for a person."""

from __future__ import annotations

from typing import Annotated

from fastapi import FastAPI, Path, Query
from starlette.responses import Response

from trunkline.api.inbox_views import inbox_item_json, inbox_json
from trunkline.api.operations import JSON, add_operation, answer, problems
from trunkline.api.paging import DEFAULT_LIMIT, Limit
from trunkline.api.services import Services
from trunkline.clock import Instant
from trunkline.ids import RunId
from trunkline.stores.base import WaitKind, WaitPlace

INBOX = "/api/v1/inbox"
# The place of the last item given: since when it waits, its run and its step.
PlaceCursor = Annotated[
    str | None,
    Query(
        description="`next_cursor` of the page before; leave it out for the first page.",
        pattern=r"^[0-9]{1,18}\.[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\.[A-Za-z_][A-Za-z0-9_]{0,63}(\[[0-9]{1,5}\])?$",
    ),
]
ItemPath = Annotated[
    str,
    Path(description="The item's id; or the run's id, a dot and the step's name: what that asks at present."),
]


class InboxRoutes:
    def __init__(self, services: Services) -> None:
        self._inbox = services.inbox

    async def list(
        self,
        limit: Limit = DEFAULT_LIMIT,
        cursor: PlaceCursor = None,
        kind: Annotated[
            WaitKind | None,
            Query(description="Only questions, wishes to log in, or outcomes that nobody knows."),
        ] = None,
        workflow: Annotated[
            str | None, Query(description="Only what runs of this workflow wait for: its name or id.")
        ] = None,
    ) -> Response:
        """What waits for a person, the oldest first."""
        found = await self._inbox.list(limit=limit + 1, after=_place(cursor), kind=kind, workflow=workflow)
        shown = found[:limit]
        next_cursor = _cursor(shown[-1].place) if len(found) > limit else None
        return Response(inbox_json(shown, next_cursor), media_type=JSON)

    async def get(
        self,
        item: Annotated[str, Path(description="The item's id; or the run's id, a dot and the step's name.")],
    ) -> Response:
        """One item. It is answered at its `reply_url`."""
        return Response(inbox_item_json(await self._inbox.get(item)), media_type=JSON)


def _cursor(place: WaitPlace) -> str:
    return f"{place.since}.{place.run_id}.{place.step}"


def _place(cursor: str | None) -> WaitPlace | None:
    if cursor is None:
        return None
    since, run_id, step = cursor.split(".")
    return WaitPlace(Instant(int(since)), RunId(run_id), step)


def add_inbox_routes(app: FastAPI, services: Services) -> None:
    routes = InboxRoutes(services)
    add_operation(
        app, f"GET {INBOX}", routes.list, name="list_inbox", tag="inbox",
        responses={200: answer("InboxPage", "A page of what waits."), **problems(422)},
    )  # fmt: skip
    add_operation(
        app, f"GET {INBOX}/{{item}}", routes.get, name="get_inbox_item", tag="inbox",
        responses={200: answer("InboxItem", "The item."), **problems(404)},
    )  # fmt: skip
