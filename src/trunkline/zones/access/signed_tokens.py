"""
Reads tokens that callers have signed: who signed one, and whether it is for this zone, this request and this
moment.

Nothing that a token says of itself decides how it is checked: the algorithms are ours (`agents.signing`), the keys are
those that the policy has for its issuer, and a header that names a key or a place to get one is refused.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Literal, TypeAlias

import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import load_pem_public_key
from joserfc import jws
from joserfc.errors import JoseError
from joserfc.jwk import ECKey, OKPKey

from trunkline.agents.authentication.credentials import MAX_TOKEN_SECONDS
from trunkline.agents.authentication.signed_tokens import TOKEN_ALGORITHMS, body_digest
from trunkline.clock import Instant
from trunkline.zones.access.policy import ZonePolicy

# What clocks may differ by; a token is good so much longer, and so much sooner.
SKEW_SECONDS = 30
_MICROSECONDS = 1_000_000
_LONGEST_TOKEN = 8 * 1024
_LONGEST_ID = 255
_HEADERS = frozenset({"alg", "typ", "kid"})
_MOST_KEYS = 1_000

TokenProblem: TypeAlias = Literal[
    "token_malformed",
    "token_algorithm",
    "token_issuer",
    "token_signature",
    "token_audience",
    "token_subject",
    "token_expired",
    "token_not_yet_valid",
    "token_too_long_lived",
    "token_body",
    "token_used",
]


class InvalidToken(Exception):
    """A token that is not taken. Who it claims to be from is known, but not believed."""

    def __init__(self, reason: TokenProblem, issuer: str | None = None) -> None:
        super().__init__(reason)
        self.reason: TokenProblem = reason
        self.issuer = issuer


class _TokenClaims(msgspec.Struct, frozen=True, kw_only=True):
    iss: str
    aud: str | list[str]
    iat: int | float
    exp: int | float
    jti: str
    sub: str | None = None
    nbf: int | float | None = None
    body: str | None = None


class VerifiedToken(msgspec.Struct, frozen=True, kw_only=True):
    """Everything about it holds, except that it may be for another body, or may have been used before."""

    issuer: str
    id: str
    # After this it is refused anyway.
    until: Instant
    # Of the one body that it is for; None: for any, which the policy must allow.
    body: str | None = None

    def is_for(self, body: bytes) -> bool:
        return self.body is None or self.body == body_digest(body)


_claims = msgspec.json.Decoder(_TokenClaims)


def read_token(text: str, policy: ZonePolicy, audience: str, now: Instant) -> VerifiedToken:
    """Raises `InvalidToken`."""
    signed, claims = _opened(text)
    keys = _keys_of(policy, claims.iss)
    if not keys:
        raise InvalidToken("token_issuer")
    # A caller that cannot sign learns nothing else about what is wrong with it.
    if not any(_is_signed_with(key, signed) for key in keys):
        raise InvalidToken("token_signature", claims.iss)
    wrong = _wrong_claim(claims, audience, now)
    if wrong is not None:
        raise InvalidToken(wrong, claims.iss)
    if claims.body is None and not (policy.callers or {})[claims.iss].unbound_tokens:
        raise InvalidToken("token_body", claims.iss)
    until = Instant(int((claims.exp + SKEW_SECONDS) * _MICROSECONDS))
    return VerifiedToken(issuer=claims.iss, id=claims.jti, until=until, body=claims.body)


def _opened(text: str) -> tuple[jws.CompactSignature, _TokenClaims]:
    if len(text) > _LONGEST_TOKEN:
        raise InvalidToken("token_malformed")
    try:
        signed = jws.extract_compact(text.encode(), registry=TOKEN_ALGORITHMS)
        header = signed.headers()
        if not _HEADERS.issuperset(header):
            raise InvalidToken("token_malformed")
        TOKEN_ALGORITHMS.check_header(header)
        claims = _claims.decode(signed.payload or b"")
    except (JoseError, ValueError, TypeError, RecursionError):
        # Not chained: a library's words may quote the token.
        raise InvalidToken("token_malformed") from None
    if not 0 < len(claims.jti) <= _LONGEST_ID or header.get("typ", "JWT").upper() != "JWT":
        raise InvalidToken("token_malformed")
    try:
        TOKEN_ALGORITHMS.get_alg(header["alg"])
    except JoseError:
        raise InvalidToken("token_algorithm") from None
    return signed, claims


def _keys_of(policy: ZonePolicy, issuer: str) -> tuple[str, ...]:
    rules = (policy.callers or {}).get(issuer)
    return () if rules is None else rules.keys


def _is_signed_with(key: str, signed: jws.CompactSignature) -> bool:
    try:
        return jws.validate_compact(signed, _key(key), registry=TOKEN_ALGORITHMS)
    except JoseError:
        # A key of another kind than the algorithm that the token names.
        return False


@lru_cache(maxsize=_MOST_KEYS)
def _key(text: str) -> OKPKey | ECKey:
    if isinstance(load_pem_public_key(text.encode()), Ed25519PublicKey):
        return OKPKey.import_key(text)
    return ECKey.import_key(text)


def _wrong_claim(claims: _TokenClaims, audience: str, now: Instant) -> TokenProblem | None:
    # One that is good in two places could be carried from the one to the other.
    if claims.aud not in (audience, [audience]):
        return "token_audience"
    if claims.sub is not None and claims.sub != claims.iss:
        return "token_subject"
    return _wrong_time(claims, now / _MICROSECONDS)


def _wrong_time(claims: _TokenClaims, now: float) -> TokenProblem | None:
    if claims.exp <= now - SKEW_SECONDS:
        return "token_expired"
    if max(claims.iat, claims.nbf or 0) > now + SKEW_SECONDS:
        return "token_not_yet_valid"
    if not 0 < claims.exp - claims.iat <= MAX_TOKEN_SECONDS:
        return "token_too_long_lived"
    return None
