from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trunkline.errors import ConfigurationError
from trunkline.transports.address_policy import AddressPolicy

STRICT = AddressPolicy()


@pytest.mark.parametrize(
    "address",
    ["8.8.8.8", "1.1.1.1", "2606:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808", "2002:808:808::1"],
)
def test_public_addresses_are_allowed(address: str) -> None:
    assert STRICT.check("agent.example", address) is None


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        ("127.0.0.1", "loopback"),
        ("::1", "loopback"),
        ("::ffff:127.0.0.1", "loopback"),
        ("10.1.2.3", "private"),
        ("fd00::1", "private"),
        ("169.254.169.254", "metadata"),
        ("fd00:ec2::254", "metadata"),
        ("169.254.1.1", "link-local"),
        ("fe80::1", "link-local"),
        ("100.64.0.1", "carrier-grade"),
        ("224.0.0.1", "multicast"),
        ("ff02::1", "multicast"),
        ("0.0.0.0", "unspecified"),
        ("::", "unspecified"),
        ("255.255.255.255", "reserved"),
        ("4000::1", "reserved"),
        ("64:ff9b::a00:1", "another form of 10.0.0.1"),
        ("2002:a9fe:a9fe::", "another form of 169.254.169.254"),
    ],
)
def test_the_rest_is_refused_with_its_kind(address: str, reason: str) -> None:
    assert reason in (STRICT.check("agent.example", address) or "")


def test_loopback_is_allowed_where_it_is_meant() -> None:
    policy = AddressPolicy(allow_loopback=True)
    for address in ("127.0.0.1", "127.8.8.8", "::1", "::ffff:127.0.0.1"):
        assert policy.check("localhost", address) is None
    for address in ("10.0.0.1", "0.0.0.0", "64:ff9b::7f00:1", "2002:7f00:1::", "::127.0.0.1"):
        assert policy.check("localhost", address) is not None


def test_private_networks_are_allowed_where_they_are_meant_and_nothing_that_merely_looks_alike() -> None:
    policy = AddressPolicy(allow_private=True)
    for address in ("10.0.0.1", "172.16.0.1", "172.31.9.9", "192.168.1.1", "fd00::1", "::ffff:10.0.0.1"):
        assert policy.check("agent.internal", address) is None
    for address in (
        *("127.0.0.1", "169.254.169.254", "169.254.1.1", "168.63.129.16", "100.100.100.200", "100.64.0.1"),
        *("fd00:ec2::254", "fd20:ce::254", "fe80::1", "fec0::1", "64:ff9b:1::a00:1", "64:ff9b::a00:1"),
        *("2002:a00:1::", "2600::5efe:a00:1", "0.0.0.0", "192.0.0.192", "::10.0.0.1"),
    ):
        assert policy.check("agent.internal", address) is not None, address


def test_listed_networks_are_allowed_and_no_others() -> None:
    policy = AddressPolicy(["10.1.0.0/16", " fd00:1::/32", "192.168.1.7"])
    for address in ("10.1.2.3", "::ffff:10.1.2.3", "fd00:1::5", "192.168.1.7"):
        assert policy.check("agent.internal", address) is None
    for address in ("10.2.0.1", "fd00:2::1", "192.168.1.8", "127.0.0.1"):
        assert policy.check("agent.internal", address) is not None


def test_a_listed_host_is_allowed_by_its_whole_name_only() -> None:
    policy = AddressPolicy(["Agent.Internal."])
    for host in ("agent.internal", "AGENT.internal", "agent.internal."):
        assert policy.check(host, "10.0.0.1") is None
    for host in ("x.agent.internal", "internal", "agent.internal.evil.example"):
        assert policy.check(host, "10.0.0.1") is not None


@pytest.mark.parametrize(
    "entry", ["", "10.0.0.0/33", "a b", "host/24", "http://host", "host:80", "user@host", "127.1"]
)
def test_a_list_that_cannot_be_read_is_refused_at_start(entry: str) -> None:
    with pytest.raises(ConfigurationError):
        AddressPolicy([entry])


@given(st.ip_addresses(v=4))
def test_an_ipv4_address_is_judged_alike_in_each_of_its_forms(address: object) -> None:
    allowed = STRICT.check("a.example", str(address)) is None
    for form in ("::ffff:{}", "64:ff9b::{}"):
        assert (STRICT.check("a.example", form.format(address)) is None) == allowed
