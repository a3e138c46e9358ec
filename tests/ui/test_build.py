"""How the page gets into a checkout: by any Node.js that is new enough, and without one it is said what to do."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.ui.wheel_install import ROOT


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Sources of a page without what they need, and no build."""
    ui = tmp_path / "ui"
    ui.mkdir()
    shutil.copy(ROOT / "ui" / "build.py", ui)
    for name in ("package.json", "package-lock.json", "index.html", "vite.config.ts", "tsconfig.json"):
        shutil.copy(ROOT / "ui" / name, ui)
    return tmp_path


def build(checkout: Path, *flags: str) -> subprocess.CompletedProcess[str]:
    """Where there is no Node.js: neither on the PATH nor among Python's packages."""
    command = [sys.executable, "-I", "-S", str(checkout / "ui" / "build.py"), *flags]
    return subprocess.run(command, capture_output=True, text=True, check=False, env={"PATH": str(checkout)})


def test_without_node_js_it_is_said_what_to_do(checkout: Path) -> None:
    done = build(checkout)
    assert done.returncode == 1
    assert "Node.js 20.19 or later" in done.stderr
    assert "make ui" in done.stderr


def test_a_start_without_node_js_goes_on(checkout: Path) -> None:
    done = build(checkout, "--if-possible")
    assert (done.returncode, "make ui" in done.stderr) == (0, True)


def test_what_is_built_is_not_built_again(checkout: Path) -> None:
    static = checkout / "src" / "trunkline" / "api" / "static"
    static.mkdir(parents=True)
    (static / "index.html").write_text("<!doctype html>")
    assert build(checkout).stderr == ""
    (checkout / "ui" / "src").mkdir()
    newer = checkout / "ui" / "src" / "main.tsx"
    newer.touch()
    assert newer.stat().st_mtime > (static / "index.html").stat().st_mtime
    assert build(checkout).returncode == 1


def test_the_npm_that_the_tests_bring_works_where_the_machine_has_none(checkout: Path) -> None:
    script = "import build, subprocess; print(subprocess.run([*build.find_npm(), '--version'], check=True))"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False,
        cwd=checkout / "ui", env={"PATH": str(checkout), "HOME": str(checkout)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
