"""
A zone's door: who calls, whether it may, and a note of everyone who was turned away.

    token        a signed token, if the policy has keys: `Authorization: Bearer …`
    certificate  a client certificate that the server has checked
    nothing      `platform` or `anybody`, whichever the policy lets in

What one of them shows and is wrong is refused, whatever else the caller could have been taken for. An answer to a call
that was not authenticated is always the same; what was wrong is in the audit. A body is read only of callers that are
known, and only as much of it as they may send.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from http import HTTPStatus
from typing import TypeVar

import msgspec
import structlog

from trunkline.agents.call_limits.token_bucket import Bucket, refilled, whole_tokens, without
from trunkline.agents.model import RateLimit
from trunkline.clock import Clock, Instant
from trunkline.jsontypes import JsonObject
from trunkline.stores.zones import Refusal, ZoneStore
from trunkline.telemetry import names
from trunkline.zones.caller import ANYBODY, Caller
from trunkline.zones.policy import Allowed, Policy, Refused, decide, too_large
from trunkline.zones.signed_tokens import BadToken, GoodToken, read_token

log = structlog.stdlib.get_logger(__name__)

PLATFORM = Caller(name="platform", known_by="platform")
NOBODY = "nobody"
Key = TypeVar("Key")

# Names may be many where every certificate of an authority is let in.
_MOST_BUCKETS = 10_000
_LONGEST_SHOWN = 200
# Of one caller for one reason: a flood must not wash out of the audit what else was refused, nor fill the log.
_NOTED = RateLimit(per_second=10.0, burst=1_000)
_BEARER = b"bearer"


class Shown(msgspec.Struct, frozen=True, kw_only=True):
    """What a request shows of whoever sends it."""

    # Every Authorization header, since two of them could be read differently by two readers.
    authorizations: Sequence[bytes] = ()
    # The names in its checked certificate; None: it has none.
    certificate: Sequence[str] | None = None
    # How many bytes its body has, if it says so.
    size: int | None = None


class Visitor(msgspec.Struct, frozen=True, kw_only=True):
    """Who calls. A token counts only when the body has come, too."""

    caller: Caller
    max_bytes: int | None = None
    token: GoodToken | None = None


class Door:
    def __init__(self, zone: str, policy: Policy, store: ZoneStore, clock: Clock) -> None:
        self._zone = zone
        self._policy = policy
        self._store = store
        self._clock = clock
        self._buckets: dict[str, Bucket] = {}
        # By caller and reason: what is left of `_NOTED`, and how many were not noted since the last one that was.
        self._notes: dict[tuple[str, str], Bucket] = {}
        self._unnoted: Counter[tuple[str, str]] = Counter()
        callers = policy.callers or {}
        self._takes_tokens = any(rules.keys for rules in callers.values())
        self._certified = {name: caller for caller, rules in callers.items() for name in rules.certificates}

    def greet(self, shown: Shown) -> Visitor | Refused:
        """Who calls, before its body is read; a refusal has been noted."""
        now = self._clock.now()
        try:
            visitor = self._recognised(shown, now)
        except BadToken as exc:
            # Only a name from the policy: a stranger's own words have no place in the audit.
            return self._turned_away(_UNKNOWN_CALLER, exc.reason, now, exc.issuer or NOBODY)
        except _Unrecognised as exc:
            return self._turned_away(exc.refused, exc.refused.reason, now, exc.claimed)
        if visitor.max_bytes is not None and shown.size is not None and shown.size > visitor.max_bytes:
            refused = too_large(visitor.max_bytes)
            return self._turned_away(refused, refused.reason, now, visitor.caller.name)
        return visitor

    def hear(self, visitor: Visitor, body: bytes) -> Refused | None:
        """Why its token is not good for this body, or any more, which has been noted; from now on it is used."""
        token = visitor.token
        if token is None:
            return None
        now = self._clock.now()
        # A body may be long in coming; and tokens that have run out are not remembered.
        if now >= token.until:
            return self._turned_away(_UNKNOWN_CALLER, "token_expired", now, token.issuer)
        if not token.is_for(body):
            return self._turned_away(_UNKNOWN_CALLER, "token_body", now, token.issuer)
        if not self._store.use_token(token.issuer, token.id, token.until, now):
            return self._turned_away(_UNKNOWN_CALLER, "token_used", now, token.issuer)
        return None

    def admit(
        self, caller: Caller, *, method: str, params: JsonObject, size: int, correlation_id: str | None = None
    ) -> Refused | None:
        """Why this call is not let in, which has been noted; None: it is."""
        now = self._clock.now()
        bucket = self._buckets.get(caller.name)
        decision = decide(
            self._policy, caller, method=method, params=params, size=size, now=now, bucket=bucket
        )
        if isinstance(decision, Allowed):
            if decision.bucket is not None:
                _keep(self._buckets, caller.name, decision.bucket)
            return None
        return self._turned_away(decision, decision.reason, now, caller.name, method, correlation_id)

    def _recognised(self, shown: Shown, now: Instant) -> Visitor:
        certified = self._by_certificate(shown.certificate)
        token = None
        if self._takes_tokens and shown.authorizations:
            token = self._by_token(shown, now)
            if certified is not None and certified.name != token.issuer:
                raise _Unrecognised(_certificate_refused("certificate_of_another"), token.issuer)
            caller = Caller(name=token.issuer, known_by="token")
        else:
            caller = certified or self._unknown(shown)
        rules = self._policy.rules_of(caller)
        return Visitor(caller=caller, max_bytes=None if rules is None else rules.max_bytes, token=token)

    def _unknown(self, shown: Shown) -> Caller:
        callers = self._policy.callers
        if callers is None or ANYBODY.name in callers:
            return ANYBODY
        if PLATFORM.name in callers:
            return PLATFORM
        if shown.certificate is not None:
            raise _Unrecognised(_certificate_refused("certificate_unknown"))
        raise _Unrecognised(_UNKNOWN_CALLER)

    def _by_token(self, shown: Shown, now: Instant) -> GoodToken:
        scheme, _, text = shown.authorizations[0].partition(b" ")
        if len(shown.authorizations) > 1 or scheme.lower() != _BEARER or not text.isascii():
            raise BadToken("token_malformed")
        return read_token(text.decode(), self._policy, self._zone, now)

    def _by_certificate(self, certificate: Sequence[str] | None) -> Caller | None:
        if not certificate:
            return None
        if self._policy.callers is None:
            # Whoever the authority has signed for may call.
            return Caller(name=certificate[0], known_by="certificate")
        found = {self._certified[name] for name in certificate if name in self._certified}
        if len(found) > 1:
            raise _Unrecognised(_certificate_refused("certificate_ambiguous"))
        return Caller(name=found.pop(), known_by="certificate") if found else None

    def _turned_away(
        self,
        refused: Refused,
        reason: str,
        now: Instant,
        caller: str,
        method: str | None = None,
        correlation_id: str | None = None,
    ) -> Refused:
        kind = (caller, reason)
        left = refilled(self._notes.get(kind), _NOTED, now)
        if whole_tokens(left) == 0:
            self._unnoted[kind] += 1
            return refused
        _keep(self._notes, kind, without(left, 1))
        note = Refusal(
            at=now,
            caller=_shown(caller),
            reason=reason,
            method=None if method is None else _shown(method),
            correlation_id=None if correlation_id is None else _shown(correlation_id),
        )
        self._store.note_refusal(note)
        log.warning(
            names.ZONE_CALL_REFUSED,
            zone=self._zone,
            caller=note.caller,
            reason=reason,
            method=note.method,
            correlation_id=note.correlation_id,
            unnoted=self._unnoted.pop(kind, 0),
        )
        return refused


def _keep(buckets: dict[Key, Bucket], key: Key, bucket: Bucket) -> None:
    # The one that was not used for longest is the first.
    buckets.pop(key, None)
    buckets[key] = bucket
    if len(buckets) > _MOST_BUCKETS:
        del buckets[next(iter(buckets))]


class _Unrecognised(Exception):
    """Nobody whom the zone knows."""

    def __init__(self, refused: Refused, claimed: str = NOBODY) -> None:
        super().__init__(refused.reason)
        self.refused = refused
        self.claimed = claimed


_UNKNOWN_CALLER = Refused(
    reason="no_credentials",
    message=(
        "Not authenticated. Send a fresh token, signed for this zone and this request, as Authorization: Bearer,"
        " or use a client certificate that the zone knows."
    ),
    status=HTTPStatus.UNAUTHORIZED,
)


def _shown(text: str) -> str:
    """What a caller says, so that it can be shown on a terminal: cut, and without what would steer one."""
    return "".join(letter if letter.isprintable() else "?" for letter in text[:_LONGEST_SHOWN])


def _certificate_refused(reason: str) -> Refused:
    return Refused(
        reason=reason,
        message="This caller may not call this zone. Ask its operator to allow it.",
        status=HTTPStatus.FORBIDDEN,
    )
