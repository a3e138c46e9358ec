"""
The process of a zone behind HTTP: `trunkline zone serve`.

Everyone who can reach the address can call a zone that does not authenticate its callers. Such a zone listens on
loopback addresses only, unless its operator says that a proxy authenticates them (`--open`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import cast

import msgspec
import structlog
import uvloop

from trunkline.errors import ConfigurationError, NotAllowed
from trunkline.serving import base_url, listen, serving, stop_signal, tune_garbage_collector
from trunkline.serving.connection import HttpConnection, HttpRefusal
from trunkline.serving.tls import ServerTls
from trunkline.serving.write_coalescing import CoalescingTransport
from trunkline.telemetry import log_events
from trunkline.zones.access.policy import CallerRules, ZonePolicy
from trunkline.zones.jsonrpc import invalid_request_reply
from trunkline.zones.zone import Zone

log = structlog.stdlib.get_logger(__name__)

# Callers that present no credentials, whatever the policy says of the others.
_UNAUTHENTICATED_CALLERS = frozenset({"anybody", "platform"})


class ZoneConnection(HttpConnection):
    """Answers invalid HTTP with a JSON-RPC response, like every other request."""

    invalid_http_fix = "Send HTTP/1.1: POST with a JSON-RPC request as the body."

    def connection_made(self, transport: asyncio.Transport) -> None:  # pyright: ignore[reportIncompatibleMethodOverride] - as the server has it
        # All that the server needs of a transport.
        super().connection_made(cast("asyncio.Transport", CoalescingTransport(transport, self.loop)))

    def refusal_response(self, refusal: HttpRefusal) -> bytes:
        reply = invalid_request_reply(refusal.status, f"{refusal.detail} {refusal.fix}")
        head = (
            f"HTTP/1.1 {reply.status} {refusal.status.phrase}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(reply.body)}\r\nConnection: close\r\n\r\n"
        )
        return head.encode("ascii") + reply.body


class ZoneServerOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Where a zone is served, and how it authenticates callers."""

    host: str
    port: int
    data: Path
    secret_key: str | None = None
    certificate: Path | None = None
    key: Path | None = None
    # Signs the certificates of callers; callers with keys in the policy need none.
    client_ca: Path | None = None
    # A proxy authenticates the callers.
    is_open: bool = False
    is_loopback: bool = False

    @property
    def scheme(self) -> str:
        return "http" if self.certificate is None else "https"


def run_zone(zone: Zone, options: ZoneServerOptions) -> int:
    """Serves until SIGTERM or Ctrl-C; prints the URL when it is ready to take calls."""
    uvloop.run(_serve(zone, options))
    return 0


def check_authentication(policy: ZonePolicy, options: ZoneServerOptions) -> None:
    """Raises `NotAllowed` for a zone that everyone on the network could call."""
    if options.is_open or options.is_loopback or _asks(policy, options):
        return
    raise NotAllowed(
        f"On {options.host} every client could call this zone: it has no authentication.",
        fix="Give it a policy with callers and their keys (--policy), or require client certificates (--client-ca);"
        " use --open if something in front of it authenticates callers; or listen on 127.0.0.1.",
    )


def _asks(policy: ZonePolicy, options: ZoneServerOptions) -> bool:
    """Whether every caller must authenticate."""
    if policy.callers is None:
        return options.client_ca is not None
    return _UNAUTHENTICATED_CALLERS.isdisjoint(policy.callers)


def check_certificates(policy: ZonePolicy, options: ZoneServerOptions) -> None:
    """Raises `ConfigurationError` for a zone that no caller could call."""
    if policy.callers is None or options.client_ca is not None or not _needs_certificates(policy.callers):
        return
    raise ConfigurationError(
        "The policy identifies every caller by a certificate, but no certificate authority is configured, so no"
        " caller could call this zone.",
        fix="Name the authority's certificate with --client-ca, or give the callers keys in the policy.",
    )


async def _serve(zone: Zone, options: ZoneServerOptions) -> None:
    check_authentication(zone.policy, options)
    check_certificates(zone.policy, options)
    tls = _tls(zone.policy, options)
    stop = stop_signal()
    with listen(options.host, options.port) as listener:
        async with (
            zone.running(options.data, secret_key=options.secret_key),
            serving(zone, listener, ZoneConnection, tls=tls),
        ):
            url = base_url(listener, options.scheme)
            log.info(log_events.READY, url=url)
            print(url, flush=True)  # noqa: T201 - the one line on stdout that scripts wait for
            tune_garbage_collector()
            await stop.wait()
            log.info(log_events.STOPPING)
            # Before the server stops, so that waiting callers get their answers.
            await zone.drain()


def _tls(policy: ZonePolicy, options: ZoneServerOptions) -> ServerTls | None:
    if options.certificate is None:
        if options.key is not None or options.client_ca is not None:
            raise ConfigurationError("TLS needs a certificate for the zone.", fix="Name it with --tls-cert.")
        return None
    return ServerTls(
        options.certificate, options.key, options.client_ca, required=_needs_certificates(policy.callers)
    )


def _needs_certificates(callers: Mapping[str, CallerRules] | None) -> bool:
    """Whether every caller needs a certificate, so that TLS can require one."""
    return callers is None or all(rules.certificates and not rules.keys for rules in callers.values())
