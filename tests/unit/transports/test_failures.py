"""Why a call was not made: because of the agent, or because of this machine."""

from __future__ import annotations

import errno
import os
import socket

import pytest

from trunkline.transports.failures import ConnectFailed, not_sent


def failed_to_connect(number: int, host: str = "127.0.0.1") -> ConnectFailed:
    return ConnectFailed(host, 8080, OSError(number, os.strerror(number)))


@pytest.mark.parametrize(
    "number", [errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS, errno.EADDRNOTAVAIL]
)
def test_a_lack_of_this_machine_is_not_the_agents(number: int) -> None:
    assert not_sent(failed_to_connect(number)).code == "out_of_resources"


@pytest.mark.parametrize("number", [errno.ECONNREFUSED, errno.ENETUNREACH, errno.EHOSTUNREACH])
def test_an_agent_that_is_not_there_is_unreachable(number: int) -> None:
    assert not_sent(failed_to_connect(number)).code == "agent_unreachable"


def test_an_address_that_this_machine_can_never_call_is_unreachable() -> None:
    # Like ::1 on a machine without IPv6.
    assert not_sent(failed_to_connect(errno.EADDRNOTAVAIL, "255.255.255.255")).code == "agent_unreachable"


def test_a_name_costs_an_attempt_only_if_a_family_of_addresses_is_missing() -> None:
    # The error of a name does not say which of its addresses were tried.
    expected = "out_of_resources" if _has_ipv6() else "agent_unreachable"
    assert not_sent(failed_to_connect(errno.EADDRNOTAVAIL, "agent.example")).code == expected


def _has_ipv6() -> bool:
    try:
        with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as probe:
            probe.connect(("::1", 1))
    except OSError:
        return False
    return True
