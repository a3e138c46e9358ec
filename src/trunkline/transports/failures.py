"""Translates the errors of sockets, TLS and the HTTP parser into `TransportError`, here and nowhere else."""

from __future__ import annotations

import errno
import os
import re
import socket
import ssl
from ipaddress import IPv4Address, IPv6Address, ip_address

from trunkline.protocols.base import AgentAnswer
from trunkline.transports.base import OUT_OF_RESOURCES, TransportError

_CERTIFICATE_ALERT = re.compile(r"ALERT_(\w*CERTIFICATE\w*|UNKNOWN_CA|ACCESS_DENIED|HANDSHAKE_FAILURE)")
# OpenSSL's reasons for bytes that are not TLS.
_NOT_TLS = frozenset({"WRONG_VERSION_NUMBER", "HTTP_REQUEST", "UNKNOWN_PROTOCOL"})
# Every local port is in use.
_NO_PORT = errno.EADDRNOTAVAIL
_OUT_OF_RESOURCES = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS})
_LOOPBACK_V4 = IPv4Address("127.0.0.1")
_LOOPBACK_V6 = IPv6Address("::1")


class ConnectFailed(Exception):
    """Connecting to the host failed, for the reason in `error`: nothing was sent."""

    def __init__(self, host: str, port: int, error: OSError) -> None:
        super().__init__(str(error))
        self.host = host
        self.port = port
        self.error = error


class LookupFailed(ConnectFailed):
    """The host has no address."""


class AnswerMalformed(Exception):
    """What an agent answered is not HTTP. The text says why, without the agent's bytes."""


# What an exchange can end with, other than an answer and a cancellation.
EXCHANGE_ERRORS = (AnswerMalformed, ConnectFailed, OSError)


def too_large(limit: int) -> TransportError:
    return TransportError("agent_answer_too_large", f"The agent's answer is larger than {limit} bytes.")


def timed_out(seconds: float, partial: AgentAnswer | None) -> TransportError:
    within = f"{max(round(seconds, 2), 0.01):g} s"
    return TransportError("agent_timeout", f"The agent did not answer within {within}.", partial=partial)


def lacks_resources(error: BaseException | None) -> bool:
    """Whether this machine lacks what a call needs: file descriptors, memory or a local port."""
    return isinstance(error, OSError) and error.errno in _OUT_OF_RESOURCES


def out_of_resources(error: OSError) -> TransportError:
    return TransportError(OUT_OF_RESOURCES, f"Trunkline cannot call the agent now: {_why(error)}.")


def not_sent(exc: Exception) -> TransportError:
    error = exc.error if isinstance(exc, ConnectFailed) else exc
    shortage = _resource_shortage(exc)
    if shortage is not None:
        return out_of_resources(shortage)
    match exc:
        case LookupFailed():
            return TransportError(
                "agent_dns_failed", f"The agent's host name cannot be resolved: {_why(exc.error)}."
            )
        case ConnectFailed(error=ssl.SSLError(reason=reason)) if reason in _NOT_TLS:
            return TransportError(
                "agent_tls_failed",
                "TLS failed: the server does not use TLS. Should the URL start with http://?",
            )
        case ConnectFailed() if alert := _refused_certificate(exc.error):
            return TransportError(
                "agent_tls_failed", f"TLS failed: the agent rejected our certificate: {alert}."
            )
        case ConnectFailed(error=ssl.SSLError()):
            return TransportError("agent_tls_failed", f"TLS failed: {exc.error}.")
        case TimeoutError():
            return TransportError("agent_unreachable", "The agent cannot be reached: connect timed out.")
        case _:
            why = _why(error) if isinstance(error, OSError) else str(error)
            return TransportError("agent_unreachable", f"The agent cannot be reached: {why}.")


def not_answered(exc: Exception, seconds: float, partial: AgentAnswer | None, size: int) -> TransportError:
    """After the request was handed to the socket. `size`: so many bytes of the body had come."""
    match exc:
        case TimeoutError():
            return timed_out(seconds, partial)
        case AnswerMalformed():
            return TransportError("agent_answer_malformed", f"The agent's answer is not HTTP: {exc}.")
        case _ if partial is None and (alert := _refused_certificate(exc)):
            return TransportError(
                "agent_tls_failed", f"TLS failed: the agent rejected our certificate: {alert}."
            )
        case _ if partial is not None:
            return TransportError(
                "agent_connection_lost",
                f"The agent's answer broke off after {size} bytes of its body.",
                partial=partial,
            )
        case _:
            return TransportError(
                "agent_connection_lost", "The agent closed the connection without an answer."
            )


def _resource_shortage(exc: Exception) -> OSError | None:
    error = exc.error if isinstance(exc, ConnectFailed) else exc
    if not isinstance(error, OSError):
        return None
    if error.errno == _NO_PORT and isinstance(exc, ConnectFailed):
        return error if _has_source_address(exc.host, exc.port) else None
    return error if lacks_resources(error) else None


def _has_source_address(host: str, port: int) -> bool:
    """
    Whether this machine could call an address if it had a port.

    The same error means that it has no address of that family, as for `::1` without IPv6. UDP has ports of its own.
    """
    try:
        addresses = [ip_address(host)]
    except ValueError:
        # A name: which of its addresses were tried is not known, so both families must be there.
        addresses = [_LOOPBACK_V4, _LOOPBACK_V6]
    return all(_can_reach(address, port) for address in addresses)


def _can_reach(address: IPv4Address | IPv6Address, port: int) -> bool:
    family = socket.AF_INET6 if address.version == 6 else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((str(address), port))
    except OSError:
        return False
    return True


def _refused_certificate(exc: Exception) -> str | None:
    # From TLS 1.3 on the agent looks at our certificate after the handshake has ended for us. It reads nothing before.
    alert = _CERTIFICATE_ALERT.search(exc.reason or "") if isinstance(exc, ssl.SSLError) else None
    return None if alert is None else alert[1].replace("_", " ").lower()


def _why(error: OSError) -> str:
    # Its own text may name the call that failed, not what happened.
    return os.strerror(error.errno) if error.errno is not None and error.errno > 0 else str(error)
