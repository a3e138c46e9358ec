"""The inbox: steps that wait for a person."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, cast

from msgspec import Meta
from starlette.requests import Request
from starlette.responses import Response

from trunkline.api.bodies import convert, decode_object, read_body
from trunkline.api.correlation_ids import find_header
from trunkline.api.middleware.auth import caller_of, role_of
from trunkline.api.paging import CURSOR, DEFAULT_LIMIT, PageLimit, read_within
from trunkline.api.parameters import Parameters
from trunkline.api.resources.common import page_of
from trunkline.api.resources.inbox import (
    AnswerLinkRequest,
    AnswerLinkResource,
    CommentPage,
    CommentRequest,
    CommentResource,
    InboxItemResource,
    InboxPage,
    UploadedFileResource,
    answer_link_resource,
    comment_resource,
    inbox_item,
)
from trunkline.api.routing import Body, Operation, ResponseSpec, json_response, operation
from trunkline.api.services import Services
from trunkline.clock import Instant
from trunkline.durations import parse_duration
from trunkline.errors import Finding, Invalid, NotAllowed
from trunkline.ids import RunId
from trunkline.jsontypes import encode
from trunkline.services.operations.audit_log import current_actor
from trunkline.services.people.answer_links import MAX_PERSON
from trunkline.services.people.files import MAX_FILE_BYTES, MAX_FILE_NAME
from trunkline.services.runs.inbox import InboxEntry, InboxFilter
from trunkline.stores.base import WaitKind, WaitPosition

INBOX = "/api/v1/inbox"
_BYTES = "application/octet-stream"


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
    mine: Annotated[
        bool,
        Meta(
            description="Return only items that are assigned to the caller's API key or to a group with it, or that "
            "the caller has claimed. Items that another person has claimed are left out."
        ),
    ] = False
    assignee: (
        Annotated[
            str, Meta(description="The same for this person or group.", min_length=1, max_length=MAX_PERSON)
        ]
        | None
    ) = None
    unassigned: Annotated[
        bool, Meta(description="Return only items that have neither assignees nor a claim.")
    ] = False
    overdue: Annotated[
        bool,
        Meta(description="Return only items whose due time has passed, those due first before the others."),
    ] = False


class InboxItemParameters(Parameters, frozen=True, kw_only=True):
    item: Annotated[
        str, Meta(description="The item's id, or `RUN.STEP` with the run's id and the step's name.")
    ]


class UploadParameters(InboxItemParameters, frozen=True, kw_only=True):
    name: Annotated[str, Meta(description="The name of the file.", min_length=1, max_length=MAX_FILE_NAME)]


class InboxRoutes:
    def __init__(self, services: Services) -> None:
        self._inbox = services.inbox
        self._links = services.answer_links
        self._claims = services.task_claims
        self._comments = services.task_comments
        self._files = services.answer_files
        self._limits = services.limits

    async def list(self, _request: Request, given: InboxListParameters) -> Response:
        """List the steps that wait for a person, oldest first."""
        where = _filter(given)
        # Those that are overdue have another order.
        is_by_due = where.overdue and not where.unassigned
        shown, more = await read_within(
            lambda after, limit: self._inbox.list(limit=limit, after=after, where=where),
            _place(given.cursor),
            given.limit,
            key=_due_place_of if is_by_due else _place_of,
            size_bytes=lambda entry: len(encode(entry.waiting_for)),
        )
        last = shown[-1] if more else None
        next_cursor = None if last is None else _cursor(last.place_by_due if is_by_due else last.place)
        return json_response(page_of([inbox_item(entry) for entry in shown], next_cursor))

    async def get(self, _request: Request, given: InboxItemParameters) -> Response:
        """Get an inbox item. Send the answer to its `reply_url`."""
        return json_response(inbox_item(await self._inbox.get(given.item)))

    async def claim(self, request: Request, given: InboxItemParameters) -> Response:
        """
        Claim an inbox item, so that only the caller can answer it.

        The claim ends with the item, or when it is released. It does not stop due times or timeouts.
        """
        entry = await self._claims.claim(given.item, by=caller_of(request.scope))
        return json_response(inbox_item(entry))

    async def release(self, request: Request, given: InboxItemParameters) -> Response:
        """Release a claimed inbox item. The role admin can release the items of other people."""
        is_admin = role_of(request.scope) in {None, "admin"}
        entry = await self._claims.release(given.item, by=caller_of(request.scope), is_admin=is_admin)
        return json_response(inbox_item(entry))

    async def upload(self, request: Request, given: UploadParameters) -> Response:
        """
        Upload a file for the answer to an inbox item. The body is the content of the file.

        Send the response as the value of a field with `format: file`. A step can pass it on to an agent as a part.
        """
        content = await read_body(request, min(MAX_FILE_BYTES, self._limits.max_body_bytes))
        media_type = _media_type(request)
        by = caller_of(request.scope)
        file = await self._files.put(given.item, given.name, media_type, content, by=by)
        return json_response(cast("UploadedFileResource", file), 201)

    async def comments(self, _request: Request, given: InboxItemParameters) -> Response:
        """List the comments on an inbox item, oldest first. They stay when the item is answered."""
        found = await self._comments.list(given.item)
        return json_response(page_of([comment_resource(comment) for comment in found], None))

    async def comment(self, request: Request, given: InboxItemParameters) -> Response:
        """Comment on an inbox item, for other people. Comments are not part of the answer."""
        body = await read_body(request, self._limits.max_body_bytes)
        asked = convert(decode_object(body), CommentRequest)
        added = await self._comments.add(given.item, asked.text, by=caller_of(request.scope))
        return json_response(comment_resource(added), 201)

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


def _media_type(request: Request) -> str:
    given = find_header(request.scope["headers"], b"content-type")
    return _BYTES if given is None else given.decode("latin-1").partition(";")[0].strip()


def _filter(given: InboxListParameters) -> InboxFilter:
    whose = [
        name
        for name, is_given in (
            ("mine", given.mine),
            ("assignee", given.assignee is not None),
            ("unassigned", given.unassigned),
        )
        if is_given
    ]
    if len(whose) > 1:
        message = f"cannot be combined with {whose[0]}"
        raise Invalid(f"{whose[1]} {message}.", findings=[Finding(path=whose[1], message=message)])
    assignee = given.assignee
    if given.mine:
        assignee = current_actor()
        if assignee is None:
            raise NotAllowed(
                "The filter mine needs to know who asks, but the request was sent without an API key.",
                fix="Send the request with an API key, or use assignee=NAME.",
            )
    return InboxFilter(
        kind=given.kind,
        workflow=given.workflow,
        assignee=assignee,
        unassigned=given.unassigned,
        overdue=given.overdue,
    )


def _duration(text: str) -> timedelta:
    try:
        return parse_duration(text)
    except ValueError as exc:
        raise Invalid(f"expires_in: {exc}", findings=[Finding(path="expires_in", message=str(exc))]) from exc


def _place_of(entry: InboxEntry) -> WaitPosition | None:
    return entry.place


def _due_place_of(entry: InboxEntry) -> WaitPosition | None:
    return entry.place_by_due


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
            f"POST {INBOX}/{{item}}/claim", routes.claim, InboxItemParameters, name="claim_inbox_item", tag="inbox",
            responses={200: ResponseSpec("The item.", InboxItemResource)}, problems=(404, 409),
        ),
        operation(
            f"POST {INBOX}/{{item}}/release", routes.release, InboxItemParameters, name="release_inbox_item",
            tag="inbox", responses={200: ResponseSpec("The item.", InboxItemResource)}, problems=(404, 409),
        ),
        operation(
            f"POST {INBOX}/{{item}}/files", routes.upload, UploadParameters, name="upload_inbox_file", tag="inbox",
            body=Body({"type": "string", "format": "binary"}, media_types=("application/octet-stream",)),
            responses={201: ResponseSpec("The file, for the answer's data.", UploadedFileResource)},
            problems=(404, 409, 413, 422),
        ),
        operation(
            f"GET {INBOX}/{{item}}/comments", routes.comments, InboxItemParameters, name="list_inbox_comments",
            tag="inbox", responses={200: ResponseSpec("All comments.", CommentPage)}, problems=(404,),
        ),
        operation(
            f"POST {INBOX}/{{item}}/comments", routes.comment, InboxItemParameters, name="add_inbox_comment",
            tag="inbox", body=Body(CommentRequest), responses={201: ResponseSpec("The comment.", CommentResource)},
            problems=(400, 404, 409, 413, 422),
        ),
        operation(
            f"POST {INBOX}/{{item}}/links", routes.link, InboxItemParameters, name="create_answer_link", tag="inbox",
            body=Body(AnswerLinkRequest), responses={201: ResponseSpec("The link.", AnswerLinkResource)},
            problems=(400, 404, 409, 413, 422),
        ),
    ]  # fmt: skip
