"""The target of a migration: resolved from a request, and checked as the registry checks agents."""

from __future__ import annotations

import msgspec

from trunkline.agents import AUTO, Agent
from trunkline.agents.migration import MigrationState, TargetEndpoint
from trunkline.errors import Conflict, Finding
from trunkline.jsontypes import JsonObject
from trunkline.services.agents.registry import may_get_secret
from trunkline.services.agents.specs import check_spec, parse_spec, raise_if_any, spec_document

# The default target of a migration.
DEFAULT_PROTOCOL = "jsonrpc-2.0"


class RequestedTarget(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Fields left out keep their last value, or default to the agent's own url and JSON-RPC 2.0."""

    url: str | None = None
    protocol: str | None = None
    protocol_config: JsonObject | None = None


def resolve_target(agent: Agent, state: MigrationState | None, requested: RequestedTarget) -> TargetEndpoint:
    """Raises `Invalid` for what cannot be called, `Conflict` for what this agent must not migrate to."""
    named = None if state is None or state.stage == "finished" else state.target
    protocol = requested.protocol or (DEFAULT_PROTOCOL if named is None else named.protocol)
    config = requested.protocol_config
    if config is None and named is not None and named.protocol == protocol:
        config = named.protocol_config
    target = TargetEndpoint(
        url=requested.url or (agent.url if named is None else named.url),
        protocol=protocol,
        protocol_config=config or None,
    )
    _check(agent, target)
    return target


def _check(agent: Agent, target: TargetEndpoint) -> None:
    if target.protocol == AUTO:
        raise_if_any(
            [
                Finding(
                    path="target.protocol",
                    message="must be a specific protocol, because a migration needs one target protocol",
                )
            ]
        )
    spec = msgspec.structs.replace(
        parse_spec(spec_document(agent)),
        url=target.url,
        protocol=target.protocol,
        protocol_config=target.protocol_config,
    )
    check_spec(spec, keeps_secret=agent.secret is not None)
    if target == TargetEndpoint(
        url=agent.url, protocol=agent.protocol, protocol_config=agent.protocol_config
    ):
        raise Conflict(
            f"The target of {agent.name!r} is the same as its source.",
            fix="Choose another url, protocol or protocol_config: --to URL|PROTOCOL, --config key=value.",
        )
    if agent.secret is not None and not may_get_secret(agent, target.url):
        raise Conflict(
            f"The credentials of {agent.name!r} belong to another origin and are not sent to {target.url}.",
            fix="Add the target's origin to the agent's allow_card_origin, then try again.",
        )
