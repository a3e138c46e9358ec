"""
Answer links: addresses at which one person can answer one question without logging in.

A token names the question, the person and the time at which it expires, and is signed with a key that is derived from
the encryption keys: nothing is stored. It works for one question, so it is worth nothing once that is answered, and
a person cannot answer the same task twice.
"""

from __future__ import annotations

import base64
import binascii
import hmac
from collections import OrderedDict
from datetime import timedelta
from hashlib import sha256

import msgspec

from trunkline.agents.call_limits.token_bucket import TokenBucket, refilled, whole_tokens, without
from trunkline.agents.model import RateLimit
from trunkline.clock import Clock, Instant, after
from trunkline.errors import Conflict, Finding, Invalid, NotFound, TooManyRequests
from trunkline.ids import RunId, question_id
from trunkline.services.operations.audit_log import audit_entry
from trunkline.services.people.rights import PeopleGroups
from trunkline.services.runs.inbox import Inbox, parse_item_id
from trunkline.stores.base import Store

ANSWER_PATH = "/answer"
DEFAULT_LIFETIME = timedelta(days=7)
MAX_LIFETIME = timedelta(days=30)
MAX_PERSON = 255
_DERIVED = b"trunkline answer links, version 1"
_MAC_BYTES = 24
_MAX_TOKEN = 2_000
# Of one link: a person reads the page and answers.
_RATE = RateLimit(per_second=1.0, burst=30)
_MAX_BUCKETS = 10_000
# What a link can answer: the questions of agents and human tasks.
_ANSWERED_BY_LINK = frozenset({"input", "person"})


class AnswerLink(msgspec.Struct, frozen=True, array_like=True):
    """What a token says."""

    run_id: RunId
    step: str
    attempts: int
    replies: int
    person: str
    expires_at: Instant

    @property
    def item(self) -> str:
        return question_id(self.run_id, self.step, self.attempts, self.replies)


_links = msgspec.json.Decoder(AnswerLink)


def link_to(item: str, person: str, expires_at: Instant) -> AnswerLink | None:
    """`item`: as the inbox names it; None: it names nothing."""
    key = parse_item_id(item)
    return None if key is None else AnswerLink(*key, person, expires_at)


class AnswerTokens:
    def __init__(self, vault_key: bytes, *previous: bytes) -> None:
        """`previous`: tokens that were made with these are still accepted."""
        self._keys = [hmac.digest(key, _DERIVED, sha256) for key in (vault_key, *previous)]

    def token_of(self, link: AnswerLink) -> str:
        return _token(self._keys[0], msgspec.json.encode(link))

    def link_of(self, token: str) -> AnswerLink | None:
        """None: the token is not ours."""
        if len(token) > _MAX_TOKEN:
            return None
        try:
            content = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))[:-_MAC_BYTES]
        except (binascii.Error, ValueError):
            return None
        ours = False
        for key in self._keys:
            # Each link has exactly one text.
            ours |= hmac.compare_digest(_token(key, content).encode(), token.encode(errors="replace"))
        return _links.decode(content) if ours else None


def _token(key: bytes, content: bytes) -> str:
    mac = hmac.digest(key, content, sha256)[:_MAC_BYTES]
    return base64.urlsafe_b64encode(content + mac).decode().rstrip("=")


class AnswerLinks:
    def __init__(
        self,
        store: Store,
        inbox: Inbox,
        tokens: AnswerTokens,
        clock: Clock,
        groups: PeopleGroups,
        *,
        public_url: str | None,
    ) -> None:
        self._store = store
        self._inbox = inbox
        self._tokens = tokens
        self._clock = clock
        self._groups = groups
        self._public_url = public_url
        self._buckets: OrderedDict[str, TokenBucket] = OrderedDict()

    async def create(self, item: str, person: str, lifetime: timedelta = DEFAULT_LIFETIME) -> AnswerLink:
        """A link for an open question. Raises `NotFound`, `Conflict` and `Invalid`."""
        _check(person, lifetime)
        if self._groups.is_group(person):
            # Everyone of the group could answer in the name of the others.
            message = f"{person!r} is a group; create a link for each of its people"
            raise Invalid(f"person: {message}.", findings=[Finding(path="person", message=message)])
        entry = await self._inbox.get(item)
        if entry.waiting_for.kind not in _ANSWERED_BY_LINK:
            raise Conflict(
                f"The step {entry.step} of run {entry.run_id} cannot be answered by link: it waits for "
                f"{'a login' if entry.waiting_for.kind == 'auth' else 'the outcome of a call'}.",
                fix=f"Answer it with: trunkline inbox answer {entry.id}.",
            )
        link = link_to(entry.id, person, after(self._clock.now(), lifetime))
        if link is None:
            raise AssertionError("an item of the inbox has an id")
        async with self._store.transaction() as tx:
            await tx.audit.put([audit_entry("run", "link", entry.run_id, step=entry.step, person=person)])
        return link

    def url_of(self, link: AnswerLink) -> str:
        """A path, if the system does not know its own address."""
        return f"{self._public_url or ''}{ANSWER_PATH}/{self._tokens.token_of(link)}"

    def find(self, token: str) -> AnswerLink:
        """Raises `NotFound` for what is not a link or has expired, and `TooManyRequests`."""
        link = self._tokens.link_of(token)
        if link is None:
            raise NotFound("This link is not valid.", fix="Check that the address is complete.")
        if link.expires_at <= self._clock.now():
            raise NotFound("This link has expired.", fix="Ask the person who sent it for a new one.")
        self._take_token(link)
        return link

    def _take_token(self, link: AnswerLink) -> None:
        key = f"{link.item}/{link.person}"
        bucket = refilled(self._buckets.pop(key, None), _RATE, self._clock.now())
        is_allowed = bool(whole_tokens(bucket))
        self._buckets[key] = without(bucket, 1) if is_allowed else bucket
        if len(self._buckets) > _MAX_BUCKETS:
            self._buckets.popitem(last=False)
        if not is_allowed:
            raise TooManyRequests("This link is used too often.")


def _check(person: str, lifetime: timedelta) -> None:
    if not 1 <= len(person) <= MAX_PERSON or not person.isprintable():
        message = f"must have 1 to {MAX_PERSON} printable characters"
        raise Invalid(f"The person {message}.", findings=[Finding(path="person", message=message)])
    if not timedelta(0) < lifetime <= MAX_LIFETIME:
        message = f"must be longer than zero and at most {MAX_LIFETIME.days}d"
        raise Invalid(f"expires_in {message}.", findings=[Finding(path="expires_in", message=message)])
