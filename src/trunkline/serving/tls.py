"""TLS for our servers: their certificate, and the authority for client certificates."""

from __future__ import annotations

import ssl
from pathlib import Path

import structlog

from trunkline.errors import ConfigurationError, Finding
from trunkline.jsontypes import Json
from trunkline.telemetry import log_events

log = structlog.stdlib.get_logger()

# By the fields that `validate_tls` speaks of.
_WHAT = {
    "certificate": "the server's certificate",
    "key": "its key",
    "authority": "the clients' authority",
}


class ServerTls:
    """
    TLS 1.2 or newer, with PEM files; raises `ConfigurationError`.

    Without a key the certificate's file has it. With an authority a client may show a certificate that it has signed,
    and with `required` it must. Files that change are read again for the next connection; connections that exist keep
    what they began with.
    """

    def __init__(
        self,
        certificate: Path,
        key: Path | None = None,
        authority: Path | None = None,
        *,
        required: bool = False,
    ) -> None:
        self._paths = {"certificate": certificate, "key": key or certificate}
        if authority is not None:
            self._paths["authority"] = authority
        self._required = required
        # Before the files are read: a change while they are read is noticed by the next connection.
        self._versions = self._file_versions()
        self._context = self._load()

    def context(self) -> ssl.SSLContext:
        """For the next connection."""
        versions = self._file_versions()
        if versions != self._versions:
            self._versions = versions
            try:
                self._context = self._load()
            except ConfigurationError as exc:
                # Certificate and key are written one after the other; the next change is tried again.
                log.warning(log_events.CERTIFICATE_NOT_RELOADED, error=exc.message, fix=exc.fix)
            else:
                log.info(log_events.CERTIFICATE_RELOADED, certificate=str(self._paths["certificate"]))
        return self._context

    def _file_versions(self) -> tuple[tuple[int, int, int] | None, ...]:
        return tuple(_version(path) for path in self._paths.values())

    def _load(self) -> ssl.SSLContext:
        # It loads cryptography, which a server without TLS does not need.
        from trunkline.agents.authentication.certificates import validate_tls  # noqa: PLC0415

        paths = self._paths
        texts: dict[str, Json] = {name: _text(name, path) for name, path in paths.items()}
        findings = validate_tls(texts, "tls")
        if findings:
            raise _unusable(findings[0], paths)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.set_alpn_protocols(["http/1.1"])
        try:
            context.load_cert_chain(paths["certificate"], paths["key"])
            if "authority" in paths:
                context.verify_mode = ssl.CERT_REQUIRED if self._required else ssl.CERT_OPTIONAL
                context.load_verify_locations(paths["authority"])
        except ssl.SSLError as exc:
            raise ConfigurationError(
                f"The certificates in {', '.join(map(str, paths.values()))} cannot be used: {exc.reason}.",
                fix="Create new ones, with keys of at least 2048 bits for RSA, or of P-256.",
            ) from exc
        return context


def _version(path: Path) -> tuple[int, int, int] | None:
    try:
        status = path.stat()
    except OSError:
        # It is being replaced, perhaps.
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns


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
