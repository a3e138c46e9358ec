"""The credentials of the calls to one agent, made from its `auth_config` (`auth_config`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal
from urllib.parse import quote

import msgspec

ClientAuth = Literal["basic", "post"]
# A signed token is for one request, which leaves at once; a zone takes none that lives longer than this.
MAX_TOKEN_SECONDS = 300


class TlsConfig(msgspec.Struct, frozen=True, kw_only=True):
    """PEM texts: the authority of the agent's certificate, if it is not a public one; our certificate and its key."""

    authority: str | None = None
    certificate: str | None = None
    key: str | None = None

    def __repr__(self) -> str:
        return "Tls(…)"


class OAuthClient(msgspec.Struct, frozen=True, kw_only=True):
    """Who we are at a token endpoint (OAuth 2, client credentials)."""

    token_url: str
    client_id: str
    client_secret: str
    scope: str | None = None
    audience: str | None = None
    # How the client's id and secret are sent: in a header, or in the form.
    client_auth: ClientAuth = "basic"
    # The endpoint's; the agent has its own.
    tls: TlsConfig | None = None

    def __repr__(self) -> str:
        return f"OAuthClient(token_url={self.token_url!r}, …)"


class RequestSigner(msgspec.Struct, frozen=True, kw_only=True):
    """Who signs a token for each request, and for whom."""

    # PEM: the private key.
    key: str
    # The caller's name, as the zone knows it; and the zone's own.
    issuer: str
    audience: str
    lifetime_seconds: int = 60
    # Tells the zone which of the caller's keys it is, while they change.
    key_id: str | None = None

    def __repr__(self) -> str:
        return f"Signer(issuer={self.issuer!r}, audience={self.audience!r}, …)"


class Credentials(msgspec.Struct, frozen=True, kw_only=True):
    """What goes into a request, and what a record of it says instead."""

    headers: Mapping[str, str] = {}
    # Name and value to add to the URL's query.
    query: tuple[str, str] | None = None
    # Whose token goes into the Authorization header; `bridge.agents.tokens` fetches it.
    oauth: OAuthClient | None = None
    # Signs a new token for each request, which goes there instead (`signed_tokens`).
    signer: RequestSigner | None = None
    tls: TlsConfig | None = None
    # By header (in lower case): its value with the secret as an environment variable. For the query
    # parameter, under its own name.
    shown: Mapping[str, str] = {}
    # What must not appear in any record, even if the agent repeats it.
    secrets: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"Credentials(shown={self.shown!r}, …)"

    def add_to(self, url: str) -> str:
        """The URL with the query parameter, where there is one."""
        return (
            url if self.query is None else _with_parameter(url, self.query[0], quote(self.query[1], safe=""))
        )


NO_CREDENTIALS = Credentials()


def _with_parameter(url: str, name: str, value: str) -> str:
    return f"{url}{'&' if '?' in url else '?'}{quote(name, safe='')}={value}"
