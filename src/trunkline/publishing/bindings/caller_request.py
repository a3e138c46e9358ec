"""A request of a caller, as every operation gets it, and the extensions that it activates."""

from __future__ import annotations

from typing import Literal, NamedTuple

from starlette.requests import Request

from trunkline.jsontypes import JsonObject
from trunkline.publishing.cards.agent_cards import IDEMPOTENCY
from trunkline.publishing.operations import Caller
from trunkline.publishing.publications import Publication

Version = Literal["0.3", "1.0"]

_EXTENSION_HEADERS = ("A2A-Extensions", "X-A2A-Extensions")


class CallerRequest(NamedTuple):
    """A request of a caller, whatever binding it came by."""

    http: Request
    publication: Publication
    caller: Caller
    params: JsonObject
    version: Version

    @property
    def is_old(self) -> bool:
        return self.version == "0.3"

    @property
    def is_idempotent(self) -> bool:
        return IDEMPOTENCY in active_extensions(self.http)


def active_extensions(request: Request) -> list[str]:
    """The supported extensions that the caller has activated."""
    given = [value for name in _EXTENSION_HEADERS for value in request.headers.getlist(name)]
    named = {uri.strip() for value in given for uri in value.split(",")}
    return [uri for uri in (IDEMPOTENCY,) if uri in named]
