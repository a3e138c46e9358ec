"""
Tokens that a caller signs itself, one for each request: JSON Web Tokens (RFC 7519) in the compact form.

    header  {"alg": "EdDSA" | "ES256", "typ": "JWT", "kid"?}
    claims  {"iss", "sub": the caller, "aud": whom it is for, "iat", "exp", "jti", "body": base64url of sha256}

Pure: the time and the token's id are given. Only keys of which one half is public are used: Ed25519 and P-256.
"""

from __future__ import annotations

from base64 import urlsafe_b64encode
from functools import lru_cache
from hashlib import sha256

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from joserfc import jws
from joserfc.errors import UnsupportedAlgorithmError
from joserfc.jwa import JWSAlgModel
from joserfc.jwk import ECKey, OKPKey
from joserfc.jws import JWSRegistry

from trunkline.agents.authentication.credentials import RequestSigner
from trunkline.clock import Instant
from trunkline.jsontypes import encode

# EdDSA has a second name since RFC 9864.
ALGORITHMS = frozenset({"EdDSA", "Ed25519", "ES256"})

_MICROSECONDS = 1_000_000
# An agent has one key, and a process some hundred agents.
_MAX_KEYS = 1_000


class TokenAlgorithms(JWSRegistry):
    """
    The algorithms that are taken, whatever a token's header names: none of them has one secret for both sides.

    The library's own way warns of EdDSA at each use, for its name.
    """

    max_payload_length = 8 * 1024

    def get_alg(self, name: str) -> JWSAlgModel:
        if name not in ALGORITHMS:
            raise UnsupportedAlgorithmError(f"Algorithm of '{name}' is not allowed")
        return self.algorithms[name]


TOKEN_ALGORITHMS = TokenAlgorithms()


def body_digest(body: bytes) -> str:
    """What a token says of the request that it is for."""
    return urlsafe_b64encode(sha256(body).digest()).rstrip(b"=").decode()


def signed_token(signer: RequestSigner, body: bytes, now: Instant, token_id: str) -> str:
    """A token for one request."""
    algorithm, key = _key(signer.key)
    header = {"alg": algorithm, "typ": "JWT"}
    if signer.key_id is not None:
        header["kid"] = signer.key_id
    issued_at = now // _MICROSECONDS
    claims = {
        "iss": signer.issuer,
        "sub": signer.issuer,
        "aud": signer.audience,
        "iat": issued_at,
        "exp": issued_at + signer.lifetime_seconds,
        "jti": token_id,
        "body": body_digest(body),
    }
    return jws.serialize_compact(header, encode(claims), key, registry=TOKEN_ALGORITHMS)


@lru_cache(maxsize=_MAX_KEYS)
def _key(text: str) -> tuple[str, OKPKey | ECKey]:
    if isinstance(load_pem_private_key(text.encode(), password=None), Ed25519PrivateKey):
        return "EdDSA", OKPKey.import_key(text)
    return "ES256", ECKey.import_key(text)
