"""
HTTP to a Trunkline server with the standard library alone, because it imports fast.

One connection per request; a problem+json becomes an `ApiError`, no answer a `ServerUnreachable`.
"""

from __future__ import annotations

import http.client
import json
import re
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple, cast
from urllib.parse import SplitResult, urlencode, urlsplit

from trunkline.cli.exit_codes import Exit
from trunkline.cli.failures import ApiError, CliError, ServerUnreachable

if TYPE_CHECKING:
    from trunkline.api.resources.common import Problem
    from trunkline.jsontypes import Json

# Longer than anything but `wait=` takes; those who wait say how long.
TIMEOUT_SECONDS = 30.0
JSON_TYPE = "application/json"
_KEY = re.compile(r"[\x21-\x7e]+")


class RestResponse(NamedTuple):
    status: int
    etag: str | None
    value: Json


class RestRequest(NamedTuple):
    method: str
    path: str
    body: bytes | None = None
    headers: Mapping[str, str] = {}


def with_query(path: str, query: Mapping[str, object]) -> str:
    """The path with those parameters that have a value."""
    given = {name: value for name, value in query.items() if value is not None}
    return f"{path}?{urlencode(given, doseq=True)}" if given else path


class HttpClient:
    """Sends requests to one base URL, each with the key that opens it."""

    def __init__(self, url: str, *, api_key: str | None = None) -> None:
        self.url = url.rstrip("/")
        self._parts = _split(self.url)
        self._key = _authorization(api_key)

    def send(self, request: RestRequest, *, timeout: float = TIMEOUT_SECONDS) -> RestResponse:
        with self.open(request, timeout=timeout) as response:
            with self._reached():
                body = response.read()
            return RestResponse(response.status, response.getheader("ETag"), _decode(body, response))

    def read(self, request: RestRequest, *, timeout: float = TIMEOUT_SECONDS) -> bytes:
        """The body as it is."""
        with self.open(request, timeout=timeout) as response, self._reached():
            return response.read()

    @contextmanager
    def open(
        self, request: RestRequest, *, timeout: float = TIMEOUT_SECONDS
    ) -> Generator[http.client.HTTPResponse]:
        """The response with its body still to be read; an error status is raised with its problem."""
        connection = self._connection(timeout)
        try:
            try:
                connection.connect()
            except OSError as error:
                raise ServerUnreachable(self.url, _reason(error)) from error
            with self._reached():
                # Without "Connection: close": told so, a server that refuses a body before it has all of it would
                # close on what still arrives, and its answer would be lost.
                connection.request(
                    request.method,
                    self._parts.path + request.path,
                    request.body,
                    {"Accept": JSON_TYPE, **self._key, **request.headers},
                )
                response = connection.getresponse()
            if response.status >= 400:
                raise ApiError(response.status, _problem(response))
            yield response
        finally:
            connection.close()

    def lines(self, response: http.client.HTTPResponse) -> Iterator[bytes]:
        """The body line by line; raises `ServerUnreachable` when it is cut off."""
        while True:
            with self._reached():
                line = response.readline()
            if not line:
                return
            yield line

    @contextmanager
    def _reached(self) -> Generator[None]:
        try:
            yield
        except (OSError, http.client.HTTPException) as error:
            raise ServerUnreachable(self.url, _reason(error), was_reached=True) from error

    def _connection(self, timeout: float) -> http.client.HTTPConnection:
        kind = http.client.HTTPSConnection if self._parts.scheme == "https" else http.client.HTTPConnection
        return kind(self._parts.hostname or "", self._parts.port, timeout=timeout)


def _split(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        parts, usable = SplitResult("", "", "", "", ""), False
    if not usable:
        raise CliError(
            f"{url!r} is not a valid server URL",
            fix="Use a URL such as --url http://127.0.0.1:8000",
            exit_code=Exit.USAGE,
        )
    return parts


def _authorization(api_key: str | None) -> dict[str, str]:
    key = (api_key or "").strip()
    if not key:
        return {}
    if not _KEY.fullmatch(key):
        # Never its text: this ends up on a terminal.
        raise CliError(
            "TRUNKLINE_API_KEY contains invalid characters",
            fix="Set it to a key that was printed by: trunkline keys create",
            exit_code=Exit.USAGE,
        )
    return {"Authorization": f"Bearer {key}"}


def _reason(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error) or type(error).__name__


def read_json(text: str | bytes) -> Json:
    """Raises `ValueError`. An integer with more digits than Python converts is read as its text."""
    return cast("Json", json.loads(text, parse_int=_integer))


def _integer(digits: str) -> int | str:
    try:
        return int(digits)
    except ValueError:
        return digits


def _decode(body: bytes, response: http.client.HTTPResponse) -> Json:
    if not body:
        return None
    try:
        return read_json(body)
    except ValueError as error:
        kind = response.getheader("Content-Type") or "no content type"
        raise CliError(
            f"The server responded with {kind} instead of JSON",
            fix="Check that --url is the URL of a Trunkline server",
        ) from error


def _problem(response: http.client.HTTPResponse) -> Problem:
    try:
        value = read_json(response.read())
    except (OSError, http.client.HTTPException, ValueError):
        value = None
    if isinstance(value, dict):
        return cast("Problem", value)
    # Something between us and Trunkline, or no Trunkline at all.
    title = f"HTTP {response.status} {response.reason}"
    return {
        "type": "about:blank",
        "title": title,
        "status": response.status,
        "detail": title,
        "fix": "Check that --url is the URL of a Trunkline server",
        "correlation_id": "",
    }
