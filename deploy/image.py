"""
Builds the container image, with Docker where its daemon runs, and otherwise with buildah: make image

    python -m deploy.image                    from the current official Python image
    python -m deploy.image --publish          the same, pinned: from the base image's digest, which the image names
    python -m deploy.image --base IMAGE       from another Debian-like image with Python 3.11 or later

The image gets the wheel of this checkout, with the web UI, and the dependencies of requirements.lock. Its SBOM
(CycloneDX) is in the image, and is copied to dist/sbom.cdx.json.
"""

from __future__ import annotations

import argparse
import configparser
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from deploy.local.buildah import Buildah
from deploy.local.errors import ServiceFailed, ServiceMissing

ROOT = Path(__file__).parents[1]
OFFICIAL_BASE = "docker.io/library/python:3.11-slim-bookworm"
SBOM_IN_IMAGE = "/usr/share/trunkline/sbom.cdx.json"
_FILES = {
    "Dockerfile": "deploy/Dockerfile",
    "entrypoint.sh": "deploy/entrypoint.sh",
    "requirements.lock": "requirements.lock",
    "sbom.lock": "deploy/sbom/requirements.lock",
}
# How pip finds packages. Local folders (find-links) don't exist in a build.
_PIP_OPTIONS = ("index-url", "extra-index-url", "trusted-host", "proxy", "timeout", "default-timeout")
_BUILD_SECONDS = 1_800.0
# Buildah copies the whole file system of an image for a container.
_COMMAND_SECONDS = 600.0


class Engine(Protocol):
    """Docker or buildah."""

    def digest(self, base: str) -> str:
        """Fetches the image if needed; its digest, sha256:…."""
        ...

    def build(self, context: Path, tag: str, options: Sequence[str]) -> None: ...

    def copy_out(self, tag: str, path: str, target: Path) -> None:
        """Copy a file of the image to this machine."""
        ...


class BuildahEngine:
    def __init__(self, buildah: Buildah) -> None:
        self._buildah = buildah

    def digest(self, base: str) -> str:
        if not base.startswith("localhost/"):
            self._command("pull", "--quiet", base)
        return self._command("inspect", "--type", "image", "--format", "{{.FromImageDigest}}", base)

    def build(self, context: Path, tag: str, options: Sequence[str]) -> None:
        # The format of OCI has no health check.
        self._buildah.run(
            *("build", "--quiet", "--format", "docker", "--pull=false", "--tag", tag, *options, str(context)),
            timeout_seconds=_BUILD_SECONDS,
        )

    def copy_out(self, tag: str, path: str, target: Path) -> None:
        with self.mounted(tag) as root:
            shutil.copyfile(f"{root}{path}", target)

    @contextmanager
    def mounted(self, tag: str) -> Generator[Path]:
        """The root file system of a new container."""
        container = self._command("from", "--pull-never", tag)
        try:
            yield Path(self._command("mount", container))
        finally:
            self._command("rm", container)

    def _command(self, *arguments: str) -> str:
        return self._buildah.run(*arguments, timeout_seconds=_COMMAND_SECONDS)


class DockerEngine:
    def digest(self, base: str) -> str:
        _docker("pull", "--quiet", base)
        named = _docker("image", "inspect", "--format", "{{index .RepoDigests 0}}", base)
        return named.rpartition("@")[2]

    def build(self, context: Path, tag: str, options: Sequence[str]) -> None:
        _docker("build", "--tag", tag, *options, str(context), seconds=_BUILD_SECONDS)

    def copy_out(self, tag: str, path: str, target: Path) -> None:
        container = _docker("create", tag)
        try:
            _docker("cp", f"{container}:{path}", str(target))
        finally:
            _docker("rm", container)


def build_image(engine: Engine, *, tag: str, base: str, publish: bool, wheel: Path) -> None:
    """Raises `ServiceFailed`."""
    labels: list[str] = []
    if publish:
        name, _, digest = base.partition("@")
        digest = digest or engine.digest(base)
        if not re.fullmatch(r"sha256:[0-9a-f]{64}", digest):
            raise ServiceFailed(f"The base image {base} has no digest, so the image cannot be pinned to it.")
        base = f"{_without_tag(name)}@{digest}"
        labels = [
            *("--label", f"org.opencontainers.image.base.name={name}"),
            *("--label", f"org.opencontainers.image.base.digest={digest}"),
        ]
    with tempfile.TemporaryDirectory(prefix="trunkline-image-") as folder:
        context, secrets = Path(folder) / "context", Path(folder) / "secrets"
        context.mkdir()
        secrets.mkdir(mode=0o700)
        for copied, source in _FILES.items():
            shutil.copy(ROOT / source, context / copied)
        shutil.copy(wheel, context)
        engine.build(
            context, tag, ["--build-arg", f"BASE={base}", *labels, *_package_source_options(secrets)]
        )


def build_wheel(folder: Path) -> Path:
    """The wheel of this checkout, with the web UI."""
    _run([sys.executable, str(ROOT / "ui" / "build.py")])
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "wheel", "--quiet", "--no-deps"]
    _run([*pip, "--no-build-isolation", "--wheel-dir", str(folder), str(ROOT)])
    (wheel,) = folder.glob("*.whl")
    return wheel


def _package_source_options(folder: Path) -> list[str]:
    """This machine's own configuration of pip, as secrets of the build: in no layer of the image."""
    listed = _run([sys.executable, "-m", "pip", "config", "list"])
    # Of two lines, that of the environment counts; pip lists it first.
    found: dict[str, str] = {}
    for line in listed.splitlines():
        key, _, value = line.partition("=")
        found.setdefault(key.rpartition(".")[2], value.strip("'\""))
    config = configparser.RawConfigParser()
    config["global"] = {name: found[name] for name in _PIP_OPTIONS if name in found}
    options = ["--secret", f"id=pip.conf,src={folder / 'pip.conf'}"]
    if "cert" in found:
        shutil.copyfile(found["cert"], folder / "ca.pem")
        config["global"]["cert"] = "/run/secrets/ca.pem"
        options += ["--secret", f"id=ca.pem,src={folder / 'ca.pem'}"]
    with (folder / "pip.conf").open("w") as file:
        config.write(file)
    return options


def _without_tag(name: str) -> str:
    folder, slash, last = name.rpartition("/")
    return f"{folder}{slash}{last.partition(':')[0]}"


def _engine() -> Engine:
    docker = shutil.which("docker")
    if docker is not None:
        answered = subprocess.run([docker, "info"], capture_output=True, check=False)  # noqa: S603 - Docker itself
        if answered.returncode == 0:
            return DockerEngine()
    return BuildahEngine(Buildah())


def _docker(*arguments: str, seconds: float = _COMMAND_SECONDS) -> str:
    return _run(["docker", *arguments], seconds).strip()


def _run(command: list[str], seconds: float = _BUILD_SECONDS) -> str:
    try:
        done = subprocess.run(  # noqa: S603 - our own commands
            command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=seconds
        )
    except subprocess.TimeoutExpired as exc:
        raise ServiceFailed(f"{' '.join(command)} has not finished within {seconds:.0f} s.") from exc
    if done.returncode != 0:
        raise ServiceFailed(f"{' '.join(command)} failed:\n{(done.stdout + done.stderr)[-4_000:]}")
    return done.stdout


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m deploy.image", description="Build the container image.")
    parser.add_argument("--base", default=OFFICIAL_BASE, help=f"base image (default: {OFFICIAL_BASE})")
    parser.add_argument(
        "--tag", default="trunkline:0.1.0", help="name of the image (default: trunkline:0.1.0)"
    )
    parser.add_argument("--publish", action="store_true", help="pin the base image by its digest")
    options = parser.parse_args()
    sbom = ROOT / "dist" / "sbom.cdx.json"
    try:
        with tempfile.TemporaryDirectory(prefix="trunkline-wheel-") as folder:
            sys.stderr.write(f"Building the image {options.tag} ...\n")
            engine, wheel = _engine(), build_wheel(Path(folder))
            build_image(engine, tag=options.tag, base=options.base, publish=options.publish, wheel=wheel)
        sbom.parent.mkdir(parents=True, exist_ok=True)
        engine.copy_out(options.tag, SBOM_IN_IMAGE, sbom)
    except (ServiceFailed, ServiceMissing) as failure:
        sys.stderr.write(f"{failure}\n")
        return 1
    sys.stderr.write(f"Built {options.tag}. Its SBOM is {os.path.relpath(sbom)}.\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
