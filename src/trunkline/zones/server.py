"""
A zone as a process of its own, from its start to its end: `trunkline zone serve`.

Whoever can reach the address may call a zone that does not ask who calls; so such a zone listens on the machine's own
addresses only, unless its operator says that something in front of it asks.
"""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from pathlib import Path

import msgspec
import structlog
import uvloop

from trunkline.errors import ConfigurationError, NotAllowed
from trunkline.serving import base_url, calm_collector, listen, serving, stop_signal
from trunkline.serving.tls import server_tls
from trunkline.telemetry import names
from trunkline.zones.connection import ZoneConnection
from trunkline.zones.endpoint import Zone
from trunkline.zones.policy import Policy, Rules

log = structlog.stdlib.get_logger(__name__)

# Callers who need show nothing of themselves, whatever else the policy says of the others.
_TAKEN_AT_THEIR_WORD = frozenset({"anybody", "platform"})


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """Where a zone is served, and how its callers are told apart."""

    host: str
    port: int
    data: Path
    secret_key: str | None = None
    certificate: Path | None = None
    key: Path | None = None
    # Who must have signed the certificates of callers; those whom the policy knows by keys need none.
    client_ca: Path | None = None
    # Something in front asks who calls.
    is_open: bool = False
    is_loopback: bool = False

    @property
    def scheme(self) -> str:
        return "http" if self.certificate is None else "https"


def run_zone(zone: Zone, place: Place) -> int:
    """Serves until SIGTERM or Ctrl-C; prints the URL when it is ready to take calls."""
    uvloop.run(_serve(zone, place))
    return 0


def check_door(policy: Policy, place: Place) -> None:
    """Raises `NotAllowed` for a zone that anybody on a network could call."""
    if place.is_open or place.is_loopback or _asks(policy, place):
        return
    raise NotAllowed(
        f"On {place.host} anybody who reaches it could call this zone: it does not ask who calls.",
        fix="Give it a policy with callers and their keys (--policy), or have callers show certificates (--client-ca);"
        " say --open if something in front of it asks who calls; or listen on 127.0.0.1.",
    )


def _asks(policy: Policy, place: Place) -> bool:
    """Whether every caller must show who it is."""
    if policy.callers is None:
        return place.client_ca is not None
    return _TAKEN_AT_THEIR_WORD.isdisjoint(policy.callers)


def check_certificates(policy: Policy, place: Place) -> None:
    """Raises `ConfigurationError` for a zone that nobody could call."""
    if policy.callers is None or place.client_ca is not None or not _needs_certificates(policy.callers):
        return
    raise ConfigurationError(
        "The policy knows every caller by a certificate, and nothing says who may have signed them: nobody could"
        " call this zone.",
        fix="Name who signs them with --client-ca, or give the callers keys in the policy.",
    )


async def _serve(zone: Zone, place: Place) -> None:
    check_door(zone.policy, place)
    check_certificates(zone.policy, place)
    tls = _tls(zone.policy, place)
    stop = stop_signal()
    with listen(place.host, place.port) as listener:
        async with (
            zone.running(place.data, secret_key=place.secret_key),
            serving(zone, listener, ZoneConnection, tls=tls),
        ):
            url = base_url(listener, place.scheme)
            log.info(names.READY, url=url)
            print(url, flush=True)  # noqa: T201 - the one line on stdout that scripts wait for
            calm_collector()
            await stop.wait()
            log.info(names.STOPPING)
            # Before the server: whoever waits for an answer gets it.
            await zone.drain()


def _tls(policy: Policy, place: Place) -> ssl.SSLContext | None:
    if place.certificate is None:
        if place.key is not None or place.client_ca is not None:
            raise ConfigurationError(
                "There is no TLS without a certificate of the zone's own.", fix="Name it with --tls-cert."
            )
        return None
    return server_tls(
        place.certificate, place.key, place.client_ca, required=_needs_certificates(policy.callers)
    )


def _needs_certificates(callers: Mapping[str, Rules] | None) -> bool:
    """Whether nobody without a certificate could be let in, so that there is no need to listen to them."""
    return callers is None or all(rules.certificates and not rules.keys for rules in callers.values())
