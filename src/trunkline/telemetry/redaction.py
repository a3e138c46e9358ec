"""
Removes secrets from the records of calls.

Made once for an agent, used for each of its calls: the secrets of its `auth_config`, and the tokens that were
fetched with them, appear as the names of environment variables where we sent them, and as `[redacted]` wherever
else they turn up, e.g. when the agent repeats them. A call whose input holds named secrets has one of its own, which
knows those too.
"""

from __future__ import annotations

import json
import re
from base64 import b64encode
from codecs import utf_8_decode
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from copy import copy
from functools import lru_cache
from html import escape
from itertools import chain
from typing import Self
from urllib.parse import quote, quote_plus

import msgspec

from trunkline.agents.authentication.credentials import NO_CREDENTIALS, Credentials
from trunkline.jsontypes import Json, decode, encode

REDACTED = "[redacted]"
_SECRET_NAME = re.compile(
    r"auth|cookie|token|secret|passw|credential|api-?_?key|signature|session", re.IGNORECASE
)
# Headers with the id of a request to a zone, which its body shows, too.
_NOT_SECRET = frozenset({"x-zone-session", "x-amzn-bedrock-agentcore-runtime-session-id"})


@lru_cache(maxsize=1_024)
def is_secret_name(name: str) -> bool:
    """Whether what stands under this name is a secret by all appearances."""
    return _SECRET_NAME.search(name) is not None and name.lower() not in _NOT_SECRET


_REDACTED_JSON = encode(REDACTED)
VARIABLE_PREFIX = "$TRUNKLINE_SECRET"
# A shorter text is not treated as a secret: replacing it everywhere would make records unreadable.
_SHORTEST_SECRET = 4
# Anything shorter stands in too many texts by chance.
_SHORTEST_IN_BASE64 = 6
# What is left as it is by those who encode everything, by Python, and by JavaScript, for a part and for the whole.
_SAFE_IN_ADDRESSES = ("", "/", "!'()*", "!'()*;,/?:@&=+$#")
_ESCAPED_IN_ADDRESS = re.compile("%[0-9A-F]{2}")
# Most secrets are written in these letters.
_THE_SAME_EVERYWHERE = re.compile("[A-Za-z0-9._~-]*")
# From base64's own letters to those that addresses have for them.
_IN_ADDRESSES = bytes.maketrans(b"+/", b"-_")
# How many times over a text in JSON is looked for as JSON.
_DEEPEST_IN_JSON = 4
# More than the calls that one agent answers at a time by default. Such a token is made of letters that are the same in
# every form of text.
_MAX_REQUEST_TOKENS = 128


class _RequestTokens:
    """The last tokens that were made for one request each."""

    def __init__(self) -> None:
        self.tokens: deque[str] = deque(maxlen=_MAX_REQUEST_TOKENS)
        self.longest = 0

    def add(self, token: str) -> None:
        self.tokens.append(token)
        self.longest = max(self.longest, len(token))


class Redaction:
    def __init__(self, credentials: Credentials = NO_CREDENTIALS) -> None:
        self._shown = credentials.shown
        self._query = credentials.query
        self._secrets = _with_encoded(credentials.secrets)
        self._learned: tuple[str, ...] = ()
        self._request_tokens = _RequestTokens()
        self._look_for(self._secrets)

    @classmethod
    def of(cls, *secrets: str) -> Self:
        return cls(Credentials(secrets=secrets))

    def with_secrets(self, secrets: Iterable[str]) -> Redaction:
        """One that hides these too, however they are encoded; this one stays as it is."""
        more = _with_encoded(secrets)
        # One list of passing tokens for both: the next request's may be made for the one, and repeated to the other.
        made = copy(self)
        made._secrets = (*self._secrets, *more)
        # Those that are known already stay: a key of many lines has many forms.
        made._look_also_for(more)
        return made

    def learn(self, secrets: tuple[str, ...]) -> None:
        """Hides these too, from now on; those that were learned before go."""
        if secrets != self._learned:
            self._learned = secrets
            self._look_for((*self._secrets, *_with_encoded(secrets)))

    def hide(self, token: str) -> None:
        """Hides a token for one request, until so many others that its own answer must have come."""
        self._request_tokens.add(token)

    def _look_for(self, secrets: tuple[str, ...]) -> None:
        self._needles: tuple[str, ...] = ()
        self._needles_in_json: tuple[bytes, ...] = ()
        self._look_also_for(secrets)

    def _look_also_for(self, secrets: tuple[str, ...]) -> None:
        more = _needles(secrets)
        # The longest first, so that no part of one is left.
        self._needles = tuple(sorted({*self._needles, *more}, key=len, reverse=True))
        # A body is looked at before it is decoded, where every text has been escaped once more.
        in_json = {form.encode() for needle in more for form in (needle, *_as_json(needle))}
        self._needles_in_json = tuple({*self._needles_in_json, *in_json})
        self._longest = max(map(len, self._needles), default=0)

    @property
    def longest(self) -> int:
        """How much of a text beyond the cut must be looked at to find a secret across it; 0: none is known."""
        return max(self._longest, self._request_tokens.longest)

    def text(self, text: str) -> str:
        # Not `longest`: this is asked for each text of each call, and most agents need no credentials.
        if not (self._longest or self._request_tokens.longest):
            return text
        for needle in chain(self._needles, self._request_tokens.tokens):
            if needle in text:
                text = text.replace(needle, REDACTED)
        return text

    def begun_in(self, text: str) -> int:
        """How many characters at the text's end may be the beginning of a secret whose rest is still to come."""
        return max(
            (_begun(needle, text) for needle in chain(self._needles, self._request_tokens.tokens)), default=0
        )

    def body(self, body: bytes) -> bytes:
        """JSON text without the secrets; JSON it stays."""
        if not self._may_be_in(body):
            return body
        try:
            value = decode(body)
            hidden = self.value(value)
            return body if hidden == value else encode(hidden)
        except (msgspec.DecodeError, RecursionError):
            # It was not readable anyway.
            return _REDACTED_JSON

    def _may_be_in(self, body: bytes) -> bool:
        # Any letter can be written as an escape, which the next reader decodes.
        return (
            any(needle in body for needle in self._needles_in_json)
            or any(token.encode() in body for token in self._request_tokens.tokens)
            or (self.longest > 0 and b"\\u" in body)
        )

    def value(self, value: Json) -> Json:
        """A JSON value whose texts are without the secrets; a number that has the same digits is none."""
        match value:
            case str():
                return self.text(value)
            case list():
                return [self.value(item) for item in value]
            case dict():
                return {self.text(name): self.value(item) for name, item in value.items()}
            case _:
                return value

    def url(self, url: str) -> str:
        """The URL that was called, with the secret in its query as a variable."""
        if self._query is not None:
            name = quote(self._query[0], safe="")
            sent = f"{name}={quote(self._query[1], safe='')}"
            url = url.replace(sent, f"{name}={self._shown[self._query[0]]}")
        return self.text(url)

    def sent_headers(self, headers: Mapping[str, str]) -> dict[str, str]:
        shown = self._values(headers)
        if self._shown:
            variables = ((name, self._shown.get(name.lower())) for name in headers)
            shown |= {name: variable for name, variable in variables if variable}
        return shown

    def received_headers(self, headers: Mapping[str, str]) -> dict[str, str]:
        if not (self._longest or self._request_tokens.longest):
            return self._values(headers)
        return {self.text(name): self._value(name, value) for name, value in headers.items()}

    def _values(self, headers: Mapping[str, str]) -> dict[str, str]:
        if self._longest or self._request_tokens.longest:
            return {name: self._value(name, value) for name, value in headers.items()}
        # As above.
        return {
            name: REDACTED if is_secret_name(name) or VARIABLE_PREFIX in value else value
            for name, value in headers.items()
        }

    def _value(self, name: str, value: str) -> str:
        # Only we may name a variable: a copied command would put its value there.
        if is_secret_name(name) or VARIABLE_PREFIX in value:
            return REDACTED
        return self.text(value) if self.longest else value


def may_be_in(text: bytes, secret: str) -> bool:
    """Whether to look for it in all its forms is worth while; quickly said of a secret that has hardly any."""
    data = secret.encode(errors="replace")
    if data in text or not _THE_SAME_EVERYWHERE.fullmatch(secret):
        return True
    return any(
        form in text or form.translate(_IN_ADDRESSES) in text for form in _cores_in_base64(data)
    ) or any(digits.encode() in text for digits in _in_hex(secret))


def _needles(secrets: Iterable[str]) -> set[str]:
    """Every form in which a secret can appear in a text."""
    forms = {form for secret in secrets if len(secret) >= _SHORTEST_SECRET for form in _forms(secret)}
    # Without its line breaks a secret may be too short to be one.
    return {form for form in forms if len(form) >= _SHORTEST_SECRET}


def _begun(needle: str, text: str) -> int:
    # From the earliest place on: the first that fits is the longest beginning.
    start = text.find(needle[0], max(0, len(text) - len(needle) + 1))
    while start >= 0 and not needle.startswith(text[start:]):
        start = text.find(needle[0], start + 1)
    return 0 if start < 0 else len(text) - start


def _forms(secret: str) -> Iterator[str]:
    if _THE_SAME_EVERYWHERE.fullmatch(secret):
        yield secret
        return
    for written in {form for spelling in _spellings(secret) for form in _written(spelling)}:
        yield written
        # JSON may hold JSON as a text, where an agent repeats what it was told to another.
        level, before = {written}, set[str]()
        for _ in range(_DEEPEST_IN_JSON):
            if level == before:
                break
            level, before = {form for each in level for form in _as_json(each)}, level
            yield from level
        # Some encoders escape the slash, which base64 has.
        yield _as_json(written)[0].replace("/", "\\/")


def _spellings(secret: str) -> set[str]:
    # A header's bytes are read as Latin-1, whatever the agent meant by them.
    in_header = secret.encode(errors="replace").decode("latin-1")
    # As the words of an answer stand in an error.
    on_one_line = " ".join(secret.split())
    return {secret, in_header, on_one_line}


def _written(text: str) -> set[str]:
    in_address = {quote(text, safe=safe) for safe in _SAFE_IN_ADDRESSES} | {quote_plus(text)}
    in_address |= {_ESCAPED_IN_ADDRESS.sub(lambda found: found[0].lower(), form) for form in in_address}
    # `repr` and `ascii`: as a traceback has it.
    return {text, escape(text), repr(text)[1:-1], ascii(text)[1:-1]} | in_address


def _as_json(text: str) -> tuple[str, str]:
    """As it stands in JSON, in ASCII and in its own letters."""
    return json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1]


def _in_base64(secret: str) -> Iterator[str]:
    """What is the same wherever the secret stands in an encoded text: it may begin at any of three bits."""
    # What is encoded is often JSON.
    same = _THE_SAME_EVERYWHERE.fullmatch(secret)
    for data in {form.encode() for form in ((secret,) if same else (secret, *_as_json(secret)))}:
        for core in _cores_in_base64(data):
            if len(core) >= _SHORTEST_IN_BASE64:
                yield from (core.decode(), core.translate(_IN_ADDRESSES).decode())


def _with_encoded(secrets: Iterable[str]) -> tuple[str, ...]:
    """The secrets as they are, in base64 and in hexadecimal digits: an agent may repeat them so."""
    return tuple(form for secret in secrets for form in (secret, *_in_base64(secret), *_in_hex(secret)))


def _in_hex(secret: str) -> tuple[str, ...]:
    if len(secret) < _SHORTEST_SECRET:
        return ()
    digits = secret.encode(errors="replace").hex()
    return digits, digits.upper()


def _cores_in_base64(data: bytes) -> tuple[bytes, bytes, bytes]:
    bits = 8 * len(data)
    return (
        b64encode(data)[: bits // 6],
        b64encode(b"\0" + data)[2 : (bits + 8) // 6],
        b64encode(b"\0\0" + data)[3 : (bits + 16) // 6],
    )


def redacted_text(
    body: bytes, redaction: Redaction, what: str, notes: list[str], most_bytes: int, *, more: str = ""
) -> str:
    """`notes` gets what the text does not show of `what`; `more` is how to have more of it."""
    size = len(body)
    if size <= most_bytes:
        return redaction.text(_decoded(body, what, notes))
    notes.append(
        " ".join((f"{what} is cut: it has {size:,} bytes, and {most_bytes:,} are kept.", more)).rstrip()
    )
    # Redacted before it is cut, or half a secret would remain at the edge. The edge of this piece may hold
    # half a secret too, so that much of it goes again.
    margin = max(4 * redaction.longest, 4)
    text = redaction.text(_decoded(body[: most_bytes + margin], what, notes, whole=False))
    whole = text[: -max(redaction.longest, 1)]
    return whole.encode()[:most_bytes].decode("utf-8", "ignore")


def _decoded(body: bytes, what: str, notes: list[str], *, whole: bool = True) -> str:
    # Not whole: the last character may be cut through without being wrong.
    try:
        return utf_8_decode(body, "strict", whole)[0]
    except UnicodeDecodeError:
        notes.append(f"{what} is not valid UTF-8. Invalid bytes are shown as \N{REPLACEMENT CHARACTER}.")
        return utf_8_decode(body, "replace", whole)[0]
