"""The calls of the REST API for triggers, events and signals."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

from trunkline.cli.rest.calls import API, FLEET_SECONDS, YAML_TYPE, Page, RestCalls, segment
from trunkline.cli.rest.http_client import RestRequest

if TYPE_CHECKING:
    from trunkline.api.resources.automation.events import ReceivedEventResource, ReceivedResource
    from trunkline.api.resources.automation.triggers import (
        Backfill,
        FiringResource,
        SchedulePreview,
        TriggerResource,
        TriggerSummary,
    )
    from trunkline.api.resources.runs import RunResource
    from trunkline.jsontypes import Json, JsonObject


class TriggerCalls(RestCalls):
    def save_trigger(self, name: str, text: bytes) -> tuple[TriggerResource, bool]:
        """The trigger as it is now, and whether it is new."""
        path = f"{API}/triggers/{segment(name)}"
        answer = self._http.send(RestRequest("PUT", path, text, {"Content-Type": YAML_TYPE}))
        return cast("TriggerResource", answer.value), answer.status == 201

    def triggers(self, *, limit: int | None = None, cursor: str | None = None) -> Page[TriggerSummary]:
        return cast("Page[TriggerSummary]", self._list("/triggers", {}, limit, cursor))

    def trigger(self, name: str) -> TriggerResource:
        return cast("TriggerResource", self.get(f"{API}/triggers/{segment(name)}"))

    def switch_trigger(self, name: str, action: str) -> TriggerResource:
        """`pause` or `resume`."""
        return cast("TriggerResource", self._send("POST", f"/triggers/{segment(name)}/{action}").value)

    def fire_trigger(self, name: str, body: JsonObject, idempotency_key: str | None = None) -> RunResource:
        headers = {"Idempotency-Key": idempotency_key} if idempotency_key else {}
        return cast("RunResource", self._send("POST", f"/triggers/{segment(name)}/fire", body, headers).value)

    def backfill_trigger(self, name: str, start: str, end: str) -> Backfill:
        path = f"/triggers/{segment(name)}/backfill"
        answer = self._send("POST", path, {"from": start, "to": end}, seconds=FLEET_SECONDS)
        return cast("Backfill", answer.value)

    def delete_trigger(self, name: str) -> None:
        self._send("DELETE", f"/triggers/{segment(name)}")

    def firings(
        self, name: str, *, limit: int | None = None, cursor: str | None = None
    ) -> Page[FiringResource]:
        """The newest first."""
        return cast(
            "Page[FiringResource]", self._list(f"/triggers/{segment(name)}/firings", {}, limit, cursor)
        )

    def preview_schedule(self, schedule: JsonObject) -> SchedulePreview:
        return cast("SchedulePreview", self._send("POST", "/schedule-preview", schedule).value)


class EventCalls(RestCalls):
    def send_event(self, event: JsonObject) -> ReceivedResource:
        return cast("ReceivedResource", self._send("POST", "/events", event).value)

    def signal(self, run_id: str, name: str, data: Json) -> ReceivedResource:
        path = f"/runs/{segment(run_id)}/signals/{segment(name)}"
        return cast("ReceivedResource", self._send("POST", path, data).value)

    def received_events(
        self, query: Mapping[str, object], *, limit: int | None = None, cursor: str | None = None
    ) -> Page[ReceivedEventResource]:
        return cast("Page[ReceivedEventResource]", self._list("/events", query, limit, cursor))

    def received_event(self, event_id: str) -> ReceivedEventResource:
        return cast("ReceivedEventResource", self.get(f"{API}/events/{segment(event_id)}"))
