"""Which place for long files the settings mean."""

from __future__ import annotations

from pathlib import Path

from trunkline.settings import Settings
from trunkline.stores.blobs import BlobStore
from trunkline.stores.blobs.folder import BlobFolder


def open_blobs(settings: Settings) -> BlobStore:
    return BlobFolder(settings.data / "blobs" if settings.blobs is None else Path(settings.blobs))
