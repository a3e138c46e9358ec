"""
The REST API as Python calls.

A followed run is read to its end whatever happens to the connection: the stream is opened again after the
last event seen.
"""

from __future__ import annotations

import http.client
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, cast

from trunkline.cli.failures import ServerUnreachable
from trunkline.cli.rest.calls import API, FLEET_SECONDS, YAML_TYPE, Page, segment
from trunkline.cli.rest.http_client import RestRequest, read_json, with_query
from trunkline.cli.rest.inbox_calls import InboxCalls
from trunkline.cli.rest.job_calls import CacheCalls, JobCalls
from trunkline.cli.rest.subscription_calls import SubscriptionCalls
from trunkline.cli.rest.trigger_calls import EventCalls, TriggerCalls
from trunkline.sse import SseEvent, SseParser

if TYPE_CHECKING:
    from trunkline.api.resources.agents.migration import (
        AgentEventResource,
        Comparison,
        MigrationChange,
        MigrationEntry,
        MigrationOutcome,
        MigrationStatus,
    )
    from trunkline.api.resources.agents.registry import AgentHealth, AgentMetadataResource
    from trunkline.api.resources.agents.test_calls import TestCallResult
    from trunkline.api.resources.dead_letters import DeadLetterResource, DeadLetterSummary
    from trunkline.api.resources.exchanges import ExchangeResource
    from trunkline.api.resources.push_configs import PushConfigResource
    from trunkline.api.resources.runs import (
        EventResource,
        LogLineResource,
        RunResource,
        RunSummary,
        StepResource,
    )
    from trunkline.api.resources.secrets import SecretResource
    from trunkline.api.resources.system import AuditEntryResource, SystemState
    from trunkline.api.resources.workflows import (
        SavedWorkflow,
        SchemaResource,
        WorkflowItem,
        WorkflowResource,
    )
    from trunkline.jsontypes import Json, JsonObject

# Longer than the server's pings are apart: silence beyond it is a lost connection.
STREAM_SILENCE_SECONDS = 60.0
# A restart of the server takes less; a server that is away for longer is reported.
RECONNECT_SECONDS = 30.0
RECONNECT_PAUSE_SECONDS = 0.5
# No limit: the server bounded the events when it stored them.
_MAX_EVENT_BYTES = sys.maxsize
# Longer than a check may take, which asks an agent many things.
CHECK_SECONDS = 180.0
# Longer than the server lets an agent take that is tried out, and is then asked to stop.
TEST_CALL_SECONDS = 90.0
FINAL_EVENTS = frozenset({"RunCompleted", "RunFailed", "RunCancelled"})


class WaitOver(Exception):
    """The time to wait is up; the run goes on."""


class Client(EventCalls, InboxCalls, JobCalls, CacheCalls, SubscriptionCalls, TriggerCalls):
    """One server's API."""

    # Agents

    def agents(
        self, *, limit: int | None = None, cursor: str | None = None, **filters: str | None
    ) -> Page[AgentMetadataResource]:
        """`filters`: protocol, skill, tag and q."""
        return cast("Page[AgentMetadataResource]", self._list("/agents", filters, limit, cursor))

    def agent(self, name: str) -> tuple[AgentMetadataResource, str | None]:
        """The agent and its ETag."""
        answer = self._http.send(RestRequest("GET", f"{API}/agents/{segment(name)}"))
        return cast("AgentMetadataResource", answer.value), answer.etag

    def create_agent(self, spec: JsonObject) -> AgentMetadataResource:
        return cast("AgentMetadataResource", self._send("POST", "/agents", spec).value)

    def patch_agent(
        self, name: str, patch: JsonObject, etag: str | None
    ) -> tuple[AgentMetadataResource, str | None]:
        headers = {"If-Match": etag} if etag else {}
        answer = self._send("PATCH", f"/agents/{segment(name)}", patch, headers)
        return cast("AgentMetadataResource", answer.value), answer.etag

    def delete_agent(self, name: str) -> None:
        self._send("DELETE", f"/agents/{segment(name)}")

    def refresh_agent(self, name: str) -> AgentMetadataResource:
        return cast("AgentMetadataResource", self._send("POST", f"/agents/{segment(name)}/refresh").value)

    def agent_health(self, name: str) -> AgentHealth:
        return cast("AgentHealth", self.get(f"{API}/agents/{segment(name)}/health"))

    def check_agent(self, name: str, check: JsonObject) -> JsonObject:
        answer = self._send("POST", f"/agents/{segment(name)}/check", check, seconds=CHECK_SECONDS)
        return cast("JsonObject", answer.value)

    def try_agent(self, name: str, message: JsonObject) -> TestCallResult:
        answer = self._send("POST", f"/agents/{segment(name)}/try", message, seconds=TEST_CALL_SECONDS)
        return cast("TestCallResult", answer.value)

    def reset_agent(self, name: str) -> AgentMetadataResource:
        return cast("AgentMetadataResource", self._send("POST", f"/agents/{segment(name)}/reset").value)

    # Agents that move

    def migration_plan(self) -> Page[MigrationEntry]:
        return cast("Page[MigrationEntry]", self._list("/migration"))

    def migration(self, name: str) -> MigrationStatus:
        return cast("MigrationStatus", self.get(f"{API}/migration/agents/{segment(name)}"))

    def comparisons(self, name: str, *, verdict: str, limit: int) -> Page[Comparison]:
        path = f"/migration/agents/{segment(name)}/comparisons"
        return cast("Page[Comparison]", self._list(path, {"verdict": verdict}, limit))

    def agent_events(
        self, name: str | None, *, limit: int, cursor: str | None = None
    ) -> Page[AgentEventResource]:
        return cast(
            "Page[AgentEventResource]", self._list("/migration/events", {"agent": name}, limit, cursor)
        )

    def check_migration(self, name: str, *, active: bool = False) -> JsonObject:
        path = f"/migration/agents/{segment(name)}/check"
        return cast("JsonObject", self._send("POST", path, {"active": active}, seconds=CHECK_SECONDS).value)

    def migrate(self, action: str, body: JsonObject, name: str) -> MigrationChange:
        path = f"/migration/agents/{segment(name)}/{action}"
        return cast("MigrationChange", self._send("POST", path, body, seconds=CHECK_SECONDS).value)

    def migrate_all(self, action: str, body: JsonObject) -> MigrationOutcome:
        return cast(
            "MigrationOutcome", self._send("POST", f"/migration/{action}", body, seconds=FLEET_SECONDS).value
        )

    # Saved JSON Schemas

    def schemas(self, *, limit: int | None = None, cursor: str | None = None) -> Page[SchemaResource]:
        return cast("Page[SchemaResource]", self._list("/schemas", {}, limit, cursor))

    def schema(self, name: str) -> SchemaResource:
        return cast("SchemaResource", self._send("GET", f"/schemas/{segment(name)}").value)

    def save_schema(self, name: str, schema: JsonObject) -> tuple[SchemaResource, bool]:
        """And whether it is new."""
        answer = self._send("PUT", f"/schemas/{segment(name)}", schema)
        return cast("SchemaResource", answer.value), answer.status == 201

    def delete_schema(self, name: str) -> None:
        self._send("DELETE", f"/schemas/{segment(name)}")

    # Named secrets

    def secrets(self, *, limit: int | None = None, cursor: str | None = None) -> Page[SecretResource]:
        return cast("Page[SecretResource]", self._list("/secrets", {}, limit, cursor))

    def set_secret(self, name: str, value: str) -> SecretResource:
        return cast("SecretResource", self._send("PUT", f"/secrets/{segment(name)}", {"value": value}).value)

    def delete_secret(self, name: str) -> None:
        self._send("DELETE", f"/secrets/{segment(name)}")

    # Workflows

    def publish_workflow(self, workflow: str, publish: Json) -> SavedWorkflow:
        answer = self._send("PUT", f"/workflows/{segment(workflow)}/publish", {"publish": publish})
        return cast("SavedWorkflow", answer.value)

    def save_workflow(self, text: bytes) -> tuple[SavedWorkflow, bool]:
        """The version that now holds this definition, and whether it is new."""
        answer = self._http.send(RestRequest("POST", f"{API}/workflows", text, {"Content-Type": YAML_TYPE}))
        return cast("SavedWorkflow", answer.value), answer.status == 201

    def workflows(self, *, limit: int | None = None, cursor: str | None = None) -> Page[WorkflowItem]:
        return cast("Page[WorkflowItem]", self._list("/workflows", {}, limit, cursor))

    def workflow_versions(
        self, name: str, *, limit: int | None = None, cursor: str | None = None
    ) -> Page[WorkflowItem]:
        """The newest version first."""
        return cast(
            "Page[WorkflowItem]", self._list(f"/workflows/{segment(name)}/versions", {}, limit, cursor)
        )

    def workflow(self, name: str, version: int | None = None) -> WorkflowResource:
        path = f"{API}/workflows/{segment(name)}"
        if version is not None:
            path += f"/versions/{version}"
        return cast("WorkflowResource", self.get(path))

    def execute(
        self,
        name: str,
        run_input: Json,
        *,
        version: int | None = None,
        idempotency_key: str | None = None,
        labels: Sequence[str] = (),
        priority: int | None = None,
    ) -> RunResource:
        headers = {"Idempotency-Key": idempotency_key} if idempotency_key else {}
        query = {"version": version, "label": list(labels) or None, "priority": priority}
        path = with_query(f"/workflows/{segment(name)}/execute", query)
        return cast("RunResource", self._send("POST", path, run_input, headers).value)

    # Runs

    def runs(
        self, query: Mapping[str, object] = {}, *, limit: int | None = None, cursor: str | None = None
    ) -> Page[RunSummary]:
        """The newest runs first, from where an earlier page ended."""
        return cast("Page[RunSummary]", self._list("/runs", query, limit, cursor))

    def run(self, run_id: str) -> RunResource:
        return cast("RunResource", self.get(f"{API}/runs/{segment(run_id)}"))

    def change_labels(self, run_id: str, labels: Mapping[str, str | None]) -> RunResource:
        """A label whose new value is None is removed."""
        body = cast("JsonObject", {"labels": {**labels}})
        return cast("RunResource", self._send("PATCH", f"/runs/{segment(run_id)}", body).value)

    def act(self, run_id: str, action: str, body: Json = None) -> RunResource:
        """`cancel`, `pause`, `resume`, `retry`, or `steps/STEP/reply|resolve`."""
        return cast("RunResource", self._send("POST", f"/runs/{segment(run_id)}/{action}", body).value)

    def reply(self, run_id: str, step: str, body: JsonObject) -> RunResource:
        return self.act(run_id, f"steps/{segment(step)}/reply", body)

    def resolve(self, run_id: str, step: str, body: JsonObject) -> RunResource:
        return self.act(run_id, f"steps/{segment(step)}/resolve", body)

    def items(
        self, run_id: str, step: str, *, limit: int | None = None, cursor: str | None = None
    ) -> Page[StepResource]:
        """Of a step with `for_each`: those that have begun, in their order."""
        path = f"/runs/{segment(run_id)}/steps"
        return cast("Page[StepResource]", self._list(path, {"of": step}, limit, cursor))

    def wire(self, run_id: str, *, step: str | None = None) -> Page[ExchangeResource]:
        return cast("Page[ExchangeResource]", self._list(f"/runs/{segment(run_id)}/wire", {"step": step}))

    def logs(
        self, run_id: str, query: Mapping[str, object], *, limit: int | None = None, cursor: str | None = None
    ) -> Page[LogLineResource]:
        return cast(
            "Page[LogLineResource]", self._list(f"/runs/{segment(run_id)}/logs", query, limit, cursor)
        )

    def file(self, run_id: str, blob: str) -> bytes:
        request = RestRequest(
            "GET", f"{API}/runs/{segment(run_id)}/blobs/{segment(blob)}", headers={"Accept": "*/*"}
        )
        return self._http.read(request)

    def events(self, run_id: str) -> Page[EventResource]:
        return cast("Page[EventResource]", self._list(f"/runs/{segment(run_id)}/events"))

    def push_configs(self, run_id: str) -> Page[PushConfigResource]:
        return cast("Page[PushConfigResource]", self._list(f"/runs/{segment(run_id)}/push-configs", {}))

    def enable_push_config(self, run_id: str, config: str) -> None:
        self._send("POST", f"/runs/{segment(run_id)}/push-configs/{segment(config)}/enable")

    def delete_push_config(self, run_id: str, config: str) -> None:
        self._send("DELETE", f"/runs/{segment(run_id)}/push-configs/{segment(config)}")

    # Dead letters

    def dead_letters(self, *, limit: int | None = None, cursor: str | None = None) -> Page[DeadLetterSummary]:
        return cast("Page[DeadLetterSummary]", self._list("/dead-letters", {}, limit, cursor))

    def dead_letter(self, letter_id: str) -> DeadLetterResource:
        return cast("DeadLetterResource", self.get(f"{API}/dead-letters/{segment(letter_id)}"))

    def replay(self, letter_id: str) -> DeadLetterResource:
        return cast(
            "DeadLetterResource", self._send("POST", f"/dead-letters/{segment(letter_id)}/replay").value
        )

    def delete_dead_letter(self, letter_id: str) -> None:
        self._send("DELETE", f"/dead-letters/{segment(letter_id)}")

    # The system itself

    def system(self) -> SystemState:
        return cast("SystemState", self.get(f"{API}/system"))

    def audit(
        self, query: Mapping[str, object], *, limit: int | None = None, cursor: str | None = None
    ) -> Page[AuditEntryResource]:
        """The newest changes first."""
        return cast("Page[AuditEntryResource]", self._list("/audit", query, limit, cursor))

    def audit_lines(self, query: Mapping[str, object]) -> Iterator[AuditEntryResource]:
        """
        The oldest changes first. With `follow` in the query it goes on until the connection is cut.

        Raises `ServerUnreachable`, also for a response that was cut off.
        """
        request = RestRequest("GET", with_query(f"{API}/audit/export", query))
        with self._http.open(request, timeout=STREAM_SILENCE_SECONDS) as response:
            for line in self._http.lines(response):
                if line.strip():
                    yield cast("AuditEntryResource", read_json(line))

    # What happens in a run

    def follow(self, run_id: str, *, seconds: float | None = None) -> Iterator[EventResource]:
        """
        The run's events from the first to the final one, as they happen.

        A cut stream is opened again after the last event seen. Raises `WaitOver` after `seconds`.
        """
        until = None if seconds is None else time.monotonic() + seconds
        last_id: str | None = None
        away_since: float | None = None
        while True:
            try:
                for message in self._stream(run_id, last_id, until):
                    away_since = None
                    last_id = message.id
                    event = cast("EventResource", read_json(message.data.decode(errors="replace")))
                    yield event
                    if event["type"] in FINAL_EVENTS:
                        return
            except ServerUnreachable:
                now = time.monotonic()
                away_since = away_since or now
                if now - away_since > RECONNECT_SECONDS:
                    raise
            _check(until)
            time.sleep(RECONNECT_PAUSE_SECONDS)

    def _stream(self, run_id: str, last_id: str | None, until: float | None) -> Iterator[SseEvent]:
        headers = {"Accept": "text/event-stream"} | ({"Last-Event-ID": last_id} if last_id else {})
        request = RestRequest("GET", f"{API}/runs/{segment(run_id)}/events", headers=headers)
        timeout = STREAM_SILENCE_SECONDS if until is None else max(0.1, until - time.monotonic())
        with self._http.open(request, timeout=min(timeout, STREAM_SILENCE_SECONDS)) as response:
            parser = SseParser(max_line_bytes=_MAX_EVENT_BYTES, max_event_bytes=_MAX_EVENT_BYTES)
            for line in _lines(response, until):
                yield from parser.feed(line)


def _check(until: float | None) -> None:
    if until is not None and time.monotonic() >= until:
        raise WaitOver


def _lines(response: http.client.HTTPResponse, until: float | None) -> Iterator[bytes]:
    """The stream's lines until it ends or is cut, which is the same to a reader that resumes."""
    while True:
        _check(until)
        try:
            line = response.readline()
        except (OSError, http.client.HTTPException):
            return
        if not line:
            return
        yield line
