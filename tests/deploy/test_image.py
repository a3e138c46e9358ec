"""
What can be known of compose.yaml and the entrypoint without Docker: that they name only what there is, and that the
entrypoint does its part. test_built_image.py builds the image.
"""

from __future__ import annotations

import os
import re
import stat
import subprocess
from pathlib import Path
from typing import cast

import pytest
import yaml

from trunkline.cli.app import build_app
from trunkline.settings import Settings

DEPLOY = Path(__file__).parents[2] / "deploy"
ENTRYPOINT = DEPLOY / "entrypoint.sh"
COMPOSE = cast(
    "dict[str, dict[str, dict[str, object]]]", yaml.safe_load((DEPLOY / "compose.yaml").read_text())
)
OURS = {
    name: service for name, service in COMPOSE["services"].items() if service["image"] == "trunkline:0.1.0"
}
# Read by the command line, not by a server; and by the library that talks to PostgreSQL.
NO_SETTINGS = {"TRUNKLINE_URL", "TRUNKLINE_API_KEY", "PGPASSWORD"}


def test_the_production_guide_shows_the_unit_file() -> None:
    guide = (DEPLOY.parent / "docs/guides/production.md").read_text()
    (shown,) = re.findall(r"   ```ini\n(.*?)   ```\n", guide, re.DOTALL)
    unit = (DEPLOY / "trunkline.service").read_text()
    assert [line.strip() for line in shown.splitlines()] == unit.splitlines()
    assert "LimitNOFILE=" in unit


def from_files() -> set[str]:
    """The names that the entrypoint reads from files."""
    (names,) = re.findall(r"^for name in (.*); do$", ENTRYPOINT.read_text(), re.MULTILINE)
    return set(names.split())


def test_compose_sets_only_settings_that_there_are() -> None:
    known = {f"TRUNKLINE_{name.upper()}" for name in Settings.model_fields} | NO_SETTINGS
    for service in OURS.values():
        for name in cast("dict[str, str]", service["environment"]):
            assert name in known or name.removesuffix("_FILE") in from_files()


@pytest.mark.parametrize("service", OURS)
def test_compose_runs_only_commands_that_there_are(service: str) -> None:
    command = [word for word in cast("list[str]", OURS[service]["command"]) if word != "--help"]
    app = build_app()
    for word in command[: command.index("--role") if "--role" in command else None]:
        app = app[word]


def test_what_a_service_waits_for_is_there() -> None:
    for service in COMPOSE["services"].values():
        assert set(cast("dict[str, object]", service.get("depends_on", {}))) <= COMPOSE["services"].keys()
        assert set(cast("list[str]", service.get("secrets", []))) <= COMPOSE["secrets"].keys()


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """A `trunkline` that prints its arguments and what it finds in its environment."""
    file = tmp_path / "bin" / "trunkline"
    file.parent.mkdir()
    file.write_text('#!/bin/sh\necho "$@"\nenv\n')
    file.chmod(file.stat().st_mode | stat.S_IXUSR)
    return file


def start(program: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    path = f"{program.parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        [ENTRYPOINT, "serve", "--role", "api"],
        env={"PATH": path, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def test_secrets_come_from_files_and_a_file_of_kafkas_stays_a_file(program: Path, tmp_path: Path) -> None:
    secret = "a $(rm -rf x) \"quoted\" 'secret'"
    (tmp_path / "secret").write_text(f"{secret}\n")
    file = str(tmp_path / "secret")
    started = start(
        program, TRUNKLINE_SECRET_KEY_FILE=file, PGPASSWORD_FILE=file, TRUNKLINE_KAFKA_KEY_FILE=file
    )
    arguments, *lines = started.stdout.splitlines()
    assert arguments == "serve --role api"
    found = dict(line.split("=", 1) for line in lines)
    assert found["TRUNKLINE_SECRET_KEY"] == found["PGPASSWORD"] == secret
    assert found["TRUNKLINE_KAFKA_KEY_FILE"] == file
    assert "TRUNKLINE_SECRET_KEY_FILE" not in found


def test_a_secret_whose_file_is_missing_is_said_and_nothing_starts(program: Path) -> None:
    started = start(program, TRUNKLINE_SECRET_KEY_FILE="/nowhere/secret")
    assert started.returncode == 5
    assert started.stdout == ""
    assert "TRUNKLINE_SECRET_KEY_FILE names a file that cannot be read: /nowhere/secret" in started.stderr
