"""The check of a registered agent: with its own credentials, and with what was attested of it."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from trunkline.agents import Agent
from trunkline.agents.check_reports import DEFAULT_SAMPLE, AgentCheckReport, CheckSample, CheckTarget
from trunkline.bridge.agents.resolver import AgentResolver
from trunkline.bridge.agents.tokens import TokenProvider
from trunkline.checker import CheckedAgent, Checker, CheckLimits
from trunkline.checker.checklist import attestations
from trunkline.clock import Clock
from trunkline.errors import Conflict
from trunkline.messages import StepError
from trunkline.services.migration.states import decode_migration
from trunkline.stores.base import Store
from trunkline.transports.base import Transport

# A REST client waits for the check.
LIMITS = CheckLimits(request_seconds=10.0, total_seconds=120.0)


class RegisteredAgentCheck:
    """
    Checks an agent as it is registered or, with a `target`, another endpoint with the same credentials.

    Raises `Invalid` when it cannot be checked at all (`Checker.check`), and `Conflict` when its secret cannot be read.
    """

    def __init__(
        self, transport: Transport, resolver: AgentResolver, tokens: TokenProvider, store: Store, clock: Clock
    ) -> None:
        self._checker = Checker(transport, clock, LIMITS)
        self._resolver = resolver
        self._tokens = tokens
        self._store = store

    async def __call__(
        self,
        agent: Agent,
        target: CheckTarget | None = None,
        *,
        active: bool = False,
        sample: CheckSample = DEFAULT_SAMPLE,
    ) -> AgentCheckReport:
        subject = msgspec.structs.replace(self._subject(agent, target), sample=sample)
        report = await self._checker.check(subject, active=active)
        latest = await self._store.agent_events.latest_migrations([agent.id])
        state = decode_migration(latest.get(agent.id))
        if state is None or state.ready is None:
            return report
        attested = attestations(agent.name, state.ready.note)
        return msgspec.structs.replace(report, attestations=attested)

    def _subject(self, agent: Agent, target: CheckTarget | None) -> CheckedAgent:
        credentials = self._resolver.credentials_of(agent)
        if isinstance(credentials, StepError):
            raise Conflict(credentials.message, fix=credentials.fix)
        redaction = self._tokens.redaction(credentials)

        async def token(body: bytes) -> Mapping[str, str]:
            return await self._tokens.headers(credentials, redaction, LIMITS.request_seconds, body=body)

        endpoint = target or CheckTarget(
            url=agent.url, protocol=agent.protocol, protocol_config=agent.protocol_config
        )
        # The endpoint override of the source does not apply to the target.
        options = (
            agent.options
            if target is None
            else msgspec.structs.replace(agent.options, endpoint_override=None)
        )
        return CheckedAgent(
            url=endpoint.url,
            protocol=endpoint.protocol,
            protocol_config=endpoint.protocol_config or {},
            options=options,
            credentials=credentials,
            token=token,
            redaction=redaction,
            agent=agent.name,
        )
