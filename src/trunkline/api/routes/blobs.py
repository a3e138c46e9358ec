"""Files of agents that are too long for a step's output."""

from __future__ import annotations

import shlex
from typing import Annotated

from msgspec import Meta
from starlette.requests import Request
from starlette.responses import Response

from trunkline.api.parameters import Parameters
from trunkline.api.routing import Operation, ResponseSpec, operation
from trunkline.api.services import Services
from trunkline.errors import NotFound
from trunkline.ids import RunId

# Never what the agent says it is: a browser would show it as a page of ours.
_BYTES = "application/octet-stream"
_AS_A_FILE = {"Content-Disposition": "attachment", "X-Content-Type-Options": "nosniff"}


class BlobParameters(Parameters, frozen=True, kw_only=True):
    run: Annotated[str, Meta(description="The run's id.")]
    blob: Annotated[str, Meta(description="The file's id, as the step's output names it.")]


class BlobRoutes:
    def __init__(self, services: Services) -> None:
        self._blobs = services.blobs

    async def get(self, _request: Request, given: BlobParameters) -> Response:
        """A file that an agent has answered with, or that was sent to one."""
        content = None if self._blobs is None else await self._blobs.get(RunId(given.run), given.blob)
        if content is None:
            command = shlex.join(["trunkline", "runs", "show", given.run, "--json"])
            raise NotFound(
                f"Run {given.run} has no file {given.blob}.",
                fix=f"See the references in its outputs: {command}",
                fix_command=command,
            )
        return Response(content, media_type=_BYTES, headers=_AS_A_FILE)


def blob_operations(services: Services) -> list[Operation]:
    return [
        operation(
            "GET /api/v1/runs/{run}/blobs/{blob}", BlobRoutes(services).get, BlobParameters, name="get_run_file",
            tag="runs",
            responses={
                200: ResponseSpec("The file's bytes.", content={_BYTES: {"type": "string", "format": "binary"}})
            },
            problems=(404,),
        )
    ]  # fmt: skip
