"""
Who may call what is published.

    security: public      everyone, with or without a key
    security: key         keys with the role operator or admin, and callers whose key names the publication

Where the API requires no keys, everyone may call everything. A key that is sent is always checked.
"""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from trunkline.api.middleware.auth import key_of, refusal_without_key
from trunkline.errors import NotAllowed
from trunkline.publishing.publications import Publication
from trunkline.stores.base import ApiKey


def refused(request: Request, publication: Publication, *, has_keys: bool) -> Response | None:
    """
    The response to a request without the key that it needs. Raises `NotAllowed` if its key is not enough.

    `has_keys`: the API requires keys.
    """
    if publication.options.security == "public":
        return None
    key = key_of(request.scope)
    if key is not None and not may_call(key, publication):
        if key.role == "caller":
            raise NotAllowed(
                f"The API key {key.name} is for other publications.",
                fix="Create a key that names it: "
                f"trunkline keys create NAME --role caller --publication {publication.key}.",
            )
        raise NotAllowed(
            f"The API key {key.name} has the role {key.role}, which cannot call published agents and workflows.",
            fix=f"Create a key for it: trunkline keys create NAME --role caller --publication {publication.key}.",
        )
    response = refusal_without_key(request.scope)
    if has_keys and key is None and response is None:
        # The check of keys has let the request pass as one that needs none.
        raise NotAllowed(
            "This request needs an API key, but none was sent.",
            fix="Send the header Authorization: Bearer KEY.",
        )
    return response


def may_call(key: ApiKey, publication: Publication) -> bool:
    match key.role:
        case "caller":
            return publication.key in key.publications or publication.options.security == "public"
        case "viewer":
            return False
        case "operator" | "admin":
            return True


def is_listed(key: ApiKey | None, publication: Publication) -> bool:
    """Whether the catalog has it: callers only see what they can call."""
    return key is None or key.role != "caller" or may_call(key, publication)
