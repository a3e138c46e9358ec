"""Certificates for tests: made on the spot, signed by themselves or by one another."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa, x25519
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import NameOID


def made(
    name: str,
    password: str = "",
    *,
    signed_by: tuple[str, str] | None = None,
    address: str = "127.0.0.1",
    alternatives: Sequence[x509.GeneralName] = (),
) -> tuple[str, str]:
    """A certificate for `name`, `address` and `alternatives`, and its key, as PEM."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    issuer, signing = subject, key
    if signed_by is not None:
        issuer = x509.load_pem_x509_certificate(signed_by[0].encode()).subject
        loaded = load_pem_private_key(signed_by[1].encode(), password=None)
        assert isinstance(loaded, ec.EllipticCurvePrivateKey)
        signing = loaded
    now = datetime.now(UTC)
    others = x509.SubjectAlternativeName([x509.IPAddress(ip_address(address)), *alternatives])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(others, critical=False)
        .add_extension(x509.BasicConstraints(ca=signed_by is None, path_length=None), critical=True)
        # Python 3.13 accepts only certificates that have these as RFC 5280 requires.
        .add_extension(_key_usage(is_authority=signed_by is None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(signing.public_key()), critical=False
        )
        .sign(signing, hashes.SHA256())
    )
    locked = BestAvailableEncryption(password.encode()) if password else NoEncryption()
    return (
        certificate.public_bytes(Encoding.PEM).decode(),
        key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, locked).decode(),
    )


def _key_usage(*, is_authority: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=is_authority,
        crl_sign=is_authority,
        encipher_only=False,
        decipher_only=False,
    )


def signing_key(kind: str = "ed25519", password: str = "") -> tuple[str, str]:
    """A key for signatures: the private half and the public one, as PEM."""
    key = _KINDS[kind]()
    locked = BestAvailableEncryption(password.encode()) if password else NoEncryption()
    return (
        key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, locked).decode(),
        key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode(),
    )


_KINDS = {
    "ed25519": ed25519.Ed25519PrivateKey.generate,
    "x25519": x25519.X25519PrivateKey.generate,
    "p256": lambda: ec.generate_private_key(ec.SECP256R1()),
    "p384": lambda: ec.generate_private_key(ec.SECP384R1()),
    "rsa": lambda: rsa.generate_private_key(65_537, 2_048),
}
