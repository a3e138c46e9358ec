"""Which place for long files the settings mean."""

from __future__ import annotations

from pathlib import Path

from trunkline.errors import ConfigurationError
from trunkline.settings import Settings
from trunkline.stores.blobs import BlobStore
from trunkline.stores.blobs.folder import BlobFolder

_S3 = "s3://"


def open_blobs(settings: Settings) -> BlobStore | None:
    """None: everything stays in the outputs. The folders of several processes would not be one place."""
    place = settings.blobs
    if place is None:
        return None if settings.uses_postgres else BlobFolder(settings.data / "blobs")
    if not place.startswith(_S3):
        return BlobFolder(Path(place))
    bucket, _, prefix = place.removeprefix(_S3).partition("/")
    if not bucket:
        raise ConfigurationError(
            f"'{place}' names no bucket.",
            fix="Write it as s3://bucket or s3://bucket/prefix (TRUNKLINE_BLOBS).",
        )
    try:
        from trunkline.stores.blobs.bucket import BlobBucket  # noqa: PLC0415 - its library is an extra
    except ModuleNotFoundError as exc:
        raise ConfigurationError(
            "Files are to be kept in a bucket, but botocore is not installed.",
            fix='Install it: pip install "trunkline[s3]".',
        ) from exc
    return BlobBucket(bucket, prefix)
