"""What every group of calls to the REST API is made of: one request and its answer, and lists over many pages."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar, cast
from urllib.parse import quote

from trunkline.cli.rest.http_client import (
    JSON_TYPE,
    TIMEOUT_SECONDS,
    HttpClient,
    RestRequest,
    RestResponse,
    with_query,
)

if TYPE_CHECKING:
    from trunkline.jsontypes import Json, JsonObject

API = "/api/v1"
YAML_TYPE = "application/yaml"
# The largest page that the server gives.
PAGE = 1_000
# Many agents, or many runs, some at a time.
FLEET_SECONDS = 1_800.0

Item = TypeVar("Item")


class Page(NamedTuple, Generic[Item]):
    """A list's items, and where the rest of it begins."""

    items: list[Item]
    next_cursor: str | None

    def answer(self) -> dict[str, object]:
        """The form in which the API and `--json` show a list."""
        return self._asdict()


class RestCalls:
    def __init__(self, url: str, *, api_key: str | None = None) -> None:
        self._http = HttpClient(url, api_key=api_key)

    @property
    def url(self) -> str:
        return self._http.url

    def get(self, path: str) -> Json:
        return self._http.send(RestRequest("GET", path)).value

    def _send(
        self,
        method: str,
        path: str,
        body: Json = None,
        headers: Mapping[str, str] = {},
        *,
        seconds: float = TIMEOUT_SECONDS,
    ) -> RestResponse:
        content = None if body is None else json.dumps(body).encode()
        kind = {} if content is None else {"Content-Type": JSON_TYPE}
        return self._http.send(RestRequest(method, API + path, content, {**kind, **headers}), timeout=seconds)

    def _list(
        self,
        path: str,
        query: Mapping[str, object] = {},
        limit: int | None = None,
        cursor: object = None,
    ) -> Page[Json]:
        """A list's items over as many pages as it takes."""
        items: list[Json] = []
        while True:
            page_size = PAGE if limit is None else min(PAGE, limit - len(items))
            page = self.get(with_query(API + path, {**query, "limit": page_size, "cursor": cursor}))
            page = cast("JsonObject", page)
            items += cast("list[Json]", page["items"])
            cursor = page.get("next_cursor")
            if cursor is None or (limit is not None and len(items) >= limit):
                return Page(items, cast("str | None", cursor))


def segment(name: str) -> str:
    return quote(name, safe="")
