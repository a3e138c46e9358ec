"""Dead letters: see them, send them on, throw them away."""

from __future__ import annotations

from typing import Annotated

from fastapi import FastAPI, Path
from starlette.responses import Response

from trunkline.api.dead_letter_views import dead_letter_json, dead_letters_json
from trunkline.api.operations import JSON, add_operation, answer, problems
from trunkline.api.paging import DEFAULT_LIMIT, Limit, TextCursor, decode_cursor, page
from trunkline.api.services import Services

DEAD_LETTERS = "/api/v1/dead-letters"
LetterPath = Annotated[str, Path(description="The dead letter's id.")]


class DeadLetterRoutes:
    def __init__(self, services: Services) -> None:
        self._letters = services.dead_letters

    async def list(self, limit: Limit = DEFAULT_LIMIT, cursor: TextCursor = None) -> Response:
        """Dead letters without their values, newest first."""
        found = await self._letters.list(limit=limit + 1, before=decode_cursor(cursor))
        letters, next_cursor = page(found, limit, lambda letter: letter.id)
        return Response(dead_letters_json(letters, next_cursor), media_type=JSON)

    async def get(self, letter: LetterPath) -> Response:
        """One dead letter; a long value is cut."""
        return Response(dead_letter_json(await self._letters.get(letter)), media_type=JSON)

    async def replay(self, letter: LetterPath) -> Response:
        """
        Sends the record to its topic again, as it came; it is no dead letter any more.

        If it still cannot be read or applied, it comes back as another one.
        """
        return Response(dead_letter_json(await self._letters.replay(letter)), 202, media_type=JSON)

    async def discard(self, letter: LetterPath) -> Response:
        """Throws a dead letter away, for good."""
        await self._letters.discard(letter)
        return Response(status_code=204)


def add_dead_letter_routes(app: FastAPI, services: Services) -> None:
    routes = DeadLetterRoutes(services)
    add_operation(
        app, f"GET {DEAD_LETTERS}", routes.list, name="list_dead_letters", tag="dead letters",
        responses={200: answer("DeadLetterPage", "A page of dead letters."), **problems(422)},
    )  # fmt: skip
    add_operation(
        app, f"GET {DEAD_LETTERS}/{{letter}}", routes.get, name="get_dead_letter", tag="dead letters",
        responses={200: answer("DeadLetter", "The dead letter."), **problems(404)},
    )  # fmt: skip
    add_operation(
        app, f"POST {DEAD_LETTERS}/{{letter}}/replay", routes.replay, name="replay_dead_letter", tag="dead letters",
        responses={202: answer("DeadLetter", "What is sent on."), **problems(404, 409)},
    )  # fmt: skip
    add_operation(
        app, f"DELETE {DEAD_LETTERS}/{{letter}}", routes.discard, name="discard_dead_letter", tag="dead letters",
        responses={204: answer(None, "It is gone."), **problems(404)},
    )  # fmt: skip
