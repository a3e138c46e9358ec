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
        self._add_published(self.registry)
        self._add_callbacks(self.registry)
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
            "trunkline_attempts_total", "Calls of agents by outcome", ["outcome"], registry=r
        )

    def _add_agents(self, r: CollectorRegistry) -> None:
        self.breakers_opened = CounterFamily(
            "agent_breaker_opened_total",
            "Times that an agent's circuit breaker opened",
            ["agent_name"],
            registry=r,
        )
        self.migration_changes = CounterFamily(
            "agent_migration_changes_total",
            "Changes of agent migrations, by the new stage",
            ["agent_name", "stage"],
            registry=r,
        )
        self.drifts = CounterFamily(
            "agent_drift_total",
            "Changes of agents' cards, check grades and dialects",
            ["agent_name", "kind"],
            registry=r,
        )
        self.comparisons = CounterFamily(
            "shadow_comparisons_total",
            "Comparisons of the answers of source and target, by verdict",
            ["agent_name", "verdict"],
            registry=r,
        )
        self.shadows_dropped = CounterFamily(
            "shadow_dropped_total",
            "Shadow calls that were dropped, by reason",
            ["agent_name", "reason"],
            registry=r,
        )
        self.detached_requests = CounterFamily(
            "agent_detached_requests_total",
            "Requests of shadow calls and test calls, for which no run waits",
            ["protocol", "agent_name", "kind"],
            registry=r,
        )
        self.rollbacks_refused = CounterFamily(
            "agent_rollbacks_refused_total",
            "Automatic rollbacks that were refused because the source cannot be called",
            ["agent_name"],
            registry=r,
        )
        self.rollbacks = CounterFamily(
            "agent_rollbacks_total",
            "Automatic rollbacks of agents",
            ["agent_name"],
            registry=r,
        )

    def _add_published(self, r: CollectorRegistry) -> None:
        self.a2a_requests = CounterFamily(
            "a2a_server_requests_total",
            "Requests of A2A callers to published workflows",
            ["method", "version", "binding", "code"],
            registry=r,
        )
        self.a2a_streams = Gauge(
            "a2a_server_open_streams",
            "Open streams and waiting requests of A2A callers in this process",
            registry=r,
        )

    def _add_callbacks(self, r: CollectorRegistry) -> None:
        self.callbacks = Counter(
            "trunkline_callbacks_total",
            "Callbacks by kind, and by outcome: accepted; failed, once for each failed attempt; given_up",
            ["kind", "outcome"],
            registry=r,
        )

        self.callbacks_sending = Gauge(
            "trunkline_callbacks_sending",
            "Queues of callbacks, such as push notifications of one task, that this process is sending from",
            registry=r,
        )

    def _add_process(self, r: CollectorRegistry) -> None:
        self.step_seconds = HistogramFamily(
            "trunkline_step_duration_seconds",
            "Duration of steps, from the first attempt to the end",
            ["status"],
            buckets=_STEP_BUCKETS,
            registry=r,
        )
        self.agent_pushes = CounterFamily(
            "agent_pushes_total",
            "Push notifications from agents, by result",
            ["result"],
            registry=r,
        )
        self.refusals = CounterFamily(
            "trunkline_access_refused_total",
            "API requests rejected because of the API key, by reason",
            ["reason"],
            registry=r,
        )
        self.calls_in_flight = Gauge("trunkline_calls_in_flight", "Agent calls in progress", registry=r)
        self.answer_memory = Gauge(
            "trunkline_answer_memory_bytes",
            "Memory taken by large inputs and answers of agents in flight",
            registry=r,
        )
        self.turn_seconds = HistogramFamily(
            "trunkline_commit_duration_seconds",
            "Duration of one turn of the commit loop, including the commit",
            [],
            buckets=_TURN_BUCKETS,
            registry=r,
        ).labels()
        self.records_consumed = CounterFamily(
            "trunkline_records_consumed_total", "Records consumed from the broker", ["topic"], registry=r
        )
        self.dead_letters = CounterFamily(
            "trunkline_dead_letters_total",
            "Records that could not be read or stored, by reason",
            ["reason"],
            registry=r,
        )
        self.late_messages = Counter(
            "trunkline_late_messages_total", "Records dropped because their runs were deleted", registry=r
        )

    def _add_gauges(self, r: CollectorRegistry) -> None:
        """Show the state of the system, read before each scrape."""
        self._runs = Gauge("trunkline_runs", "Runs in the store by status", ["status"], registry=r)
        self._queue_depth = Gauge("trunkline_queue_depth", "Waiting entries by queue", ["queue"], registry=r)
        self._breakers = Gauge(
            "agent_breaker_state",
            "State of agents' circuit breakers; 0: closed, 1: half-open, 2: open",
            ["agent_name"],
            registry=r,
        )
        self._migrations = Gauge(
            "agent_migration_stage",
            "1 for the current stage of an agent's migration; only agents with a migration",
            ["agent_name", "stage"],
            registry=r,
        )
        self._grades = Gauge(
            "agent_check_grade",
            "Grade of the last check that this process made of a registered agent; A: 4 to F: 0",
            ["agent_name"],
            registry=r,
        )
        self._queued_tasks = Gauge(
            "agent_queued_tasks", "Tasks waiting for an agent", ["agent_name"], registry=r
        )
        self._without_wake_reason = Gauge(
            "trunkline_rows_without_wake_reason",
            "Unfinished runs without anything that continues them; a value other than 0 is a bug",
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
        # A check that has learned nothing does not change what is known.
        if grade in GRADES:
            self._grades.labels(agent).set(len(GRADES) - 1 - GRADES.index(grade))

    def show_agents(self, breakers: Mapping[str, BreakerStatus], queued: Mapping[str, int]) -> None:
        # Agents that were deleted or have nothing to do are no longer listed.
        self._breakers.clear()
        for agent, status in breakers.items():
            self._breakers.labels(agent).set(_BREAKER_NUMBERS[status])
        self._queued_tasks.clear()
        for agent, number in queued.items():
            self._queued_tasks.labels(agent).set(number)

    def show_migrations(self, stages: Mapping[str, str]) -> None:
        """The stage of each agent that has or had a migration."""
        self._migrations.clear()
        for agent, stage in stages.items():
            self._migrations.labels(agent, stage).set(1)

    def render(self) -> bytes:
        return generate_latest(self.registry)
