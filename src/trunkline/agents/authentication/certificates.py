"""
The PEM texts that an operator gives for TLS and for signing, checked when they are given.

What is wrong is said by field, and never in the words of the text itself.
"""

from __future__ import annotations

from collections.abc import Mapping

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ec import (
    SECP256R1,
    EllipticCurvePrivateKey,
    EllipticCurvePublicKey,
)
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    load_pem_private_key,
    load_pem_public_key,
)

from trunkline.errors import Finding
from trunkline.jsontypes import Json

_TLS_FIELDS = ("authority", "certificate", "key")
# A chain has a few certificates of some kilobytes.
_MAX_CHARACTERS = 256 * 1024


def validate_tls(fields: Mapping[str, Json], place: str) -> list[Finding]:
    """What is wrong with `{authority?, certificate?, key?}` at `place`; empty: it can be used."""
    findings = [
        Finding(path=f"{place}.{name}", message="unknown field; use authority, certificate or key")
        for name in fields
        if name not in _TLS_FIELDS
    ]
    given = {name: fields[name] for name in _TLS_FIELDS if fields.get(name) is not None}
    if not given:
        return [*findings, Finding(path=place, message="must contain an authority or a certificate")]
    findings += [
        Finding(path=f"{place}.{name}", message=wrong)
        for name, value in given.items()
        if (wrong := _wrong_pem(name, value)) is not None
    ]
    if ("certificate" in given) != ("key" in given):
        missing = "key" if "certificate" in given else "certificate"
        findings.append(
            Finding(
                path=f"{place}.{missing}",
                message="is required, because a certificate and its key belong together",
            )
        )
    elif "key" in given and not findings and not _belong_together(given):
        findings.append(Finding(path=f"{place}.key", message="does not match the certificate"))
    return findings


def wrong_signing_key(value: Json) -> str | None:
    """What is wrong with the private key of a signer; None: it can sign."""
    wrong = _wrong_pem("key", value)
    if wrong is not None:
        return wrong
    key = _key(str(value))
    return None if _can_sign(key) else "must be an Ed25519 or P-256 key"


def wrong_verifying_key(value: Json) -> str | None:
    """What is wrong with the public key by which a signer is known."""
    if not isinstance(value, str) or not value or len(value) > _MAX_CHARACTERS or not value.isascii():
        return "must be a public key in PEM format"
    if "PRIVATE KEY" in value:
        return "is a private key, which must stay with the caller; use the public key"
    try:
        key = load_pem_public_key(value.encode())
    except (ValueError, UnsupportedAlgorithm):
        return "must be a public key in PEM format"
    return None if _can_sign(key) else "must be an Ed25519 or P-256 key"


def _can_sign(key: object) -> bool:
    if isinstance(key, EllipticCurvePrivateKey | EllipticCurvePublicKey):
        return isinstance(key.curve, SECP256R1)
    return isinstance(key, Ed25519PrivateKey | Ed25519PublicKey)


def _wrong_pem(name: str, value: Json) -> str | None:
    if not isinstance(value, str) or not value:
        return "must be a string in PEM format"
    if len(value) > _MAX_CHARACTERS or not value.isascii():
        return "is not PEM"
    try:
        if name == "key":
            _key(value)
        else:
            x509.load_pem_x509_certificates(value.encode())
    except TypeError:
        return "is encrypted; use a key without a password"
    except (ValueError, UnsupportedAlgorithm):
        return "is not a private key in PEM format" if name == "key" else "is not a certificate in PEM format"
    return None


def _key(text: str) -> PrivateKeyTypes:
    return load_pem_private_key(text.encode(), password=None)


def _belong_together(given: Mapping[str, Json]) -> bool:
    first = x509.load_pem_x509_certificates(str(given["certificate"]).encode())[0]
    keys = (first.public_key(), _key(str(given["key"])).public_key())
    ours, theirs = (key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo) for key in keys)
    return ours == theirs
