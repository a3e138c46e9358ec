"""Signatures of webhooks, as their senders make them."""

from __future__ import annotations

import hmac
from hashlib import sha256

import pytest

from trunkline.clock import Instant
from trunkline.triggers.signatures import Scheme, WebhookDelivery, is_signed, standard_signature

SECOND = 1_614_265_330
NOW = Instant(SECOND * 1_000_000)
BODY = b'{"test": 2432232314}'
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


def mac(secret: str, content: bytes) -> str:
    return hmac.new(secret.encode(), content, sha256).hexdigest()


def headers_of(scheme: Scheme, secret: str = SECRET, second: int = SECOND) -> dict[str, str]:
    """What a sender of the scheme sends with `BODY`."""
    match scheme:
        case "standard-webhooks":
            signature = standard_signature(secret, "msg_1", second, BODY)
            return {"webhook-id": "msg_1", "webhook-timestamp": str(second), "webhook-signature": signature}
        case "github":
            return {"x-hub-signature-256": f"sha256={mac(secret, BODY)}"}
        case "stripe":
            signature = mac(secret, f"{second}.".encode() + BODY)
            return {"stripe-signature": f"t={second},v1={signature},v0=ignored"}
        case "slack":
            signature = mac(secret, f"v0:{second}:".encode() + BODY)
            return {"x-slack-request-timestamp": str(second), "x-slack-signature": f"v0={signature}"}
        case "hmac":
            return {"x-signature": mac(secret, BODY)}
        case "api-key":
            return {"x-api-key": secret}
        case "none":
            return {}


SIGNED: tuple[Scheme, ...] = ("standard-webhooks", "github", "stripe", "slack", "hmac", "api-key")
TIMED: tuple[Scheme, ...] = ("standard-webhooks", "stripe", "slack")


def test_published_examples_are_accepted() -> None:
    # Of the specification of Standard Webhooks, and of GitHub's documentation.
    headers = {
        "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
        "webhook-timestamp": "1614265330",
        "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    }
    assert is_signed(WebhookDelivery(headers, BODY, NOW), "standard-webhooks", [SECRET])
    headers = {
        "x-hub-signature-256": "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"
    }
    delivery = WebhookDelivery(headers, b"Hello, World!", NOW)
    assert is_signed(delivery, "github", ["It's a Secret to Everybody"])


@pytest.mark.parametrize("scheme", SIGNED)
def test_a_signed_delivery_is_accepted_with_either_of_two_secrets(scheme: Scheme) -> None:
    delivery = WebhookDelivery(headers_of(scheme), BODY, NOW)
    assert is_signed(delivery, scheme, [SECRET])
    assert is_signed(delivery, scheme, ["another", SECRET])


@pytest.mark.parametrize("scheme", SIGNED)
def test_a_delivery_with_a_wrong_signature_is_refused(scheme: Scheme) -> None:
    headers = headers_of(scheme)
    assert not is_signed(WebhookDelivery(headers, BODY, NOW), scheme, ["another"])
    assert not is_signed(WebhookDelivery(headers, BODY, NOW), scheme, [])
    assert not is_signed(WebhookDelivery({}, BODY, NOW), scheme, [SECRET])
    if scheme != "api-key":
        assert not is_signed(WebhookDelivery(headers, BODY + b" ", NOW), scheme, [SECRET])
    for name in headers:
        assert not is_signed(WebhookDelivery({**headers, name: "é" * 99}, BODY, NOW), scheme, [SECRET])
        assert not is_signed(WebhookDelivery({**headers, name: ""}, BODY, NOW), scheme, [SECRET])


@pytest.mark.parametrize("scheme", TIMED)
@pytest.mark.parametrize("late", [-301, 301])
def test_an_outdated_delivery_is_refused(scheme: Scheme, late: int) -> None:
    assert is_signed(WebhookDelivery(headers_of(scheme, second=SECOND + 299), BODY, NOW), scheme, [SECRET])
    assert not is_signed(
        WebhookDelivery(headers_of(scheme, second=SECOND + late), BODY, NOW), scheme, [SECRET]
    )


def test_a_trigger_can_choose_the_header_of_its_signature() -> None:
    delivery = WebhookDelivery({"x-other": f"sha256={mac(SECRET, BODY)}"}, BODY, NOW)
    assert is_signed(delivery, "hmac", [SECRET], "X-Other")
    assert not is_signed(delivery, "hmac", [SECRET])


def test_of_several_signatures_one_is_enough() -> None:
    headers = headers_of("standard-webhooks")
    both = {**headers, "webhook-signature": f"v1,AAAA v2,x {headers['webhook-signature']}"}
    assert is_signed(WebhookDelivery(both, BODY, NOW), "standard-webhooks", [SECRET])


def test_without_a_scheme_the_address_is_enough() -> None:
    assert is_signed(WebhookDelivery({}, BODY, NOW), "none", [])
