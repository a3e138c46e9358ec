"""The calls of the REST API for bulk operations and their jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from trunkline.cli.rest.calls import API, Page, RestCalls, segment

if TYPE_CHECKING:
    from trunkline.api.resources.jobs import JobResource
    from trunkline.jsontypes import JsonObject


class JobCalls(RestCalls):
    def start_bulk(self, body: JsonObject) -> JobResource:
        return cast("JobResource", self._send("POST", "/runs/bulk", body).value)

    def jobs(self, *, limit: int | None = None, cursor: str | None = None) -> Page[JobResource]:
        """The newest first."""
        return cast("Page[JobResource]", self._list("/jobs", {}, limit, cursor))

    def job(self, job_id: str) -> JobResource:
        return cast("JobResource", self.get(f"{API}/jobs/{segment(job_id)}"))

    def cancel_job(self, job_id: str) -> JobResource:
        return cast("JobResource", self._send("POST", f"/jobs/{segment(job_id)}/cancel").value)
