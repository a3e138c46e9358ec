"""Calls for the inbox: the steps that wait for a person."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

from trunkline.cli.rest.calls import API, Page, RestCalls, segment
from trunkline.cli.rest.http_client import RestRequest, with_query

if TYPE_CHECKING:
    from trunkline.api.resources.inbox import (
        AnswerLinkResource,
        CommentPage,
        CommentResource,
        InboxItemResource,
    )
    from trunkline.jsontypes import JsonObject

UPLOAD_SECONDS = 300.0


class InboxCalls(RestCalls):
    def inbox(
        self, query: Mapping[str, object], *, limit: int | None = None, cursor: str | None = None
    ) -> Page[InboxItemResource]:
        """The oldest first."""
        return cast("Page[InboxItemResource]", self._list("/inbox", query, limit, cursor))

    def claim(self, item_id: str) -> InboxItemResource:
        return cast("InboxItemResource", self._send("POST", f"/inbox/{segment(item_id)}/claim").value)

    def release(self, item_id: str) -> InboxItemResource:
        return cast("InboxItemResource", self._send("POST", f"/inbox/{segment(item_id)}/release").value)

    def comments(self, item_id: str) -> list[CommentResource]:
        """All of them, the oldest first."""
        found = cast("CommentPage", self.get(f"{API}/inbox/{segment(item_id)}/comments"))
        return found["items"]

    def add_comment(self, item_id: str, body: JsonObject) -> CommentResource:
        return cast("CommentResource", self._send("POST", f"/inbox/{segment(item_id)}/comments", body).value)

    def create_answer_link(self, item_id: str, body: JsonObject) -> AnswerLinkResource:
        return cast("AnswerLinkResource", self._send("POST", f"/inbox/{segment(item_id)}/links", body).value)

    def inbox_item(self, item_id: str) -> InboxItemResource:
        return cast("InboxItemResource", self.get(f"{API}/inbox/{segment(item_id)}"))

    def waiting_step(self, run_id: str, step: str) -> InboxItemResource:
        """The item that this step is at present."""
        return cast("InboxItemResource", self.get(f"{API}/inbox/{segment(f'{run_id}.{step}')}"))

    def upload_file(self, item_id: str, name: str, media_type: str, content: bytes) -> JsonObject:
        """The reference to the file, for the answer's data."""
        path = with_query(f"{API}/inbox/{segment(item_id)}/files", {"name": name})
        request = RestRequest("POST", path, content, {"Content-Type": media_type})
        return cast("JsonObject", self._http.send(request, timeout=UPLOAD_SECONDS).value)
