"""
The target of a migration: resolved from a request, and checked as the registry checks agents.

An agent that speaks Simple A2A gets the whole input, so its target does, too (`input_mode: json`), unless the request
says otherwise or an active check has shown that the target reads only the text of an input.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from trunkline.agents import AUTO, Agent
from trunkline.agents.check_reports import CheckedInputMode
from trunkline.agents.migration import MigrationState, TargetEndpoint
from trunkline.agents.migration.blockers import protocol_in_use
from trunkline.errors import Conflict, Finding
from trunkline.jsontypes import JsonObject
from trunkline.protocols import UnsupportedProtocol, validate_protocol_config
from trunkline.services.agents.registry import may_get_secret
from trunkline.services.agents.specs import check_spec, parse_spec, raise_if_any, spec_document
from trunkline.stores.port.agents.agent_events import CheckReads, CheckRecord

# The default target of a migration.
DEFAULT_PROTOCOL = "jsonrpc-2.0"
# The whole input as JSON text: what Simple A2A sends, in another envelope.
WHOLE_INPUT: CheckedInputMode = "json"
_SIMPLE = "simple-a2a"
# With these, the input itself is the params, and there is no message to put it into.
_WITHOUT_MESSAGE = frozenset({"profile", "params"})
# Of an agent. Without an active check of the target among them, the target gets the whole input.
_CHECKS_READ = 10


class RequestedTarget(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Fields left out keep their last value, or default to the agent's own url and JSON-RPC 2.0."""

    url: str | None = None
    protocol: str | None = None
    protocol_config: JsonObject | None = None


def resolve_target(
    agent: Agent,
    state: MigrationState | None,
    requested: RequestedTarget,
    checks: Sequence[CheckRecord] = (),
) -> TargetEndpoint:
    """
    `checks`: the last ones of the agent, newest first.

    Raises `Invalid` for what cannot be called, `Conflict` for what this agent must not migrate to.
    """
    named = None if state is None or state.stage == "finished" else state.target
    protocol = requested.protocol or (DEFAULT_PROTOCOL if named is None else named.protocol)
    url = requested.url or (agent.url if named is None else named.url)
    config = requested.protocol_config
    if config is None and named is not None and named.protocol == protocol:
        config = named.protocol_config
    else:
        config = _with_input_mode(agent, url, protocol, config or {}, checks)
    target = TargetEndpoint(url=url, protocol=protocol, protocol_config=config or None)
    _check(agent, target)
    return target


def default_target(agent: Agent, checks: Sequence[CheckRecord] = ()) -> TargetEndpoint:
    """Where an agent migrates to if nothing is requested."""
    config = _with_input_mode(agent, agent.url, DEFAULT_PROTOCOL, {}, checks)
    return TargetEndpoint(url=agent.url, protocol=DEFAULT_PROTOCOL, protocol_config=config or None)


async def checks_of(checks: CheckReads, agent: Agent) -> Sequence[CheckRecord]:
    """What `resolve_target` has to know of the agent's checks."""
    return await checks.page(agent.id, limit=_CHECKS_READ)


class ProposedInputMode(msgspec.Struct, frozen=True, kw_only=True):
    """The `input_mode` that a migration should use, and why."""

    mode: CheckedInputMode
    why: str
    # Which modes the last active check has seen the agent read; empty: not known.
    seen: list[CheckedInputMode]


def proposed_input_mode(
    agent: Agent, url: str, protocol: str, checks: Sequence[CheckRecord]
) -> ProposedInputMode | None:
    """None: the agent does not come from Simple A2A, or the target's protocol has no such option."""
    if protocol_in_use(agent) not in {_SIMPLE, None} or not _takes_input_mode(protocol):
        return None
    checked = next(
        (check for check in checks if check.active and (check.url, check.protocol) == (url, protocol)), None
    )
    seen = [] if checked is None else _checked.decode(checked.report).input_modes
    if seen and WHOLE_INPUT not in seen:
        return ProposedInputMode(
            mode=seen[0], seen=seen, why=f"The last active check shows that the target reads {seen[0]}."
        )
    if seen:
        why = "The last active check shows that the target reads the whole input."
    else:
        why = "The source gets the whole input. No active check has shown which form the target reads."
    return ProposedInputMode(mode=WHOLE_INPUT, seen=seen, why=why)


class _CheckedModes(msgspec.Struct):
    input_modes: list[CheckedInputMode] = []


_checked = msgspec.json.Decoder(_CheckedModes)


def _with_input_mode(
    agent: Agent, url: str, protocol: str, config: JsonObject, checks: Sequence[CheckRecord]
) -> JsonObject:
    if "input_mode" in config or config.keys() & _WITHOUT_MESSAGE:
        return config
    proposed = proposed_input_mode(agent, url, protocol, checks)
    return config if proposed is None else {**config, "input_mode": proposed.mode}


def _takes_input_mode(protocol: str) -> bool:
    try:
        return not validate_protocol_config(protocol, {"input_mode": WHOLE_INPUT})
    except UnsupportedProtocol:
        # `_check` reports it, with the supported protocols.
        return False


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
