"""SSL contexts of agents: one for each `TlsConfig`, made once, so that no two agents share a connection."""

from __future__ import annotations

import secrets
import ssl
from pathlib import Path
from tempfile import TemporaryDirectory

from trunkline.agents.authentication.credentials import TlsConfig
from trunkline.transports.base import TransportError

_MAX_CACHED = 1_024


class TlsContexts:
    def __init__(self) -> None:
        self._contexts: dict[TlsConfig, ssl.SSLContext] = {}

    def context(self, tls: TlsConfig) -> ssl.SSLContext:
        """Raises `TransportError`: it cannot be used."""
        context = self._contexts.get(tls)
        if context is None:
            context = _context(tls)
            if len(self._contexts) >= _MAX_CACHED:
                self._contexts.clear()
            self._contexts[tls] = context
        return context


def _context(tls: TlsConfig) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cadata=tls.authority)
        context.set_alpn_protocols(("http/1.1",))
        if tls.certificate is not None and tls.key is not None:
            _present(context, tls.certificate, tls.key)
    except (ValueError, TypeError, OSError) as exc:
        # No more of it than its name: the texts of these errors may quote what they could not read.
        message = f"The agent's authority, certificate or key cannot be used ({type(exc).__name__})."
        raise TransportError("agent_secret_unreadable", message) from exc
    return context


def _present(context: ssl.SSLContext, certificate: str, key: str) -> None:
    # Needed only for agents with a client certificate; the library takes 7 MB.
    from cryptography.hazmat.primitives.serialization import (  # noqa: PLC0415
        BestAvailableEncryption,
        Encoding,
        PrivateFormat,
        load_pem_private_key,
    )

    # OpenSSL reads these only from files. The key is in its file for a moment, encrypted with a random password.
    password = secrets.token_bytes(32).hex().encode()
    private = load_pem_private_key(key.encode(), password=None)
    locked = private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(password))
    with TemporaryDirectory() as folder:
        certificate_file, key_file = Path(folder, "certificate.pem"), Path(folder, "key.pem")
        certificate_file.write_text(certificate)
        key_file.write_bytes(locked)
        context.load_cert_chain(certificate_file, key_file, password)
