"""
Calls of Bedrock AgentCore's InvokeAgentRuntime by boto3, which waits: for threads only.

boto3's errors become ours here and nowhere else. It is an extra and takes a while to load, so this module is imported
when the first such agent is called.
"""

from __future__ import annotations

import logging
import ssl
from collections.abc import Iterator, Mapping
from threading import Lock, local
from typing import NamedTuple, Protocol, TypedDict, cast

from boto3.session import Session
from botocore.config import Config
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectTimeoutError,
    EndpointConnectionError,
    IncompleteReadError,
    NoCredentialsError,
    ParamValidationError,
    ReadTimeoutError,
    ResponseStreamingError,
    SSLError,
)
from botocore.parsers import ResponseParserError
from urllib3.exceptions import HTTPError, NameResolutionError

from trunkline import __version__
from trunkline.agents.transport_urls import AgentCoreRuntime
from trunkline.jsontypes import JsonObject, encode
from trunkline.protocols.base import AgentAnswer
from trunkline.telemetry.redaction import Redaction
from trunkline.transports.base import TransportError
from trunkline.transports.failures import too_large
from trunkline.transports.pending_request import PendingRequest, RequestAbandoned

_SERVICE = "bedrock-agentcore"
_JSON = "application/json"
_CHUNK_BYTES = 16 * 1024
# As long as AgentCore lets a request last. Each call has its own, shorter one, where botocore knows how.
_READ_SECONDS = 900
# What the service says of them: nothing was done, ask again later.
_THROTTLED = frozenset({"ThrottlingException", "RetryableConflictException"})
# What an error of the service may contain in addition to the message.
_DETAILS = ("reason", "fieldList")

# At DEBUG they write down whole requests, with their signatures and the secrets in their bodies.
for _name in ("boto3", "botocore", "urllib3"):
    if logging.getLogger(_name).level == logging.NOTSET:
        logging.getLogger(_name).setLevel(logging.INFO)


class InvokeResult(NamedTuple):
    answer: AgentAnswer
    # The service has not taken the request, and it may be sent again.
    is_throttled: bool = False


class _ResponseBody(Protocol):
    def iter_chunks(self, chunk_size: int) -> Iterator[bytes]: ...

    def close(self) -> None: ...


class _ResponseMetadata(TypedDict):
    HTTPStatusCode: int
    HTTPHeaders: dict[str, str]


class _InvokeResponse(TypedDict):
    ResponseMetadata: _ResponseMetadata
    response: _ResponseBody


class _Events(Protocol):
    def register(self, event_name: str, handler: object) -> None: ...


class _ClientMeta(Protocol):
    @property
    def events(self) -> _Events: ...


class _AgentCoreClient(Protocol):
    @property
    def meta(self) -> _ClientMeta: ...

    def invoke_agent_runtime(self, **parameters: object) -> _InvokeResponse: ...

    def close(self) -> None: ...


class _BotoSession(Protocol):
    def client(self, service_name: str, *, region_name: str, config: Config) -> _AgentCoreClient: ...


class _AwsRequest(Protocol):
    @property
    def headers(self) -> Mapping[str, str | bytes]: ...


class _ThreadState(local):
    """What a thread is about."""

    request: PendingRequest
    redaction = Redaction()


class AgentCoreClients:
    """One client for each region, made when it is needed."""

    def __init__(self, *, max_calls: int, max_answer_bytes: int, connect_timeout: float) -> None:
        self._max_answer_bytes = max_answer_bytes
        self._config = Config(
            connect_timeout=connect_timeout,
            read_timeout=_READ_SECONDS,
            max_pool_connections=max_calls,
            # Only the transport knows whether a request may be sent again.
            retries={"total_max_attempts": 1, "mode": "standard"},
            proxies={},
            user_agent_extra=f"trunkline/{__version__}",
        )
        self._making = Lock()
        self._session: _BotoSession | None = None
        self._clients: dict[str, _AgentCoreClient] = {}
        self._current = _ThreadState()

    def close(self) -> None:
        for client in self._clients.values():
            client.close()

    def invoke(
        self, runtime: AgentCoreRuntime, body: bytes, parameters: Mapping[str, str], request: PendingRequest
    ) -> InvokeResult:
        """Sends at most once, and only while `request` lets it; raises `TransportError`."""
        client = self._client(runtime.region)
        self._current.request = request
        self._current.redaction = Redaction()
        try:
            answer = client.invoke_agent_runtime(
                agentRuntimeArn=runtime.arn, payload=body, contentType=_JSON, accept=_JSON, **parameters
            )
        except ClientError as exc:
            if not request.is_sent:
                # From where the credentials come.
                raise _no_credentials(f"{exc.operation_name} was refused") from exc
            return _refusal(exc, self._current.redaction)
        except (BotoCoreError, ResponseParserError, RequestAbandoned) as exc:
            raise (_no_answer(exc) if request.is_sent else _not_sent(exc)) from exc
        return InvokeResult(self._read_answer(answer, request))

    def _client(self, region: str) -> _AgentCoreClient:
        # First without the lock: the thread that makes a client may have to wait for credentials.
        client = self._clients.get(region)
        if client is not None:
            return client
        with self._making:
            if region not in self._clients:
                try:
                    self._clients[region] = self._new_client(region)
                except (BotoCoreError, ValueError) as exc:
                    # Not its text, as in `_not_sent`.
                    message = f"boto3 makes no client for {region}: {type(exc).__name__}."
                    raise TransportError("agent_transport_unavailable", message) from exc
            return self._clients[region]

    def _new_client(self, region: str) -> _AgentCoreClient:
        self._session = self._session or cast("_BotoSession", Session())
        client = self._session.client(_SERVICE, region_name=region, config=self._config)
        client.meta.events.register(f"before-send.{_SERVICE}.InvokeAgentRuntime", self._before_send)
        return client

    def _before_send(self, request: _AwsRequest, **_: object) -> None:
        """All that can fail before a connection is needed has been done: signing, and finding credentials for it."""
        seconds = self._current.request.send()
        token = request.headers.get("X-Amz-Security-Token")
        if token is not None:
            self._current.redaction = Redaction.of(token.decode() if isinstance(token, bytes) else token)
        # Older versions know only the timeout of all calls.
        context = cast("dict[str, object] | None", getattr(request, "context", None))
        if context is not None:
            context["read_timeout"] = seconds

    def _read_answer(self, answer: _InvokeResponse, request: PendingRequest) -> AgentAnswer:
        metadata, body = answer["ResponseMetadata"], answer["response"]
        headers = metadata["HTTPHeaders"]
        limit = self._max_answer_bytes
        received = bytearray()

        def so_far() -> AgentAnswer:
            return AgentAnswer(metadata["HTTPStatusCode"], headers, bytes(received))

        try:
            length = headers.get("content-length", "")
            if length.isdecimal() and int(length) > limit:
                raise too_large(limit)
            for chunk in body.iter_chunks(_CHUNK_BYTES):
                received += chunk
                if len(received) > limit:
                    raise too_large(limit)
                if request.is_abandoned:
                    break
        except TransportError as exc:
            raise TransportError(exc.code, exc.message, partial=so_far()) from exc
        except (ReadTimeoutError, ResponseStreamingError, IncompleteReadError, HTTPError, OSError) as exc:
            raise _broken_off(exc, so_far()) from exc
        finally:
            body.close()
        return so_far()


def _refusal(exc: ClientError, redaction: Redaction) -> InvokeResult:
    """What the service itself answered; a complaint about a signature quotes what was signed."""
    response = cast("JsonObject", exc.response)
    metadata = cast("_ResponseMetadata", response["ResponseMetadata"])
    error = cast("dict[str, str]", response["Error"])
    code = error.get("Code", "")
    said: JsonObject = {"type": code, "message": error.get("Message", "")}
    said |= {name: response[name] for name in _DETAILS if name in response}
    answer = AgentAnswer(
        metadata["HTTPStatusCode"],
        {**metadata["HTTPHeaders"], "content-type": _JSON},
        redaction.body(encode(said)),
    )
    return InvokeResult(answer, code in _THROTTLED or answer.status == 429)


def _not_sent(exc: Exception) -> TransportError:
    match exc:
        case RequestAbandoned():
            return TransportError("agent_unreachable", "The call was abandoned before it was sent.")
        case ParamValidationError():
            return TransportError("request_not_encodable", f"boto3 does not take the call: {exc}")
        case NoCredentialsError():
            return _no_credentials("there are none where the bridge runs")
        case _:
            # Not its text, which may be what a program that gives out credentials has said.
            return _no_credentials(type(exc).__name__)


def _no_credentials(why: str) -> TransportError:
    return TransportError("agent_transport_unavailable", f"boto3 has no usable AWS credentials: {why}.")


def _no_answer(exc: Exception) -> TransportError:
    match exc:
        case EndpointConnectionError() if _is_caused_by(exc, NameResolutionError):
            return TransportError(
                "agent_dns_failed", "The host name of AgentCore's endpoint cannot be resolved."
            )
        case EndpointConnectionError() | ConnectTimeoutError():
            return TransportError("agent_unreachable", "The endpoint of AgentCore cannot be reached.")
        # Of all errors of TLS only this one surely comes before the request.
        case SSLError() if _is_caused_by(exc, ssl.SSLCertVerificationError):
            return TransportError(
                "agent_tls_failed", "TLS failed: the certificate of AgentCore's endpoint is not valid."
            )
        case ReadTimeoutError():
            return TransportError("agent_timeout", "AgentCore did not answer in time.")
        case ResponseParserError():
            return TransportError("agent_answer_malformed", "AgentCore's answer cannot be read.")
        case _:
            # Whatever it is, the request may have arrived.
            message = f"The connection to AgentCore was lost: {type(exc).__name__}."
            return TransportError("agent_connection_lost", message)


def _is_caused_by(exc: Exception, kind: type[Exception]) -> bool:
    found: BaseException | None = exc
    while found is not None and not isinstance(found, kind):
        found = found.__context__
    return found is not None


def _broken_off(exc: Exception, partial: AgentAnswer) -> TransportError:
    if isinstance(exc, ReadTimeoutError):
        return TransportError("agent_timeout", "AgentCore's answer stopped before its end.", partial=partial)
    return TransportError(
        "agent_connection_lost", "The agent's answer broke off before its end.", partial=partial
    )
