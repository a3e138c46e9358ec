"""
Files in a bucket of S3, or of what speaks its protocol: `<prefix><run>/<digest>`.

Where it is and who we are says botocore's own configuration: AWS_ENDPOINT_URL_S3, AWS_REGION, AWS_ACCESS_KEY_ID and
what else it knows. A file is rare and long, so its calls run in threads.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar, cast

from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from botocore.session import Session

from trunkline.errors import Unavailable
from trunkline.ids import RunId
from trunkline.stores.blobs.base import digest_of

_MISSING = frozenset({"NoSuchKey", "404"})
_RUN = re.compile(r"[0-9a-f-]{36}")
_DIGEST = re.compile(r"[0-9a-f]{64}")
_CONFIG = Config(
    connect_timeout=10,
    read_timeout=60,
    retries={"mode": "standard", "max_attempts": 3},
    # Not every store knows the newer checksums.
    request_checksum_calculation="when_required",
    response_checksum_validation="when_required",
)

_Done = TypeVar("_Done")


class _Client(Protocol):
    """What is used of botocore's client, which is made at run time and has no types."""

    def put_object(self, *, Bucket: str, Key: str, Body: bytes) -> object: ...  # noqa: N803 - its names

    def get_object(self, *, Bucket: str, Key: str) -> dict[str, Any]: ...  # noqa: N803

    def list_objects_v2(self, **parameters: object) -> dict[str, Any]: ...

    def delete_object(self, *, Bucket: str, Key: str) -> object: ...  # noqa: N803


class BlobBucket:
    def __init__(self, bucket: str, prefix: str = "") -> None:
        self._bucket = bucket
        self._prefix = f"{prefix.strip('/')}/" if prefix.strip("/") else ""
        self._client = cast("_Client", cast("Any", Session()).create_client("s3", config=_CONFIG))

    async def put(self, run_id: RunId, content: bytes) -> str:
        digest = digest_of(content)
        await self._do(
            lambda: self._client.put_object(Bucket=self._bucket, Key=self._key(run_id, digest), Body=content)
        )
        return digest

    async def get(self, run_id: RunId, digest: str) -> bytes | None:
        if not _RUN.fullmatch(run_id) or not _DIGEST.fullmatch(digest):
            return None
        return await self._do(lambda: self._get(self._key(run_id, digest)))

    async def runs(self, *, limit: int, after: RunId | None = None) -> Sequence[RunId]:
        return await self._do(lambda: self._runs(limit, after))

    async def delete(self, run_id: RunId) -> None:
        await self._do(lambda: self._delete(run_id))

    async def _do(self, work: Callable[[], _Done]) -> _Done:
        try:
            return await asyncio.to_thread(work)
        except (BotoCoreError, ClientError) as exc:
            raise Unavailable(
                f"Cannot use the S3 bucket {self._bucket} for attachments: {exc}.",
                fix="Check TRUNKLINE_BLOBS, AWS_ENDPOINT_URL_S3, and the AWS_* variables with your "
                "credentials.",
            ) from exc

    def _key(self, run_id: RunId, digest: str) -> str:
        return f"{self._prefix}{run_id}/{digest}"

    def _get(self, key: str) -> bytes | None:
        try:
            answer = self._client.get_object(Bucket=self._bucket, Key=key)
        except ClientError as exc:
            if cast("Any", exc).response["Error"]["Code"] in _MISSING:
                return None
            raise
        return cast("bytes", answer["Body"].read())

    def _runs(self, limit: int, after: RunId | None) -> list[RunId]:
        parameters: dict[str, object] = {
            "Bucket": self._bucket,
            "Prefix": self._prefix,
            "Delimiter": "/",
            "MaxKeys": min(limit, 1_000),
        }
        if after is not None:
            # The character after the slash: behind everything of that run.
            parameters["StartAfter"] = f"{self._prefix}{after}0"
        answer = self._client.list_objects_v2(**parameters)
        found = [str(item["Prefix"]) for item in answer.get("CommonPrefixes", ())]
        names = [place.removeprefix(self._prefix).rstrip("/") for place in found]
        return [RunId(name) for name in names if _RUN.fullmatch(name)]

    def _delete(self, run_id: RunId) -> None:
        while True:
            answer = self._client.list_objects_v2(Bucket=self._bucket, Prefix=f"{self._prefix}{run_id}/")
            kept = answer.get("Contents", ())
            if not kept:
                return
            for item in kept:
                self._client.delete_object(Bucket=self._bucket, Key=str(item["Key"]))
