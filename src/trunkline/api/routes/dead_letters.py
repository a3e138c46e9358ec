"""Dead letters: list, read, replay and delete them."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta
from starlette.requests import Request
from starlette.responses import Response

from trunkline.api.paging import TextPageParameters, decode_cursor, page_within
from trunkline.api.parameters import Parameters
from trunkline.api.resources.common import page_of
from trunkline.api.resources.dead_letters import (
    DeadLetterPage,
    DeadLetterResource,
    dead_letter_resource,
    dead_letter_summary,
)
from trunkline.api.routing import Operation, ResponseSpec, json_response, operation
from trunkline.api.services import Services

DEAD_LETTERS = "/api/v1/dead-letters"


class DeadLetterParameters(Parameters, frozen=True, kw_only=True):
    letter: Annotated[str, Meta(description="The dead letter's id.")]


class DeadLetterRoutes:
    def __init__(self, services: Services) -> None:
        self._letters = services.dead_letters

    async def list(self, _request: Request, given: TextPageParameters) -> Response:
        """List dead letters, newest first, without their values."""
        letters, next_cursor = await page_within(
            lambda before, limit: self._letters.list(limit=limit, before=before),
            decode_cursor(given.cursor),
            given.limit,
            key=lambda letter: letter.id,
            size_bytes=lambda letter: len(letter.value or b""),
        )
        return json_response(page_of([dead_letter_summary(letter) for letter in letters], next_cursor))

    async def get(self, _request: Request, given: DeadLetterParameters) -> Response:
        """Get a dead letter. A long value is truncated."""
        return json_response(dead_letter_resource(await self._letters.get(given.letter)))

    async def replay(self, _request: Request, given: DeadLetterParameters) -> Response:
        """
        Replay a dead letter.

        The original record is sent to its topic again, and the dead letter is removed. If the record still cannot be
        processed, it becomes a new dead letter. A record of an event source is read again here instead. If it still
        cannot be read, the status is 409, and the dead letter stays.
        """
        return json_response(dead_letter_resource(await self._letters.replay(given.letter)), 202)

    async def delete(self, _request: Request, given: DeadLetterParameters) -> Response:
        """Delete a dead letter permanently."""
        await self._letters.delete(given.letter)
        return Response(status_code=204)


def dead_letter_operations(services: Services) -> list[Operation]:
    routes = DeadLetterRoutes(services)
    one = f"{DEAD_LETTERS}/{{letter}}"
    return [
        operation(
            f"GET {DEAD_LETTERS}", routes.list, TextPageParameters, name="list_dead_letters", tag="dead letters",
            responses={200: ResponseSpec("A page of dead letters.", DeadLetterPage)}, problems=(422,),
        ),
        operation(
            f"GET {one}", routes.get, DeadLetterParameters, name="get_dead_letter", tag="dead letters",
            responses={200: ResponseSpec("The dead letter.", DeadLetterResource)}, problems=(404,),
        ),
        operation(
            f"POST {one}/replay", routes.replay, DeadLetterParameters, name="replay_dead_letter",
            tag="dead letters",
            responses={202: ResponseSpec("The dead letter that is replayed.", DeadLetterResource)}, problems=(404, 409),
        ),
        operation(
            f"DELETE {one}", routes.delete, DeadLetterParameters, name="discard_dead_letter", tag="dead letters",
            responses={204: ResponseSpec("The dead letter was deleted.")}, problems=(404,),
        ),
    ]  # fmt: skip
