"""
The jars of Kafka, and of an object store for tests, resolved by Maven into the checkout once.

    python -m deploy.local.jars
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from deploy.local.errors import ServiceFailed, ServiceMissing

_KAFKA = Path(__file__).with_name("pom.xml")
_OBJECT_STORE = Path(__file__).with_name("object_store.pom.xml")
_SERVICES = Path(__file__).parents[2] / ".services"
# Everything may have to be downloaded, over a slow line.
_RESOLVE_SECONDS = 900.0
_LOG_LINES = 20


def kafka_jars() -> Path:
    return _jars("kafka", "Kafka", _KAFKA)


def object_store_jars() -> Path:
    return _jars("object-store", "The object store", _OBJECT_STORE)


def _jars(name: str, title: str, pom: Path) -> Path:
    """The folder that has them; resolves them if this is the first time for this pom."""
    folder = _SERVICES / f"{name}-{hashlib.sha256(pom.read_bytes()).hexdigest()[:12]}"
    # The folder gets its name when it is complete.
    if not folder.exists():
        with _lock(_SERVICES / f"{name}.lock"):
            if not folder.exists():
                _resolve(folder, title, pom)
    return folder


def java() -> str:
    home = os.environ.get("JAVA_HOME")
    found = shutil.which("java", path=f"{home}/bin") if home else None
    found = found or shutil.which("java")
    if found is None:
        raise ServiceMissing(
            "Kafka and the object store need Java 17 or later: install a JRE (apt-get install default-jre-headless)."
        )
    return found


def _resolve(folder: Path, title: str, pom: Path) -> None:
    maven = shutil.which("mvn")
    if maven is None:
        raise ServiceMissing(f"{title} comes as jars by Maven: install it (apt-get install maven).")
    java()
    sys.stderr.write(f"{title}: getting its jars by Maven (once, 43 MB) ...\n")
    with tempfile.TemporaryDirectory(dir=_SERVICES, prefix="resolving-") as unfinished:
        jars = Path(unfinished) / "jars"
        goal = ["dependency:copy-dependencies", f"-DoutputDirectory={jars}", "-Dmdep.copyPom=false"]
        command = [maven, "--quiet", "--batch-mode", "--file", str(pom), *goal]
        try:
            resolving = subprocess.run(  # noqa: S603 - Maven, with our own pom
                command, capture_output=True, text=True, timeout=_RESOLVE_SECONDS, check=False
            )
        except subprocess.TimeoutExpired as exc:
            raise ServiceFailed(
                f"Maven has not resolved the jars within {_RESOLVE_SECONDS:.0f} s: {title}."
            ) from exc
        if resolving.returncode != 0:
            told = "\n".join((resolving.stdout + resolving.stderr).splitlines()[-_LOG_LINES:])
            raise ServiceFailed(f"Maven cannot resolve the jars. {title}:\n{told}")
        jars.rename(folder)


@contextmanager
def _lock(file: Path) -> Generator[None]:
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield


def main() -> int:
    try:
        kafka_jars()
        object_store_jars()
    except ServiceMissing as missing:
        # Tests that need them are then skipped; where CI is set they must not be.
        sys.stderr.write(f"{missing}\n")
        return 1 if os.environ.get("CI") else 0
    except ServiceFailed as failure:
        sys.stderr.write(f"{failure}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
