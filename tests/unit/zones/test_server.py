"""A zone that anybody on a network could call is not served there by mistake."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from trunkline.errors import ConfigurationError, NotAllowed
from trunkline.zones.policy import OPEN, Policy, Rules
from trunkline.zones.server import Place, check_certificates, check_door

KNOWN = Rules(certificates=("spiffe://zones/verification",))


def policy(*callers: str) -> Policy:
    return Policy(callers=dict.fromkeys(callers, KNOWN))


def place(**options: Any) -> Place:
    return Place(host="0.0.0.0", port=0, data=Path(), **options)


CA = Path("callers.crt")


@pytest.mark.parametrize(
    ("asked", "where"),
    [
        (OPEN, place()),
        (policy("anybody"), place()),
        (policy("verification", "anybody"), place()),
        (policy("platform"), place()),
        (policy("verification", "platform"), place(client_ca=CA)),
        (policy("anybody"), place(client_ca=CA)),
    ],
    ids=["open", "anybody", "anybody_too", "platform", "platform_too", "anybody_without_certificate"],
)
def test_whoever_need_not_show_who_it_is_may_not_come_from_anywhere(asked: Policy, where: Place) -> None:
    with pytest.raises(NotAllowed) as caught:
        check_door(asked, where)
    assert "--open" in caught.value.fix


@pytest.mark.parametrize(
    ("asked", "where"),
    [
        (OPEN, place(is_loopback=True)),
        (OPEN, place(is_open=True)),
        (OPEN, place(client_ca=CA)),
        (policy("platform"), place(is_open=True)),
        (policy("verification"), place()),
        (policy("verification", "parent"), place()),
    ],
    ids=["loopback", "said_so", "certificates", "platform_said_so", "callers", "parent"],
)
def test_a_zone_that_asks_who_calls_may_listen_anywhere(asked: Policy, where: Place) -> None:
    check_door(asked, where)


def test_a_zone_that_nobody_could_call_is_not_served() -> None:
    with pytest.raises(ConfigurationError) as caught:
        check_certificates(policy("verification"), place())
    assert "--client-ca" in caught.value.fix


@pytest.mark.parametrize(
    ("asked", "where"),
    [
        (OPEN, place()),
        (policy("verification"), place(client_ca=CA)),
        (Policy(callers={"verification": KNOWN, "other": Rules(keys=("a key",))}), place()),
        (Policy(callers={"verification": KNOWN, "platform": Rules()}), place()),
    ],
    ids=["open", "certificates", "a_key_too", "platform_too"],
)
def test_a_zone_that_somebody_could_call_is_served(asked: Policy, where: Place) -> None:
    check_certificates(asked, where)
