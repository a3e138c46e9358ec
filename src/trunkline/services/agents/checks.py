"""
Checks of agents: run, stored, and listed.

The composition root passes in the checker itself; what has changed since the last check becomes an event (`drift`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from trunkline.agents import Agent
from trunkline.agents.check_reports import DEFAULT_SAMPLE, AgentCheckReport, CheckSample, CheckTarget
from trunkline.errors import NotFound
from trunkline.services.agents.drift import KEPT_CHECKS, DriftRecorder
from trunkline.services.agents.registry import AgentRegistry
from trunkline.services.operations.audit_log import audit_entry
from trunkline.stores.base import Store
from trunkline.stores.port.agents.agent_events import CheckRecord


class CheckAgent(Protocol):
    """
    Checks an agent with its own credentials: as it is registered, or as `target` says.

    Only with `active` are messages sent. Whatever the agent answers is a report; raises `Invalid` where there is
    nothing to check.
    """

    async def __call__(
        self,
        agent: Agent,
        target: CheckTarget | None = None,
        *,
        active: bool = False,
        sample: CheckSample = DEFAULT_SAMPLE,
    ) -> AgentCheckReport: ...


class Checks:
    def __init__(
        self, store: Store, registry: AgentRegistry, drifts: DriftRecorder, check: CheckAgent
    ) -> None:
        self._store = store
        self._registry = registry
        self._drifts = drifts
        self._check = check

    async def check(
        self,
        name: str,
        *,
        protocol: str | None = None,
        active: bool = False,
        sample: CheckSample = DEFAULT_SAMPLE,
    ) -> CheckRecord:
        """`protocol`: another than the registered one, at the same address. Raises `NotFound` and `Invalid`."""
        agent = await self._registry.get(name)
        target = None
        if protocol is not None and protocol != agent.protocol:
            target = CheckTarget(url=agent.url, protocol=protocol)
        if active:
            # Before the check: the agent may act on its messages whether we live to see the report or not.
            async with self._store.transaction() as tx:
                await tx.audit.put([audit_entry("agent", "check", agent.name, protocol=protocol)])
        report = await self._check(agent, target, active=active, sample=sample)
        return await self._drifts.record_check(agent, report, target)

    async def list(self, name: str, *, limit: int, before: str | None = None) -> Sequence[CheckRecord]:
        """Newest first."""
        agent = await self._registry.get(name)
        return await self._store.checks.page(agent.id, limit=limit, before=before)

    async def get(self, name: str, check: str) -> CheckRecord:
        for record in await self.list(name, limit=KEPT_CHECKS):
            if record.id == check:
                return record
        raise NotFound(
            f"The agent {name} has no check {check}.",
            fix=f"Only the last {KEPT_CHECKS} checks are kept. List them and choose one.",
        )
