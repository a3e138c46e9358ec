"""The inbox: what waits for a person."""

from __future__ import annotations

from typing import Annotated

from fastapi import FastAPI, Path, Query
from starlette.responses import Response

from trunkline.api.inbox_views import inbox_item_json, inbox_json
from trunkline.api.operations import JSON, add_operation, answer, problems
from trunkline.api.paging import DEFAULT_LIMIT, Limit, TextCursor, decode_cursor, page
from trunkline.api.services import Services
from trunkline.services.inbox import place_text, read_place
from trunkline.stores.base import WaitKind

INBOX = "/api/v1/inbox"
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
        cursor: TextCursor = None,
        kind: Annotated[
            WaitKind | None,
            Query(description="Only questions, wishes to log in, or outcomes that nobody knows."),
        ] = None,
        workflow: Annotated[
            str | None, Query(description="Only what runs of this workflow wait for: its name or id.")
        ] = None,
    ) -> Response:
        """What waits for a person, the oldest first."""
        after = read_place(decode_cursor(cursor))
        found = await self._inbox.list(limit=limit + 1, after=after, kind=kind, workflow=workflow)
        entries, next_cursor = page(found, limit, lambda entry: place_text(entry.place))
        return Response(inbox_json(entries, next_cursor), media_type=JSON)

    async def get(
        self,
        item: Annotated[str, Path(description="The item's id; or the run's id, a dot and the step's name.")],
    ) -> Response:
        """One item. It is answered at its `reply_url`."""
        return Response(inbox_item_json(await self._inbox.get(item)), media_type=JSON)


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
