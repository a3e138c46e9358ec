"""Events: receive them, signal to a run, and read what has arrived."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta
from starlette.requests import Request
from starlette.responses import Response

from trunkline.api.bodies import decode_json, read_body
from trunkline.api.event_bodies import EventRequest, read_events
from trunkline.api.paging import NumberPageParameters, page_within
from trunkline.api.parameters import Parameters, in_header
from trunkline.api.resources.automation.events import (
    ReceivedEventPage,
    ReceivedEventResource,
    ReceivedResource,
    received_event_resource,
)
from trunkline.api.resources.common import page_of
from trunkline.api.routes.runs import RUNS
from trunkline.api.routing import Body, Operation, ResponseSpec, json_response, operation
from trunkline.api.services import Services
from trunkline.ids import RunId
from trunkline.services.events.events import Events
from trunkline.stores.port.automation.received_events import EventFilter

EVENTS = "/api/v1/events"


class EventListParameters(NumberPageParameters, frozen=True, kw_only=True):
    type: Annotated[str, Meta(description="Only events of this type. For signals: their name.")] | None = None
    key: Annotated[str, Meta(description="Only events with this key. Requires `type`.")] | None = None
    run: Annotated[str, Meta(description="Only signals to this run.")] | None = None


class EventParameters(Parameters, frozen=True, kw_only=True):
    event: Annotated[str, Meta(description="The event's id.")]


class SignalParameters(Parameters, frozen=True, kw_only=True):
    run: Annotated[str, Meta(description="The run's id.")]
    name: Annotated[str, Meta(description="The signal's name.")]
    idempotency_key: (
        Annotated[
            str,
            Meta(
                pattern="^[ -~]{1,255}$",
                description="A repeated signal with the same key counts once.",
                extra=in_header("Idempotency-Key"),
            ),
        ]
        | None
    ) = None


class EventRoutes:
    def __init__(self, services: Services) -> None:
        self._services = services
        self._events: Events = services.events

    async def receive(self, request: Request) -> Response:
        """
        Send an event.

        The body is an event, or a CloudEvent 1.0: structured, binary (with `ce-` headers) or a batch. The event is
        stored, and completes the steps that wait for it. An event with the source and the id of an earlier one changes
        nothing.
        """
        events, is_batch = read_events(request.scope["headers"], await self._body(request))
        ids = await self._events.receive(events)
        received: ReceivedResource = {"id": ids[0]}
        if is_batch:
            received["ids"] = ids
        return json_response(received, 202)

    async def signal(self, request: Request, given: SignalParameters) -> Response:
        """
        Send a signal to a run: an event for this run alone.

        The body is any JSON. It completes a step with `wait_for: {signal: NAME}`, also if that starts later.
        """
        content = await self._body(request)
        data = decode_json(content) if content else None
        signal_id = await self._events.signal(RunId(given.run), given.name, data, given.idempotency_key)
        return json_response({"id": signal_id}, 202)

    async def list(self, _request: Request, given: EventListParameters) -> Response:
        """List the events that have arrived, newest first. They are kept for `event_retention`."""
        where = EventFilter(
            type=given.type, key=given.key, run_id=None if given.run is None else RunId(given.run)
        )
        events, next_cursor = await page_within(
            lambda before, limit: self._events.list(where, limit=limit, before=before),
            None if given.cursor is None else int(given.cursor),
            given.limit,
            key=lambda event: event.number,
            size_bytes=lambda event: len(event.data),
        )
        return json_response(page_of([received_event_resource(event) for event in events], next_cursor))

    async def get(self, _request: Request, given: EventParameters) -> Response:
        """Get an event. If several sources have sent one with this id, it is the latest."""
        return json_response(received_event_resource(await self._events.get(given.event)))

    async def _body(self, request: Request) -> bytes:
        return await read_body(request, self._services.limits.max_body_bytes)


def event_operations(services: Services) -> list[Operation]:
    routes = EventRoutes(services)
    received = "The event, or the event with the same source and id that arrived before."
    media_types = ("application/json", "application/cloudevents+json", "application/cloudevents-batch+json")
    return [
        operation(
            f"POST {EVENTS}", routes.receive, name="send_event", tag="events",
            body=Body(EventRequest, media_types=media_types),
            responses={202: ResponseSpec(received, ReceivedResource)},
            problems=(400, 413, 422),
        ),
        operation(
            f"GET {EVENTS}", routes.list, EventListParameters, name="list_events", tag="events",
            responses={200: ResponseSpec("A page of events.", ReceivedEventPage)}, problems=(422,),
        ),
        operation(
            f"GET {EVENTS}/{{event}}", routes.get, EventParameters, name="get_event", tag="events",
            responses={200: ResponseSpec("The event.", ReceivedEventResource)}, problems=(404,),
        ),
        operation(
            f"POST {RUNS}/{{run}}/signals/{{name}}", routes.signal, SignalParameters, name="signal_run",
            tag="events",
            body=Body({"description": "The data of the signal."}, required=False),
            responses={202: ResponseSpec("The signal was accepted.", ReceivedResource)},
            problems=(400, 404, 409, 413, 422),
        ),
    ]  # fmt: skip
