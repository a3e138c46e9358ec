"""Subscriptions: save, show, pause and test them, and read and repeat their deliveries."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import quote

from msgspec import Meta
from starlette.requests import Request
from starlette.responses import Response

from trunkline.api.bodies import decode_json, read_body
from trunkline.api.middleware.auth import role_of
from trunkline.api.paging import TextPageParameters, decode_cursor, page_within
from trunkline.api.parameters import Parameters
from trunkline.api.resources.automation.subscriptions import (
    DeliveryPage,
    DeliveryResource,
    SubscriptionPage,
    SubscriptionRequest,
    SubscriptionResource,
    delivery_resource,
    subscription_resource,
)
from trunkline.api.resources.common import page_of
from trunkline.api.routes.workflows import YAML_TYPES
from trunkline.api.routing import JSON, LOCATION, Body, Operation, ResponseSpec, json_response, operation
from trunkline.api.services import Services
from trunkline.stores.port.automation.subscriptions import SubscriptionRecord

SUBSCRIPTIONS = "/api/v1/subscriptions"
SubscriptionNameParameter = Annotated[str, Meta(description="The subscription's name.")]


class SubscriptionParameters(Parameters, frozen=True, kw_only=True):
    subscription: SubscriptionNameParameter


class DeliveryParameters(Parameters, frozen=True, kw_only=True):
    subscription: SubscriptionNameParameter
    delivery: Annotated[str, Meta(description="The delivery's id.")]


class ListDeliveriesParameters(TextPageParameters, frozen=True, kw_only=True):
    subscription: SubscriptionNameParameter


class SubscriptionRoutes:
    def __init__(self, services: Services) -> None:
        self._subscriptions = services.subscriptions
        self._limits = services.limits

    async def create(self, request: Request) -> Response:
        """
        Create a subscription, as YAML or JSON.

        A subscription reports changes, such as failed runs, to an address. It reports changes that happen more than a
        second after its creation, and usually earlier ones.
        """
        record = await self._subscriptions.create(await self._definition(request))
        return _shown(request, record, 201, {"Location": f"{SUBSCRIPTIONS}/{quote(record.name, safe='')}"})

    async def save(self, request: Request, given: SubscriptionParameters) -> Response:
        """
        Create a subscription or replace its definition, as YAML or JSON.

        Deliveries that wait are sent as the new definition says.
        """
        saved = await self._subscriptions.save(given.subscription, await self._definition(request))
        return _shown(request, saved.record, 201 if saved.created else 200)

    async def _definition(self, request: Request) -> bytes:
        content = await read_body(request, self._limits.max_body_bytes)
        if request.headers.get("content-type", "").startswith(JSON):
            # A caller that sends JSON gets JSON syntax errors, not those of the YAML parser.
            decode_json(content)
        return content

    async def list(self, request: Request, given: TextPageParameters) -> Response:
        """List subscriptions, sorted by name."""
        found, next_cursor = await page_within(
            lambda after, limit: self._subscriptions.list(limit=limit, after=after),
            decode_cursor(given.cursor),
            given.limit,
            key=lambda record: record.name,
            size_bytes=lambda record: len(record.definition),
        )
        is_viewer = _is_viewer(request)
        items = [subscription_resource(record, is_viewer=is_viewer) for record in found]
        return json_response(page_of(items, next_cursor))

    async def get(self, request: Request, given: SubscriptionParameters) -> Response:
        """Get a subscription."""
        return _shown(request, await self._subscriptions.get(given.subscription))

    async def delete(self, _request: Request, given: SubscriptionParameters) -> Response:
        """Delete a subscription with its history. What is not delivered yet is not sent any more."""
        await self._subscriptions.delete(given.subscription)
        return Response(status_code=204)

    async def pause(self, request: Request, given: SubscriptionParameters) -> Response:
        """Pause a subscription. Its deliveries wait for up to 24 hours."""
        return _shown(request, await self._subscriptions.set_enabled(given.subscription, enabled=False))

    async def resume(self, request: Request, given: SubscriptionParameters) -> Response:
        """Resume a subscription that is paused or was disabled, and send what waits now."""
        return _shown(request, await self._subscriptions.set_enabled(given.subscription, enabled=True))

    async def test(self, _request: Request, given: SubscriptionParameters) -> Response:
        """
        Send a test delivery now, and show what came of it.

        It is sent once, also if the subscription is paused. Its type is `subscription.test`.
        """
        return json_response(delivery_resource(await self._subscriptions.test(given.subscription)))

    async def deliveries(self, _request: Request, given: ListDeliveriesParameters) -> Response:
        """List the deliveries of a subscription, newest first. They are kept for up to seven days."""
        found, next_cursor = await page_within(
            lambda before, limit: self._subscriptions.deliveries(
                given.subscription, limit=limit, before=before
            ),
            decode_cursor(given.cursor),
            given.limit,
            key=lambda delivery: delivery.id,
            size_bytes=lambda delivery: len(delivery.event),
        )
        return json_response(page_of([delivery_resource(delivery) for delivery in found], next_cursor))

    async def redeliver(self, _request: Request, given: DeliveryParameters) -> Response:
        """
        Send a delivery again that was delivered or given up.

        It has the same event id as before, so the receiver can recognize it.
        """
        delivery = await self._subscriptions.redeliver(given.subscription, given.delivery)
        return json_response(delivery_resource(delivery), 202)


def _shown(
    request: Request, record: SubscriptionRecord, status: int = 200, headers: dict[str, str] | None = None
) -> Response:
    return json_response(subscription_resource(record, is_viewer=_is_viewer(request)), status, headers)


def _is_viewer(request: Request) -> bool:
    return role_of(request.scope) == "viewer"


def subscription_operations(services: Services) -> list[Operation]:
    routes = SubscriptionRoutes(services)
    one = f"{SUBSCRIPTIONS}/{{subscription}}"
    tag = "subscriptions"
    definition = Body(SubscriptionRequest, media_types=(JSON, *YAML_TYPES))
    return [
        operation(
            f"POST {SUBSCRIPTIONS}", routes.create, name="create_subscription", tag=tag, body=definition,
            responses={201: ResponseSpec("The new subscription.", SubscriptionResource, headers=LOCATION)},
            problems=(400, 409, 413, 422),
        ),
        operation(
            f"GET {SUBSCRIPTIONS}", routes.list, TextPageParameters, name="list_subscriptions", tag=tag,
            responses={200: ResponseSpec("A page of subscriptions.", SubscriptionPage)}, problems=(422,),
        ),
        operation(
            f"GET {one}", routes.get, SubscriptionParameters, name="get_subscription", tag=tag,
            responses={200: ResponseSpec("The subscription.", SubscriptionResource)}, problems=(404,),
        ),
        operation(
            f"PUT {one}", routes.save, SubscriptionParameters, name="save_subscription", tag=tag,
            body=definition,
            responses={
                200: ResponseSpec("The subscription, changed or unchanged.", SubscriptionResource),
                201: ResponseSpec("The new subscription.", SubscriptionResource),
            },
            problems=(400, 409, 413, 422),
        ),
        operation(
            f"DELETE {one}", routes.delete, SubscriptionParameters, name="delete_subscription", tag=tag,
            responses={204: ResponseSpec("The subscription was deleted.")}, problems=(404,),
        ),
        operation(
            f"POST {one}/pause", routes.pause, SubscriptionParameters, name="pause_subscription", tag=tag,
            responses={200: ResponseSpec("The paused subscription.", SubscriptionResource)}, problems=(404,),
        ),
        operation(
            f"POST {one}/resume", routes.resume, SubscriptionParameters, name="resume_subscription", tag=tag,
            responses={200: ResponseSpec("The resumed subscription.", SubscriptionResource)}, problems=(404,),
        ),
        operation(
            f"POST {one}/test", routes.test, SubscriptionParameters, name="test_subscription", tag=tag,
            responses={200: ResponseSpec("The test delivery, delivered or failed.", DeliveryResource)},
            problems=(404,),
        ),
        operation(
            f"GET {one}/deliveries", routes.deliveries, ListDeliveriesParameters, name="list_deliveries", tag=tag,
            responses={200: ResponseSpec("A page of deliveries.", DeliveryPage)}, problems=(404, 422),
        ),
        operation(
            f"POST {one}/deliveries/{{delivery}}/redeliver", routes.redeliver, DeliveryParameters, name="redeliver",
            tag=tag, responses={202: ResponseSpec("The delivery, which is pending again.", DeliveryResource)},
            problems=(404, 409),
        ),
    ]  # fmt: skip
