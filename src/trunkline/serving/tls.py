"""TLS for a server of ours: its certificate, and whose certificates its clients may show."""

from __future__ import annotations

import ssl
from pathlib import Path

from trunkline.agents.authentication.certificates import validate_tls
from trunkline.errors import ConfigurationError, Finding
from trunkline.jsontypes import Json

# By the fields that `validate_tls` speaks of.
_WHAT = {
    "certificate": "the server's certificate",
    "key": "its key",
    "authority": "the clients' authority",
}


def server_tls(
    certificate: Path, key: Path | None = None, authority: Path | None = None, *, required: bool = False
) -> ssl.SSLContext:
    """
    TLS 1.2 or newer, with PEM files; raises `ConfigurationError`.

    Without a key the certificate's file has it. With an authority a client may show a certificate that it has signed,
    and with `required` it must.
    """
    paths = {"certificate": certificate, "key": key or certificate}
    if authority is not None:
        paths["authority"] = authority
    texts: dict[str, Json] = {name: _text(name, path) for name, path in paths.items()}
    findings = validate_tls(texts, "tls")
    if findings:
        raise _unusable(findings[0], paths)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    try:
        context.load_cert_chain(certificate, key)
        if authority is not None:
            context.verify_mode = ssl.CERT_REQUIRED if required else ssl.CERT_OPTIONAL
            context.load_verify_locations(authority)
    except ssl.SSLError as exc:
        raise ConfigurationError(
            f"The certificates in {', '.join(map(str, paths.values()))} cannot be used: {exc.reason}.",
            fix="Make new ones: keys of at least 2048 bits for RSA, or of P-256.",
        ) from exc
    return context


def _text(name: str, path: Path) -> str:
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError) as exc:
        why = exc.strerror if isinstance(exc, OSError) else "it is not text, so not PEM"
        raise ConfigurationError(
            f"{_WHAT[name].capitalize()} in {path} cannot be read: {why}.",
            fix="Name a PEM file that this process may read.",
        ) from exc


def _unusable(finding: Finding, paths: dict[str, Path]) -> ConfigurationError:
    name = finding.path.rpartition(".")[2]
    return ConfigurationError(
        f"{_WHAT[name].capitalize()} in {paths[name]} {finding.message}.",
        fix="Give PEM files that belong together, the key without a password.",
    )
