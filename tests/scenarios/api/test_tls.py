"""The API over TLS, and certificates that are renewed while it runs."""

from __future__ import annotations

import os
import ssl
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from structlog.testing import capture_logs
from tests.certificates import made

from trunkline.serving.tls import ServerTls
from trunkline.telemetry import log_events

pytestmark = pytest.mark.embedded_only

AMPLE = 60.0


def write(folder: Path, pair: tuple[str, str]) -> tuple[Path, Path]:
    files = folder / "cert.pem", folder / "key.pem"
    for file, text in zip(files, pair, strict=True):
        file.write_text(text)
    return files


def is_alive(url: str, authority: str) -> bool:
    """Over a new connection that trusts only `authority`."""
    context = ssl.create_default_context(cadata=authority)
    try:
        with urllib.request.urlopen(f"{url}/livez", timeout=AMPLE, context=context) as answer:
            return bool(answer.status == 200)
    except urllib.error.URLError as exc:
        if not isinstance(exc.reason, ssl.SSLError):
            raise
        return False


def test_the_api_speaks_tls_and_uses_a_renewed_certificate(tmp_path: Path) -> None:
    old, new = made("old root"), made("new root")
    certificate, key = write(tmp_path, made("server", signed_by=old))
    words = ["up", "--port", "0", "--data", "data", "--tls-cert", str(certificate), "--tls-key", str(key)]
    program = [sys.executable, "-m", "trunkline"]
    server = subprocess.Popen([*program, *words], stdout=subprocess.PIPE, text=True, cwd=tmp_path)
    try:
        assert server.stdout is not None
        url = server.stdout.readline().strip()
        assert url.startswith("https://127.0.0.1:")
        assert is_alive(url, old[0])
        (tmp_path / "root.pem").write_text(old[0])
        environment = {**os.environ, "TRUNKLINE_URL": url, "SSL_CERT_FILE": str(tmp_path / "root.pem")}
        subprocess.run(
            [*program, "runs", "list"], env=environment, check=True, timeout=AMPLE, capture_output=True
        )
        write(tmp_path, made("server", signed_by=new))
        assert is_alive(url, new[0])
        assert not is_alive(url, old[0])
    finally:
        server.terminate()
        server.wait(AMPLE)


def test_a_certificate_without_its_key_is_not_used_until_the_key_follows(tmp_path: Path) -> None:
    certificate, key = write(tmp_path, made("server"))
    tls = ServerTls(certificate, key)
    first = tls.context()
    renewed = made("renewed")
    certificate.write_text(renewed[0])
    with capture_logs() as lines:
        assert tls.context() is first
        assert tls.context() is first
    assert [line["event"] for line in lines] == [log_events.CERTIFICATE_NOT_RELOADED]
    key.write_text(renewed[1])
    assert tls.context() is not first
