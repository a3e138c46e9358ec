"""
A stand-in for the endpoint of Amazon Bedrock AgentCore on this machine: `python -m deploy.local.agentcore`.

It takes InvokeAgentRuntime as boto3 sends it, checks what AWS would check (path, headers, session, the signature,
computed again with the secret key), hands the payload to a zone's `/invocations`, and its answer back. It knows one
pair of keys and has no other service of AWS.

boto3 finds it by AWS_ENDPOINT_URL_BEDROCK_AGENTCORE.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import secrets
import signal
import ssl
import sys
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from hmac import compare_digest
from types import TracebackType
from typing import NamedTuple, Protocol, Self, cast
from urllib.parse import quote, unquote

import aiohttp
import msgspec
from aiohttp import web
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

SERVICE = "bedrock-agentcore"
SESSION_HEADER = "X-Amzn-Bedrock-AgentCore-Runtime-Session-Id"
MAX_PAYLOAD_BYTES = 100_000_000

_PATH = re.compile(r"/runtimes/(?P<runtime>[^/]+)/invocations(?:\?qualifier=(?P<qualifier>[^&]+))?")
_ARN = re.compile(
    r"arn:aws[a-z-]*:bedrock-agentcore:(?P<region>[a-z0-9-]+):[0-9]{12}:runtime/[A-Za-z0-9_/-]+"
)
_AUTHORIZATION = re.compile(
    r"AWS4-HMAC-SHA256 Credential=(?P<key>[^/, ]+)/(?P<day>\d{8})/(?P<region>[a-z0-9-]+)/(?P<service>[a-z0-9-]+)"
    r"/aws4_request, SignedHeaders=(?P<headers>[a-z0-9;-]+), Signature=(?P<signature>[0-9a-f]{64})"
)
_DATE_FORM = "%Y%m%dT%H%M%SZ"
_CLOCKS_APART = timedelta(minutes=5)
# Without these a signature says too little.
_MUST_BE_SIGNED = frozenset({"host", "x-amz-date"})


class Refusal(NamedTuple):
    """An error of the service."""

    status: int
    code: str
    message: str
    details: Mapping[str, str] = {}


class Said(NamedTuple):
    """An answer that no zone has given."""

    body: bytes
    status: int = 200
    # Without a length, piece by piece.
    chunked: bool = False


class BrokenStream(NamedTuple):
    """The answer's first bytes, and then no connection any more."""

    begin: bytes
    # How many were announced; None: none were.
    length: int | None = None


class Silence(NamedTuple):
    """The request is read, and nothing is said until the stand-in ends."""


class HungUp(NamedTuple):
    """The request is read, and the connection closed."""


Behaviour = Refusal | Said | BrokenStream | Silence | HungUp

THROTTLED = Refusal(429, "ThrottlingException", "Rate exceeded")
DENIED = Refusal(403, "AccessDeniedException", "User is not authorized to perform this action")
INVALID = Refusal(400, "ValidationException", "The input fails the constraints", {"reason": "CannotParse"})


class _Signed(Protocol):
    @property
    def context(self) -> dict[str, str]: ...


class _Signer(Protocol):
    def canonical_request(self, request: _Signed) -> str: ...

    def string_to_sign(self, request: _Signed, canonical_request: str) -> str: ...

    def signature(self, string_to_sign: str, request: _Signed) -> str: ...


@dataclass(frozen=True)
class Invocation:
    """What has passed the checks."""

    arn: str
    qualifier: str | None
    session: str
    headers: Mapping[str, str]
    payload: bytes


@dataclass
class StandIn:
    """Used as a context; `env` is what a process needs so that its boto3 calls this one."""

    # Where the zone listens, without /invocations.
    zone: str | None = None
    key: str = field(default_factory=lambda: f"AKIA{secrets.token_hex(8).upper()}")
    secret: str = field(default_factory=lambda: secrets.token_urlsafe(30), repr=False)
    # What temporary credentials have in addition to the two.
    token: str | None = field(default=None, repr=False)
    # One for each of the next requests, in this order.
    plan: deque[Behaviour] = field(default_factory=deque[Behaviour])
    invocations: list[Invocation] = field(default_factory=list[Invocation])
    # What was wrong with requests, in words.
    complaints: list[str] = field(default_factory=list[str])
    # 0: a free one.
    port: int = 0
    # With it, it speaks https as AWS does.
    tls: ssl.SSLContext | None = None
    url: str = ""

    @property
    def env(self) -> dict[str, str]:
        variables = {
            "AWS_ENDPOINT_URL_BEDROCK_AGENTCORE": self.url,
            "AWS_ACCESS_KEY_ID": self.key,
            "AWS_SECRET_ACCESS_KEY": self.secret,
            "AWS_EC2_METADATA_DISABLED": "true",
        }
        return variables if self.token is None else {**variables, "AWS_SESSION_TOKEN": self.token}

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=2 * MAX_PAYLOAD_BYTES)
        app.router.add_route("*", "/{anything:.*}", self._answer)
        self._ending = asyncio.Event()
        self._session = aiohttp.ClientSession()
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self.port, ssl_context=self.tls).start()
        host, port = self._runner.addresses[0][:2]
        self.url = f"{'http' if self.tls is None else 'https'}://{host}:{port}"
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._ending.set()
        await self._runner.cleanup()
        await self._session.close()

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        payload = await request.read()
        checked = _checked(request, payload, self)
        if isinstance(checked, Refusal):
            self.complaints.append(f"{checked.code}: {checked.message}")
            return _refused(checked)
        self.invocations.append(checked)
        match self.plan.popleft() if self.plan else None:
            case None:
                return await self._handed_on(checked)
            case Refusal() as refusal:
                return _refused(refusal)
            case Said(body, status, chunked):
                return await _said(request, body, status, checked, chunked=chunked)
            case BrokenStream(begin, length):
                return await _broken(request, begin, length)
            case Silence():
                await self._ending.wait()
                raise web.HTTPServiceUnavailable
            case HungUp():
                _hang_up(request)
                raise web.HTTPServiceUnavailable

    async def _handed_on(self, invocation: Invocation) -> web.Response:
        if self.zone is None:
            return _refused(Refusal(404, "ResourceNotFoundException", "No zone runs here"))
        headers = {"Content-Type": "application/json", SESSION_HEADER: invocation.session}
        target = f"{self.zone.rstrip('/')}/invocations"
        try:
            async with self._session.post(target, data=invocation.payload, headers=headers) as answer:
                body = await answer.read()
        except aiohttp.ClientError:
            return _refused(Refusal(424, "RuntimeClientError", "The runtime cannot be reached"))
        if answer.status >= 400:
            # What a runtime says in addition to its errors does not reach the caller.
            said = f"Received error ({answer.status}) from runtime"
            return _refused(Refusal(424, "RuntimeClientError", said))
        return web.Response(
            body=body, content_type="application/json", headers={SESSION_HEADER: invocation.session}
        )


def _checked(request: web.Request, payload: bytes, keys: StandIn) -> Invocation | Refusal:
    path = _PATH.fullmatch(request.raw_path)
    if request.method != "POST" or path is None:
        return Refusal(404, "UnknownOperationException", f"{request.method} {request.raw_path} is not known")
    arn = unquote(path["runtime"])
    parts = _ARN.fullmatch(arn)
    if parts is None or quote(arn, safe="") != path["runtime"]:
        return Refusal(400, "ValidationException", "agentRuntimeArn is no ARN, or not percent-encoded")
    wrong = _wrong_head(request, payload) or _wrong_signature(request, payload, parts["region"], keys)
    return wrong or Invocation(
        arn, path["qualifier"], request.headers[SESSION_HEADER], dict(request.headers), payload
    )


def _wrong_head(request: web.Request, payload: bytes) -> Refusal | None:
    session = request.headers.get(SESSION_HEADER, "")
    if not 33 <= len(session) <= 256:
        return Refusal(400, "ValidationException", "runtimeSessionId must have 33 to 256 characters")
    for name in ("Content-Type", "Accept"):
        if request.headers.get(name) != "application/json":
            return Refusal(400, "ValidationException", f"{name} must be application/json here")
    if len(payload) > MAX_PAYLOAD_BYTES:
        return Refusal(400, "ValidationException", "payload is too long")
    return None


def _wrong_signature(request: web.Request, payload: bytes, region: str, keys: StandIn) -> Refusal | None:
    parts = _AUTHORIZATION.fullmatch(request.headers.get("Authorization", ""))
    if parts is None:
        return Refusal(403, "MissingAuthenticationTokenException", "Authorization is not of Signature V4")
    date = request.headers.get("X-Amz-Date", "")
    if not _is_now(date) or not date.startswith(parts["day"]):
        return Refusal(403, "InvalidSignatureException", "X-Amz-Date is missing, or not now")
    if (parts["region"], parts["service"]) != (region, SERVICE):
        return Refusal(403, "InvalidSignatureException", "Credential is scoped to another region or service")
    is_known = parts["key"] == keys.key and request.headers.get("X-Amz-Security-Token") == keys.token
    if not is_known:
        return Refusal(403, "UnrecognizedClientException", "The security token in the request is invalid")
    names = parts["headers"].split(";")
    if not _MUST_BE_SIGNED.issubset(names):
        return Refusal(403, "InvalidSignatureException", "'Host' and 'X-Amz-Date' must be signed")
    expected, canonical = _signature(request, payload, names, region, keys)
    if not compare_digest(expected, parts["signature"]):
        # As AWS does, with all that was signed.
        return Refusal(
            403, "InvalidSignatureException", f"The signature does not match. Canonical: {canonical}"
        )
    return None


def _is_now(date: str) -> bool:
    try:
        given = datetime.strptime(date, _DATE_FORM).replace(tzinfo=UTC)
    except ValueError:
        return False
    return abs(datetime.now(UTC) - given) < _CLOCKS_APART


def _signature(
    request: web.Request, payload: bytes, names: Sequence[str], region: str, keys: StandIn
) -> tuple[str, str]:
    """What the signature must be, and the text that it is of."""
    made: object = AWSRequest(
        method=request.method,
        url=f"http://{request.host}{request.raw_path}",
        data=payload,
        headers={name: request.headers.get(name, "") for name in names},
    )
    signed = cast("_Signed", made)
    signed.context["timestamp"] = request.headers["X-Amz-Date"]
    signer = cast("_Signer", SigV4Auth(Credentials(keys.key, keys.secret, keys.token), SERVICE, region))
    canonical = signer.canonical_request(signed)
    return signer.signature(signer.string_to_sign(signed, canonical), signed), canonical


def _refused(refusal: Refusal) -> web.Response:
    return web.Response(
        status=refusal.status,
        body=msgspec.json.encode({"message": refusal.message, **refusal.details}),
        content_type="application/json",
        headers={"x-amzn-ErrorType": refusal.code, "x-amzn-RequestId": secrets.token_hex(8)},
    )


async def _said(
    request: web.Request, body: bytes, status: int, invocation: Invocation, *, chunked: bool
) -> web.StreamResponse:
    headers = {"Content-Type": "application/json", SESSION_HEADER: invocation.session}
    if not chunked:
        return web.Response(status=status, body=body, headers=headers)
    answer = web.StreamResponse(status=status, headers=headers)
    answer.enable_chunked_encoding()
    await answer.prepare(request)
    middle = len(body) // 2
    await answer.write(body[:middle])
    await answer.write(body[middle:])
    await answer.write_eof()
    return answer


async def _broken(request: web.Request, begin: bytes, length: int | None) -> web.StreamResponse:
    answer = web.StreamResponse(headers={"Content-Type": "application/json"})
    if length is None:
        answer.enable_chunked_encoding()
    else:
        answer.content_length = length
    await answer.prepare(request)
    await answer.write(begin)
    _hang_up(request)
    return answer


def _hang_up(request: web.Request) -> None:
    if request.transport is not None:
        request.transport.close()


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m deploy.local.agentcore", description=__doc__)
    parser.add_argument("zone", help="where the zone listens: http://127.0.0.1:8091")
    parser.add_argument("--port", type=int, default=0, help="default: a free one")
    parser.add_argument(
        "--throttle", type=int, default=0, help="so many requests are answered with 429 first"
    )
    options = parser.parse_args(arguments)
    asyncio.run(_serve(options.zone, options.port, options.throttle))
    return 0


async def _serve(zone: str, port: int, throttle: int) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    endpoint = StandIn(zone, plan=deque([THROTTLED] * throttle), port=port)
    endpoint.key = os.environ.get("AWS_ACCESS_KEY_ID", endpoint.key)
    endpoint.secret = os.environ.get("AWS_SECRET_ACCESS_KEY", endpoint.secret)
    async with endpoint:
        for name, value in endpoint.env.items():
            sys.stdout.write(f"{name}={value}\n")
        sys.stdout.flush()
        await stop.wait()
    for complaint in endpoint.complaints:
        sys.stderr.write(f"{complaint}\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
