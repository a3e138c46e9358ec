"""The inbox: steps that wait for a person."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

from msgspec import Meta
from starlette.requests import Request
from starlette.responses import Response

from trunkline.api.bodies import convert, decode_object, read_body
from trunkline.api.paging import CURSOR, DEFAULT_LIMIT, PageLimit, read_within
from trunkline.api.parameters import Parameters
from trunkline.api.resources.common import page_of
from trunkline.api.resources.inbox import (
    AnswerLinkRequest,
    AnswerLinkResource,
    InboxItemResource,
    InboxPage,
    answer_link_resource,
    inbox_item,
)
from trunkline.api.routing import Body, Operation, ResponseSpec, json_response, operation
from trunkline.api.services import Services
from trunkline.clock import Instant
from trunkline.durations import parse_duration
from trunkline.errors import Finding, Invalid
from trunkline.ids import RunId
from trunkline.jsontypes import encode
from trunkline.services.runs.inbox import InboxEntry
from trunkline.stores.base import WaitKind, WaitPosition

INBOX = "/api/v1/inbox"


class InboxListParameters(Parameters, frozen=True, kw_only=True):
    limit: PageLimit = DEFAULT_LIMIT
    # The position of the last item of the previous page: since when it waits, its run and its step.
    cursor: (
        Annotated[
            str,
            Meta(
                description=CURSOR,
                pattern=r"^[0-9]{1,18}\.[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\.[A-Za-z_][A-Za-z0-9_]{0,63}(\[[0-9]{1,5}\])?$",
            ),
        ]
        | None
    ) = None
    kind: (
        Annotated[
            WaitKind,
            Meta(
                description="Return only items of this kind: questions of agents (`input`), login requests (`auth`), "
                "unknown outcomes (`outcome`) or human tasks (`person`)."
            ),
        ]
        | None
    ) = None
    workflow: (
        Annotated[str, Meta(description="Return only items of this workflow: its name or id.")] | None
    ) = None


class InboxItemParameters(Parameters, frozen=True, kw_only=True):
    item: Annotated[
        str, Meta(description="The item's id, or `RUN.STEP` with the run's id and the step's name.")
    ]


class InboxRoutes:
    def __init__(self, services: Services) -> None:
        self._inbox = services.inbox
        self._links = services.answer_links
        self._limits = services.limits

    async def list(self, _request: Request, given: InboxListParameters) -> Response:
        """List the steps that wait for a person, oldest first."""
        shown, more = await read_within(
            lambda after, limit: self._inbox.list(
                limit=limit, after=after, kind=given.kind, workflow=given.workflow
            ),
            _place(given.cursor),
            given.limit,
            key=_place_of,
            size_bytes=lambda entry: len(encode(entry.waiting_for)),
        )
        next_cursor = _cursor(shown[-1].place) if more else None
        return json_response(page_of([inbox_item(entry) for entry in shown], next_cursor))

    async def get(self, _request: Request, given: InboxItemParameters) -> Response:
        """Get an inbox item. Send the answer to its `reply_url`."""
        return json_response(inbox_item(await self._inbox.get(given.item)))

    async def link(self, request: Request, given: InboxItemParameters) -> Response:
        """
        Create a link at which one person can answer an inbox item without an API key.

        Everyone who has the link can answer in the person's name. It stops working when the item is answered.
        """
        asked = convert(
            decode_object(await read_body(request, self._limits.max_body_bytes)), AnswerLinkRequest
        )
        link = await self._links.create(given.item, asked.person, _duration(asked.expires_in))
        return json_response(answer_link_resource(link, self._links.url_of(link)), 201)


def _duration(text: str) -> timedelta:
    try:
        return parse_duration(text)
    except ValueError as exc:
        raise Invalid(f"expires_in: {exc}", findings=[Finding(path="expires_in", message=str(exc))]) from exc


def _place_of(entry: InboxEntry) -> WaitPosition | None:
    return entry.place


def _cursor(place: WaitPosition) -> str:
    return f"{place.since}.{place.run_id}.{place.step}"


def _place(cursor: str | None) -> WaitPosition | None:
    if cursor is None:
        return None
    since, run_id, step = cursor.split(".")
    return WaitPosition(Instant(int(since)), RunId(run_id), step)


def inbox_operations(services: Services) -> list[Operation]:
    routes = InboxRoutes(services)
    return [
        operation(
            f"GET {INBOX}", routes.list, InboxListParameters, name="list_inbox", tag="inbox",
            responses={200: ResponseSpec("A page of inbox items.", InboxPage)}, problems=(422,),
        ),
        operation(
            f"GET {INBOX}/{{item}}", routes.get, InboxItemParameters, name="get_inbox_item", tag="inbox",
            responses={200: ResponseSpec("The item.", InboxItemResource)}, problems=(404,),
        ),
        operation(
            f"POST {INBOX}/{{item}}/links", routes.link, InboxItemParameters, name="create_answer_link", tag="inbox",
            body=Body(AnswerLinkRequest), responses={201: ResponseSpec("The link.", AnswerLinkResource)},
            problems=(400, 404, 409, 413, 422),
        ),
    ]  # fmt: skip
