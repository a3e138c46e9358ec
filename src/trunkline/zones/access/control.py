"""
Access control of a zone: authenticates callers, authorises their calls, and audits refused ones.

    token        a signed token, if the policy has keys: `Authorization: Bearer …`
    certificate  a client certificate that the server has verified
    nothing      `platform` or `anybody`, whichever the policy allows

Invalid credentials are refused even if the policy also allows callers without any. The reply to a call that is not
authenticated is always the same; the audit has the reason. A body is read only after its caller is identified, and only
up to the size that the caller may send.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from http import HTTPStatus
from typing import TypeVar

import msgspec
import structlog

from trunkline.agents.call_limits.token_bucket import TokenBucket, refilled, whole_tokens, without
from trunkline.agents.model import RateLimit
from trunkline.clock import Clock, Instant
from trunkline.jsontypes import JsonObject
from trunkline.stores.zones import RefusedCall, ZoneStore
from trunkline.telemetry import log_events
from trunkline.zones.access.policy import (
    ANYBODY,
    CallAllowed,
    CallRefused,
    ZoneCaller,
    ZonePolicy,
    decide,
    too_large,
)
from trunkline.zones.access.signed_tokens import InvalidToken, VerifiedToken, read_token

log = structlog.stdlib.get_logger(__name__)

PLATFORM = ZoneCaller(name="platform", known_by="platform")
UNKNOWN = "nobody"
Key = TypeVar("Key")

# There may be many names if every certificate of an authority is accepted.
_MAX_BUCKETS = 10_000
_MAX_AUDIT_TEXT = 200
# For one caller and one reason: a flood must not push other refusals out of the audit, nor fill the log.
_AUDIT_RATE = RateLimit(per_second=10.0, burst=1_000)
_BEARER = b"bearer"


class PresentedCredentials(msgspec.Struct, frozen=True, kw_only=True):
    """The credentials that a request presents."""

    # Every Authorization header, because two readers may choose different ones.
    authorizations: Sequence[bytes] = ()
    # The names in its checked certificate; None: it has none.
    certificate: Sequence[str] | None = None
    # How many bytes its body has, if it says so.
    size: int | None = None


class AuthenticatedCaller(msgspec.Struct, frozen=True, kw_only=True):
    """An identified caller. Its token is valid only for the body that it was signed for."""

    caller: ZoneCaller
    max_bytes: int | None = None
    token: VerifiedToken | None = None


class AccessControl:
    def __init__(self, zone: str, policy: ZonePolicy, store: ZoneStore, clock: Clock) -> None:
        self._zone = zone
        self._policy = policy
        self._store = store
        self._clock = clock
        self._buckets: dict[str, TokenBucket] = {}
        # By caller and reason: what is left of `_NOTED`, and how many were not noted since the last one that was.
        self._audit_buckets: dict[tuple[str, str], TokenBucket] = {}
        self._unaudited: Counter[tuple[str, str]] = Counter()
        callers = policy.callers or {}
        self._takes_tokens = any(rules.keys for rules in callers.values())
        self._certified = {name: caller for caller, rules in callers.items() for name in rules.certificates}

    def authenticate(self, presented: PresentedCredentials) -> AuthenticatedCaller | CallRefused:
        """Identifies the caller before the body is read; audits a refusal."""
        now = self._clock.now()
        try:
            authenticated = self._identify(presented, now)
        except InvalidToken as exc:
            # Only a name from the policy: an unknown caller's text does not belong in the audit.
            return self._refuse(_NOT_AUTHENTICATED, exc.reason, now, exc.issuer or UNKNOWN)
        except _UnknownCaller as exc:
            return self._refuse(exc.refused, exc.refused.reason, now, exc.claimed)
        if (
            authenticated.max_bytes is not None
            and presented.size is not None
            and presented.size > authenticated.max_bytes
        ):
            refused = too_large(authenticated.max_bytes)
            return self._refuse(refused, refused.reason, now, authenticated.caller.name)
        return authenticated

    def check_body(self, authenticated: AuthenticatedCaller, body: bytes) -> CallRefused | None:
        """Refuses a token that is not for this body, expired or used, and audits that; else marks it as used."""
        token = authenticated.token
        if token is None:
            return None
        now = self._clock.now()
        # The body may take long to arrive, and used tokens are remembered only until they expire.
        if now >= token.until:
            return self._refuse(_NOT_AUTHENTICATED, "token_expired", now, token.issuer)
        if not token.is_for(body):
            return self._refuse(_NOT_AUTHENTICATED, "token_body", now, token.issuer)
        if not self._store.use_token(token.issuer, token.id, token.until, now):
            return self._refuse(_NOT_AUTHENTICATED, "token_used", now, token.issuer)
        return None

    def authorize(
        self,
        caller: ZoneCaller,
        *,
        method: str,
        params: JsonObject,
        size: int,
        correlation_id: str | None = None,
    ) -> CallRefused | None:
        """Refuses a call that the policy does not allow, and audits that; None: it is allowed."""
        now = self._clock.now()
        bucket = self._buckets.get(caller.name)
        decision = decide(
            self._policy, caller, method=method, params=params, size=size, now=now, bucket=bucket
        )
        if isinstance(decision, CallAllowed):
            if decision.bucket is not None:
                _keep(self._buckets, caller.name, decision.bucket)
            return None
        return self._refuse(decision, decision.reason, now, caller.name, method, correlation_id)

    def _identify(self, presented: PresentedCredentials, now: Instant) -> AuthenticatedCaller:
        by_certificate = self._by_certificate(presented.certificate)
        token = None
        if self._takes_tokens and presented.authorizations:
            token = self._by_token(presented, now)
            if by_certificate is not None and by_certificate.name != token.issuer:
                raise _UnknownCaller(_certificate_refused("certificate_of_another"), token.issuer)
            caller = ZoneCaller(name=token.issuer, known_by="token")
        else:
            caller = by_certificate or self._anonymous_caller(presented)
        rules = self._policy.rules_of(caller)
        return AuthenticatedCaller(
            caller=caller, max_bytes=None if rules is None else rules.max_bytes, token=token
        )

    def _anonymous_caller(self, presented: PresentedCredentials) -> ZoneCaller:
        callers = self._policy.callers
        if callers is None or ANYBODY.name in callers:
            return ANYBODY
        if PLATFORM.name in callers:
            return PLATFORM
        if presented.certificate is not None:
            raise _UnknownCaller(_certificate_refused("certificate_unknown"))
        raise _UnknownCaller(_NOT_AUTHENTICATED)

    def _by_token(self, presented: PresentedCredentials, now: Instant) -> VerifiedToken:
        scheme, _, text = presented.authorizations[0].partition(b" ")
        if len(presented.authorizations) > 1 or scheme.lower() != _BEARER or not text.isascii():
            raise InvalidToken("token_malformed")
        return read_token(text.decode(), self._policy, self._zone, now)

    def _by_certificate(self, certificate: Sequence[str] | None) -> ZoneCaller | None:
        if not certificate:
            return None
        if self._policy.callers is None:
            # Every certificate that the authority has signed is accepted.
            return ZoneCaller(name=certificate[0], known_by="certificate")
        found = {self._certified[name] for name in certificate if name in self._certified}
        if len(found) > 1:
            raise _UnknownCaller(_certificate_refused("certificate_ambiguous"))
        return ZoneCaller(name=found.pop(), known_by="certificate") if found else None

    def _refuse(
        self,
        refused: CallRefused,
        reason: str,
        now: Instant,
        caller: str,
        method: str | None = None,
        correlation_id: str | None = None,
    ) -> CallRefused:
        kind = (caller, reason)
        left = refilled(self._audit_buckets.get(kind), _AUDIT_RATE, now)
        if whole_tokens(left) == 0:
            self._unaudited[kind] += 1
            return refused
        _keep(self._audit_buckets, kind, without(left, 1))
        note = RefusedCall(
            at=now,
            caller=_printable(caller),
            reason=reason,
            method=None if method is None else _printable(method),
            correlation_id=None if correlation_id is None else _printable(correlation_id),
        )
        self._store.note_refusal(note)
        log.warning(
            log_events.ZONE_CALL_REFUSED,
            zone=self._zone,
            caller=note.caller,
            reason=reason,
            method=note.method,
            correlation_id=note.correlation_id,
            not_recorded=self._unaudited.pop(kind, 0),
        )
        return refused


def _keep(buckets: dict[Key, TokenBucket], key: Key, bucket: TokenBucket) -> None:
    # The least recently used comes first.
    buckets.pop(key, None)
    buckets[key] = bucket
    if len(buckets) > _MAX_BUCKETS:
        del buckets[next(iter(buckets))]


class _UnknownCaller(Exception):
    """The caller cannot be identified."""

    def __init__(self, refused: CallRefused, claimed: str = UNKNOWN) -> None:
        super().__init__(refused.reason)
        self.refused = refused
        self.claimed = claimed


_NOT_AUTHENTICATED = CallRefused(
    reason="no_credentials",
    message=(
        "Not authenticated. Send a fresh token, signed for this zone and this request, as Authorization: Bearer,"
        " or use a client certificate that the zone knows."
    ),
    status=HTTPStatus.UNAUTHORIZED,
)


def _printable(text: str) -> str:
    """A caller's text as a terminal can show it: cut, and without control characters."""
    return "".join(letter if letter.isprintable() else "?" for letter in text[:_MAX_AUDIT_TEXT])


def _certificate_refused(reason: str) -> CallRefused:
    return CallRefused(
        reason=reason,
        message="This caller may not call this zone. Ask its operator to allow it.",
        status=HTTPStatus.FORBIDDEN,
    )
