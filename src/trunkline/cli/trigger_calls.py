"""The calls of the REST API for triggers."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from trunkline.cli.http_client import RestRequest
from trunkline.cli.rest_calls import API, FLEET_SECONDS, YAML_TYPE, Page, RestCalls, segment

if TYPE_CHECKING:
    from trunkline.api.resources.runs import RunResource
    from trunkline.api.resources.triggers import (
        Backfill,
        FiringResource,
        SchedulePreview,
        TriggerResource,
        TriggerSummary,
    )
    from trunkline.jsontypes import JsonObject


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
