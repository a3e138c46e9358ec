"""Files that are too long for a step's output: kept outside the database, by run."""

from trunkline.stores.blobs.base import BlobStore, digest_of

__all__ = ["BlobStore", "digest_of"]
