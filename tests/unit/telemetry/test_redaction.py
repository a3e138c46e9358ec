"""Credentials that an agent repeats in another encoding are not shown either."""

from __future__ import annotations

import json
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Callable

import pytest

from trunkline.agents.authentication.credentials import Credentials
from trunkline.telemetry.redaction import REDACTED, Redaction

# Its base64 has both letters that the form for URLs writes differently.
SECRET = "canary-~~~???>>>-4711"
LEARNED = "fetched-token-~?>-0815"


def redaction() -> Redaction:
    made = Redaction(Credentials(secrets=(SECRET,)))
    made.learn((LEARNED,))
    return made


@pytest.mark.parametrize("secret", [SECRET, LEARNED], ids=["credential", "fetched token"])
@pytest.mark.parametrize("before", ["", "a", "ab"])
@pytest.mark.parametrize("encode", [b64encode, urlsafe_b64encode], ids=["standard", "url-safe"])
def test_base64_of_a_credential_is_redacted_wherever_it_begins(
    secret: str, before: str, encode: Callable[[bytes], bytes]
) -> None:
    encoded = encode(f"{before}{secret}".encode()).decode()
    shown = redaction().text(f"it was {encoded}.")
    assert REDACTED in shown
    # At either end, up to three characters depend on what is next to the secret.
    assert encoded[4:-4] not in shown
    assert REDACTED.encode() in redaction().body(json.dumps({"echo": encoded}).encode())


@pytest.mark.parametrize("secret", [SECRET, LEARNED], ids=["credential", "fetched token"])
def test_hexadecimal_digits_of_a_credential_are_redacted(secret: str) -> None:
    for digits in (secret.encode().hex(), secret.encode().hex().upper()):
        assert redaction().text(f"it was {digits}.") == f"it was {REDACTED}."
        assert redaction().body(json.dumps({"echo": digits}).encode()) == b'{"echo":"[redacted]"}'
