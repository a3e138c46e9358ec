"""Files of agents that are too large for a step's output."""

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

# Never the content type that the agent states: a browser could render it as a page of this origin.
_BYTES = "application/octet-stream"
_AS_A_FILE = {"Content-Disposition": "attachment", "X-Content-Type-Options": "nosniff"}


class BlobParameters(Parameters, frozen=True, kw_only=True):
    run: Annotated[str, Meta(description="The run's id.")]
    blob: Annotated[str, Meta(description="The file's id, from the step's output.")]


class BlobRoutes:
    def __init__(self, services: Services) -> None:
        self._blobs = services.blobs

    async def get(self, _request: Request, given: BlobParameters) -> Response:
        """Download a file that an agent returned or received."""
        content = None if self._blobs is None else await self._blobs.get(RunId(given.run), given.blob)
        if content is None:
            command = shlex.join(["trunkline", "runs", "show", given.run, "--json"])
            raise NotFound(
                f"Run {given.run} has no file {given.blob}.",
                fix=f"Use a file id from the run's outputs: {command}",
                fix_command=command,
            )
        return Response(content, media_type=_BYTES, headers=_AS_A_FILE)


def blob_operations(services: Services) -> list[Operation]:
    return [
        operation(
            "GET /api/v1/runs/{run}/blobs/{blob}", BlobRoutes(services).get, BlobParameters, name="get_run_file",
            tag="runs",
            responses={
                200: ResponseSpec("The content of the file.", content={_BYTES: {"type": "string", "format": "binary"}})
            },
            problems=(404,),
        )
    ]  # fmt: skip
