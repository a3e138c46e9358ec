"""Access control of a zone: which tokens are accepted, and every way in which one can be wrong."""

from __future__ import annotations

import hashlib
import hmac
import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Generator, Mapping
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from joserfc.jwk import ECKey, OKPKey
from structlog.testing import capture_logs
from tests.certificates import signing_key

from trunkline.agents.authentication.credentials import RequestSigner
from trunkline.agents.authentication.signed_tokens import TOKEN_ALGORITHMS, body_digest, signed_token
from trunkline.errors import Invalid
from trunkline.jsontypes import JsonObject
from trunkline.stores.zones import RefusedCall, ZoneStore
from trunkline.stores.zones.file import open_zone_file, zone_in_memory
from trunkline.telemetry import log_events
from trunkline.testing import FakeClock
from trunkline.zones.access.control import PLATFORM, AccessControl, AuthenticatedCaller, PresentedCredentials
from trunkline.zones.access.policy import ANYBODY, OPEN_POLICY, CallRefused, ZoneCaller
from trunkline.zones.access.policy_file import read_policy

PRIVATE, PUBLIC = signing_key()
NEXT_PRIVATE, NEXT_PUBLIC = signing_key("p256")
OTHER_PRIVATE, OTHER_PUBLIC = signing_key()
BODY = b'{"jsonrpc":"2.0","id":"1","method":"execute_task","params":{"bot_token":"xoxb-secret"}}'
POLICY: JsonObject = {
    "callers": {
        "verification": {"keys": [PUBLIC, NEXT_PUBLIC], "certificates": ["verification.example"]},
        "other": {"keys": [OTHER_PUBLIC], "certificates": ["other.example", "spiffe://zones/other"]},
    }
}
VERIFICATION = ZoneCaller(name="verification", known_by="token")


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def store() -> Generator[ZoneStore]:
    with zone_in_memory() as opened:
        yield opened


@pytest.fixture
def access(store: ZoneStore, clock: FakeClock) -> AccessControl:
    return AccessControl("execution", read_policy(POLICY), store, clock)


def seconds(clock: FakeClock) -> int:
    return clock.now() // 1_000_000


def claims(clock: FakeClock, **changed: object) -> dict[str, object]:
    now = seconds(clock)
    usual: dict[str, object] = {
        "iss": "verification",
        "sub": "verification",
        "aud": "execution",
        "iat": now,
        "exp": now + 60,
        "jti": "one",
        "body": body_digest(BODY),
    }
    return {name: value for name, value in {**usual, **changed}.items() if value is not None}


def part(value: object) -> str:
    text = value if isinstance(value, bytes) else json.dumps(value).encode()
    return urlsafe_b64encode(text).rstrip(b"=").decode()


def signed(content: object, key: str = PRIVATE, **header: object) -> str:
    """A token over any content, under any header that the library lets us write."""
    head = {"alg": "EdDSA", "typ": "JWT", **header}
    begun = f"{part(head)}.{part(content)}"
    return f"{begun}.{part(_signature(begun.encode(), key))}"


def _signature(text: bytes, key: str) -> bytes:
    algorithm = "ES256" if key == NEXT_PRIVATE else "EdDSA"
    loaded = ECKey.import_key(key) if key == NEXT_PRIVATE else OKPKey.import_key(key)
    return TOKEN_ALGORITHMS.get_alg(algorithm).sign(text, loaded)


def with_secret(content: object, secret: bytes, algorithm: str = "HS256") -> str:
    begun = f"{part({'alg': algorithm, 'typ': 'JWT'})}.{part(content)}"
    return f"{begun}.{part(hmac.new(secret, begun.encode(), hashlib.sha256).digest())}"


def shown(token: str, certificate: tuple[str, ...] | None = None) -> PresentedCredentials:
    return PresentedCredentials(authorizations=(f"Bearer {token}".encode(),), certificate=certificate)


def recognised(
    access: AccessControl, shown: PresentedCredentials, body: bytes = BODY
) -> ZoneCaller | CallRefused:
    """Who has sent this body with what it has shown."""
    caller = access.authenticate(shown)
    if isinstance(caller, CallRefused):
        return caller
    return access.check_body(caller, body) or caller.caller


def reason_of(store: ZoneStore) -> str:
    return store.refusals(1)[0].reason


def test_a_token_that_its_caller_has_signed_for_this_request_is_taken(
    access: AccessControl, clock: FakeClock
) -> None:
    signer = RequestSigner(key=PRIVATE, issuer="verification", audience="execution")
    token = signed_token(signer, BODY, clock.now(), "one")
    assert recognised(access, shown(token)) == VERIFICATION


@pytest.mark.parametrize(
    ("key", "header"),
    [
        (PRIVATE, {}),
        (PRIVATE, {"alg": "Ed25519"}),
        (NEXT_PRIVATE, {"alg": "ES256"}),
        (PRIVATE, {"kid": "any"}),
    ],
    ids=["first", "its-new-name", "second", "with-an-id"],
)
def test_both_keys_are_taken_while_they_change(
    access: AccessControl, clock: FakeClock, key: str, header: dict[str, object]
) -> None:
    assert recognised(access, shown(signed(claims(clock), key, **header))) == VERIFICATION


@pytest.mark.parametrize(
    "changed",
    [
        {"aud": ["execution"]},
        {"sub": None},
        {"exp": 299, "iat": 0},
        {"nbf": 0},
        {"iat": 29, "exp": 60},
        {"iat": -80, "exp": -29},
    ],
    ids=["list", "no-subject", "long", "not-before", "fast-clock", "slow-clock"],
)
def test_what_a_token_may_also_say(
    access: AccessControl, clock: FakeClock, changed: dict[str, object]
) -> None:
    now = seconds(clock)
    said = {name: now + value if isinstance(value, int) else value for name, value in changed.items()}
    assert recognised(access, shown(signed(claims(clock, **said)))) == VERIFICATION


def test_a_token_for_any_body_is_refused_unless_the_policy_allows_its_caller_to_send_one(
    access: AccessControl, store: ZoneStore, clock: FakeClock
) -> None:
    token = shown(signed(claims(clock, body=None)))
    assert isinstance(recognised(access, token), CallRefused)
    assert reason_of(store) == "token_body"
    callers = POLICY["callers"]
    assert isinstance(callers, dict)
    rules = callers["verification"]
    assert isinstance(rules, dict)
    policy: JsonObject = {**POLICY, "callers": {**callers, "verification": {**rules, "unbound_tokens": True}}}
    assert recognised(AccessControl("execution", read_policy(policy), store, clock), token) == VERIFICATION
    policy["callers"] = {"verification": {**rules, "unbound_tokens": "yes"}}
    with pytest.raises(Invalid, match="unbound_tokens: must be true or false"):
        read_policy(policy)


def test_a_token_is_good_once_also_after_a_restart(tmp_path: Path, clock: FakeClock) -> None:
    token = signed(claims(clock))
    for expected in (None, "token_used", "token_used"):
        with open_zone_file(tmp_path / "zone.db") as store:
            found = recognised(AccessControl("execution", read_policy(POLICY), store, clock), shown(token))
            assert (reason_of(store) if isinstance(found, CallRefused) else None) == expected


def test_a_used_token_stays_used_for_as_long_as_clocks_may_differ(
    access: AccessControl, store: ZoneStore, clock: FakeClock
) -> None:
    token = signed(claims(clock))
    assert recognised(access, shown(token)) == VERIFICATION
    for moved in (30, 30, 29):
        clock.advance(timedelta(seconds=moved))
        store.forget(clock.now(), clock.now())
        assert isinstance(recognised(access, shown(token)), CallRefused)
        assert reason_of(store) == "token_used"
    clock.advance(timedelta(seconds=1))
    recognised(access, shown(token))
    assert reason_of(store) == "token_expired"


def test_two_callers_may_have_the_same_token_id(access: AccessControl, clock: FakeClock) -> None:
    other = claims(clock, iss="other", sub="other")
    assert recognised(access, shown(signed(claims(clock)))) == VERIFICATION
    assert recognised(access, shown(signed(other, OTHER_PRIVATE))) == ZoneCaller(
        name="other", known_by="token"
    )


def test_a_token_with_another_body_is_not_used_up(
    access: AccessControl, store: ZoneStore, clock: FakeClock
) -> None:
    token = signed(claims(clock))
    assert isinstance(recognised(access, shown(token), b"another"), CallRefused)
    assert reason_of(store) == "token_body"
    assert recognised(access, shown(token)) == VERIFICATION


Attack = Callable[[FakeClock], str]


def _always(token: str) -> Attack:
    return lambda _: token


def _broken(change: Callable[[list[str]], list[str]]) -> Attack:
    return lambda clock: ".".join(change(signed(claims(clock)).split(".")))


def _flipped(text: str) -> str:
    data = bytearray(urlsafe_b64decode(text + "=" * (-len(text) % 4)))
    data[0] ^= 1
    return part(bytes(data))


def _header(**header: object) -> Attack:
    return lambda clock: signed(claims(clock), PRIVATE, **header)


def _claim(**changed: object) -> Attack:
    return lambda clock: signed(claims(clock, **changed))


def _time(**changed: int) -> Attack:
    return lambda clock: signed(
        claims(clock, **{name: seconds(clock) + value for name, value in changed.items()})
    )


OWN_JWK = OKPKey.import_key(OTHER_PRIVATE).as_dict(private=False)
ATTACKS: dict[str, tuple[Attack, str]] = {
    # what it is made of
    "empty": (_always(""), "token_malformed"),
    "no token": (_always("secret"), "token_malformed"),
    "two parts": (_broken(lambda parts: parts[:2]), "token_malformed"),
    "four parts": (_broken(lambda parts: [*parts, "x"]), "token_malformed"),
    "five parts, as an encrypted one": (_always("a.b.c.d.e"), "token_malformed"),
    "no payload": (_broken(lambda parts: [parts[0], "", parts[2]]), "token_malformed"),
    "padding": (_broken(lambda parts: [*parts[:2], parts[2] + "=="]), "token_signature"),
    "a line break inside": (_broken(lambda parts: [*parts[:2], parts[2] + "\n"]), "token_signature"),
    "a header that is a list": (_broken(lambda parts: [part(["alg", "typ"]), *parts[1:]]), "token_malformed"),
    "a header that is a text": (_broken(lambda parts: [part("alg"), *parts[1:]]), "token_malformed"),
    "a header that is not JSON": (_broken(lambda parts: [part(b"{"), *parts[1:]]), "token_malformed"),
    "a header without an algorithm": (_broken(lambda parts: [part({}), *parts[1:]]), "token_malformed"),
    "claims that are a list": (_always(signed([])), "token_malformed"),
    "claims that are not JSON": (_always(signed(b"{")), "token_malformed"),
    "claims that are nested": (_always(signed(b"[" * 6000)), "token_malformed"),
    "larger than any token": (_claim(more="x" * 9000), "token_malformed"),
    # who has signed it, and how
    "the algorithm none": (
        lambda clock: f"{part({'alg': 'none'})}.{part(claims(clock))}.",
        "token_algorithm",
    ),
    "the algorithm None": (_header(alg="None"), "token_algorithm"),
    "the public key as a shared secret": (
        lambda clock: with_secret(claims(clock), PUBLIC.encode()),
        "token_algorithm",
    ),
    "a shared secret called EdDSA": (
        lambda clock: with_secret(claims(clock), PUBLIC.encode(), "EdDSA"),
        "token_signature",
    ),
    "an algorithm that is a number": (_header(alg=1), "token_malformed"),
    "an algorithm for RSA": (_header(alg="RS256"), "token_algorithm"),
    "an algorithm for encryption": (_header(alg="dir"), "token_algorithm"),
    "the algorithm of the other key": (_header(alg="ES256"), "token_signature"),
    "another caller's key": (lambda clock: signed(claims(clock), OTHER_PRIVATE), "token_signature"),
    "a key of its own in the header": (
        lambda clock: signed(claims(clock), OTHER_PRIVATE, jwk=OWN_JWK),
        "token_malformed",
    ),
    "a place to get the key from": (_header(jku="https://evil.example/keys"), "token_malformed"),
    "a certificate in the header": (_header(x5c=["MIIB"]), "token_malformed"),
    "an id that is a path": (_header(kid=["../../dev/null"]), "token_malformed"),
    "something critical": (_header(crit=["exp"]), "token_malformed"),
    "a payload that is not encoded": (_header(b64=False, crit=["b64"]), "token_malformed"),
    "another type of token": (_header(typ="at+jwt"), "token_malformed"),
    "no signature": (_broken(lambda parts: [*parts[:2], ""]), "token_signature"),
    "another signature": (_broken(lambda parts: [*parts[:2], _flipped(parts[2])]), "token_signature"),
    "a signature of zeros": (_broken(lambda parts: [*parts[:2], part(bytes(64))]), "token_signature"),
    "zeros for the other key": (
        lambda clock: f"{part({'alg': 'ES256'})}.{part(claims(clock))}.{part(bytes(64))}",
        "token_signature",
    ),
    "claims that were changed after": (
        lambda clock: ".".join(
            [
                signed(claims(clock)).split(".")[0],
                part(claims(clock, jti="two")),
                signed(claims(clock)).split(".")[2],
            ]
        ),
        "token_signature",
    ),
    # from whom and for whom
    "an unknown issuer": (_claim(iss="stranger"), "token_issuer"),
    "an issuer in other letters": (_claim(iss="Verification"), "token_issuer"),
    "no issuer": (_claim(iss=None), "token_malformed"),
    "an issuer that shows nothing": (_claim(iss="anybody"), "token_issuer"),
    "somebody else's subject": (_claim(sub="other"), "token_subject"),
    "another zone": (_claim(aud="verification"), "token_audience"),
    "a zone whose name begins alike": (_claim(aud="execution2"), "token_audience"),
    "two zones": (_claim(aud=["execution", "billing"]), "token_audience"),
    "no zone": (_claim(aud=[]), "token_audience"),
    "no audience": (_claim(aud=None), "token_malformed"),
    "an audience that is a pattern": (_claim(aud="*"), "token_audience"),
    # when
    "expired": (_time(iat=-90, exp=-30), "token_expired"),
    "of the last century": (_claim(iat=0, exp=60), "token_expired"),
    "from the future": (_time(iat=31, exp=60), "token_not_yet_valid"),
    "not valid yet": (_time(nbf=31), "token_not_yet_valid"),
    "longer than five minutes": (_time(exp=301), "token_too_long_lived"),
    "forever": (_claim(exp=2**62), "token_too_long_lived"),
    "for longer than a number can say": (_claim(exp=1e308), "token_too_long_lived"),
    "older than long": (_time(iat=-300, exp=60), "token_too_long_lived"),
    "that ends before it begins": (_time(iat=10, exp=5), "token_too_long_lived"),
    "that never ends": (_claim(exp=None), "token_malformed"),
    "that never began": (_claim(iat=None), "token_malformed"),
    "whose end is a text": (_claim(exp="9999999999"), "token_malformed"),
    "whose end is true": (_claim(exp=True), "token_malformed"),
    # for which request
    "without an id": (_claim(jti=None), "token_malformed"),
    "with an empty id": (_claim(jti=""), "token_malformed"),
    "with an id that is too long": (_claim(jti="x" * 256), "token_malformed"),
    "for another body": (_claim(body=body_digest(b"another")), "token_body"),
    "for a body in other letters": (_claim(body=body_digest(BODY) + "="), "token_body"),
    "for no body": (_claim(body=""), "token_body"),
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_token_that_is_wrong_is_refused_and_the_answer_does_not_say_why(
    access: AccessControl, store: ZoneStore, clock: FakeClock, attack: str
) -> None:
    make, reason = ATTACKS[attack]
    with capture_logs() as lines:
        refused = recognised(access, shown(make(clock)))
    assert isinstance(refused, CallRefused)
    assert (refused.status, refused.code) == (401, -32000)
    assert refused.message.startswith("Not authenticated.")
    assert reason_of(store) == reason
    (line,) = lines
    assert line["event"] == log_events.ZONE_CALL_REFUSED
    assert line["reason"] == reason
    said = f"{refused} {line} {store.refusals(1)}"
    assert "eyJ" not in said
    assert "xoxb" not in said
    assert "stranger" not in said


@pytest.mark.parametrize(
    "headers",
    [
        (b"Basic dXNlcjpwYXNz",),
        (b"Bearer",),
        (b"",),
        ("Bearer tökén".encode(),),
        (b"Bearer GOOD", b"Bearer GOOD"),
        (b"Bearer GOOD, Bearer GOOD",),
        (b"Bearer  GOOD",),
    ],
    ids=["basic", "bare", "empty", "letters", "twice", "listed", "spaces"],
)
def test_a_header_that_is_none_of_ours_is_refused(
    access: AccessControl, store: ZoneStore, clock: FakeClock, headers: tuple[bytes, ...]
) -> None:
    good = signed(claims(clock)).encode()
    found = PresentedCredentials(authorizations=tuple(header.replace(b"GOOD", good) for header in headers))
    assert isinstance(recognised(access, found), CallRefused)
    assert reason_of(store) == "token_malformed"


def test_a_bad_token_is_refused_although_anybody_may_call(store: ZoneStore, clock: FakeClock) -> None:
    policy = read_policy({"callers": {"anybody": {}, "verification": {"keys": [PUBLIC]}}})
    access = AccessControl("execution", policy, store, clock)
    assert recognised(access, PresentedCredentials()) == ANYBODY
    assert isinstance(recognised(access, shown("secret")), CallRefused)


def test_a_caller_without_credentials_is_not_authenticated(access: AccessControl, store: ZoneStore) -> None:
    refused = recognised(access, PresentedCredentials())
    assert isinstance(refused, CallRefused)
    assert refused.status == 401
    assert reason_of(store) == "no_credentials"


def test_an_open_zone_takes_anybody_and_reads_no_token(store: ZoneStore, clock: FakeClock) -> None:
    access = AccessControl("execution", OPEN_POLICY, store, clock)
    assert recognised(access, shown("of some gateway")) == ANYBODY
    assert recognised(access, PresentedCredentials()) == ANYBODY


def test_behind_a_platform_a_call_that_shows_nothing_is_the_platforms(
    store: ZoneStore, clock: FakeClock
) -> None:
    access = AccessControl("execution", read_policy({"callers": {"platform": {}}}), store, clock)
    assert recognised(access, PresentedCredentials()) == PLATFORM
    assert recognised(access, shown("of the platform's own")) == PLATFORM


@pytest.mark.parametrize(
    ("certificate", "expected"),
    [
        (("verification.example",), "verification"),
        (("elsewhere.example", "other.example"), "other"),
        (("spiffe://zones/other", "other.example"), "other"),
        (("Verification.example",), "certificate_unknown"),
        (("x.verification.example",), "certificate_unknown"),
        (("verification",), "certificate_unknown"),
        (("*.example",), "certificate_unknown"),
        ((), "certificate_unknown"),
        (("verification.example", "other.example"), "certificate_ambiguous"),
    ],
    ids=range(9),
)
def test_a_certificate_stands_for_the_caller_that_the_policy_has_for_its_name(
    access: AccessControl, store: ZoneStore, certificate: tuple[str, ...], expected: str
) -> None:
    found = recognised(access, PresentedCredentials(certificate=certificate))
    if isinstance(found, ZoneCaller):
        assert found == ZoneCaller(name=expected, known_by="certificate")
    else:
        assert (found.status, reason_of(store)) == (403, expected)


def test_a_token_and_a_certificate_must_be_of_the_same_caller(
    access: AccessControl, store: ZoneStore, clock: FakeClock
) -> None:
    token = signed(claims(clock))
    assert isinstance(recognised(access, shown(token, certificate=("other.example",))), CallRefused)
    assert reason_of(store) == "certificate_of_another"
    assert recognised(access, shown(token, certificate=("verification.example",))) == VERIFICATION


def test_a_token_is_enough_if_the_certificate_names_no_caller(
    access: AccessControl, clock: FakeClock
) -> None:
    assert recognised(access, shown(signed(claims(clock)), certificate=("proxy.example",))) == VERIFICATION


def test_without_a_list_of_callers_a_certificate_names_its_own(store: ZoneStore, clock: FakeClock) -> None:
    access = AccessControl("execution", OPEN_POLICY, store, clock)
    assert recognised(access, PresentedCredentials(certificate=("a.example", "b.example"))) == ZoneCaller(
        name="a.example", known_by="certificate"
    )


def test_a_caller_over_its_rate_must_wait_and_another_need_not(store: ZoneStore, clock: FakeClock) -> None:
    policy = read_policy({**POLICY, "defaults": {"rate": {"per_second": 1, "burst": 2}}})
    access = AccessControl("execution", policy, store, clock)

    def admitted(name: str) -> str | None:
        caller = ZoneCaller(name=name, known_by="token")
        refused = access.authorize(caller, method="execute_task", params={}, size=1, correlation_id="c-1")
        return None if refused is None else refused.reason

    assert [admitted("verification") for _ in range(3)] == [None, None, "too_fast"]
    assert admitted("other") is None
    assert store.refusals(9) == [
        RefusedCall(
            at=clock.now(),
            caller="verification",
            reason="too_fast",
            method="execute_task",
            correlation_id="c-1",
        )
    ]
    clock.advance(timedelta(seconds=1))
    assert [admitted("verification") for _ in range(2)] == [None, "too_fast"]


def test_a_flood_of_unknown_callers_hides_no_other_refusal_and_is_counted(
    access: AccessControl, store: ZoneStore, clock: FakeClock
) -> None:
    with capture_logs() as lines:
        for _ in range(1_500):
            assert isinstance(access.authenticate(PresentedCredentials()), CallRefused)
        assert isinstance(access.authenticate(shown(signed(claims(clock, aud="billing")))), CallRefused)
    noted = [refusal.reason for refusal in store.refusals(5_000)]
    assert noted == ["token_audience"] + ["no_credentials"] * 1_000
    assert len(lines) == 1_001
    clock.advance(timedelta(seconds=1))
    with capture_logs() as later:
        access.authenticate(PresentedCredentials())
    assert [line["not_recorded"] for line in later] == [500]


def test_a_refused_call_leaves_a_note_without_its_params(access: AccessControl, store: ZoneStore) -> None:
    with capture_logs() as lines:
        refused = access.authorize(
            ANYBODY, method="execute_task", params={"bot_token": "xoxb-secret"}, size=1, correlation_id="c-1"
        )
    assert refused is not None
    assert refused.reason == "caller_not_allowed"
    assert "xoxb" not in f"{lines} {refused} {store.refusals(1)}"
    assert isinstance(lines[0]["zone"], str)


def test_a_caller_is_known_before_its_body_is_read(
    access: AccessControl, store: ZoneStore, clock: FakeClock
) -> None:
    old = claims(clock, iat=seconds(clock) - 90, exp=seconds(clock) - 30)
    for attack in (
        "",
        signed(old),
        signed(claims(clock, aud="billing")),
        signed(claims(clock), OTHER_PRIVATE),
    ):
        assert isinstance(access.authenticate(shown(attack)), CallRefused)
    caller = access.authenticate(shown(signed(claims(clock))))
    assert isinstance(caller, AuthenticatedCaller)
    assert caller.caller == VERIFICATION


def test_a_body_that_says_to_be_too_large_is_not_read(store: ZoneStore, clock: FakeClock) -> None:
    access = AccessControl("execution", read_policy({"defaults": {"max_bytes": 10}}), store, clock)
    caller = access.authenticate(PresentedCredentials(size=10))
    assert isinstance(caller, AuthenticatedCaller)
    assert caller.max_bytes == 10
    refused = access.authenticate(PresentedCredentials(size=11))
    assert isinstance(refused, CallRefused)
    assert (refused.status, reason_of(store)) == (413, "too_large")


def test_a_token_that_runs_out_while_its_body_comes_is_refused(
    access: AccessControl, store: ZoneStore, clock: FakeClock
) -> None:
    caller = access.authenticate(shown(signed(claims(clock))))
    assert isinstance(caller, AuthenticatedCaller)
    clock.advance(timedelta(seconds=90))
    assert isinstance(access.check_body(caller, BODY), CallRefused)
    assert reason_of(store) == "token_expired"


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(data=st.data())
@settings(max_examples=200, deadline=None)
def test_whatever_a_token_says_it_is_refused_or_its_callers_own(data: st.DataObject) -> None:
    clock = FakeClock()
    odd = data.draw(st.dictionaries(st.sampled_from([*sorted(claims(clock)), "nbf", "x"]), JSON_VALUES))
    header = data.draw(st.dictionaries(st.sampled_from(["alg", "typ", "kid", "crit", "b64"]), JSON_VALUES))
    with zone_in_memory() as store:
        access = AccessControl("execution", read_policy(POLICY), store, clock)
        found = recognised(access, shown(signed({**claims(clock), **odd}, PRIVATE, **header)))
        if isinstance(found, CallRefused):
            assert found.status == 401
            assert store.refusals(1)[0].caller in {"nobody", "verification"}
        else:
            assert found == VERIFICATION
            assert not odd.keys() & {"iss", "aud", "exp", "iat"} or _still_holds(odd, clock)


def _still_holds(odd: Mapping[str, object], clock: FakeClock) -> bool:
    """Whether what was changed in a token that was taken is as good as what it should have been."""
    said = claims(clock, **odd)
    times = (said["iat"], said["exp"], said.get("nbf", 0))
    assert all(isinstance(time, int | float) and not isinstance(time, bool) for time in times)
    return said["iss"] == "verification" and said["aud"] in ("execution", ["execution"])


@given(token=st.binary(max_size=400) | st.text(alphabet="eyJ.-_AQ=", max_size=400).map(str.encode))
def test_any_bytes_in_the_place_of_a_token_are_refused(token: bytes) -> None:
    with zone_in_memory() as store:
        access = AccessControl("execution", read_policy(POLICY), store, FakeClock())
        assert isinstance(
            access.authenticate(PresentedCredentials(authorizations=[b"Bearer " + token])), CallRefused
        )
