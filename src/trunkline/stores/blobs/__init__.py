"""Files that are too long for a step's output: kept beside the store, under the run that they belong to."""

from trunkline.stores.blobs.base import BlobStore, digest_of

__all__ = ["BlobStore", "digest_of"]
