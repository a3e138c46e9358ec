"""
Secrets at rest: AES-256-GCM, and where the keys come from.

    version 2   0x02, key id (8 bytes), nonce (12 bytes), ciphertext
    version 1   0x01, nonce, ciphertext: written by older programs, and read with whichever key fits

The first key encrypts, and every key decrypts: this is how a key is rotated (`rekey.py` encrypts what is stored
again). A secret is bound to its owner: moved to another agent's row it cannot be opened. No message and no repr
contains a secret or a key.
"""

from __future__ import annotations

import binascii
import hashlib
import os
from base64 import urlsafe_b64decode, urlsafe_b64encode
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, cast

from trunkline.errors import ConfigurationError
from trunkline.id_generation import new_id
from trunkline.jsontypes import JsonObject, decode, encode

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

KEY_BYTES = 32
# A rotation needs two. More would only be keys that were forgotten there.
MAX_KEYS = 8
_WITHOUT_KEY_ID = b"\x01"
_WITH_KEY_ID = b"\x02"
# Enough to tell a few keys apart.
_KEY_ID_BYTES = 8
_KEY_ID_OF = b"trunkline vault key id, version 1"
_NONCE_BYTES = 12
_OTHERS = 0o077


class Vault:
    """Seals and opens secrets."""

    def __init__(self, key: bytes, *previous: bytes) -> None:
        """`previous`: keys that only decrypt."""
        # Their order is the order of the arguments: the first one encrypts.
        self._keys = {_key_id(each): each for each in (key, *previous)}
        self._current = _key_id(key)

    @property
    def key_id(self) -> str:
        """Tells the key that encrypts from others. It says nothing about the key."""
        return self._current.hex()

    @cached_property
    def _ciphers(self) -> dict[bytes, AESGCM]:
        # 6 MB of a library that a registry without secrets does without.
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415

        return {key_id: AESGCM(key) for key_id, key in self._keys.items()}

    def seal(self, secret: JsonObject, *, owner: str) -> bytes:
        nonce = os.urandom(_NONCE_BYTES)
        text = self._ciphers[self._current].encrypt(nonce, encode(secret), owner.encode())
        return _WITH_KEY_ID + self._current + nonce + text

    def open(self, sealed: bytes, *, owner: str) -> JsonObject:
        """Raises `ConfigurationError` when it was sealed with a key that is not here, or for another owner."""
        from cryptography.exceptions import InvalidTag  # noqa: PLC0415 - as the cipher

        for key_id, start in self._candidates(sealed):
            nonce, text = sealed[start : start + _NONCE_BYTES], sealed[start + _NONCE_BYTES :]
            try:
                return cast("JsonObject", decode(self._ciphers[key_id].decrypt(nonce, text, owner.encode())))
            # ValueError: too short to hold a nonce.
            except (InvalidTag, ValueError):
                continue
        raise ConfigurationError(
            "A stored secret cannot be decrypted with the current key.",
            fix="Start Trunkline with the key that encrypted it (TRUNKLINE_SECRET_KEY or the key "
            "file), or set the agent's auth_config again.",
        )

    def is_current(self, sealed: bytes) -> bool:
        """Whether it was sealed with the key that encrypts."""
        return sealed.startswith(_WITH_KEY_ID + self._current)

    def _candidates(self, sealed: bytes) -> list[tuple[bytes, int]]:
        """The keys that it may have been sealed with, and where its nonce begins."""
        after_id = len(_WITH_KEY_ID) + _KEY_ID_BYTES
        if sealed.startswith(_WITH_KEY_ID):
            key_id = sealed[len(_WITH_KEY_ID) : after_id]
            return [(key_id, after_id)] if key_id in self._keys else []
        return [(key_id, len(_WITHOUT_KEY_ID)) for key_id in self._keys]


def _key_id(key: bytes) -> bytes:
    return hashlib.sha256(_KEY_ID_OF + key).digest()[:_KEY_ID_BYTES]


def load_keys(configured: str | None, key_file: Path, *, make: bool = True) -> tuple[bytes, ...]:
    """
    The keys from the configuration, or else from the key file, which is made when there is none (unless not `make`).

    They are separated by white space or commas, and the first one encrypts. A key that is made here is on the disk
    before it is used: a secret sealed with it survives a power cut.
    """
    if configured is not None:
        return _decoded(
            configured,
            f"TRUNKLINE_SECRET_KEY is not a valid key: it must be {KEY_BYTES} bytes in base64, or at most "
            f"{MAX_KEYS} such keys separated by commas.",
            "Create one: openssl rand -base64 32",
        )
    try:
        if make and not key_file.exists():
            _make_key_file(key_file)
        return _read_key_file(key_file)
    except OSError as exc:
        raise ConfigurationError(
            f"Cannot use the key file {key_file}: {exc.strerror}.",
            fix="Check the folder and its permissions, or set TRUNKLINE_SECRET_KEY.",
        ) from exc


def _read_key_file(key_file: Path) -> tuple[bytes, ...]:
    if key_file.stat().st_mode & _OTHERS:
        raise ConfigurationError(
            f"Other users can read the key file {key_file}.", fix=f"chmod 600 {key_file}"
        )
    return _decoded(
        key_file.read_text(encoding="ascii", errors="replace").strip(),
        f"The key file {key_file} does not contain a valid key.",
        "Restore the right key file. If it is lost, so are the stored secrets: move this file "
        "elsewhere, start again, and set the agents' auth_config again.",
    )


def _make_key_file(key_file: Path) -> None:
    key_file.parent.mkdir(parents=True, exist_ok=True)
    # Written elsewhere, then linked to its name: a crash leaves no half a key, and of two processes that
    # start together the second takes the key of the first.
    draft = key_file.with_name(f".{key_file.name}.{new_id()}")
    try:
        _write_durably(draft, urlsafe_b64encode(os.urandom(KEY_BYTES)) + b"\n")
        try:
            os.link(draft, key_file)
        except FileExistsError:
            return
    finally:
        draft.unlink(missing_ok=True)
    folder = os.open(key_file.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _write_durably(path: Path, content: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _decoded(text: str, wrong: str, fix: str) -> tuple[bytes, ...]:
    try:
        # The standard alphabet is taken too: it is what `openssl rand -base64 32` prints.
        keys = tuple(
            urlsafe_b64decode(word.replace("+", "-").replace("/", "_"))
            for word in text.replace(",", " ").split()
        )
    except (binascii.Error, ValueError):
        keys = ()
    if not 1 <= len(keys) <= MAX_KEYS or any(len(key) != KEY_BYTES for key in keys):
        # Not chained: the cause's text could repeat a part of the key.
        raise ConfigurationError(wrong, fix=fix)
    return keys
