"""
The URLs that agents are registered under and called at.

One parser for both moments: what it accepts is exactly what is connected to, so no second reader can see
another host in the same text. Whether an address may be reached is another question, which
`transports.address_policy` answers when the name has been looked up.
"""

from __future__ import annotations

import re
from ipaddress import AddressValueError, IPv4Address, IPv6Address
from typing import Literal, NamedTuple
from urllib.parse import quote

MAX_URL_CHARACTERS = 2_048

_UNSAFE = re.compile(r"[\x00-\x20\x7f\\]")
_URL = re.compile(r"(?P<scheme>[A-Za-z][\w+.-]*)://(?P<authority>[^/?#]*)(?P<target>[^#]*)(?P<fragment>#.*)?")
_AUTHORITY = re.compile(r"(?:\[(?P<v6>[^\]]*)\]|(?P<name>[^:\[\]]*))(?::(?P<port>[0-9]*))?")
_LABEL = "[A-Za-z0-9_][A-Za-z0-9_-]{0,62}"
_NAME = re.compile(rf"(?=.{{1,253}}\.?\Z){_LABEL}(?:\.{_LABEL})*\.?")
# Any resolver reads a name that ends so as an IPv4 address, in one of its many historical forms.
_ENDS_IN_NUMBER = re.compile(r"(?:.*\.)?(?:[0-9]+|0[xX][0-9A-Fa-f]*)\.?")
_DEFAULT_PORTS = {"http": 80, "https": 443}
# What may stand in a request target as it is (RFC 3986); the percent sign, for what is encoded already.
_TARGET_CHARACTERS = "/?:@!$&'()*+,;=-._~%[]"


class UrlError(ValueError):
    """The URL cannot be called; the message says why."""


class AgentUrl(NamedTuple):
    """A URL in its parts, each as it goes onto the wire."""

    scheme: Literal["http", "https"]
    # In lower case, without brackets and trailing dot.
    host: str
    port: int
    # Path and query, percent-encoded.
    target: str
    # The host, where it is an address and not a name.
    address: IPv4Address | IPv6Address | None

    @property
    def authority(self) -> str:
        """The value of the Host header."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _DEFAULT_PORTS[self.scheme] else f"{host}:{self.port}"


def parse_url(url: str) -> AgentUrl:
    """The parts of a URL that can be called; raises `UrlError`."""
    if len(url) > MAX_URL_CHARACTERS:
        raise UrlError(f"it has {len(url)} characters, but the limit is {MAX_URL_CHARACTERS}")
    if _UNSAFE.search(url):
        raise UrlError("it contains a space, a control character or a backslash")
    parts = _URL.fullmatch(url)
    if parts is None:
        raise UrlError("it must have the form http://host:port/path or https://…")
    if parts["fragment"]:
        raise UrlError("it has a fragment ('#…'), which is never sent")
    scheme = _scheme(parts["scheme"])
    host, address, port = _host_and_port(parts["authority"])
    target = quote(parts["target"], safe=_TARGET_CHARACTERS)
    return AgentUrl(
        scheme=scheme,
        host=host,
        port=_DEFAULT_PORTS[scheme] if port is None else port,
        target=target if target.startswith("/") else f"/{target}",
        address=address,
    )


def check_url(url: str) -> str | None:
    """Why this URL cannot be an agent's, or None. The text reads on after "the url": `it must have …`."""
    try:
        parse_url(url)
    except UrlError as exc:
        return str(exc)
    return None


def origin_of(url: str) -> str | None:
    """`https://host:port`, the port only where it is not the scheme's own; None: it cannot be called."""
    try:
        parts = parse_url(url)
    except UrlError:
        return None
    return f"{parts.scheme}://{parts.authority}"


def _scheme(scheme: str) -> Literal["http", "https"]:
    match scheme.lower():
        case "http":
            return "http"
        case "https":
            return "https"
        case other:
            raise UrlError(f"its scheme is '{other}', but only http and https are supported")


def _host_and_port(authority: str) -> tuple[str, IPv4Address | IPv6Address | None, int | None]:
    if "@" in authority:
        raise UrlError("it contains a user name or password; put them into auth_config")
    parts = _AUTHORITY.fullmatch(authority)
    if parts is None:
        raise UrlError("its host and port cannot be read")
    port = int(parts["port"]) if parts["port"] else None
    if port is not None and not 1 <= port <= 65_535:
        raise UrlError("its port must be from 1 to 65535")
    if parts["v6"] is not None:
        address = _ipv6(parts["v6"])
        return str(address), address, port
    return *_name_or_ipv4(parts["name"]), port


def _ipv6(text: str) -> IPv6Address:
    if "%" in text:
        raise UrlError("its IPv6 address has a zone")
    try:
        return IPv6Address(text)
    except AddressValueError as exc:
        raise UrlError("its IPv6 address cannot be read") from exc


def _name_or_ipv4(host: str) -> tuple[str, IPv4Address | None]:
    if not host:
        raise UrlError("it has no host")
    if not host.isascii():
        raise UrlError("its host must be written in ASCII (xn--… for other letters)")
    if _ENDS_IN_NUMBER.fullmatch(host):
        try:
            return host, IPv4Address(host)
        except AddressValueError as exc:
            raise UrlError("its host is not an IPv4 address in the form 192.0.2.1") from exc
    if not _NAME.fullmatch(host):
        raise UrlError("its host is not a host name")
    return host.removesuffix(".").lower(), None
