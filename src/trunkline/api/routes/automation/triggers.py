"""Triggers: save, show, pause and fire them, and read their history."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated
from urllib.parse import quote

from msgspec import Meta, UnsetType
from starlette.requests import Request
from starlette.responses import Response

from trunkline.api.bodies import convert, decode_json, decode_object, read_body
from trunkline.api.correlation_ids import correlation_id_of
from trunkline.api.middleware.auth import role_of
from trunkline.api.paging import TextPageParameters, decode_cursor, page, page_within
from trunkline.api.parameters import Parameters, instant
from trunkline.api.resources.automation.trigger_schema import trigger_json_schema
from trunkline.api.resources.automation.triggers import (
    Backfill,
    BackfillRequest,
    FireRequest,
    FiringPage,
    SchedulePreview,
    ScheduleRequest,
    TriggerPage,
    TriggerRequest,
    TriggerResource,
    UpcomingFiringsResource,
    backfilled_run_resource,
    firing_resource,
    listed_trigger,
    trigger_resource,
    upcoming_resource,
)
from trunkline.api.resources.common import page_of
from trunkline.api.resources.runs import RunResource, run_resource
from trunkline.api.routes.run_control import IdempotencyKey
from trunkline.api.routes.runs import RUNS
from trunkline.api.routes.workflows import YAML_TYPES
from trunkline.api.routing import JSON, LOCATION, Body, Operation, ResponseSpec, json_response, operation
from trunkline.api.services import Services
from trunkline.clock import rfc3339
from trunkline.stores.port.automation.triggers import TriggerRecord

TRIGGERS = "/api/v1/triggers"
# Not below /triggers, where it would reserve a name.
PREVIEW = "/api/v1/schedule-preview"
VALIDATION = "/api/v1/trigger-validation"
SCHEMA = "/api/v1/trigger-schema"
UPCOMING = "/api/v1/upcoming-firings"
TriggerNameParameter = Annotated[str, Meta(description="The trigger's name.")]


class TriggerParameters(Parameters, frozen=True, kw_only=True):
    trigger: TriggerNameParameter


class FireParameters(Parameters, frozen=True, kw_only=True):
    trigger: TriggerNameParameter
    idempotency_key: IdempotencyKey | None = None


class UpcomingParameters(Parameters, frozen=True, kw_only=True):
    hours: Annotated[int, Meta(ge=1, le=168, description="How many hours from now.")] = 24


class ListFiringsParameters(TextPageParameters, frozen=True, kw_only=True):
    trigger: TriggerNameParameter


class TriggerRoutes:
    def __init__(self, services: Services) -> None:
        self._services = services
        self._triggers = services.triggers

    async def create(self, request: Request) -> Response:
        """
        Create a trigger, as YAML or JSON.

        A trigger starts runs of a workflow: by schedule, by webhook, when an event arrives, or when another run ends.
        The workflow must exist.
        """
        record = await self._triggers.create(await self._definition(request))
        return self._shown(request, record, 201, {"Location": f"{TRIGGERS}/{quote(record.name, safe='')}"})

    async def save(self, request: Request, given: TriggerParameters) -> Response:
        """
        Create a trigger or replace its definition, as YAML or JSON.

        If its schedule has not changed, its next firing stays as it is.
        """
        saved = await self._triggers.save(given.trigger, await self._definition(request))
        return self._shown(request, saved.record, 201 if saved.created else 200)

    async def _definition(self, request: Request) -> bytes:
        content = await read_body(request, self._services.limits.max_body_bytes)
        if request.headers.get("content-type", "").startswith(JSON):
            # A caller that sends JSON gets JSON syntax errors, not those of the YAML parser.
            decode_json(content)
        return content

    def _shown(
        self,
        request: Request,
        record: TriggerRecord,
        status: int = 200,
        headers: dict[str, str] | None = None,
    ) -> Response:
        following = self._triggers.next_firings(record)
        return json_response(trigger_resource(record, following, self._url(request, record)), status, headers)

    def _url(self, request: Request, record: TriggerRecord) -> str | None:
        """For those who may start runs: the address alone can be enough for it."""
        return self._services.webhooks.url_of(record) if role_of(request.scope) != "viewer" else None

    async def list(self, request: Request, given: TextPageParameters) -> Response:
        """List triggers, sorted by name."""
        triggers, next_cursor = await page_within(
            lambda after, limit: self._triggers.list(limit=limit, after=after),
            decode_cursor(given.cursor),
            given.limit,
            key=lambda record: record.name,
            size_bytes=lambda record: len(record.definition),
        )
        last = await self._triggers.last_firings(triggers)
        return json_response(
            page_of(
                [listed_trigger(each, self._url(request, each), last.get(each.id)) for each in triggers],
                next_cursor,
            )
        )

    async def get(self, request: Request, given: TriggerParameters) -> Response:
        """Get a trigger, with its next firings."""
        return self._shown(request, await self._triggers.get(given.trigger))

    async def delete(self, _request: Request, given: TriggerParameters) -> Response:
        """Delete a trigger and its history. Its runs continue."""
        await self._triggers.delete(given.trigger)
        return Response(status_code=204)

    async def pause(self, request: Request, given: TriggerParameters) -> Response:
        """Pause a trigger. Whatever would fire it while it is paused starts nothing."""
        return self._shown(request, await self._triggers.set_enabled(given.trigger, enabled=False))

    async def resume(self, request: Request, given: TriggerParameters) -> Response:
        """Resume a paused trigger. It fires at its next scheduled time, or for the next event."""
        return self._shown(request, await self._triggers.set_enabled(given.trigger, enabled=True))

    async def fire(self, request: Request, given: FireParameters) -> Response:
        """
        Start a run of a trigger's workflow now.

        Also fires a paused trigger. The next scheduled firing stays the same.
        """
        content = await read_body(request, self._services.limits.max_body_bytes)
        body = convert(decode_object(content) if content else {}, FireRequest)
        started = await self._triggers.fire(
            given.trigger,
            run_input=None if isinstance(body.input, UnsetType) else (body.input,),
            correlation_id=correlation_id_of(request.scope),
            idempotency_key=given.idempotency_key,
        )
        view = await self._services.run_queries.get(started.run_id)
        return json_response(run_resource(view), 202, {"Location": f"{RUNS}/{started.run_id}"})

    async def backfill(self, request: Request, given: TriggerParameters) -> Response:
        """
        Start a run for each scheduled time of a past period.

        A time that has already started a run does not start another one, so you can repeat the request.
        """
        content = await read_body(request, self._services.limits.max_body_bytes)
        body = convert(decode_object(content), BackfillRequest)
        runs = await self._triggers.backfill(given.trigger, instant(body.from_), instant(body.to))
        return json_response({"items": [backfilled_run_resource(run) for run in runs]}, 202)

    async def firings(self, _request: Request, given: ListFiringsParameters) -> Response:
        """List the firings of a trigger, newest first, each with its run or the reason why it started none."""
        found = await self._triggers.firings(
            given.trigger, limit=given.limit + 1, before=decode_cursor(given.cursor)
        )
        firings, next_cursor = page(found, given.limit, lambda firing: firing.id)
        return json_response(page_of([firing_resource(each) for each in firings], next_cursor))

    async def check(self, request: Request) -> Response:
        """Validate a trigger without saving it, and show when it would fire next by its schedule."""
        following = await self._triggers.check(await self._definition(request))
        return json_response({"firings": [rfc3339(time) for time in following]})

    async def schema(self, _request: Request) -> Response:
        """Get the JSON Schema of trigger files, for editors."""
        return json_response(trigger_json_schema())

    async def upcoming(self, _request: Request, given: UpcomingParameters) -> Response:
        """List what schedules fire in the next hours, by trigger."""
        found, is_complete = await self._triggers.upcoming(timedelta(hours=given.hours))
        return json_response(upcoming_resource(found, is_complete=is_complete))

    async def preview(self, request: Request) -> Response:
        """Show when a schedule would fire next, without saving it."""
        following = await self._triggers.preview(await self._definition(request))
        return json_response({"firings": [rfc3339(time) for time in following]})


def trigger_operations(services: Services) -> list[Operation]:
    routes = TriggerRoutes(services)
    one = f"{TRIGGERS}/{{trigger}}"
    definition = Body(TriggerRequest, media_types=(JSON, *YAML_TYPES))
    return [
        operation(
            f"POST {TRIGGERS}", routes.create, name="create_trigger", tag="triggers", body=definition,
            responses={201: ResponseSpec("The new trigger.", TriggerResource, headers=LOCATION)},
            problems=(400, 409, 413, 422),
        ),
        operation(
            f"POST {VALIDATION}", routes.check, name="validate_trigger", tag="triggers", body=definition,
            responses={200: ResponseSpec("The trigger is valid.", SchedulePreview)}, problems=(400, 413, 422),
        ),
        operation(
            f"GET {SCHEMA}", routes.schema, name="get_trigger_schema", tag="triggers",
            responses={200: ResponseSpec("The JSON Schema.", content={JSON: {"type": "object"}})},
        ),
        operation(
            f"GET {UPCOMING}", routes.upcoming, UpcomingParameters, name="list_upcoming_firings", tag="triggers",
            responses={200: ResponseSpec("What fires.", UpcomingFiringsResource)}, problems=(422,),
        ),
        operation(
            f"GET {TRIGGERS}", routes.list, TextPageParameters, name="list_triggers", tag="triggers",
            responses={200: ResponseSpec("A page of triggers.", TriggerPage)}, problems=(422,),
        ),
        operation(
            f"GET {one}", routes.get, TriggerParameters, name="get_trigger", tag="triggers",
            responses={200: ResponseSpec("The trigger.", TriggerResource)}, problems=(404,),
        ),
        operation(
            f"PUT {one}", routes.save, TriggerParameters, name="save_trigger", tag="triggers", body=definition,
            responses={
                200: ResponseSpec("The trigger, changed or unchanged.", TriggerResource),
                201: ResponseSpec("The new trigger.", TriggerResource),
            },
            problems=(400, 409, 413, 422),
        ),
        operation(
            f"DELETE {one}", routes.delete, TriggerParameters, name="delete_trigger", tag="triggers",
            responses={204: ResponseSpec("The trigger was deleted.")}, problems=(404,),
        ),
        operation(
            f"POST {one}/pause", routes.pause, TriggerParameters, name="pause_trigger", tag="triggers",
            responses={200: ResponseSpec("The paused trigger.", TriggerResource)}, problems=(404,),
        ),
        operation(
            f"POST {one}/resume", routes.resume, TriggerParameters, name="resume_trigger", tag="triggers",
            responses={200: ResponseSpec("The resumed trigger.", TriggerResource)}, problems=(404,),
        ),
        operation(
            f"POST {one}/fire", routes.fire, FireParameters, name="fire_trigger", tag="triggers",
            body=Body(FireRequest, required=False),
            responses={202: ResponseSpec("The run.", RunResource, headers=LOCATION)},
            problems=(400, 404, 413, 422),
        ),
        operation(
            f"POST {one}/backfill", routes.backfill, TriggerParameters, name="backfill_trigger", tag="triggers",
            body=Body(BackfillRequest), responses={202: ResponseSpec("The runs, oldest first.", Backfill)},
            problems=(400, 404, 409, 413, 422),
        ),
        operation(
            f"GET {one}/firings", routes.firings, ListFiringsParameters, name="list_firings", tag="triggers",
            responses={200: ResponseSpec("A page of firings.", FiringPage)}, problems=(404, 422),
        ),
        operation(
            f"POST {PREVIEW}", routes.preview, name="preview_schedule", tag="triggers",
            body=Body(ScheduleRequest, media_types=(JSON, *YAML_TYPES)),
            responses={200: ResponseSpec("The next firings.", SchedulePreview)}, problems=(400, 413, 422),
        ),
    ]  # fmt: skip
