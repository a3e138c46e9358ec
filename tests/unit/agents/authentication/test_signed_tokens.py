from __future__ import annotations

import json
import warnings
from base64 import urlsafe_b64decode
from hashlib import sha256

import pytest
from joserfc import jwt
from joserfc.jwk import ECKey, OKPKey
from tests.certificates import signing_key

from trunkline.agents.authentication.auth_config import credentials, validate_auth_config
from trunkline.agents.authentication.credentials import RequestSigner
from trunkline.agents.authentication.signed_tokens import body_digest, signed_token
from trunkline.clock import Instant
from trunkline.errors import Invalid
from trunkline.jsontypes import Json, JsonObject

KEY, PUBLIC = signing_key()
OTHER_KIND, OTHER_PUBLIC = signing_key("p256")
CONFIG: JsonObject = {"key": KEY, "issuer": "verification", "audience": "execution"}
NOW = Instant(1_760_000_000_900_000)


def signer(**fields: Json) -> RequestSigner:
    found = credentials("Zone", "signed", {**CONFIG, **fields}).signer
    assert found is not None
    return found


def test_a_signed_token_says_who_for_whom_until_when_and_for_which_body() -> None:
    token = signed_token(signer(), b'{"jsonrpc":"2.0"}', NOW, "one")
    read = jwt.decode(token, OKPKey.import_key(PUBLIC), algorithms=["EdDSA"])
    assert read.header == {"alg": "EdDSA", "typ": "JWT"}
    digest = urlsafe_b64decode(read.claims.pop("body") + "=")
    assert digest == sha256(b'{"jsonrpc":"2.0"}').digest()
    assert read.claims == {
        "iss": "verification",
        "sub": "verification",
        "aud": "execution",
        "iat": 1_760_000_000,
        "exp": 1_760_000_060,
        "jti": "one",
    }


def test_a_key_of_p_256_signs_too() -> None:
    token = signed_token(signer(key=OTHER_KIND, key_id="k2", lifetime_seconds=300), b"", NOW, "one")
    read = jwt.decode(token, ECKey.import_key(OTHER_PUBLIC), algorithms=["ES256"])
    assert read.header == {"alg": "ES256", "typ": "JWT", "kid": "k2"}
    assert read.claims["exp"] - read.claims["iat"] == 300
    assert read.claims["body"] == body_digest(b"")


def test_signing_warns_of_nothing() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        signed_token(signer(), b"", NOW, "one")


def test_a_signer_shows_no_key() -> None:
    found = credentials("Zone", "signed", CONFIG)
    assert found.shown == {"authorization": "Bearer $TRUNKLINE_SECRET_ZONE"}
    assert found.secrets == (KEY,)
    body = KEY.splitlines()[1]
    assert body not in repr(found)
    assert body not in repr(found.signer)


def test_a_signer_may_have_its_own_tls() -> None:
    assert validate_auth_config("signed", {**CONFIG, "tls": {"authority": "none"}})[0].path == (
        "auth_config.tls.authority"
    )


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("key", None, "must be a string in PEM format"),
        ("key", "secret", "is not a private key in PEM format"),
        ("key", PUBLIC, "is not a private key in PEM format"),
        ("key", signing_key(password="pass")[0], "is encrypted; use a key without a password"),
        ("key", signing_key("rsa")[0], "must be an Ed25519 or P-256 key"),
        ("key", signing_key("p384")[0], "must be an Ed25519 or P-256 key"),
        ("key", signing_key("x25519")[0], "must be an Ed25519 or P-256 key"),
        ("issuer", "", "is required and must be a string"),
        ("issuer", None, "is required and must be a string"),
        ("audience", "a\nb", "must not contain control characters"),
        ("lifetime_seconds", 0, "must be a whole number of seconds from 1 to 300"),
        ("lifetime_seconds", 301, "must be a whole number of seconds from 1 to 300"),
        ("lifetime_seconds", True, "must be a whole number of seconds from 1 to 300"),
        ("lifetime_seconds", "60", "must be a whole number of seconds from 1 to 300"),
        ("key_id", "k" * 201, "must have at most 200 characters"),
        ("password", "p", "is not a field of auth_type 'signed'"),
    ],
    ids=range(16),
)
def test_a_mistake_in_a_signer_is_named(field: str, value: Json, message: str) -> None:
    findings = validate_auth_config("signed", {**CONFIG, field: value})
    assert [(finding.path, finding.message) for finding in findings] == [(f"auth_config.{field}", message)]
    with pytest.raises(Invalid):
        credentials("Zone", "signed", {**CONFIG, field: value})
    assert KEY not in json.dumps([finding.message for finding in findings])
