"""A zone that anyone on the network could call is not served by mistake."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from trunkline.errors import ConfigurationError, NotAllowed
from trunkline.zones.access.policy import OPEN_POLICY, CallerRules, ZonePolicy
from trunkline.zones.serving.http_server import ZoneServerOptions, check_authentication, check_certificates

KNOWN = CallerRules(certificates=("spiffe://zones/verification",))


def policy(*callers: str) -> ZonePolicy:
    return ZonePolicy(callers=dict.fromkeys(callers, KNOWN))


def place(**options: Any) -> ZoneServerOptions:
    return ZoneServerOptions(host="0.0.0.0", port=0, data=Path(), **options)


CA = Path("callers.crt")


@pytest.mark.parametrize(
    ("asked", "where"),
    [
        (OPEN_POLICY, place()),
        (policy("anybody"), place()),
        (policy("verification", "anybody"), place()),
        (policy("platform"), place()),
        (policy("verification", "platform"), place(client_ca=CA)),
        (policy("anybody"), place(client_ca=CA)),
    ],
    ids=["open", "anybody", "anybody_too", "platform", "platform_too", "anybody_without_certificate"],
)
def test_a_zone_without_authentication_is_refused_on_other_addresses(
    asked: ZonePolicy, where: ZoneServerOptions
) -> None:
    with pytest.raises(NotAllowed) as caught:
        check_authentication(asked, where)
    assert "--open" in caught.value.fix


@pytest.mark.parametrize(
    ("asked", "where"),
    [
        (OPEN_POLICY, place(is_loopback=True)),
        (OPEN_POLICY, place(is_open=True)),
        (OPEN_POLICY, place(client_ca=CA)),
        (policy("platform"), place(is_open=True)),
        (policy("verification"), place()),
        (policy("verification", "parent"), place()),
    ],
    ids=["loopback", "said_so", "certificates", "platform_said_so", "callers", "parent"],
)
def test_a_zone_that_asks_who_calls_may_listen_anywhere(asked: ZonePolicy, where: ZoneServerOptions) -> None:
    check_authentication(asked, where)


def test_a_zone_that_no_caller_could_call_is_not_served() -> None:
    with pytest.raises(ConfigurationError) as caught:
        check_certificates(policy("verification"), place())
    assert "--client-ca" in caught.value.fix


@pytest.mark.parametrize(
    ("asked", "where"),
    [
        (OPEN_POLICY, place()),
        (policy("verification"), place(client_ca=CA)),
        (ZonePolicy(callers={"verification": KNOWN, "other": CallerRules(keys=("a key",))}), place()),
        (ZonePolicy(callers={"verification": KNOWN, "platform": CallerRules()}), place()),
    ],
    ids=["open", "certificates", "a_key_too", "platform_too"],
)
def test_a_zone_that_a_caller_could_call_is_served(asked: ZonePolicy, where: ZoneServerOptions) -> None:
    check_certificates(asked, where)
