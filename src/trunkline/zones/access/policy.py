"""
The policy of a zone: who may call it, which methods, with which params, and how often.

Deterministic, without a clock or state: the caller of `decide` keeps the token buckets. `access/policy_file.py` reads
policies; `access/control.py` identifies callers and applies the policy.

    callers        by name; only these may call. None: everyone who reaches the address
    defaults       the rules for callers whose own rules leave something out
    secret_fields  params that are not part of a call's identity and appear in no log: a token may change between two
                   attempts of the same call

Three names stand for callers without credentials: `parent` (the process that started us), `platform` (the cloud
platform has authenticated them) and `anybody`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil
from typing import Literal, TypeAlias

import msgspec

from trunkline.agents.call_limits.token_bucket import TokenBucket, next_token, refilled, whole_tokens, without
from trunkline.agents.model import RateLimit
from trunkline.clock import Instant, seconds_between
from trunkline.errors import Finding
from trunkline.jsontypes import Json, JsonObject
from trunkline.protocols.zone.params_profiles import ParamsProfile
from trunkline.telemetry.redaction import is_secret_name
from trunkline.zones.errors import OTHER, ZoneFault
from trunkline.zones.params import invalid_params

# A signed token, a client certificate, the process that started us, the platform in front of us (AWS authenticates
# its callers), or none: everyone who reaches the address.
AuthenticationMethod: TypeAlias = Literal["token", "certificate", "parent", "platform", "address"]


class ZoneCaller(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    known_by: AuthenticationMethod


ANYBODY = ZoneCaller(name="anybody", known_by="address")


# A caller that may start work may poll its result. Polling does not count against the rate.
RESULT_METHODS = frozenset({"get_task_result", "GetAsyncTaskResult"})
DEFAULT_SECRET_FIELDS = frozenset({"bot_token"})


class CallerRules(msgspec.Struct, frozen=True, kw_only=True):
    """What one caller may do. None: as in the defaults, and without limit if they have none either."""

    methods: frozenset[str] | None = None
    # The params must fit one of them.
    profiles: tuple[ParamsProfile, ...] | None = None
    rate: RateLimit | None = None
    # Of a whole request.
    max_bytes: int | None = None
    # Authentication: PEM public keys of its tokens, and the names that its certificate may have.
    keys: tuple[str, ...] = ()
    certificates: tuple[str, ...] = ()
    # Whether a token may lack the digest of the request's body. Such a token could be sent with another request.
    unbound_tokens: bool = False


class ZonePolicy(msgspec.Struct, frozen=True, kw_only=True):
    callers: Mapping[str, CallerRules] | None = None
    defaults: CallerRules = CallerRules()
    secret_fields: frozenset[str] = DEFAULT_SECRET_FIELDS

    @property
    def methods(self) -> frozenset[str]:
        """Every method that the policy names."""
        rules = (self.defaults, *(self.callers or {}).values())
        return frozenset(method for each in rules for method in each.methods or ())

    def rules_of(self, caller: ZoneCaller) -> CallerRules | None:
        """The rules for this caller; None: it may not call."""
        if self.callers is None:
            return self.defaults
        own = self.callers.get(caller.name)
        return None if own is None else _completed(own, self.defaults)

    def hides(self, field: str) -> bool:
        """Whether the value of this field must not be shown."""
        return field in self.secret_fields or is_secret_name(field)

    def secrets_in(self, params: Json) -> tuple[str, ...]:
        """Every text that must not be shown, at any depth."""
        match params:
            case dict():
                return tuple(
                    secret
                    for name, value in params.items()
                    for secret in (_texts(value) if self.hides(name) else self.secrets_in(value))
                )
            case list():
                return tuple(secret for value in params for secret in self.secrets_in(value))
            case _:
                return ()

    def identity_of(self, params: JsonObject) -> JsonObject:
        """The params that identify a call: all but the secret fields, which may change."""
        return {name: value for name, value in params.items() if name not in self.secret_fields}


OPEN_POLICY = ZonePolicy()


class CallAllowed(msgspec.Struct, frozen=True):
    # The caller's token bucket after this call.
    bucket: TokenBucket | None = None


class CallRefused(msgspec.Struct, frozen=True, kw_only=True):
    """
    A call that the policy refuses.

    `reason` is for the audit; the caller gets `message`, which tells an attacker nothing.
    """

    reason: str
    message: str
    status: int
    code: int = OTHER
    # Whole seconds after which the caller may retry.
    retry_after: int | None = None
    # For params that fit no profile: what is wrong by the profile that they come closest to.
    findings: tuple[Finding, ...] = ()

    def fault(self) -> ZoneFault:
        if self.findings:
            return invalid_params([(finding.path, finding.message) for finding in self.findings])
        return ZoneFault(self.code, self.message)


AccessDecision: TypeAlias = CallAllowed | CallRefused


def decide(
    policy: ZonePolicy,
    caller: ZoneCaller,
    *,
    method: str,
    params: JsonObject,
    size: int,
    now: Instant,
    bucket: TokenBucket | None = None,
) -> AccessDecision:
    """Whether this call is allowed now; `bucket` is the caller's token bucket after its last call."""
    rules = policy.rules_of(caller)
    if rules is None:
        return CallRefused(
            reason="caller_not_allowed",
            message="This caller may not call this zone. Ask its operator to allow it.",
            status=403,
        )
    if rules.max_bytes is not None and size > rules.max_bytes:
        return too_large(rules.max_bytes)
    if method in RESULT_METHODS:
        return CallAllowed(bucket)
    refused = _refused_method(rules, method) or _refused_params(rules, params)
    return refused or _within_rate(rules.rate, bucket, now)


def too_large(max_bytes: int) -> CallRefused:
    return CallRefused(
        reason="too_large",
        message=f"The request is larger than {max_bytes} bytes, the limit for this caller.",
        status=413,
    )


def _refused_method(rules: CallerRules, method: str) -> CallRefused | None:
    if rules.methods is None or method in rules.methods:
        return None
    return CallRefused(
        reason="method_not_allowed",
        message=f"This caller may not call this method. It may call: {_listed(sorted(rules.methods))}.",
        status=403,
    )


def _refused_params(rules: CallerRules, params: JsonObject) -> CallRefused | None:
    if rules.profiles is None:
        return None
    findings = [profile.check(params) for profile in rules.profiles]
    if not all(findings):
        return None
    return CallRefused(
        reason="profile_not_allowed",
        message="The params match no profile that this caller may use.",
        # Most who come here have made a mistake, and it is answered as one: with 200, which every transport carries.
        status=200,
        findings=tuple(min(findings, key=len, default=())),
    )


def _within_rate(rate: RateLimit | None, bucket: TokenBucket | None, now: Instant) -> AccessDecision:
    if rate is None:
        return CallAllowed()
    full = refilled(bucket, rate, now)
    if whole_tokens(full) > 0:
        return CallAllowed(without(full, 1))
    wait = max(1, ceil(seconds_between(now, next_token(full, rate))))
    return CallRefused(
        reason="too_fast",
        message=f"This caller exceeds its rate limit. Try again in {wait} s.",
        status=429,
        retry_after=wait,
    )


def _completed(own: CallerRules, defaults: CallerRules) -> CallerRules:
    return msgspec.structs.replace(
        own,
        methods=defaults.methods if own.methods is None else own.methods,
        profiles=defaults.profiles if own.profiles is None else own.profiles,
        rate=own.rate or defaults.rate,
        max_bytes=defaults.max_bytes if own.max_bytes is None else own.max_bytes,
    )


def _texts(value: Json) -> tuple[str, ...]:
    """Every text in what is secret as a whole; a number as it would be written."""
    match value:
        case str():
            return (value,)
        case dict():
            return tuple(text for item in value.values() for text in _texts(item))
        case list():
            return tuple(text for item in value for text in _texts(item))
        case bool() | None:
            return ()
        case _:
            return (str(value),)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names) or "none"
