"""
The container image, really built (by buildah, on a base image made from this machine's own package sources) and run as
Kubernetes would: as its own user, with a root file system that is read-only.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import cast
from urllib.request import urlopen

import pytest
from deploy.image import SBOM_IN_IMAGE, BuildahEngine, build_image, build_wheel
from deploy.local.buildah import Buildah, base_image
from deploy.local.errors import ServiceMissing
from deploy.local.ports import free_port
from tests.services import needed

# A build downloads and copies hundreds of megabytes, on a machine that is busy with other tests.
pytestmark = pytest.mark.timeout(900)
TAG = "localhost/trunkline-test:built"
USER = 10001
DATA = "var/lib/trunkline"
REQUIREMENTS = Path(__file__).parents[2] / "requirements.lock"
# A read-only root, as `docker run --read-only --tmpfs /tmp`; only /tmp and the data can be written to. In a namespace
# of its own, whose mounts end with the process.
CONTAINER = """
set -eu
mount --bind "$1" "$1"
mount --bind "$2" "$1/var/lib/trunkline"
mount -t tmpfs tmpfs "$1/tmp"
mount -o remount,bind,ro "$1"
shift 2
exec "$@"
"""


@dataclass(frozen=True)
class BuiltImage:
    root: Path
    config: dict[str, object]
    base_digest: str
    sbom: dict[str, object]

    def command(self, data: Path, *arguments: str, port: int = 0) -> list[str]:
        """Starts the entrypoint (or, if absolute, another program) as the image's user and environment say."""
        environment = [*cast("list[str]", self.config["Env"]), f"TRUNKLINE_PORT={port}"]
        program = arguments if arguments[0].startswith("/") else ("trunkline-entrypoint", *arguments)
        inside = ["chroot", f"--userspec={self.config['User']}", str(self.root)]
        return [
            *("unshare", "--mount", "sh", "-c", CONTAINER, "sh", str(self.root), str(data)),
            *(*inside, "/usr/bin/env", "-i", "-C", f"/{DATA}", *environment, *program),
        ]


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Generator[BuiltImage]:
    folder = tmp_path_factory.mktemp("image")
    with needed():
        if shutil.which("unshare") is None or os.geteuid() != 0:
            raise ServiceMissing("Running the image without Docker needs root and unshare (util-linux).")
        buildah = Buildah()
        base = base_image(buildah)
        engine = BuildahEngine(buildah)
    with buildah.lock():
        build_image(engine, tag=TAG, base=base, publish=True, wheel=build_wheel(folder))
        about = json.loads(buildah.run("inspect", "--type", "image", TAG, timeout_seconds=60))
        with engine.mounted(TAG) as root:
            sbom = json.loads((root / SBOM_IN_IMAGE.lstrip("/")).read_text())
            config = about["Docker"]["config"]
            yield BuiltImage(root=root, config=config, base_digest=engine.digest(base), sbom=sbom)
        buildah.run("rmi", TAG, timeout_seconds=60)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """The volume of the container, which its user owns."""
    folder = tmp_path / "volume"
    folder.mkdir(mode=0o700)
    os.chown(folder, USER, USER)
    return folder


@contextmanager
def started(command: list[str]) -> Generator[tuple[int, str]]:
    """The process's id and the address that it prints when it is ready."""
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert child.stdout is not None
    assert child.stderr is not None
    try:
        url = child.stdout.readline().strip()
        if not url:
            pytest.fail(child.stderr.read())
        yield child.pid, url
    finally:
        child.terminate()
        child.communicate(timeout=30)


def test_it_serves_the_web_ui_as_its_own_user_on_a_read_only_root(image: BuiltImage, data: Path) -> None:
    with started(image.command(data, "up", port=free_port())) as (process, url):
        status = Path(f"/proc/{process}/status").read_text()
        assert re.search(rf"^Uid:\s+{USER}\s+{USER}\s", status, re.MULTILINE)
        with urlopen(url, timeout=20) as answer:
            page = answer.read().decode()
        (script,) = re.findall(r'src="(/assets/[^"]+\.js)"', page)
        with urlopen(url + script, timeout=20) as answer:
            assert answer.headers["Content-Type"].startswith("text/javascript")
        health = cast("dict[str, list[str]]", image.config["Healthcheck"])["Test"][1:]
        port = int(url.rpartition(":")[2])
        python = image.command(data, "/opt/trunkline/bin/python", *health[1:], port=port)
        assert subprocess.run(python, check=False).returncode == 0
    assert (data / "trunkline.db").exists()


def test_nothing_but_tmp_and_the_volume_can_be_written_to(image: BuiltImage, data: Path) -> None:
    places = "/ /opt/trunkline /etc /var /usr/local"
    script = f"touch /tmp/x /var/lib/trunkline/x; for d in {places}; do touch $d/x && echo $d; done"
    tried = subprocess.run(
        image.command(data, "/bin/sh", "-c", script), capture_output=True, text=True, check=False
    )
    assert tried.stdout == ""
    assert (data / "x").exists()


def test_it_has_exactly_the_locked_packages_and_no_installer(image: BuiltImage) -> None:
    locked = dict(re.findall(r"^([a-z0-9-]+)==([^ ]+) \\$", REQUIREMENTS.read_text(), re.MULTILINE))
    assert image.sbom["bomFormat"] == "CycloneDX"
    components = cast("list[dict[str, str]]", image.sbom["components"])
    listed = {_normal(component["name"]): component["version"] for component in components}
    del listed["trunkline"]
    assert listed == {name: version for name, version in locked.items() if name in listed}
    installed = {
        _normal(found.name.split("-")[0])
        for found in image.root.glob("opt/trunkline/lib/*/site-packages/*.dist-info")
    }
    assert installed == listed.keys() | {"trunkline"}
    # The others are for other systems and versions of Python.
    assert len(listed) > 0.8 * len(locked)


def test_a_published_image_is_pinned_to_the_digest_of_its_base(image: BuiltImage) -> None:
    labels = cast("dict[str, str]", image.config["Labels"])
    assert labels["org.opencontainers.image.base.digest"] == image.base_digest
    assert re.fullmatch("sha256:[0-9a-f]{64}", image.base_digest)


def test_where_this_machine_gets_packages_from_is_not_in_the_image(image: BuiltImage) -> None:
    assert not list(image.root.glob("etc/apt/sources.list*/*"))
    for place in ("etc/pip.conf", "root/.config", "root/.cache", "root/.pip", "run/secrets/pip.conf"):
        assert not (image.root / place).exists()


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
