"""The agent's card, in one form that readers of 0.2, 0.3 and 1.0 understand."""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from trunkline.agentkit.json_values import Json, JsonObject

CARD_PATHS = ("/.well-known/agent-card.json", "/.well-known/agent.json")

_JSONRPC = "JSONRPC"
_MODES: tuple[Json, ...] = ("text/plain", "application/json")


class CardProfile(msgspec.Struct, frozen=True, kw_only=True):
    """What an agent says of itself."""

    name: str
    description: str
    version: str
    skills: Sequence[JsonObject] = ()


def card(profile: CardProfile, url: str) -> JsonObject:
    interfaces: list[Json] = [
        {"url": url, "protocolBinding": _JSONRPC, "protocolVersion": version} for version in ("1.0", "0.3")
    ]
    return {
        "name": profile.name,
        "description": profile.description,
        "version": profile.version,
        "protocolVersion": "0.3.0",
        "url": url,
        "preferredTransport": _JSONRPC,
        "additionalInterfaces": [{"url": url, "transport": _JSONRPC}],
        "supportedInterfaces": interfaces,
        "capabilities": {"streaming": True, "pushNotifications": False},
        "defaultInputModes": list(_MODES),
        "defaultOutputModes": list(_MODES),
        "skills": list(profile.skills or [_skill(profile)]),
    }


def _skill(profile: CardProfile) -> JsonObject:
    """A card must have one."""
    identity = re.sub(r"[^a-z0-9]+", "-", profile.name.lower()).strip("-") or "skill"
    return {"id": identity, "name": profile.name, "description": profile.description, "tags": [identity]}
