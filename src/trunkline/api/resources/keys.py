"""API keys. Only the response that creates a key contains it."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, TypedDict

import msgspec
from msgspec import Meta

from trunkline.api.resources.common import NextCursor, Timestamp, time_or_none
from trunkline.clock import rfc3339
from trunkline.services.security.api_keys import MAX_PUBLICATIONS
from trunkline.stores.port.keys_and_secrets import ApiKey, KeyRole

PUBLICATIONS = (
    "What a key with the role `caller` can call: `agents/NAME` and `workflows/NAME`. Empty for other roles."
)


class ApiKeyResource(TypedDict):
    """An API key, without the key itself."""

    id: str
    name: str
    role: KeyRole
    created_at: Timestamp
    expires_at: Annotated[Timestamp | None, Meta(description="When the key expires. Null: never.")]
    last_used_at: Annotated[
        Timestamp | None,
        Meta(description="When the key was last used, at most a minute late. Null: never."),
    ]
    revoked_at: Timestamp | None
    publications: Annotated[list[str], Meta(description=PUBLICATIONS)]


class CreatedApiKey(ApiKeyResource):
    """A new API key. This is the only response that contains the key itself."""

    key: Annotated[str, Meta(description="Send it as `Authorization: Bearer KEY`. It is not stored.")]


class ApiKeyPage(TypedDict):
    items: list[ApiKeyResource]
    next_cursor: NextCursor


class NewApiKey(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    name: Annotated[
        str,
        Meta(
            description="Who or what the key is for. No other active key can have this name.",
            extra_json_schema={"pattern": "^[A-Za-z0-9][A-Za-z0-9._@-]{0,99}$"},
        ),
    ]
    role: Annotated[KeyRole, Meta(description="What the key can do.")]
    expires_at: (
        Annotated[datetime, Meta(tz=True, description="When the key expires. Without it, it never does.")]
        | None
    ) = None
    publications: Annotated[list[str], Meta(description=PUBLICATIONS, max_length=MAX_PUBLICATIONS)] = []


def api_key_resource(key: ApiKey) -> ApiKeyResource:
    return {
        "id": key.id,
        "name": key.name,
        "role": key.role,
        "created_at": rfc3339(key.created_at),
        "expires_at": time_or_none(key.expires_at),
        "last_used_at": time_or_none(key.last_used_at),
        "revoked_at": time_or_none(key.revoked_at),
        "publications": list(key.publications),
    }
