"""Migrations on a store of the test."""

from __future__ import annotations

import pytest
from tests.unit.services.migration.migrating_agents import Checks

from trunkline.services.agents.cache import AgentCache
from trunkline.services.agents.drift import DriftRecorder
from trunkline.services.migration.migrations import Migrations
from trunkline.services.migration.routing_table import RoutingTable
from trunkline.stores.base import Store
from trunkline.telemetry.metrics import Metrics
from trunkline.testing import FakeClock


@pytest.fixture
def checks() -> Checks:
    return Checks()


@pytest.fixture
def metrics() -> Metrics:
    return Metrics()


@pytest.fixture
def routing(store: Store, clock: FakeClock) -> RoutingTable:
    return RoutingTable(store.agent_events, clock)


@pytest.fixture
def migrations(
    store: Store, agent_cache: AgentCache, routing: RoutingTable, checks: Checks, metrics: Metrics
) -> Migrations:
    return Migrations(store, agent_cache, routing, DriftRecorder(store, metrics), checks, metrics)
