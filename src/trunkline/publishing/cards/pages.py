"""
The cards that are served: of each publication, all of them in the catalog, and the installation's own.

The installation's card is no agent's: it has no interface, and names the catalog in an extension. Its skills are the
publications that anyone may call; where keys are in use, those with `security: public`.
"""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import quote, urlsplit

from starlette.requests import Request
from starlette.responses import Response

from trunkline import __version__
from trunkline.api.app import PUBLISHED
from trunkline.api.middleware.auth import key_of
from trunkline.api.problems import method_not_allowed
from trunkline.jsontypes import Json, JsonObject, encode
from trunkline.publishing.access import is_listed
from trunkline.publishing.cards.agent_cards import card_response, card_v03, card_v1
from trunkline.publishing.cards.catalog import CATALOG_PATH, Catalog
from trunkline.publishing.publications import Publication

CATALOG = "urn:trunkline:a2a:catalog:1"
# In extended cards: what a data part has to fit.
INPUT_SCHEMA = "urn:trunkline:a2a:input-schema:1"
_MODES: tuple[Json, ...] = ("text/plain", "application/json")
# As texts go into tags.
_KINDS = {"agents": "agent", "workflows": "workflow"}


class GrpcAddress(NamedTuple):
    """Where callers reach gRPC. `public`: host name and port, in place of our own."""

    port: int | None = None
    public: str | None = None


class CardPages:
    def __init__(
        self, catalog: Catalog, *, public_url: str | None, has_keys: bool, grpc: GrpcAddress
    ) -> None:
        self._catalog = catalog
        self._public_url = public_url
        self._has_keys = has_keys
        self._grpc = grpc

    def card(self, request: Request, publication: Publication, *, is_old: bool) -> JsonObject:
        url, needs_key = self._url(request, publication), self.needs_key(publication)
        if is_old:
            return card_v03(publication, url, needs_key=needs_key)
        return card_v1(publication, url, needs_key=needs_key, grpc_address=self._grpc_address(request))

    def extended_card(self, request: Request, publication: Publication, *, is_old: bool) -> JsonObject:
        """For callers with a key: in addition, the schema of the input."""
        card = self.card(request, publication, is_old=is_old)
        schema = publication.workflow.definition.input
        capabilities = card["capabilities"]
        if schema is None or not isinstance(capabilities, dict):
            return card
        listed = capabilities["extensions"]
        extension: JsonObject = {
            "uri": INPUT_SCHEMA,
            "description": "The JSON Schema of the input.",
            "required": False,
            "params": {"schema": schema},
        }
        extensions: list[Json] = [*(listed if isinstance(listed, list) else []), extension]
        return {**card, "capabilities": {**capabilities, "extensions": extensions}}

    def serve_card(self, request: Request, publication: Publication, *, is_old: bool) -> Response:
        if request.method not in ("GET", "HEAD"):
            return method_not_allowed(request, ["GET"])
        card = self.card(request, publication, is_old=is_old)
        return card_response(request, card, publication.changed_at)

    async def serve_catalog(self, request: Request) -> Response:
        if request.method not in ("GET", "HEAD"):
            return method_not_allowed(request, ["GET"])
        page = await self._catalog.read(request)
        cards = [
            self.card(request, publication, is_old=False)
            for publication in page.publications
            if is_listed(key_of(request.scope), publication)
        ]
        body = encode({"items": [*cards], "next_cursor": page.next_cursor})
        return Response(body, media_type="application/json")

    async def serve_root_card(self, request: Request) -> Response:
        if request.method not in ("GET", "HEAD"):
            return method_not_allowed(request, ["GET"])
        page = await self._catalog.read(request)
        skills: list[Json] = [
            {
                "id": publication.key,
                "name": publication.card_name,
                "description": publication.description,
                "tags": [_KINDS[publication.kind]],
            }
            for publication in page.publications
            if not self.needs_key(publication)
        ]
        catalog: JsonObject = {
            "uri": CATALOG,
            "description": "Lists the cards of the agents and workflows that are published here.",
            "required": False,
            "params": {"url": f"{self._base(request)}{PUBLISHED}{CATALOG_PATH}"},
        }
        card: JsonObject = {
            "name": "Trunkline",
            "description": "Agents and workflows that can be called over A2A. Its catalog lists their cards.",
            "version": __version__,
            "supportedInterfaces": [],
            "capabilities": {"streaming": False, "pushNotifications": False, "extensions": [catalog]},
            "defaultInputModes": list(_MODES),
            "defaultOutputModes": list(_MODES),
            "skills": skills,
        }
        return card_response(request, card)

    def needs_key(self, publication: Publication) -> bool:
        return self._has_keys and publication.options.security == "key"

    def _url(self, request: Request, publication: Publication) -> str:
        name = quote(publication.name, safe="")
        return f"{self._base(request)}{PUBLISHED}{publication.kind}/{name}"

    def _grpc_address(self, request: Request) -> str | None:
        if self._grpc.port is None or self._grpc.public is not None:
            return self._grpc.public
        name = urlsplit(self._base(request)).hostname or "localhost"
        return f"[{name}]:{self._grpc.port}" if ":" in name else f"{name}:{self._grpc.port}"

    def _base(self, request: Request) -> str:
        return self._public_url or str(request.base_url).rstrip("/")
