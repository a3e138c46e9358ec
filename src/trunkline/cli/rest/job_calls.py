"""The calls of the REST API for bulk operations and their jobs, and for the cache of outputs."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from trunkline.cli.rest.calls import API, Page, RestCalls, segment
from trunkline.cli.rest.http_client import with_query

if TYPE_CHECKING:
    from trunkline.api.resources.jobs import JobResource
    from trunkline.api.resources.system import CacheResource, ClearedCacheResource
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


class CacheCalls(RestCalls):
    def cache(self) -> CacheResource:
        return cast("CacheResource", self.get(f"{API}/cache"))

    def clear_cache(self, *, workflow: str | None = None, agent: str | None = None) -> ClearedCacheResource:
        path = with_query("/cache", {"workflow": workflow, "agent": agent})
        return cast("ClearedCacheResource", self._send("DELETE", path).value)
