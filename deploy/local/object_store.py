"""An S3-compatible object store on one machine, whose buckets are folders."""

from __future__ import annotations

import secrets
import signal
import socket
from pathlib import Path
from types import TracebackType
from typing import Self

from deploy.local.jars import java, object_store_jars
from deploy.local.ports import free_port
from deploy.local.processes import ServiceProcess

_START_SECONDS = 90.0
_STOP_SECONDS = 10.0


class ObjectStore:
    """Runs while the context lasts; `env` has what a client of S3 needs to know."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._port = free_port()
        self._key, self._secret = secrets.token_hex(10), secrets.token_hex(20)
        self._process: ServiceProcess | None = None

    @property
    def env(self) -> dict[str, str]:
        return {
            "AWS_ENDPOINT_URL_S3": f"http://127.0.0.1:{self._port}",
            "AWS_ACCESS_KEY_ID": self._key,
            "AWS_SECRET_ACCESS_KEY": self._secret,
            "AWS_REGION": "us-east-1",
            "AWS_EC2_METADATA_DISABLED": "true",
        }

    def make_bucket(self, name: str) -> None:
        (self._folder / "buckets" / name).mkdir()

    def __enter__(self) -> Self:
        (self._folder / "buckets").mkdir(parents=True)
        settings = {
            "s3proxy.authorization": "aws-v2-or-v4",
            "s3proxy.endpoint": f"http://127.0.0.1:{self._port}",
            "s3proxy.identity": self._key,
            "s3proxy.credential": self._secret,
            "jclouds.provider": "filesystem",
            "jclouds.filesystem.basedir": str(self._folder / "buckets"),
        }
        file = self._folder / "object_store.properties"
        file.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
        quiet = self._folder / "logback.xml"
        quiet.write_text('<configuration><root level="WARN"/></configuration>\n')
        self._process = ServiceProcess(
            [
                java(),
                "-Xmx128m",
                "-XX:+UseSerialGC",
                "-XX:TieredStopAtLevel=1",
                f"-Dlogback.configurationFile={quiet}",
                "-cp",
                str(object_store_jars() / "*"),
                "org.gaul.s3proxy.Main",
                "--properties",
                str(file),
            ],
            self._folder / "object_store.log",
        )
        self._process.wait_until(self._answers, _START_SECONDS, "The object store")
        return self

    def _answers(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self._port)) == 0

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._process is not None:
            self._process.end(signal.SIGTERM, _STOP_SECONDS)
