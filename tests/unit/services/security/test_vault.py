"""Secrets at rest, and the key they are sealed with."""

from __future__ import annotations

import os
from base64 import b64encode, urlsafe_b64encode
from pathlib import Path

import pytest

from trunkline.errors import ConfigurationError
from trunkline.services.security.vault import KEY_BYTES, Vault, load_keys

CANARY = "canary-0f3a"
KEY = bytes(range(KEY_BYTES))


def test_what_is_sealed_can_be_opened_by_its_owner() -> None:
    vault = Vault(KEY)
    sealed = vault.seal({"token": CANARY}, owner="agent-1")
    assert vault.open(sealed, owner="agent-1") == {"token": CANARY}


def test_a_sealed_secret_shows_nothing_and_never_looks_the_same_twice() -> None:
    vault = Vault(KEY)
    first, second = (vault.seal({"token": CANARY}, owner="agent-1") for _ in range(2))
    assert CANARY.encode() not in first
    assert first != second


def test_a_secret_moved_to_another_owner_cannot_be_opened() -> None:
    vault = Vault(KEY)
    sealed = vault.seal({"token": CANARY}, owner="agent-1")
    with pytest.raises(ConfigurationError, match="cannot be decrypted"):
        vault.open(sealed, owner="agent-2")


@pytest.mark.parametrize("damage", [b"", b"\x01", b"\x01" + bytes(20), b"\x02" + bytes(60)])
def test_a_damaged_secret_is_a_clear_error(damage: bytes) -> None:
    with pytest.raises(ConfigurationError, match="cannot be decrypted"):
        Vault(KEY).open(damage, owner="agent-1")


def test_a_secret_sealed_with_another_key_is_a_clear_error_without_the_secret() -> None:
    sealed = Vault(bytes(KEY_BYTES)).seal({"token": CANARY}, owner="agent-1")
    with pytest.raises(ConfigurationError) as caught:
        Vault(KEY).open(sealed, owner="agent-1")
    assert CANARY not in str(caught.value)
    assert "TRUNKLINE_SECRET_KEY" in caught.value.fix


def test_the_configured_key_is_used_and_no_file_is_made(tmp_path: Path) -> None:
    file = tmp_path / "secret.key"
    assert load_keys(urlsafe_b64encode(KEY).decode(), file) == (KEY,)
    assert load_keys(b64encode(b"\xff" * KEY_BYTES).decode(), file) == (b"\xff" * KEY_BYTES,)
    assert not file.exists()


@pytest.mark.parametrize("configured", ["", "short", "ü" * 44, urlsafe_b64encode(bytes(16)).decode()])
def test_a_configured_key_that_is_none_is_refused_and_not_repeated(configured: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="TRUNKLINE_SECRET_KEY is not a valid key") as caught:
        load_keys(configured, tmp_path / "secret.key")
    assert not configured or configured not in f"{caught.value} {caught.value.fix}"


def test_the_first_start_makes_a_key_file_for_its_owner_only(tmp_path: Path) -> None:
    file = tmp_path / "data" / "secret.key"
    key = load_keys(None, file)

    assert [len(each) for each in key] == [KEY_BYTES]
    assert file.stat().st_mode & 0o777 == 0o600
    assert load_keys(None, file) == key
    assert os.listdir(file.parent) == ["secret.key"]


def test_a_key_file_that_others_can_read_is_refused_with_the_command_that_mends_it(tmp_path: Path) -> None:
    file = tmp_path / "secret.key"
    load_keys(None, file)
    file.chmod(0o644)
    with pytest.raises(ConfigurationError, match="Other users can read the key file") as caught:
        load_keys(None, file)
    assert caught.value.fix == f"chmod 600 {file}"


def test_a_key_file_without_a_key_is_refused_and_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "secret.key"
    file.write_text("not a key")
    file.chmod(0o600)
    with pytest.raises(ConfigurationError, match="does not contain a valid key"):
        load_keys(None, file)
    assert file.read_text() == "not a key"


def test_a_folder_that_cannot_hold_the_key_file_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigurationError, match="Cannot use the key file"):
        load_keys(None, tmp_path / "file" / "secret.key")


OLD = b"\x0f" * KEY_BYTES
# {"token": "canary-0f3a"} of agent-1 under KEY, as programs before key ids wrote it.
WITHOUT_KEY_ID = bytes.fromhex(
    "01000000000000000000000000759ec1b1de49ed9f328aca54764de3e0ff73306049a31d0946d543bd0b392ca231ec5f6bbf0003"
)


def test_a_secret_of_before_key_ids_is_read_with_whichever_key_fits() -> None:
    for vault in (Vault(KEY), Vault(OLD, KEY)):
        assert vault.open(WITHOUT_KEY_ID, owner="agent-1") == {"token": CANARY}
        assert not vault.is_current(WITHOUT_KEY_ID)


def test_previous_keys_decrypt_and_the_first_one_encrypts() -> None:
    old = Vault(OLD).seal({"token": CANARY}, owner="agent-1")
    rotated = Vault(KEY, OLD)
    assert rotated.open(old, owner="agent-1") == {"token": CANARY}
    assert not rotated.is_current(old)
    new = rotated.seal({"token": CANARY}, owner="agent-1")
    assert rotated.is_current(new)
    assert Vault(KEY).open(new, owner="agent-1") == {"token": CANARY}
    assert Vault(KEY).key_id == rotated.key_id != Vault(OLD).key_id


def test_several_keys_come_from_the_setting_or_from_the_lines_of_the_file(tmp_path: Path) -> None:
    new, old = (b64encode(key).decode() for key in (KEY, OLD))
    file = tmp_path / "secret.key"
    assert load_keys(f"{new},{old}", file) == (KEY, OLD)
    file.write_text(f"{new}\n{old}\n")
    file.chmod(0o600)
    assert load_keys(None, file) == (KEY, OLD)
    with pytest.raises(ConfigurationError, match="at most 8"):
        load_keys(",".join([new] * 9), file)
