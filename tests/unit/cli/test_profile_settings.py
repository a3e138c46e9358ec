"""The operator's own profiles: files in a folder, known from the start on, or a reason why they are not."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from trunkline.errors import ConfigurationError
from trunkline.protocols import find_profile, validate_protocol_config
from trunkline.protocols.zone.params_profiles import known_profiles
from trunkline.services.agents.protocol_profiles import load_profiles
from trunkline.settings import load_settings

pytestmark = pytest.mark.usefixtures("own_profiles")


def test_a_file_in_the_folder_is_a_profile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "invoice.json").write_text('{"type": "object", "required": ["number"]}')
    (tmp_path / "README.md").write_text("What is in here.")
    monkeypatch.setenv("TRUNKLINE_PROFILES", str(tmp_path))
    assert validate_protocol_config("jsonrpc-2.0", {"profile": "invoice"})
    load_profiles(load_settings({}).profiles)
    assert validate_protocol_config("jsonrpc-2.0", {"profile": "invoice"}) == []
    assert [finding.path for finding in find_profile("invoice").check({})] == ["number"]


def test_without_the_setting_there_are_those_that_come_with_it() -> None:
    load_profiles(load_settings({}).profiles)
    assert list(known_profiles()) == ["slack", "any"]


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("a.json", "{", "it is not a JSON object"),
        ("a.json", "[]", "it is not a JSON object"),
        ("a.json", '{"type": "objekt"}', "it is not valid JSON Schema: type"),
        ("a.json", '{"$ref": "https://example.org/x.json"}', "Retrieval is disabled"),
        ("slack.json", "{}", "built-in profile"),
        ("a b.json", "{}", "not a valid profile name"),
    ],
)
def test_a_file_that_is_no_profile_stops_the_start_and_is_named(
    tmp_path: Path, name: str, text: str, reason: str
) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(ConfigurationError) as raised:
        load_profiles(tmp_path)
    assert str(tmp_path / name) in raised.value.message
    assert reason in raised.value.message
    assert raised.value.fix


def test_a_folder_or_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"Cannot read .*: No such file"):
        load_profiles(tmp_path / "nowhere")
    os.symlink(tmp_path / "gone", tmp_path / "a.json")
    with pytest.raises(ConfigurationError, match=r"a\.json: it cannot be read"):
        load_profiles(tmp_path)
