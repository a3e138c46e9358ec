"""What the log may show of an address: the part of it that is a secret stays out."""

from __future__ import annotations

from trunkline.services.hooks import HOOKS

_SECRET = f"{HOOKS}/"


def shown_path(path: str) -> str:
    return f"{_SECRET}***" if path.startswith(_SECRET) else path
