"""
Push notification configs in the forms of 0.3 and 1.0.

    1.0   {"taskId", "id", "url", "token", "authentication": {"scheme", "credentials"}}
    0.3   {"taskId", "pushNotificationConfig": {"id", "url", "token", "authentication": {"schemes", "credentials"}}}

With the scheme `standard-webhooks`, the credentials are the secret that requests are signed with. Neither token nor
credentials are ever returned.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from trunkline.agents.http_urls import UrlError, parse_url
from trunkline.ids import RunId
from trunkline.jsontypes import Json, JsonObject
from trunkline.publishing.errors import invalid_params
from trunkline.publishing.messages import field_of, object_field, text_field
from trunkline.services.callbacks.push_configs import (
    MAX_CREDENTIALS_CHARACTERS,
    MAX_ID_CHARACTERS,
    MAX_SCHEME_CHARACTERS,
    MAX_TOKEN_CHARACTERS,
    PushReceiver,
)

SIGNED = "standard-webhooks"
# What stands in a header and cannot end it.
_HEADER_TEXT = re.compile(r"[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?")
_SCHEME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
# An id is a part of a path.
_ID = re.compile(r"[^\x00-\x1f\x7f\ud800-\udfff/]+")


class GivenConfig(NamedTuple):
    """A config as a caller has sent it."""

    id: str | None
    receiver: PushReceiver


def read_config(fields: JsonObject, version: str) -> GivenConfig:
    """Raises `A2AError`."""
    url = text_field(fields, "url", _MAX_URL)
    if url is None:
        raise invalid_params("The push notification config needs a url.")
    try:
        parse_url(url)
    except UrlError as exc:
        raise invalid_params(f"The url of the push notification config cannot be called: {exc}.") from exc
    token = _header_text(fields, "token", MAX_TOKEN_CHARACTERS)
    scheme, credentials = _authentication(object_field(fields, "authentication"), version)
    is_signed = scheme is not None and scheme.lower() == SIGNED
    if is_signed and credentials is None:
        raise invalid_params(f"authentication.credentials must be the secret for the scheme {SIGNED}.")
    return GivenConfig(
        config_id(fields, "id"),
        PushReceiver(
            url=url,
            version="0.3" if version == "0.3" else "1.0",
            token=token,
            scheme=scheme,
            credentials=None if is_signed else credentials,
            secret=credentials if is_signed else None,
        ),
    )


# Checked by `parse_url`, which says more about it.
_MAX_URL = 1_000_000


def config_id(fields: JsonObject, name: str) -> str | None:
    found = text_field(fields, name, MAX_ID_CHARACTERS)
    if found is not None and _ID.fullmatch(found) is None:
        raise invalid_params(f"{name} must not contain slashes and control characters")
    return found


def _header_text(fields: JsonObject, name: str, most: int) -> str | None:
    value = text_field(fields, name, most)
    if value is not None and _HEADER_TEXT.fullmatch(value) is None:
        raise invalid_params(f"{name} must consist of printable ASCII characters")
    return value


def _authentication(fields: JsonObject | None, version: str) -> tuple[str | None, str | None]:
    """Scheme and credentials."""
    if fields is None:
        return None, None
    credentials = _header_text(fields, "credentials", MAX_CREDENTIALS_CHARACTERS)
    scheme = (
        _first_scheme(fields) if version == "0.3" else text_field(fields, "scheme", MAX_SCHEME_CHARACTERS)
    )
    if scheme is None:
        raise invalid_params(
            "authentication.schemes must name a scheme"
            if version == "0.3"
            else "authentication.scheme is required"
        )
    if _SCHEME.fullmatch(scheme) is None or len(scheme) > MAX_SCHEME_CHARACTERS:
        raise invalid_params("The authentication scheme must be a token such as Bearer.")
    return scheme, credentials


def _first_scheme(fields: JsonObject) -> str | None:
    """Of 0.3, which lists those that the receiver takes: a signature if it can be had, else the first one."""
    schemes = field_of(fields, "schemes")
    listed = [scheme for scheme in schemes if isinstance(scheme, str)] if isinstance(schemes, list) else []
    signed = [scheme for scheme in listed if scheme.lower() == SIGNED]
    return next(iter(signed or listed), None)


def config_v1(task_id: RunId, identity: str, receiver: PushReceiver) -> JsonObject:
    fields: JsonObject = {"taskId": task_id, "id": identity, "url": receiver.url}
    if receiver.scheme is not None:
        fields["authentication"] = {"scheme": receiver.scheme}
    return fields


def config_v03(task_id: RunId, identity: str, receiver: PushReceiver) -> JsonObject:
    config: JsonObject = {"id": identity, "url": receiver.url}
    if receiver.scheme is not None:
        schemes: list[Json] = [receiver.scheme]
        config["authentication"] = {"schemes": schemes}
    return {"taskId": task_id, "pushNotificationConfig": config}
