"""Push notification configs: what is accepted, and that no secret comes back."""

from __future__ import annotations

import pytest

from trunkline.ids import RunId
from trunkline.jsontypes import JsonObject
from trunkline.publishing.errors import A2AError
from trunkline.publishing.push.configs import config_v03, config_v1, read_config
from trunkline.services.callbacks.push_configs import (
    MAX_CREDENTIALS_CHARACTERS,
    MAX_ID_CHARACTERS,
    MAX_SCHEME_CHARACTERS,
    MAX_TOKEN_CHARACTERS,
    PushReceiver,
)

URL = "https://receiver.example/hook"
TASK = RunId("t")


def test_a_config_of_1_0_is_read_and_shown_without_its_secrets() -> None:
    fields: JsonObject = {
        "id": "c",
        "url": URL,
        "token": "t-1",
        "authentication": {"scheme": "Bearer", "credentials": "s-1"},
    }
    given = read_config(fields, "1.0")
    assert given.id == "c"
    assert given.receiver == PushReceiver(
        url=URL, version="1.0", token="t-1", scheme="Bearer", credentials="s-1"
    )
    shown = config_v1(TASK, "c", given.receiver)
    assert shown == {"taskId": "t", "id": "c", "url": URL, "authentication": {"scheme": "Bearer"}}


def test_a_config_of_0_3_takes_the_first_scheme_that_it_lists() -> None:
    fields: JsonObject = {"url": URL, "authentication": {"schemes": ["Basic", "Bearer"], "credentials": "s"}}
    given = read_config(fields, "0.3")
    assert given.id is None
    assert given.receiver == PushReceiver(url=URL, version="0.3", scheme="Basic", credentials="s")
    shown = config_v03(TASK, "c", given.receiver)
    expected: JsonObject = {"id": "c", "url": URL, "authentication": {"schemes": ["Basic"]}}
    assert shown == {"taskId": "t", "pushNotificationConfig": expected}


@pytest.mark.parametrize(
    ("authentication", "version"),
    [
        ({"scheme": "Standard-Webhooks", "credentials": "s"}, "1.0"),
        ({"schemes": ["Bearer", "standard-webhooks"], "credentials": "s"}, "0.3"),
    ],
)
def test_standard_webhooks_credentials_are_the_secret_of_the_signature(
    authentication: JsonObject, version: str
) -> None:
    receiver = read_config({"url": URL, "authentication": authentication}, version).receiver
    assert (receiver.secret, receiver.credentials) == ("s", None)


REFUSED: list[tuple[JsonObject, str]] = [
    ({}, "needs a url"),
    ({"url": "ftp://receiver.example"}, "cannot be called"),
    ({"url": "stdio:true"}, "cannot be called"),
    ({"url": f"https://receiver.example/{'x' * 2_048}"}, "limit is 2048"),
    ({"url": URL, "id": "a/b"}, "id must not contain"),
    ({"url": URL, "id": "a\u0000"}, "id must not contain"),
    ({"url": URL, "id": "a" * (MAX_ID_CHARACTERS + 1)}, "at most 255"),
    ({"url": URL, "token": "a\r\nX-Other: b"}, "printable ASCII"),
    ({"url": URL, "token": "a" * (MAX_TOKEN_CHARACTERS + 1)}, "at most 4,096"),
    ({"url": URL, "authentication": {}}, "scheme is required"),
    ({"url": URL, "authentication": {"scheme": "a b"}}, "must be a token"),
    ({"url": URL, "authentication": {"scheme": "a" * (MAX_SCHEME_CHARACTERS + 1)}}, "at most 100"),
    ({"url": URL, "authentication": {"scheme": "Bearer", "credentials": "a\n"}}, "printable ASCII"),
    (
        {
            "url": URL,
            "authentication": {"scheme": "Bearer", "credentials": "a" * (MAX_CREDENTIALS_CHARACTERS + 1)},
        },
        "at most 8,192",
    ),
    ({"url": URL, "authentication": {"scheme": "standard-webhooks"}}, "must be the secret"),
]


@pytest.mark.parametrize(("fields", "why"), REFUSED)
def test_what_cannot_be_sent_to_is_refused_with_the_reason(fields: JsonObject, why: str) -> None:
    with pytest.raises(A2AError) as refused:
        read_config(fields, "1.0")
    assert why in refused.value.message


def test_0_3_needs_a_scheme_in_its_list() -> None:
    with pytest.raises(A2AError, match="schemes must name a scheme"):
        read_config({"url": URL, "authentication": {"schemes": []}}, "0.3")
