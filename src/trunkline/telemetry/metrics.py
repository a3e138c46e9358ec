"""The metrics, all in one place."""

from __future__ import annotations

from collections.abc import Mapping

from prometheus_client import CollectorRegistry, Counter, Gauge, generate_latest

from trunkline.agents.call_limits.breaker import BreakerStatus
from trunkline.agents.check_reports import GRADES, Grade
from trunkline.telemetry.metric_families import CounterFamily, HistogramFamily

_TRANSLATION_BUCKETS = (0.00001, 0.000025, 0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.005, 0.01, 0.1)
_TURN_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10)
_STEP_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800)

_BREAKER_NUMBERS: Mapping[BreakerStatus, int] = {"closed": 0, "half_open": 1, "open": 2}


class Metrics:
    """One set for one process."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._add_translation(self.registry)
        self._add_runs(self.registry)
        self._add_agents(self.registry)
        self._add_process(self.registry)
        self._add_gauges(self.registry)

    def _add_translation(self, r: CollectorRegistry) -> None:
        self.protocol_requests = CounterFamily(
            "agent_protocol_requests_total",
            "Total agent requests by protocol",
            ["protocol", "agent_name"],
            registry=r,
        )
        self.translation_seconds = HistogramFamily(
            "protocol_translation_duration_seconds",
            "Time spent translating protocols",
            ["protocol", "direction"],
            buckets=_TRANSLATION_BUCKETS,
            registry=r,
        )
        self.translation_errors = CounterFamily(
            "protocol_translation_errors_total",
            "Protocol translation errors",
            ["protocol", "direction", "error_type"],
            registry=r,
        )

    def _add_runs(self, r: CollectorRegistry) -> None:
        self.runs_started = CounterFamily(
            "trunkline_runs_started_total", "Runs accepted", [], registry=r
        ).labels()
        self.runs_finished = CounterFamily(
            "trunkline_runs_finished_total", "Runs that reached a final state", ["status"], registry=r
        )
        self.attempts = CounterFamily(
            "trunkline_attempts_total", "Calls of agents by what became of them", ["outcome"], registry=r
        )

    def _add_agents(self, r: CollectorRegistry) -> None:
        self.breakers_opened = CounterFamily(
            "agent_breaker_opened_total",
            "Times that an agent's breaker has opened",
            ["agent_name"],
            registry=r,
        )
        self.migration_changes = CounterFamily(
            "agent_migration_changes_total",
            "Changes of agents' migrations, by the stage that they have led to",
            ["agent_name", "stage"],
            registry=r,
        )
        self.drifts = CounterFamily(
            "agent_drift_total",
            "Cards and grades of agents that have changed",
            ["agent_name", "kind"],
            registry=r,
        )
        self.comparisons = CounterFamily(
            "shadow_comparisons_total",
            "Tasks that both sides of an agent have answered, by what the comparison says",
            ["agent_name", "verdict"],
            registry=r,
        )
        self.shadows_dropped = CounterFamily(
            "shadow_dropped_total",
            "Tasks that were not compared though they should have been",
            ["agent_name", "reason"],
            registry=r,
        )
        self.rollbacks = CounterFamily(
            "agent_rollbacks_total",
            "Times that an agent went back to its old side by itself",
            ["agent_name"],
            registry=r,
        )

    def _add_process(self, r: CollectorRegistry) -> None:
        self.step_seconds = HistogramFamily(
            "trunkline_step_duration_seconds",
            "From a step's first attempt to its end",
            ["status"],
            buckets=_STEP_BUCKETS,
            registry=r,
        )
        self.agent_pushes = CounterFamily(
            "agent_pushes_total",
            "Rings of agents whose tasks have moved on, by what became of them",
            ["result"],
            registry=r,
        )
        self.refusals = CounterFamily(
            "trunkline_access_refused_total",
            "Requests to the API without a key that allows them",
            ["reason"],
            registry=r,
        )
        self.calls_in_flight = Gauge("trunkline_calls_in_flight", "Agent calls under way", registry=r)
        self.turn_seconds = HistogramFamily(
            "trunkline_commit_duration_seconds",
            "One turn of the commit loop, commit included",
            [],
            buckets=_TURN_BUCKETS,
            registry=r,
        ).labels()
        self.records_consumed = CounterFamily(
            "trunkline_records_consumed_total", "Records taken in from the broker", ["topic"], registry=r
        )
        self.dead_letters = CounterFamily(
            "trunkline_dead_letters_total",
            "Records that could not be read or stored, by what is wrong with them",
            ["reason"],
            registry=r,
        )
        self.late_messages = Counter(
            "trunkline_late_messages_total", "Records dropped because their runs are deleted", registry=r
        )

    def _add_gauges(self, r: CollectorRegistry) -> None:
        """Show the state of the system, read before each scrape."""
        self._runs = Gauge("trunkline_runs", "Runs in the store by status", ["status"], registry=r)
        self._queue_depth = Gauge("trunkline_queue_depth", "What waits, by queue", ["queue"], registry=r)
        self._breakers = Gauge(
            "agent_breaker_state",
            "Breakers of the agents that have one; 0: closed, 1: half-open, 2: open",
            ["agent_name"],
            registry=r,
        )
        self._migrations = Gauge(
            "agent_migration_stage",
            "1 for the stage that an agent's migration is at; agents without one are missing",
            ["agent_name", "stage"],
            registry=r,
        )
        self._grades = Gauge(
            "agent_check_grade",
            "The grade of the last check that this process has made of an agent as it is registered; A: 4 to F: 0",
            ["agent_name"],
            registry=r,
        )
        self._queued_tasks = Gauge(
            "agent_queued_tasks", "Tasks that wait for an agent", ["agent_name"], registry=r
        )
        self._without_wake_reason = Gauge(
            "trunkline_rows_without_wake_reason",
            "Unfinished runs that nothing will ever wake; anything but 0 is a bug",
            registry=r,
        )

    def show_backlog(
        self, runs_by_status: Mapping[str, int], queues: Mapping[str, int], without_wake_reason: int
    ) -> None:
        for status, number in runs_by_status.items():
            self._runs.labels(status).set(number)
        for queue, number in queues.items():
            self._queue_depth.labels(queue).set(number)
        self._without_wake_reason.set(without_wake_reason)

    def show_grade(self, agent: str, grade: Grade) -> None:
        self._grades.labels(agent).set(len(GRADES) - 1 - GRADES.index(grade))

    def show_agents(self, breakers: Mapping[str, BreakerStatus], queued: Mapping[str, int]) -> None:
        # An agent that is gone, or has nothing to do, is not among them any more.
        self._breakers.clear()
        for agent, status in breakers.items():
            self._breakers.labels(agent).set(_BREAKER_NUMBERS[status])
        self._queued_tasks.clear()
        for agent, number in queued.items():
            self._queued_tasks.labels(agent).set(number)

    def show_migrations(self, stages: Mapping[str, str]) -> None:
        """The stage of each agent that moves, or has moved."""
        self._migrations.clear()
        for agent, stage in stages.items():
            self._migrations.labels(agent, stage).set(1)

    def render(self) -> bytes:
        return generate_latest(self.registry)
