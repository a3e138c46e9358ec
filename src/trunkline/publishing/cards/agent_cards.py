"""
Agent cards: strictly 1.0, or in the form of 0.3 for callers that ask for it.

    GET …/.well-known/agent-card.json                       1.0, or 0.3 with the header A2A-Version: 0.3
    GET …/.well-known/agent.json                            0.3
"""

from __future__ import annotations

from datetime import UTC, datetime
from email.utils import format_datetime
from hashlib import sha256

from starlette.requests import Request
from starlette.responses import Response

from trunkline.clock import Instant
from trunkline.jsontypes import Json, JsonObject, encode
from trunkline.publish_options import SkillOptions
from trunkline.publishing.publications import Publication

CARD_PATH = "/.well-known/agent-card.json"
OLD_CARD_PATH = "/.well-known/agent.json"
# A card changes with its workflow; a caller that keeps it asks again with its ETag.
_CACHE_CONTROL = "public, max-age=60"
_SCHEME = "bearer"
# Some clients use the same message id for several messages, so a caller has to ask for it.
IDEMPOTENCY = "urn:trunkline:a2a:idempotency:1"
_IDEMPOTENCY_TEXT = (
    "A message that is sent again with the same messageId and content has started the same task."
)
# Clients take the first one that they know.
_INTERFACES = (("JSONRPC", "1.0"), ("HTTP+JSON", "1.0"), ("JSONRPC", "0.3"))


def card_v1(
    publication: Publication, url: str, *, needs_key: bool, grpc_address: str | None = None
) -> JsonObject:
    """`url`: the address of the endpoint. `grpc_address`: host name and port; None: there is no gRPC."""
    interfaces: list[Json] = [
        {"url": url, "protocolBinding": binding, "protocolVersion": version}
        for binding, version in _INTERFACES
    ]
    if grpc_address is not None:
        interfaces.append(
            {
                "url": grpc_address,
                "protocolBinding": "GRPC",
                "protocolVersion": "1.0",
                # One port serves all publications.
                "tenant": publication.key,
            }
        )
    card: JsonObject = {
        "name": publication.card_name,
        "description": publication.description,
        "version": publication.version,
        "supportedInterfaces": interfaces,
        "capabilities": {**_capabilities(publication), "extendedAgentCard": needs_key},
        "defaultInputModes": list(publication.input_modes),
        "defaultOutputModes": list(publication.output_modes),
        "skills": [_skill(skill) for skill in publication.skills],
        **_links(publication),
    }
    if needs_key:
        card["securitySchemes"] = {_SCHEME: {"httpAuthSecurityScheme": {"scheme": "Bearer"}}}
        card["securityRequirements"] = [{"schemes": {_SCHEME: {"list": []}}}]
    return card


def card_v03(publication: Publication, url: str, *, needs_key: bool) -> JsonObject:
    card: JsonObject = {
        "protocolVersion": "0.3.0",
        "name": publication.card_name,
        "description": publication.description,
        "version": publication.version,
        "url": url,
        "preferredTransport": "JSONRPC",
        "additionalInterfaces": [{"url": url, "transport": "JSONRPC"}],
        "capabilities": _capabilities(publication),
        "defaultInputModes": list(publication.input_modes),
        "defaultOutputModes": list(publication.output_modes),
        "skills": [_skill(skill) for skill in publication.skills],
        **_links(publication),
    }
    if needs_key:
        card["securitySchemes"] = {_SCHEME: {"type": "http", "scheme": "bearer"}}
        card["security"] = [{_SCHEME: []}]
        card["supportsAuthenticatedExtendedCard"] = True
    return card


def _capabilities(publication: Publication) -> JsonObject:
    extension: JsonObject = {"uri": IDEMPOTENCY, "description": _IDEMPOTENCY_TEXT, "required": False}
    return {
        "streaming": publication.options.streaming,
        "pushNotifications": True,
        "extensions": [extension],
    }


def _links(publication: Publication) -> JsonObject:
    options = publication.options
    links: JsonObject = {}
    if options.provider is not None:
        links["provider"] = {"organization": options.provider.organization, "url": options.provider.url}
    if options.documentation_url is not None:
        links["documentationUrl"] = options.documentation_url
    if options.icon_url is not None:
        links["iconUrl"] = options.icon_url
    return links


def _skill(skill: SkillOptions) -> JsonObject:
    fields: JsonObject = {
        "id": skill.id,
        "name": skill.name,
        "description": skill.description,
        "tags": list(skill.tags),
    }
    lists = {"examples": skill.examples, "inputModes": skill.input_modes, "outputModes": skill.output_modes}
    return {**fields, **{name: list(values) for name, values in lists.items() if values}}


def card_response(request: Request, card: JsonObject, changed_at: Instant | None = None) -> Response:
    """The card, or 304 if the caller has it already. `changed_at`: when what it is made of was saved."""
    body = encode(card)
    etag = f'"{sha256(body).hexdigest()[:32]}"'
    headers = {"ETag": etag, "Cache-Control": _CACHE_CONTROL, "Vary": "A2A-Version"}
    if changed_at is not None:
        headers["Last-Modified"] = format_datetime(
            datetime.fromtimestamp(changed_at // 1_000_000, UTC), usegmt=True
        )
    given = request.headers.get("if-none-match", "")
    if etag in [known.strip().removeprefix("W/") for known in given.split(",")] or given.strip() == "*":
        return Response(status_code=304, headers=headers)
    return Response(body, headers=headers, media_type="application/json")
