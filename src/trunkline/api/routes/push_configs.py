"""Push notification configs of a published task, for operators: see which fail, and enable them again."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta
from starlette.requests import Request
from starlette.responses import Response

from trunkline.api.parameters import Parameters
from trunkline.api.resources.common import page_of
from trunkline.api.resources.push_configs import PushConfigPage, PushConfigResource, push_config_resource
from trunkline.api.routing import Operation, ResponseSpec, json_response, operation
from trunkline.api.services import Services
from trunkline.ids import RunId


class PushConfigListParameters(Parameters, frozen=True, kw_only=True):
    run: Annotated[str, Meta(description="The run's id.")]


class PushConfigParameters(Parameters, frozen=True, kw_only=True):
    run: Annotated[str, Meta(description="The run's id.")]
    config: Annotated[str, Meta(description="The config's id.")]


class PushConfigRoutes:
    def __init__(self, services: Services) -> None:
        self._runs = services.run_queries
        self._configs = services.push_configs

    async def list(self, _request: Request, given: PushConfigListParameters) -> Response:
        """
        List the push notification configs of a published task.

        All configs of the task are on one page.
        """
        await self._runs.status(RunId(given.run))
        statuses = await self._configs.statuses(RunId(given.run))
        return json_response(page_of([push_config_resource(status) for status in statuses], None))

    async def enable(self, _request: Request, given: PushConfigParameters) -> Response:
        """
        Enable a push notification config.

        The notifications that wait are sent now, as if no attempt had failed.
        """
        return json_response(push_config_resource(await self._configs.enable(RunId(given.run), given.config)))

    async def delete(self, _request: Request, given: PushConfigParameters) -> Response:
        """
        Delete a push notification config.

        The notifications that wait are dropped. The caller can create the config again.
        """
        await self._configs.remove(RunId(given.run), given.config)
        return Response(status_code=204)


def push_config_operations(services: Services) -> list[Operation]:
    routes = PushConfigRoutes(services)
    return [
        operation(
            "GET /api/v1/runs/{run}/push-configs", routes.list, PushConfigListParameters,
            name="list_push_configs", tag="runs",
            responses={200: ResponseSpec("The configs.", PushConfigPage)}, problems=(404,),
        ),
        operation(
            "POST /api/v1/runs/{run}/push-configs/{config}/enable", routes.enable, PushConfigParameters,
            name="enable_push_config", tag="runs",
            responses={200: ResponseSpec("The enabled config.", PushConfigResource)}, problems=(404,),
        ),
        operation(
            "DELETE /api/v1/runs/{run}/push-configs/{config}", routes.delete, PushConfigParameters,
            name="delete_push_config", tag="runs",
            responses={204: ResponseSpec("The config was deleted.")}, problems=(404,),
        ),
    ]  # fmt: skip
