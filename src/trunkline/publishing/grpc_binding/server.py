"""The gRPC server: its port, its certificate, and its limits."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

import structlog
from starlette.types import ASGIApp

from trunkline.errors import ConfigurationError
from trunkline.publishing.grpc_binding.libraries import Libraries
from trunkline.publishing.grpc_binding.service import A2AService
from trunkline.publishing.streams import MAX_STREAMS
from trunkline.telemetry import log_events

log = structlog.stdlib.get_logger()

# How long calls may go on when the server stops. What they wait for is stored.
_GRACE_SECONDS = 1.0


class CertificateFiles(NamedTuple):
    certificate: Path
    key: Path

    def versions(self) -> tuple[int, int]:
        return self.certificate.stat().st_mtime_ns, self.key.stat().st_mtime_ns

    def pair(self) -> tuple[bytes, bytes]:
        return self.key.read_bytes(), self.certificate.read_bytes()


class GrpcPort:
    """
    Taken when this is made, so that a start fails before anything else has begun. Raises `ConfigurationError`.

    `api_host`: how requests to the API name it.
    """

    def __init__(
        self,
        host: str,
        port: int,
        *,
        api_host: str,
        max_body_bytes: int,
        tls: CertificateFiles | None = None,
    ) -> None:
        self._libraries = Libraries()
        self._api_host = api_host
        self._scheme = "http" if tls is None else "https"
        self._address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        options = [
            ("grpc.max_receive_message_length", max_body_bytes),
            ("grpc.max_send_message_length", -1),
            # Otherwise two processes could have the same port.
            ("grpc.so_reuseport", 0),
        ]
        self._server = self._libraries.aio.server(options=options, maximum_concurrent_rpcs=MAX_STREAMS)
        try:
            if tls is None:
                self._server.add_insecure_port(self._address)
            else:
                self._server.add_secure_port(self._address, _credentials(self._libraries, tls))
        except RuntimeError as exc:
            raise ConfigurationError(
                f"The gRPC server cannot listen on {self._address}.",
                fix="Choose another TRUNKLINE_GRPC_PORT, or stop the program that uses this one.",
            ) from exc

    @asynccontextmanager
    async def serving(self, app: ASGIApp) -> AsyncGenerator[None]:
        """While the block runs. `app`: the whole API, with its checks."""
        service = A2AService(app, self._libraries, host=self._api_host, scheme=self._scheme)
        self._server.add_generic_rpc_handlers((service.handler(),))
        await self._server.start()
        log.info(log_events.GRPC_READY, address=self._address)
        try:
            yield
        finally:
            await self._server.stop(_GRACE_SECONDS)


def _credentials(libraries: Libraries, files: CertificateFiles) -> object:
    """A renewed certificate is used for the next connection."""
    configuration = libraries.grpc.ssl_server_certificate_configuration
    return libraries.grpc.dynamic_ssl_server_credentials(
        configuration([files.pair()]), _renewed(files, lambda: configuration([files.pair()]))
    )


def _renewed(files: CertificateFiles, read: Callable[[], object]) -> Callable[[], object | None]:
    seen = files.versions()

    def fetch() -> object | None:
        nonlocal seen
        try:
            versions = files.versions()
            if versions == seen:
                return None
            seen = versions
            return read()
        except OSError:
            # It is being written; the next connection sees it.
            return None

    return fetch
