"""Translates aiohttp's errors into `TransportError`, here and nowhere else."""

from __future__ import annotations

import os
import re
import ssl

import aiohttp
from aiohttp.http_exceptions import HttpProcessingError

from trunkline.protocols.base import AgentAnswer
from trunkline.transports.base import TransportError

# What an exchange can end with, other than an answer and a cancellation.
EXCHANGE_ERRORS = (aiohttp.ClientError, HttpProcessingError, OSError)
_CERTIFICATE_ALERT = re.compile(r"ALERT_(\w*CERTIFICATE\w*|UNKNOWN_CA|ACCESS_DENIED|HANDSHAKE_FAILURE)")
# OpenSSL's reasons for bytes that are not TLS.
_NOT_TLS = frozenset({"WRONG_VERSION_NUMBER", "HTTP_REQUEST", "UNKNOWN_PROTOCOL"})
_QUOTED_BYTES = re.compile(r"\bb['\"]")


def too_large(limit: int) -> TransportError:
    return TransportError("agent_answer_too_large", f"The agent's answer is larger than {limit} bytes.")


def timed_out(seconds: float, partial: AgentAnswer | None) -> TransportError:
    within = f"{max(round(seconds, 2), 0.01):g} s"
    return TransportError("agent_timeout", f"The agent did not answer within {within}.", partial=partial)


def not_sent(exc: Exception) -> TransportError:
    match exc:
        case aiohttp.ClientConnectorDNSError():
            return TransportError(
                "agent_dns_failed", f"The agent's host cannot be looked up: {_why(exc.os_error)}."
            )
        case aiohttp.ClientConnectorCertificateError():
            return TransportError("agent_tls_failed", f"TLS failed: {exc.certificate_error}.")
        case aiohttp.ClientSSLError() if getattr(exc.os_error, "reason", None) in _NOT_TLS:
            return TransportError(
                "agent_tls_failed", "TLS failed: what answers there does not speak TLS. Is it http://?"
            )
        case aiohttp.ClientSSLError():
            return TransportError("agent_tls_failed", f"TLS failed: {exc.os_error}.")
        case TimeoutError():
            return TransportError("agent_unreachable", "The agent cannot be reached: connect timed out.")
        case aiohttp.ClientConnectorError():
            return TransportError("agent_unreachable", f"The agent cannot be reached: {_why(exc.os_error)}.")
        case _:
            return TransportError("agent_unreachable", f"The agent cannot be reached: {exc}.")


def not_answered(exc: Exception, seconds: float, partial: AgentAnswer | None, size: int) -> TransportError:
    """After the request was handed to the socket. `size`: so many bytes of the body had come."""
    match exc:
        case TimeoutError():
            return timed_out(seconds, partial)
        case HttpProcessingError():
            return TransportError(
                "agent_answer_malformed", f"The agent's answer is not HTTP: {_symptom(exc)}."
            )
        case _ if partial is None and (alert := _refused_certificate(exc)):
            return TransportError("agent_tls_failed", f"TLS failed: the agent does not accept us: {alert}.")
        case _ if partial is not None:
            return TransportError(
                "agent_connection_lost",
                f"The agent's answer broke off after {size} bytes of its body.",
                partial=partial,
            )
        case _:
            return TransportError("agent_connection_lost", "The agent closed the connection unanswered.")


def _refused_certificate(exc: Exception) -> str | None:
    # From TLS 1.3 on the agent looks at our certificate after the handshake has ended for us. It reads nothing before.
    cause = exc.__cause__
    alert = _CERTIFICATE_ALERT.search(cause.reason or "") if isinstance(cause, ssl.SSLError) else None
    return None if alert is None else alert[1].replace("_", " ").lower()


def _why(error: OSError) -> str:
    # The connector's own text names the call that failed, not what happened.
    return os.strerror(error.errno) if error.errno is not None and error.errno > 0 else str(error)


def _symptom(error: HttpProcessingError) -> str:
    """What the parser found, without the agent's bytes: they may repeat a secret."""
    return " ".join(_QUOTED_BYTES.split(error.message)[0].split()).rstrip(":")
