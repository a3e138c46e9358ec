"""
Secrets at rest: AES-256-GCM under one key, and where that key comes from.

A secret is bound to its owner: moved to another agent's row it cannot be opened. No message and no repr contains a
secret or a key.
"""

from __future__ import annotations

import binascii
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
# Tells one way to seal from the next, should there ever be another.
_FORMAT = b"\x01"
_NONCE_BYTES = 12
_OTHERS = 0o077


class Vault:
    """Seals and opens secrets."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    @cached_property
    def _cipher(self) -> AESGCM:
        # 6 MB of a library that a registry without secrets does without.
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415

        return AESGCM(self._key)

    def seal(self, secret: JsonObject, *, owner: str) -> bytes:
        nonce = os.urandom(_NONCE_BYTES)
        return _FORMAT + nonce + self._cipher.encrypt(nonce, encode(secret), owner.encode())

    def open(self, sealed: bytes, *, owner: str) -> JsonObject:
        """Raises `ConfigurationError` when it was sealed with another key, or for another owner."""
        from cryptography.exceptions import InvalidTag  # noqa: PLC0415 - as the cipher

        start = len(_FORMAT) + _NONCE_BYTES
        try:
            text = self._cipher.decrypt(sealed[len(_FORMAT) : start], sealed[start:], owner.encode())
        # ValueError: too short to hold a nonce.
        except (InvalidTag, ValueError) as exc:
            raise ConfigurationError(
                "A stored secret cannot be decrypted with the current key.",
                fix="Start Trunkline with the key that encrypted it (TRUNKLINE_SECRET_KEY or the key "
                "file), or set the agent's auth_config again.",
            ) from exc
        return cast("JsonObject", decode(text))


def load_key(configured: str | None, key_file: Path) -> bytes:
    """
    The key from the configuration, or else from the key file, which is made when there is none.

    A key that is made here is on the disk before it is used: a secret sealed with it survives a power cut.
    """
    if configured is not None:
        return _decoded(
            configured,
            f"TRUNKLINE_SECRET_KEY is not a valid key: it must be {KEY_BYTES} bytes in base64.",
            "Create one: openssl rand -base64 32",
        )
    try:
        if not key_file.exists():
            _make_key_file(key_file)
        return _read_key_file(key_file)
    except OSError as exc:
        raise ConfigurationError(
            f"Cannot use the key file {key_file}: {exc.strerror}.",
            fix="Check the folder and its permissions, or set TRUNKLINE_SECRET_KEY.",
        ) from exc


def _read_key_file(key_file: Path) -> bytes:
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


def _decoded(text: str, wrong: str, fix: str) -> bytes:
    try:
        # The standard alphabet is taken too: it is what `openssl rand -base64 32` prints.
        key = urlsafe_b64decode(text.strip().replace("+", "-").replace("/", "_"))
    except (binascii.Error, ValueError):
        key = b""
    if len(key) != KEY_BYTES:
        # Not chained: the cause's text could repeat a part of the key.
        raise ConfigurationError(wrong, fix=fix)
    return key
