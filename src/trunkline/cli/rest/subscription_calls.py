"""The calls of the REST API for subscriptions."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from trunkline.cli.rest.calls import API, YAML_TYPE, Page, RestCalls, segment
from trunkline.cli.rest.http_client import RestRequest

if TYPE_CHECKING:
    from trunkline.api.resources.automation.subscriptions import DeliveryResource, SubscriptionResource


class SubscriptionCalls(RestCalls):
    def save_subscription(self, name: str, text: bytes) -> tuple[SubscriptionResource, bool]:
        """The subscription as it is now, and whether it is new."""
        request = RestRequest(
            "PUT", f"{API}/subscriptions/{segment(name)}", text, {"Content-Type": YAML_TYPE}
        )
        answer = self._http.send(request)
        return cast("SubscriptionResource", answer.value), answer.status == 201

    def subscriptions(
        self, *, limit: int | None = None, cursor: str | None = None
    ) -> Page[SubscriptionResource]:
        return cast("Page[SubscriptionResource]", self._list("/subscriptions", {}, limit, cursor))

    def subscription(self, name: str) -> SubscriptionResource:
        return cast("SubscriptionResource", self.get(f"{API}/subscriptions/{segment(name)}"))

    def switch_subscription(self, name: str, action: str) -> SubscriptionResource:
        """`pause` or `resume`."""
        answer = self._send("POST", f"/subscriptions/{segment(name)}/{action}")
        return cast("SubscriptionResource", answer.value)

    def test_subscription(self, name: str) -> DeliveryResource:
        return cast("DeliveryResource", self._send("POST", f"/subscriptions/{segment(name)}/test").value)

    def delete_subscription(self, name: str) -> None:
        self._send("DELETE", f"/subscriptions/{segment(name)}")

    def deliveries(
        self, name: str, *, limit: int | None = None, cursor: str | None = None
    ) -> Page[DeliveryResource]:
        """The newest first."""
        path = f"/subscriptions/{segment(name)}/deliveries"
        return cast("Page[DeliveryResource]", self._list(path, {}, limit, cursor))

    def redeliver(self, name: str, delivery: str) -> DeliveryResource:
        path = f"/subscriptions/{segment(name)}/deliveries/{segment(delivery)}/redeliver"
        return cast("DeliveryResource", self._send("POST", path).value)
