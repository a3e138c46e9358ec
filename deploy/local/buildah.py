"""
Buildah, with its images in the checkout, and a base image made from this machine's own package sources.

    python -m deploy.local.buildah      make the base image, once

The tests build and run the container image with it: no daemon is needed, and no image registry. What is built for
others starts from the official base image instead (deploy/image.py).
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path

from deploy.local.errors import ServiceFailed, ServiceMissing
from deploy.local.folders import service_folder

_FOLDER = Path(__file__).parents[2] / ".services" / "image"
_PACKAGES = "ca-certificates,passwd,python3,python3-venv"
# A container needs neither manuals nor translations. Where this machine gets packages from is its own business.
_OPTIONS = (
    # With apt, as in the official images: its libraries (libstdc++) are needed, too.
    "--variant=apt",
    f"--include={_PACKAGES}",
    "--dpkgopt=path-exclude=/usr/share/doc/*",
    "--dpkgopt=path-exclude=/usr/share/locale/*",
    "--dpkgopt=path-exclude=/usr/share/man/*",
    '--customize-hook=rm -rf "$1"/etc/apt/sources.list "$1"/etc/apt/sources.list.d/*',
    '--customize-hook=rm -f "$1"/etc/apt/apt.conf.d/99mmdebstrap',
)
_SOURCES = (Path("/etc/apt/sources.list"), Path("/etc/apt/sources.list.d"))
# A hundred packages may have to be downloaded, over a slow line.
_BASE_SECONDS = 900.0
_LOG_LINES = 20


class Buildah:
    """Runs buildah on images that are kept in one folder."""

    def __init__(self, folder: Path = _FOLDER) -> None:
        program = shutil.which("buildah")
        if program is None:
            raise ServiceMissing("Building the image needs buildah: install it (apt-get install buildah).")
        self._program = program
        self._folder = folder
        (folder / "tmp").mkdir(parents=True, exist_ok=True)

    def run(
        self, *arguments: str, timeout_seconds: float, environment: Mapping[str, str] | None = None
    ) -> str:
        """What it prints. Raises `ServiceFailed`."""
        places = ("--root", str(self._folder / "storage"), "--runroot", str(self._folder / "run"))
        command = [self._program, *places, "--storage-driver", "vfs", *arguments]
        return _output(
            command,
            timeout_seconds,
            # The folder for temporary files also has the packages that builds have downloaded.
            {**(environment or {}), "BUILDAH_ISOLATION": "chroot", "TMPDIR": str(self._folder / "tmp")},
        ).strip()

    def has(self, image: str) -> bool:
        return image in self.run("images", "--format", "{{.Name}}:{{.Tag}}", timeout_seconds=60).split()

    @contextmanager
    def lock(self) -> Generator[None]:
        with (self._folder / "lock").open("w") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            yield


def base_image(buildah: Buildah) -> str:
    """The name of a small Debian with Python, made if it is not there yet."""
    made_of = "\n".join([*_OPTIONS, *(file.read_text() for file in _source_files())])
    name = f"localhost/trunkline-base:{hashlib.sha256(made_of.encode()).hexdigest()[:12]}"
    with buildah.lock():
        if not buildah.has(name):
            _make_base(buildah, name)
    return name


def _make_base(buildah: Buildah, name: str) -> None:
    mmdebstrap = shutil.which("mmdebstrap")
    if mmdebstrap is None:
        raise ServiceMissing("The base image is made by mmdebstrap: install it (apt-get install mmdebstrap).")
    sys.stderr.write("Making the base image of the container image (once, 150 MB) ...\n")
    with service_folder("base") as folder:
        archive = folder / "base.tar"
        sources = [str(file) for file in _source_files()]
        # Without a suite, mmdebstrap takes what the sources name.
        _output([mmdebstrap, "--quiet", *_OPTIONS, "", str(archive), *sources], _BASE_SECONDS, {})
        container = buildah.run("from", "scratch", timeout_seconds=60)
        buildah.run("add", "--quiet", container, str(archive), "/", timeout_seconds=_BASE_SECONDS)
        buildah.run("commit", "--quiet", "--rm", container, name, timeout_seconds=_BASE_SECONDS)


def _source_files() -> list[Path]:
    main, folder = _SOURCES
    named = sorted(path for path in folder.glob("*") if path.suffix in {".list", ".sources"})
    return [*([main] if main.is_file() and main.read_text().strip() else []), *named]


def _output(command: list[str], timeout_seconds: float, environment: Mapping[str, str]) -> str:
    name = Path(command[0]).name
    try:
        done = subprocess.run(  # noqa: S603 - buildah and mmdebstrap, with our own arguments
            command,
            capture_output=True,
            text=True,
            timeout=timeout_seconds,
            check=False,
            env={**os.environ, **environment},
        )
    except subprocess.TimeoutExpired as exc:
        raise ServiceFailed(f"{name} has not finished within {timeout_seconds:.0f} s.") from exc
    if done.returncode != 0:
        told = "\n".join((done.stdout + done.stderr).splitlines()[-_LOG_LINES:])
        raise ServiceFailed(f"{name} failed with status {done.returncode}:\n{told}")
    return done.stdout


def main() -> int:
    try:
        base_image(Buildah())
    except ServiceMissing as missing:
        # The tests of the image are then skipped; where CI is set they must not be.
        sys.stderr.write(f"{missing}\n")
        return 1 if os.environ.get("CI") else 0
    except ServiceFailed as failure:
        sys.stderr.write(f"{failure}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
