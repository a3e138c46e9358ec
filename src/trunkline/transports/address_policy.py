"""
Which addresses may be called.

Public addresses may; everything that leads into the operator's own networks may not, unless the operator
listed it. Pure: names are looked up elsewhere, every address that comes out is judged here. The tables are
written out because `ipaddress.is_global` and its kin differ between Python releases.
"""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from trunkline.agents.http_urls import UrlError, check_url, parse_url
from trunkline.errors import ConfigurationError

__all__ = ["AddressPolicy", "check_url"]

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

_LOOPBACK = "a loopback address"
_PRIVATE = "a private address"
_FORBIDDEN_V4 = tuple(
    (IPv4Network(network), reason)
    for network, reason in (
        ("169.254.169.254/32", "a cloud metadata address"),
        ("168.63.129.16/32", "a cloud metadata address"),
        ("100.100.100.200/32", "a cloud metadata address"),
        ("0.0.0.0/8", "an unspecified address"),
        ("10.0.0.0/8", _PRIVATE),
        ("100.64.0.0/10", "a carrier-grade NAT address"),
        ("127.0.0.0/8", _LOOPBACK),
        ("169.254.0.0/16", "a link-local address"),
        ("172.16.0.0/12", _PRIVATE),
        ("192.0.0.0/24", "a reserved address"),
        ("192.0.2.0/24", "a documentation address"),
        ("192.88.99.0/24", "a reserved address"),
        ("192.168.0.0/16", _PRIVATE),
        ("198.18.0.0/15", "a benchmarking address"),
        ("198.51.100.0/24", "a documentation address"),
        ("203.0.113.0/24", "a documentation address"),
        ("224.0.0.0/4", "a multicast address"),
        ("240.0.0.0/4", "a reserved address"),
    )
)
_FORBIDDEN_V6 = tuple(
    (IPv6Network(network), reason)
    for network, reason in (
        ("::1/128", _LOOPBACK),
        ("::/128", "an unspecified address"),
        ("fd00:ec2::254/128", "a cloud metadata address"),
        ("fd20:ce::254/128", "a cloud metadata address"),
        ("64:ff9b:1::/48", "a private address behind NAT64"),
        ("fc00::/7", _PRIVATE),
        ("fe80::/10", "a link-local address"),
        ("fec0::/10", "a site-local address"),
        ("ff00::/8", "a multicast address"),
        ("2001::/23", "a reserved address"),
        ("2001:db8::/32", "a documentation address"),
        ("3fff::/20", "a documentation address"),
    )
)
_NAT64 = IPv6Network("64:ff9b::/96")
_6TO4 = IPv6Network("2002::/16")
_GLOBAL_UNICAST = IPv6Network("2000::/3")
# The interface identifiers of ISATAP: the last 32 bits are an IPv4 address.
_ISATAP = (0x00005EFE, 0x02005EFE)


class AddressPolicy:
    """What the operator allows in addition to public addresses: networks, host names, this machine."""

    def __init__(
        self,
        allowed_networks: Sequence[str] = (),
        *,
        allow_loopback: bool = False,
        # What an organisation numbers its own machines with; never a link-local or a metadata address.
        allow_private: bool = False,
    ) -> None:
        kinds = {_LOOPBACK: allow_loopback, _PRIVATE: allow_private}
        self._kinds = {kind for kind, is_allowed in kinds.items() if is_allowed}
        self._networks: list[Network] = []
        self._hosts: set[str] = set()
        for entry in allowed_networks:
            self._allow(entry.strip())

    def check(self, host: str, address: str | Address) -> str | None:
        """Why a connection to `address`, found under the name `host`, is refused; None: it is allowed."""
        if host.removesuffix(".").lower() in self._hosts:
            return None
        found = ip_address(address) if isinstance(address, str) else address
        # The kernel connects to the IPv4 address inside: it is the same address in another spelling.
        if isinstance(found, IPv6Address) and found.ipv4_mapped is not None:
            found = found.ipv4_mapped
        reason = _forbidden(found)
        if reason is None or reason in self._kinds:
            return None
        if any(found in network for network in self._networks):
            return None
        return f"{found} is {reason}"

    def _allow(self, entry: str) -> None:
        try:
            self._networks.append(ip_network(entry, strict=False))
        except ValueError:
            self._hosts.add(_host_name(entry))


def _host_name(entry: str) -> str:
    try:
        url = parse_url(f"http://{entry}/")
    except UrlError as exc:
        raise ConfigurationError(f"'{entry}' is neither a network (10.0.0.0/8) nor a host name.") from exc
    if url.host != entry.removesuffix(".").lower() or url.address is not None:
        raise ConfigurationError(f"'{entry}' is neither a network (10.0.0.0/8) nor a host name.")
    return url.host


def _forbidden(address: Address) -> str | None:
    if isinstance(address, IPv4Address):
        return next((reason for network, reason in _FORBIDDEN_V4 if address in network), None)
    for network, reason in _FORBIDDEN_V6:
        if address in network:
            return reason
    embedded = _embedded(address)
    if embedded is not None:
        inner = _forbidden(embedded)
        return None if inner is None else f"another form of {embedded}, {inner}"
    return None if address in _GLOBAL_UNICAST else "a reserved address"


def _embedded(address: IPv6Address) -> IPv4Address | None:
    """The IPv4 address that a translator or tunnel on the path would use instead of this one."""
    value = int(address)
    if address in _NAT64:
        return IPv4Address(value & 0xFFFF_FFFF)
    if address in _6TO4:
        return IPv4Address(value >> 80 & 0xFFFF_FFFF)
    if address in _GLOBAL_UNICAST and value >> 32 & 0xFFFF_FFFF in _ISATAP:
        return IPv4Address(value & 0xFFFF_FFFF)
    return None
