"""Agents that are migrated: how tests register them and cut them over, and checks with chosen results."""

from __future__ import annotations

import msgspec
from tests.contract.samples import run_id

from trunkline.agents import Agent
from trunkline.agents.check_reports import (
    DEFAULT_SAMPLE,
    AgentCheckReport,
    AgentFinding,
    CheckSample,
    CheckTarget,
)
from trunkline.agents.migration import TargetEndpoint
from trunkline.agents.migration.transitions import LimitChanges
from trunkline.errors import Invalid
from trunkline.jsontypes import JsonObject
from trunkline.services.agents.registry import AgentRegistry
from trunkline.services.agents.specs import parse_spec
from trunkline.services.migration.migrations import Migrations
from trunkline.services.migration.repository import ChangeReason, StageChange
from trunkline.services.migration.states import decode_migration
from trunkline.services.migration.targets import RequestedTarget
from trunkline.stores.base import Store
from trunkline.stores.port.agents.agent_events import ComparisonRecord

URL = "http://agents.example/a"
JSONRPC = TargetEndpoint(url=URL, protocol="jsonrpc-2.0", protocol_config={"input_mode": "json"})
ANN = ChangeReason(who="ann", why="it is time")
AS_BEFORE = LimitChanges()
DEFAULT = RequestedTarget()


SPEAKS_ANOTHER = AgentFinding(
    id="speaks-protocol",
    title="The agent speaks the protocol",
    group="Transport",
    level="required",
    verdict="failed",
    expected="",
    seen="JSON-RPC",
    fix="",
    guide="",
)


class Checks:
    """Every side passes, but for those that are listed."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, CheckTarget | None]] = []
        self.failing: set[str] = set()
        # Their sources speak the new protocol by now.
        self.gone: set[str] = set()
        # They answer only messages.
        self.silent: set[str] = set()
        self.impossible = False

    async def __call__(
        self,
        agent: Agent,
        target: CheckTarget | None = None,
        *,
        active: bool = False,
        sample: CheckSample = DEFAULT_SAMPLE,
    ) -> AgentCheckReport:
        del sample
        self.asked.append((agent.name, target))
        if self.impossible:
            raise Invalid("It cannot be checked.")
        is_silent = agent.name in self.silent and not active
        gone = target is None and agent.name in self.gone
        passed = agent.name not in self.failing and not is_silent and not gone
        return AgentCheckReport(
            url=agent.url if target is None else target.url,
            protocol="simple-a2a" if target is None else target.protocol,
            chosen="It was requested.",
            active=active,
            started_at="2026-01-01T00:00:00.000000Z",
            duration_ms=1,
            grade="?" if is_silent else "A" if passed else "F",
            passed=passed,
            findings=[SPEAKS_ANOTHER] if gone else [],
            attestations=[],
        )


async def register(registry: AgentRegistry, *names: str, **fields: object) -> Agent:
    agent = None
    for name in names:
        document: dict[str, object] = {"name": name, "url": URL, "protocol": "simple-a2a", **fields}
        agent = await registry.create(parse_spec(msgspec.convert(document, JsonObject)))
    assert agent is not None
    return agent


async def cut_over(migrations: Migrations, name: str = "a") -> StageChange:
    await migrations.attest(name, "deployed by ops", DEFAULT, ANN)
    return await migrations.cut_over(name, ANN)


async def history(store: Store) -> list[tuple[str, str, str, str]]:
    events = reversed(await store.agent_events.page(limit=100))
    return [
        (event.agent, state.stage, event.who, event.why)
        for event in events
        if (state := decode_migration(event)) is not None
    ]


async def compared(store: Store, change: StageChange, *verdicts: str) -> None:
    async with store.transaction() as tx:
        await tx.comparisons.put(
            [
                ComparisonRecord(
                    id=run_id(number),
                    agent_id=event_of(change).agent_id,
                    since=change.state.shadow_since,
                    run_id=run_id(1),
                    step="s",
                    at=tx.now,
                    verdict=verdict,
                    record=b"{}",
                )
                for number, verdict in enumerate(verdicts)
            ],
            1_000,
        )


def event_of(change: StageChange):
    assert change.event is not None
    return change.event
