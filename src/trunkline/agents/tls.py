"""How an agent is recognised over TLS, and how it recognises us."""

from __future__ import annotations

import msgspec


class TlsConfig(msgspec.Struct, frozen=True, kw_only=True):
    """PEM texts: who may have signed the agent's certificate instead of the public authorities; ours, and its key."""

    authority: str | None = None
    certificate: str | None = None
    key: str | None = None

    def __repr__(self) -> str:
        return "Tls(…)"
