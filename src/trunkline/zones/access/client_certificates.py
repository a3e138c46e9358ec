"""
The client certificate of a connection, as ASGI's TLS extension shows it, and the names in it.

The server has verified its signature: `serving.connection` puts only such a certificate into the scope.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, cast

from cryptography import x509
from cryptography.x509.oid import NameOID

# Of connections, not of requests: each has its certificate for as long as it lasts.
_MOST_KEPT = 1_000


def client_names(scope: Mapping[str, Any]) -> tuple[str, ...] | None:
    """The names in the client's certificate, by which a policy knows it; None: it has shown none."""
    tls = scope.get("extensions", {}).get("tls", {})
    chain = cast("Sequence[str]", tls.get("client_cert_chain", ()))
    if not chain or tls.get("client_cert_error") is not None:
        return None
    return names_in(chain[0])


@lru_cache(maxsize=_MOST_KEPT)
def names_in(certificate: str) -> tuple[str, ...]:
    """
    The URIs and DNS names for which it was made out, and where there are none the common name.

    Of a certificate (PEM) that has such names the common name says nothing: authorities do not check it (RFC 6125).
    """
    read = x509.load_pem_x509_certificate(certificate.encode())
    try:
        alternatives = read.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        alternatives = x509.SubjectAlternativeName([])
    names = (
        *alternatives.get_values_for_type(x509.UniformResourceIdentifier),
        *alternatives.get_values_for_type(x509.DNSName),
    )
    if names:
        return names
    return tuple(str(part.value) for part in read.subject.get_attributes_for_oid(NameOID.COMMON_NAME))
