"""
Agent cards: what an agent says of itself, as far as Trunkline needs it.

    0.2, 0.3  {"name", "url", "protocolVersion", "preferredTransport": "JSONRPC",
               "additionalInterfaces": [{"url", "transport"}], "capabilities", "skills", …}
    1.0       {"name", "supportedInterfaces": [{"url", "protocolBinding", "protocolVersion", "tenant"}], …}
    all       "capabilities": {"streaming": true, "pushNotifications": true}
    python-a2a's  "capabilities": {"google_a2a_compatible": …}: says 0.3, and means 0.1 with an address for each method

A card of both forms is read as both. Field names in snake_case are understood too, and so are JSON-RPC and REST for the
names of the transports. What has the wrong type, or
is longer than anything that makes sense, counts as not said.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

import msgspec

from trunkline.jsontypes import Json, JsonObject, decode, encode
from trunkline.publish_options import SkillOptions

JSONRPC = "JSONRPC"
HTTP_JSON = "HTTP+JSON"
JSONRPC_PATHS = "JSONRPC-PATHS"

# As some write them.
_TRANSPORTS = {
    "JSON-RPC": JSONRPC,
    "JSON_RPC": JSONRPC,
    "REST": HTTP_JSON,
    "HTTP": HTTP_JSON,
    "HTTP_JSON": HTTP_JSON,
}

# In the capabilities of every card that python-a2a makes, whatever its value.
_MARK_OF_PYTHON_A2A = "google_a2a_compatible"

# Real cards have a few kilobytes; a larger one is likely an attack.
MAX_CARD_BYTES = 1024 * 1024
MAX_INTERFACES = 50
MAX_SKILLS = 100
# An id that is longer is not one.
_MAX_SKILL_CHARACTERS = 100
_MAX_CHARACTERS = 2_048
# What is repeated in the card of a published agent is kept with the agent, which is read for every call.
MAX_DETAILS_BYTES = 16 * 1024
_MAX_WORDS = 20
# As long as a name in the options of `publish` may be.
_MAX_DETAIL_WORD = 255
_LINE_ENDS = str.maketrans("\r\n\t", "   ")
# A JSON object with an address and one of these is a card.
_MARKS = ("name", "skills", "capabilities", "protocolVersion", "protocol_version", "defaultInputModes")
# They are shown to operators, so they are words and nothing else.
_WORD = re.compile(r"[A-Za-z0-9.+_/-]{1,64}")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


class NotACard(ValueError):
    """The text is JSON or something else, but no agent card."""


class BrokenCard(ValueError):
    """The text begins like a card and cannot be read."""


class AgentInterface(msgspec.Struct, frozen=True, kw_only=True):
    """One address of an agent, and what is spoken there."""

    # None: the card does not say, so it is the address at which the agent is registered.
    url: str | None
    transport: str
    # None: the card does not say; cards of A2A 0.2 do not.
    protocol_version: str | None
    tenant: str | None = None


class CardDetails(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a card says for other readers: the agent's card repeats it when the agent is published."""

    description: str | None = None
    input_modes: tuple[str, ...] = ()
    output_modes: tuple[str, ...] = ()
    skills: tuple[SkillOptions, ...] = ()


class AgentCard(msgspec.Struct, frozen=True, kw_only=True):
    # In the agent's order of preference.
    interfaces: tuple[AgentInterface, ...]
    streams: bool = False
    pushes: bool = False
    # Their ids, in the order of the card.
    skills: tuple[str, ...] = ()
    details: CardDetails = CardDetails()


def read_card(body: bytes) -> AgentCard:
    """The card in a response's body; raises `NotACard` or `BrokenCard`."""
    value = _object(body)
    interfaces = tuple(islice((*_modern_interfaces(value), *_interfaces(value)), MAX_INTERFACES))
    if not interfaces or not any(mark in value for mark in _MARKS):
        raise NotACard("The body is a JSON object without the fields of an agent card")
    capabilities = value.get("capabilities")
    offered = capabilities if isinstance(capabilities, dict) else {}
    return AgentCard(
        interfaces=interfaces,
        streams=offered.get("streaming") is True,
        pushes=any(offered.get(name) is True for name in ("pushNotifications", "push_notifications")),
        skills=tuple(islice(dict.fromkeys(_skills(value)), MAX_SKILLS)),
        details=_details(value),
    )


def _details(card: JsonObject) -> CardDetails:
    """As much of the card as may be kept: the skills that come first."""
    details = CardDetails(
        description=_text(card, "description"),
        input_modes=_words(card, "defaultInputModes", "default_input_modes"),
        output_modes=_words(card, "defaultOutputModes", "default_output_modes"),
    )
    left = MAX_DETAILS_BYTES - len(encode(details))
    skills: dict[str, SkillOptions] = {}
    for item in islice(_objects(card, "skills"), MAX_SKILLS):
        skill = _skill(item)
        if skill is None or skill.id in skills:
            continue
        left -= len(encode(skill))
        if left < 0:
            break
        skills[skill.id] = skill
    return msgspec.structs.replace(details, skills=tuple(skills.values()))


def _skill(item: JsonObject) -> SkillOptions | None:
    skill_id = _string(item, "id")
    if skill_id is None or len(skill_id) > _MAX_SKILL_CHARACTERS:
        return None
    name = _string(item, "name")
    return SkillOptions(
        id=skill_id,
        name=skill_id if name is None or len(name) > _MAX_SKILL_CHARACTERS else name,
        description=_text(item, "description") or name or skill_id,
        tags=_words(item, "tags"),
        examples=_words(item, "examples"),
        input_modes=_words(item, "inputModes", "input_modes"),
        output_modes=_words(item, "outputModes", "output_modes"),
    )


def _skills(card: JsonObject) -> Iterator[str]:
    for skill in _objects(card, "skills"):
        skill_id = _string(skill, "id")
        if skill_id is not None and len(skill_id) <= _MAX_SKILL_CHARACTERS:
            yield skill_id


def _object(body: bytes) -> JsonObject:
    looks_like_one = body.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"{")
    if looks_like_one and len(body) > MAX_CARD_BYTES:
        raise BrokenCard(f"The card has {len(body):,} bytes, but the limit is {MAX_CARD_BYTES:,}")
    try:
        value = decode(body.removeprefix(b"\xef\xbb\xbf"))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as exc:
        if looks_like_one:
            raise BrokenCard(f"The card is not JSON: {exc}") from exc
        raise NotACard("The body is not JSON") from exc
    if not isinstance(value, dict):
        raise NotACard("The body is JSON, but not an object")
    return value


def _interfaces(card: JsonObject) -> Iterator[AgentInterface]:
    """The form of 0.2 and 0.3: one preferred address, and additional ones."""
    version = _word(card, "protocolVersion", "protocol_version")
    url = _string(card, "url")
    capabilities = card.get("capabilities")
    if isinstance(capabilities, dict) and _MARK_OF_PYTHON_A2A in capabilities:
        yield AgentInterface(url=url, transport=JSONRPC_PATHS, protocol_version="0.1")
    if url is not None or version is not None:
        transport = _transport(card, "preferredTransport", "preferred_transport") or JSONRPC
        yield AgentInterface(url=url, transport=transport, protocol_version=version)
    for item in _objects(card, "additionalInterfaces", "additional_interfaces"):
        transport = _transport(item, "transport")
        if transport is not None:
            yield AgentInterface(url=_string(item, "url"), transport=transport, protocol_version=version)


def _modern_interfaces(card: JsonObject) -> Iterator[AgentInterface]:
    """The form of 1.0: every address with its own binding and version."""
    for item in _objects(card, "supportedInterfaces", "supported_interfaces"):
        binding = _transport(item, "protocolBinding", "protocol_binding")
        if binding is not None:
            yield AgentInterface(
                url=_string(item, "url"),
                transport=binding,
                protocol_version=_word(item, "protocolVersion", "protocol_version") or "1.0",
                tenant=_string(item, "tenant"),
            )


def _transport(value: JsonObject, *names: str) -> str | None:
    found = _word(value, *names)
    return None if found is None else _TRANSPORTS.get(found.upper(), found.upper())


def _word(value: JsonObject, *names: str) -> str | None:
    found = _string(value, *names)
    return found if found is not None and _WORD.fullmatch(found) else None


def _words(value: JsonObject, *names: str) -> tuple[str, ...]:
    words = (word for name in names for word in _texts(value.get(name)))
    return tuple(islice(words, _MAX_WORDS))


def _texts(listed: Json) -> Iterator[str]:
    for word in listed if isinstance(listed, list) else []:
        if isinstance(word, str) and 0 < len(word) <= _MAX_DETAIL_WORD and not _CONTROL.search(word):
            yield word


def _text(value: JsonObject, name: str) -> str | None:
    """Of several lines, perhaps."""
    found = value.get(name)
    if not isinstance(found, str) or not 0 < len(found) <= _MAX_CHARACTERS:
        return None
    return None if _CONTROL.search(found.translate(_LINE_ENDS)) else found


def _string(value: JsonObject, *names: str) -> str | None:
    for name in names:
        found = value.get(name)
        if isinstance(found, str) and 0 < len(found) <= _MAX_CHARACTERS and not _CONTROL.search(found):
            return found
    return None


def _objects(value: JsonObject, *names: str) -> Iterator[JsonObject]:
    for name in names:
        items: Json = value.get(name)
        for item in items if isinstance(items, list) else []:
            if isinstance(item, dict):
                yield item
