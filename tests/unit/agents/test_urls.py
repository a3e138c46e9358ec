from __future__ import annotations

from ipaddress import ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trunkline.agents.http_urls import UrlError, check_url, parse_url


@pytest.mark.parametrize(
    ("url", "host", "port", "target", "authority"),
    [
        ("http://localhost:8080/agent", "localhost", 8080, "/agent", "localhost:8080"),
        ("https://Agent.Example", "agent.example", 443, "/", "agent.example"),
        ("https://agent.example.:443/a", "agent.example", 443, "/a", "agent.example"),
        ("http://host?x=1", "host", 80, "/?x=1", "host"),
        ("HTTP://host:/", "host", 80, "/", "host"),
        ("http://my_agent-1:1/a/b?c=d&e=%20", "my_agent-1", 1, "/a/b?c=d&e=%20", "my_agent-1:1"),
        ("http://192.0.2.7/", "192.0.2.7", 80, "/", "192.0.2.7"),
        ("http://[2001:DB8::1]:81/", "2001:db8::1", 81, "/", "[2001:db8::1]:81"),
        ('http://host/ä"<x>', "host", 80, "/%C3%A4%22%3Cx%3E", "host"),
    ],
)
def test_a_url_is_taken_apart(url: str, host: str, port: int, target: str, authority: str) -> None:
    parts = parse_url(url)
    assert (parts.host, parts.port, parts.target, parts.authority) == (host, port, target, authority)
    assert check_url(url) is None


def test_an_address_is_distinguished_from_a_name() -> None:
    assert parse_url("http://127.0.0.1/").address == ip_address("127.0.0.1")
    assert parse_url("http://[::1]/").address == ip_address("::1")
    assert parse_url("http://1e100.net/").address is None


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("", "form"),
        ("agent", "form"),
        ("//host/", "form"),
        ("http:/host", "form"),
        ("ftp://host/", "'ftp'"),
        ("unix:///run/agent.sock", "'unix'"),
        ("http://", "no host"),
        ("http://:80/", "no host"),
        ("http://user:pass@host/", "auth_config"),
        ("http://host/#part", "fragment"),
        ("http://host/a b", "space"),
        ("http://host/\r\nX: y", "control"),
        ("http://host\\@other/", "backslash"),
        ("http://host:0/", "port"),
        ("http://host:65536/", "port"),
        ("http://host:8o/", "host and port"),
        ("http://127.1/", "IPv4"),
        ("http://0x7f000001/", "IPv4"),
        ("http://host.1/", "IPv4"),
        ("http://256.0.0.1/", "IPv4"),
        ("http://127.0.0.1./", "IPv4"),
        ("http://[::g]/", "IPv6"),
        ("http://[fe80::1%25eth0]/", "zone"),
        ("http://[::1]x/", "host and port"),
        ("http://exämple/", "ASCII"),
        ("http://a..b/", "host name"),
        ("http://-a/", "host name"),
        (f"http://{'a' * 64}/", "host name"),
        (f"http://{'a.' * 127}a/", "host name"),
        ("http://ho%73t/", "host name"),
        (f"http://host/{'a' * 2_048}", "characters"),
    ],
)
def test_a_url_that_cannot_be_called_says_why(url: str, reason: str) -> None:
    assert reason in (check_url(url) or "")


@given(st.text(max_size=60))
def test_whatever_stands_between_the_slashes_is_refused_or_safe_to_send(text: str) -> None:
    try:
        parts = parse_url(f"http://{text}/")
    except UrlError:
        return
    line = f"GET {parts.target} HTTP/1.1\r\nHost: {parts.authority}\r\n"
    assert line.isascii()
    assert line.split() == ["GET", parts.target, "HTTP/1.1", "Host:", parts.authority]
