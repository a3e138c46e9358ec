"""Named secrets. No response contains a value."""

from __future__ import annotations

from typing import Annotated, TypedDict

import msgspec

from trunkline.api.resources.common import NextCursor, Timestamp
from trunkline.clock import rfc3339
from trunkline.stores.port.keys_and_secrets import Secret


class SecretResource(TypedDict):
    """A named secret, without its value."""

    name: str
    version: Annotated[int, msgspec.Meta(description="How many times the secret has been set.")]
    created_at: Timestamp
    updated_at: Timestamp


class SecretPage(TypedDict):
    items: list[SecretResource]
    next_cursor: NextCursor


class SecretValue(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    value: Annotated[
        str,
        msgspec.Meta(
            description="Stored encrypted, and never returned. Shorter values cannot be redacted reliably.",
            min_length=4,
            max_length=65_536,
            extra_json_schema={"writeOnly": True},
        ),
    ]


def secret_resource(secret: Secret) -> SecretResource:
    return {
        "name": secret.name,
        "version": secret.version,
        "created_at": rfc3339(secret.created_at),
        "updated_at": rfc3339(secret.updated_at),
    }
