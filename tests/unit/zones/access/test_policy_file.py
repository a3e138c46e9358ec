from __future__ import annotations

from pathlib import Path

import pytest
from tests.certificates import signing_key

from trunkline.errors import Invalid
from trunkline.jsontypes import Json, JsonObject, encode
from trunkline.zones.access.policy_file import load_policy, read_policy

PRIVATE, PUBLIC = signing_key()
_, OTHER = signing_key("p256")
TOML = """
secret_fields = ["pin"]

[defaults]
methods = ["execute_task"]
profiles = ["slack"]
rate = {per_second = 5, burst = 10}
max_bytes = 65536

[callers.verification]
keys = [{file = "verification.pem"}, {file = "keys/next.pem"}]
certificates = ["spiffe://zones/verification"]
max_bytes = 1000

[callers.platform]
"""


def findings(document: Json) -> dict[str, str]:
    with pytest.raises(Invalid) as caught:
        read_policy(document)
    assert caught.value.message.startswith("The policy cannot be used: ")
    return {finding.path: finding.message for finding in caught.value.findings}


def test_a_policy_in_toml_names_its_keys_by_file(tmp_path: Path) -> None:
    (tmp_path / "keys").mkdir()
    (tmp_path / "verification.pem").write_text(PUBLIC)
    (tmp_path / "keys/next.pem").write_text(OTHER)
    (tmp_path / "policy.toml").write_text(TOML)
    policy = load_policy(tmp_path / "policy.toml")
    assert policy.callers is not None
    rules = policy.callers["verification"]
    assert rules.keys == (PUBLIC, OTHER)
    assert rules.certificates == ("spiffe://zones/verification",)
    assert (rules.max_bytes, policy.defaults.max_bytes) == (1000, 65536)
    assert policy.secret_fields == {"bot_token", "pin"}


def test_a_policy_in_json_says_the_same(tmp_path: Path) -> None:
    document: JsonObject = {"callers": {"verification": {"keys": [PUBLIC]}}}
    (tmp_path / "policy.json").write_bytes(encode(document))
    assert load_policy(tmp_path / "policy.json") == read_policy(document)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("missing.toml", None, "cannot be read: No such file"),
        ("broken.toml", b"[callers", "is not TOML"),
        ("broken.json", b"{", "is not JSON"),
        ("bytes.toml", b"\xff", "is not TOML"),
        ("deep.json", b"[" * 100_000, "is not JSON"),
    ],
    ids=["missing", "toml", "json", "bytes", "deep"],
)
def test_a_file_that_is_no_policy_is_named(
    tmp_path: Path, name: str, content: bytes | None, message: str
) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(Invalid, match=message):
        load_policy(tmp_path / name)


@pytest.mark.parametrize(
    ("document", "place", "message"),
    [
        ([], "", "must be a table"),
        ({"caller": {}}, "caller", "is not supported; supported: callers"),
        ({"callers": {}}, "callers", "is empty"),
        ({"callers": ["a"]}, "callers", "must be a table of callers"),
        ({"callers": {"a": {}}}, "callers.a", "has neither keys nor certificates"),
        ({"callers": {"a": 1}}, "callers.a", "must be a table with"),
        ({"callers": {" a": {"keys": [PUBLIC]}}}, "callers. a", "is not a name"),
        ({"callers": {"anybody": {"keys": [PUBLIC]}}}, "callers.anybody", "calls without credentials"),
        ({"callers": {"anybody": {}, "platform": {}}}, "callers", "names both anybody and platform"),
        ({"callers": {"a": {"keys": []}}}, "callers.a.keys", "must be a list of 1 to 8"),
        ({"callers": {"a": {"keys": [PUBLIC] * 9}}}, "callers.a.keys", "must be a list of 1 to 8"),
        ({"callers": {"a": {"keys": ["x"]}}}, "callers.a.keys[0]", "must be a public key in PEM format"),
        ({"callers": {"a": {"keys": [PRIVATE]}}}, "callers.a.keys[0]", "is a private key"),
        ({"callers": {"a": {"keys": [7]}}}, "callers.a.keys[0]", "must be a public key in PEM format, or"),
        ({"callers": {"a": {"keys": [signing_key("rsa")[1]]}}}, "callers.a.keys[0]", "Ed25519 or P-256"),
        ({"callers": {"a": {"keys": [signing_key("p384")[1]]}}}, "callers.a.keys[0]", "Ed25519 or P-256"),
        (
            {"callers": {"a": {"keys": [{"file": "none.pem"}]}}},
            "callers.a.keys[0]",
            "none.pem cannot be read",
        ),
        (
            {"callers": {"a": {"keys": [PUBLIC]}, "b": {"keys": [PUBLIC]}}},
            "callers.b.keys[0]",
            "is the key of 'a', too",
        ),
        (
            {"callers": {"a": {"certificates": ["x"]}, "b": {"certificates": ["x"]}}},
            "callers.b.certificates[0]",
            "is the name of 'a', too",
        ),
        ({"defaults": {"keys": [PUBLIC]}}, "defaults.keys", "is not supported"),
        ({"defaults": {"methods": "execute_task"}}, "defaults.methods", "must be a list of strings"),
        ({"defaults": {"methods": []}}, "defaults.methods", "must be a list of strings"),
        ({"defaults": {"profiles": ["slak"]}}, "defaults.profiles[0]", "did you mean 'slack'"),
        ({"defaults": {"rate": 0}}, "defaults.rate.per_second", "must be more than 0"),
        ({"defaults": {"rate": {"burst": 2}}}, "defaults.rate.per_second", "must be more than 0"),
        ({"defaults": {"rate": {"per_second": float("nan")}}}, "defaults.rate.per_second", "must be more"),
        ({"defaults": {"rate": {"per_second": 1, "burst": 0}}}, "defaults.rate.burst", "at least 1"),
        ({"defaults": {"rate": "fast"}}, "defaults.rate", "must be a table with: per_second"),
        ({"defaults": {"max_bytes": True}}, "defaults.max_bytes", "must be a whole number"),
        ({"secret_fields": [1]}, "secret_fields", "must be a list of strings"),
    ],
    ids=range(30),
)
def test_a_mistake_in_a_policy_is_named(document: Json, place: str, message: str) -> None:
    found = findings(document)
    assert message in found[place]
    assert "PRIVATE" not in str(found)


def test_all_mistakes_are_named_at_once() -> None:
    assert len(findings({"x": 1, "defaults": {"rate": 0}, "callers": {"a": {}, "b": {"y": 1}}})) == 5
