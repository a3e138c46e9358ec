"""
Agent cards: what an agent says of itself, as far as Trunkline needs it.

    0.2, 0.3  {"name", "url", "protocolVersion", "preferredTransport": "JSONRPC",
               "additionalInterfaces": [{"url", "transport"}], "capabilities", "skills", …}
    1.0       {"name", "supportedInterfaces": [{"url", "protocolBinding", "protocolVersion"}], …}

A card of both forms is read as both. Field names in snake_case are understood too.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from trunkline.jsontypes import Json, JsonObject, decode

JSONRPC = "JSONRPC"

# One of these beside an address is what makes a JSON object a card.
_MARKS = ("name", "skills", "capabilities", "protocolVersion", "protocol_version", "defaultInputModes")


class NotACard(ValueError):
    """The text is JSON or something else, but no agent card."""


class BrokenCard(ValueError):
    """The text begins like a card and cannot be read."""


class Interface(msgspec.Struct, frozen=True, kw_only=True):
    """One address of an agent, and what is spoken there."""

    # None: the card does not say, so it is the address at which the agent is registered.
    url: str | None
    transport: str
    # None: the card does not say; cards of A2A 0.2 do not.
    protocol_version: str | None


class AgentCard(msgspec.Struct, frozen=True, kw_only=True):
    name: str | None
    description: str | None
    # In the agent's order of preference.
    interfaces: tuple[Interface, ...]


def read_card(body: bytes) -> AgentCard:
    """The card in a response's body; raises `NotACard` or `BrokenCard`."""
    try:
        value = decode(body.removeprefix(b"\xef\xbb\xbf"))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as exc:
        if body.lstrip().startswith(b"{"):
            raise BrokenCard(f"The card is not JSON: {exc}") from exc
        raise NotACard("The body is not JSON") from exc
    if not isinstance(value, dict):
        raise NotACard("The body is JSON, but not an object")
    interfaces = (*_modern_interfaces(value), *_interfaces(value))
    if not interfaces or not any(mark in value for mark in _MARKS):
        raise NotACard("The body is a JSON object without the fields of an agent card")
    return AgentCard(
        name=_string(value, "name"), description=_string(value, "description"), interfaces=interfaces
    )


def _interfaces(card: JsonObject) -> Iterator[Interface]:
    """The form of 0.2 and 0.3: one preferred address, and others beside it."""
    version = _string(card, "protocolVersion", "protocol_version")
    url = _string(card, "url")
    if url is not None or version is not None:
        transport = _string(card, "preferredTransport", "preferred_transport") or JSONRPC
        yield Interface(url=url, transport=transport.upper(), protocol_version=version)
    for item in _objects(card, "additionalInterfaces", "additional_interfaces"):
        transport = _string(item, "transport")
        if transport is not None:
            yield Interface(url=_string(item, "url"), transport=transport.upper(), protocol_version=version)


def _modern_interfaces(card: JsonObject) -> Iterator[Interface]:
    """The form of 1.0: every address with its own binding and version."""
    for item in _objects(card, "supportedInterfaces", "supported_interfaces"):
        binding = _string(item, "protocolBinding", "protocol_binding")
        if binding is not None:
            version = _string(item, "protocolVersion", "protocol_version") or "1.0"
            yield Interface(url=_string(item, "url"), transport=binding.upper(), protocol_version=version)


def _string(value: JsonObject, *names: str) -> str | None:
    for name in names:
        found = value.get(name)
        if isinstance(found, str) and found:
            return found
    return None


def _objects(value: JsonObject, *names: str) -> Iterator[JsonObject]:
    for name in names:
        items: Json = value.get(name)
        for item in items if isinstance(items, list) else []:
            if isinstance(item, dict):
                yield item
