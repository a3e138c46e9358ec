"""Rotating the encryption key of a running system, from the command line."""

from __future__ import annotations

import json
import os
import subprocess
from base64 import b64encode
from collections.abc import Mapping
from pathlib import Path

from tests.forked_program import trunkline_command

from trunkline.cli.demo.processes import running


def trunkline(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*trunkline_command(), *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **environment},
    )


def test_the_key_file_is_rotated_while_the_system_runs(
    shared_settings: Mapping[str, str], tmp_path: Path
) -> None:
    data, log = tmp_path / "data", tmp_path / "log"
    up = ["trunkline", "up", "--port", "0", "--data", str(data)]
    with running("Trunkline", up, log) as url:
        value = tmp_path / "value"
        value.write_text("xoxb-1234")
        assert trunkline("secrets", "set", "bot", "--from-file", str(value), "--url", url).returncode == 0
    file = data / "secret.key"
    old, new = file.read_text().strip(), b64encode(os.urandom(32)).decode()
    file.write_text(f"{new}\n{old}\n")
    with running("Trunkline", up, log) as url:
        done = trunkline("secrets", "rekey", "--data", str(data), "--json")
        assert done.returncode == 0, done.stderr
        assert "1 secrets checked, 1 encrypted again" in done.stderr
        report = json.loads(done.stdout)
        assert (report["secrets"], report["rekeyed"]) == (1, 1)
        audit = json.loads(trunkline("audit", "--kind", "secret", "--json", "--url", url).stdout)
        assert [entry["action"] for entry in audit["items"]] == ["rekey", "set"]
        file.write_text(f"{new}\n")
        again = json.loads(trunkline("secrets", "rekey", "--data", str(data), "--json").stdout)
        assert (again["secrets"], again["rekeyed"], again["key_id"]) == (1, 0, report["key_id"])
    file.write_text(f"{old}\n")
    failed = trunkline("secrets", "rekey", "--data", str(data))
    assert failed.returncode == 4
    assert "1 secrets cannot be decrypted with any of the keys: secret bot" in failed.stderr


def test_without_a_key_file_nothing_is_rekeyed_and_no_file_is_made(tmp_path: Path) -> None:
    failed = trunkline("secrets", "rekey", "--data", str(tmp_path))
    assert failed.returncode != 0
    assert "secret.key" in failed.stderr
    assert not (tmp_path / "secret.key").exists()
