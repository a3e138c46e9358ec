"""
A zone: an author's functions as methods behind one address.

    zone = Zone("execution", accept_after=timedelta(seconds=5))

    @zone.method("execute_task", params=SCHEMA)
    async def execute_task(params): return {"status": "success", "response_text": "…"}

`answer` serves any transport; a zone is also an ASGI application (`serving/asgi.py`). `call_runner.py` runs each call
once per id; `access/` decides who may call.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
import time
import traceback
from collections.abc import AsyncGenerator, Callable, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager
from datetime import timedelta
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import TypeVar

import msgspec
import structlog

from trunkline.durations import seconds_of
from trunkline.errors import Unavailable
from trunkline.jsontypes import JsonObject, encode
from trunkline.services.security.vault import KEY_BYTES, Vault, load_keys
from trunkline.stores.zones import CallKey, ZoneCall, ZoneStore
from trunkline.stores.zones.file import open_zone_file, zone_in_memory
from trunkline.system_clock import SystemClock
from trunkline.telemetry import log_events
from trunkline.telemetry.redaction import Redaction
from trunkline.zones.access.control import AccessControl, AuthenticatedCaller, PresentedCredentials
from trunkline.zones.access.policy import (
    ANYBODY,
    OPEN_POLICY,
    RESULT_METHODS,
    CallRefused,
    ZoneCaller,
    ZonePolicy,
)
from trunkline.zones.access.policy_file import read_policy
from trunkline.zones.call_runner import (
    CallAnswer,
    ZoneCallAccepted,
    ZoneCallErrored,
    ZoneCallJob,
    ZoneCallRunner,
    ZoneCallSucceeded,
)
from trunkline.zones.documents import contract_schemas, documents
from trunkline.zones.errors import INTERNAL_ERROR, METHOD_NOT_FOUND, OTHER, ZoneFault
from trunkline.zones.jsonrpc import (
    NO_ID,
    ZoneReply,
    ZoneRequest,
    read_request,
    with_error,
    with_fault,
    with_result,
)
from trunkline.zones.methods import Handler, ZoneMethod, is_async, secrets_under, without_secrets
from trunkline.zones.params import MethodParams, ParamsForm, invalid_params
from trunkline.zones.serving.asgi import Receive, Scope, Send, ZoneApplication
from trunkline.zones.thread_pool import DaemonThreadPool

log = structlog.stdlib.get_logger(__name__)

AnyHandler = TypeVar("AnyHandler", bound=Handler)
Checked = TypeVar("Checked")

GET_TASK_RESULT = "get_task_result"
_RESERVED = "rpc."
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
# A task and its attachments. AWS AgentCore would carry 100 MB; a policy may allow a caller less.
_MAX_BODY_BYTES = 16 * 1024 * 1024
# A larger body is parsed in a thread, because parsing could block other calls.
_LONG_BODY_BYTES = 256 * 1024
_ordered = msgspec.json.Encoder(order="deterministic")
# The values of `outcome` in the log.
_OUTCOMES: Mapping[type[CallAnswer | CallRefused], str] = {
    ZoneCallSucceeded: "done",
    ZoneCallErrored: "broke",
    ZoneCallAccepted: "accepted",
    CallRefused: "refused",
}


def zone_file(data: Path) -> Path:
    """The file in the data folder in which a zone keeps its calls, tokens and refusals."""
    return data / "zone.db"


class Zone:
    def __init__(
        self,
        name: str,
        *,
        accept_after: timedelta | float = timedelta(seconds=5),
        deadline: timedelta | float = timedelta(minutes=10),
        policy: ZonePolicy | JsonObject | None = None,
        data: str | Path | None = None,
        keep: timedelta = timedelta(hours=24),
        max_body_bytes: int = _MAX_BODY_BYTES,
        stop_timeout: timedelta | float = timedelta(seconds=30),
    ) -> None:
        """
        `accept_after`: when slow work is answered "accepted"; `deadline`: when unfinished work fails; `stop_timeout`:
        how long running work may take when the zone stops. A number is in seconds.

        `policy`: who may call what, as a dict (`zones.access.policy_file`) or a `ZonePolicy`.

        `data`: the folder for what must survive a restart, by default TRUNKLINE_DATA; `keep`: how long results can be
        polled.
        """
        if not _NAME.fullmatch(name):
            raise ValueError(
                f"A zone's name can contain letters, digits, dots, dashes and underscores only: {name!r}."
            )
        self.name = name
        self.accept_after = seconds_of(accept_after)
        self.deadline = seconds_of(deadline)
        if self.accept_after <= 0 or self.deadline <= 0:
            raise ValueError("accept_after and deadline must be more than 0 seconds.")
        self.policy = read_policy(policy) if isinstance(policy, dict) else policy or OPEN_POLICY
        self.data = data
        self.keep = keep
        self.max_body_bytes = max_body_bytes
        self.stop_timeout = seconds_of(stop_timeout)
        self._methods: dict[str, ZoneMethod] = {}
        self._result_params = MethodParams(contract_schemas()[f"{GET_TASK_RESULT}.params"])
        self._documents: Mapping[str, bytes] = {}
        self._runtime: _ZoneRuntime | None = None
        self._application = ZoneApplication(self)

    def method(
        self,
        name: str,
        *,
        params: ParamsForm = None,
        deadline: timedelta | float | None = None,
        restartable: bool = False,
    ) -> Callable[[AnyHandler], AnyHandler]:
        """
        Makes a function one of the zone's methods: sync or async, with the params as its one argument.

        `params`: a JSON Schema, or a type, whose instance it gets; `restartable`: may run again after a crash.
        """
        if not name or name.startswith(_RESERVED):
            raise ValueError(f"A method's name may not be empty or begin with {_RESERVED!r}: {name!r}.")
        if name in self._methods or name in RESULT_METHODS:
            raise ValueError(f"The zone {self.name} has a method {name} already.")
        limit = self.deadline if deadline is None else seconds_of(deadline)
        if limit <= 0:
            raise ValueError("deadline must be more than 0 seconds.")
        form = MethodParams(params)

        def register(handler: AnyHandler) -> AnyHandler:
            self._methods[name] = ZoneMethod(
                name=name,
                params=form,
                handler=handler,
                deadline=limit,
                restartable=restartable,
                is_async=is_async(handler),
            )
            self._documents = {}
            return handler

        return register

    @property
    def is_running(self) -> bool:
        return self._runtime is not None

    @property
    def is_busy(self) -> bool:
        """Whether accepted work is still running."""
        return self._runtime is not None and self._runtime.runner.is_busy

    @asynccontextmanager
    async def running(
        self, data: str | Path | None = None, *, secret_key: str | None = None
    ) -> AsyncGenerator[None]:
        """
        The zone takes calls while the block runs; at its end, running calls get time to end.

        `data` and `secret_key` (which encrypts the params that are kept for a restart) override the zone's own.
        """
        if self._runtime is not None:
            raise RuntimeError(f"The zone {self.name} is running already.")
        folder = data or self.data or os.environ.get("TRUNKLINE_DATA")
        unknown = self.policy.methods - self._methods.keys() - RESULT_METHODS
        if unknown:
            log.warning(log_events.ZONE_METHODS_UNKNOWN, methods=sorted(unknown))
        clock = SystemClock()
        with (
            _open_store(Path(folder) if folder else None, secret_key) as (store, vault),
            DaemonThreadPool() as threads,
        ):
            runner = ZoneCallRunner(store, vault, accept_after=self.accept_after, keep=self.keep, clock=clock)
            self._runtime = _ZoneRuntime(AccessControl(self.name, self.policy, store, clock), runner, threads)
            try:
                await runner.resume_calls(self._restart_job)
                yield
            finally:
                await self.drain()
                self._runtime = None

    async def drain(self) -> None:
        """Starts nothing more and gives running calls `stop_timeout` to end. Results can still be polled."""
        if self._runtime is not None and not self._runtime.drained:
            self._runtime.drained = True
            await self._runtime.runner.stop(self.stop_timeout)

    def authenticate(self, presented: PresentedCredentials) -> AuthenticatedCaller | ZoneReply:
        """Identifies the caller before the body is read, or refuses it."""
        return self._check_access(lambda access: access.authenticate(presented))

    def check_body(self, authenticated: AuthenticatedCaller, body: bytes) -> ZoneReply | None:
        """Refuses a caller whose token is not for this body; None: it is."""
        return self._check_access(lambda access: access.check_body(authenticated, body))

    def _check_access(self, ask: Callable[[AccessControl], Checked | CallRefused]) -> Checked | ZoneReply:
        if self._runtime is None:
            return ZoneReply(with_fault(NO_ID, _not_running()))
        try:
            answer = ask(self._runtime.access)
        except Unavailable as exc:
            return ZoneReply(with_fault(NO_ID, _unavailable(exc)))
        return _refusal(NO_ID, answer) if isinstance(answer, CallRefused) else answer

    async def answer(self, body: bytes, caller: ZoneCaller = ANYBODY) -> ZoneReply:
        """The reply to one request, for any transport."""
        began = time.perf_counter()
        try:
            request = read_request(body) if len(body) < _LONG_BODY_BYTES else await _read_in_thread(body)
        except ZoneFault as fault:
            return ZoneReply(with_fault(NO_ID, fault))
        try:
            answer = await self._answer(request, caller, len(body))
            outcome, reply = _OUTCOMES[type(answer)], _reply(request, answer)
        except ZoneFault as fault:
            outcome = str(fault.code)
            reply = ZoneReply(with_fault(request.id, fault, request.correlation_id))
        # The outermost layer for every transport: the caller gets a reply whatever fails here.
        except Exception as exc:  # noqa: BLE001
            outcome = str(INTERNAL_ERROR)
            reply = ZoneReply(with_fault(request.id, ZoneFault(INTERNAL_ERROR), request.correlation_id))
            self._log_failure(exc, request)
        log.debug(
            log_events.ZONE_CALL,
            method=request.method,
            caller=caller.name,
            correlation_id=request.correlation_id,
            outcome=outcome,
            duration_ms=round((time.perf_counter() - began) * 1000, 3),
        )
        return reply

    def _log_failure(self, error: Exception, request: ZoneRequest) -> None:
        redaction = Redaction.of(*self.policy.secrets_in(request.params))
        text = redaction.text("".join(traceback.format_exception(error)))
        log.error(
            log_events.ZONE_FAILED,
            method=request.method,
            correlation_id=request.correlation_id,
            traceback=text,
        )

    async def _answer(self, request: ZoneRequest, caller: ZoneCaller, size: int) -> CallAnswer | CallRefused:
        runtime = self._runtime
        if runtime is None:
            raise _not_running()
        params = request.named_params()
        try:
            refused = runtime.access.authorize(
                caller,
                method=request.method,
                params=params,
                size=size,
                correlation_id=request.correlation_id,
            )
        except Unavailable as exc:
            raise _unavailable(exc) from exc
        if refused is not None:
            return refused
        if request.method in RESULT_METHODS:
            return self._result(params, caller, runtime.runner)
        method = self._methods.get(request.method)
        if method is None:
            raise ZoneFault(METHOD_NOT_FOUND)
        key = CallKey(caller.name, request.id)
        return await runtime.runner.run(
            self._job(key, method, params, request.correlation_id, runtime.threads)
        )

    def _job(
        self,
        key: CallKey,
        method: ZoneMethod,
        params: JsonObject,
        correlation_id: str | None,
        threads: DaemonThreadPool,
    ) -> ZoneCallJob:
        """Raises a fault for invalid params."""
        perform = method.bound_to(params, threads, self.policy.secrets_in, correlation_id)
        secrets = tuple(secrets_under(self.policy.secret_fields, params))
        if secrets:
            perform = partial(without_secrets, perform, secrets)
        same = _ordered.encode([method.name, self.policy.identity_of(params)])
        return ZoneCallJob(
            key=key,
            method=method.name,
            params=params,
            digest=hashlib.sha256(same).digest(),
            perform=perform,
            deadline=method.deadline,
            restartable=method.restartable,
            correlation_id=correlation_id,
        )

    def _result(self, params: JsonObject, caller: ZoneCaller, runner: ZoneCallRunner) -> CallAnswer:
        self._result_params.check(params)
        answer = runner.result_of(caller.name, str(params["task_id"]))
        if answer is None:
            raise invalid_params([("task_id", "is unknown or has expired")])
        return answer

    def _restart_job(self, call: ZoneCall, params: JsonObject) -> ZoneCallJob | None:
        method, runtime = self._methods.get(call.method), self._runtime
        if method is None or runtime is None or not method.restartable:
            return None
        return self._job(call.key, method, params, call.correlation_id, runtime.threads)

    def document(self, path: str) -> bytes | None:
        """The zone's own document at this path, if there is one."""
        if not self._documents:
            own = {name: method.params.schema for name, method in self._methods.items()}
            self._documents = documents(self.name, {**own, GET_TASK_RESULT: self._result_params.schema})
        return self._documents.get(path)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._application(scope, receive, send)


class _ZoneRuntime:
    """The parts of a zone that exist only while it runs."""

    def __init__(self, access: AccessControl, runner: ZoneCallRunner, threads: DaemonThreadPool) -> None:
        self.access = access
        self.runner = runner
        self.threads = threads
        self.drained = False


async def _read_in_thread(body: bytes) -> ZoneRequest:
    return await asyncio.to_thread(read_request, body)


def _reply(request: ZoneRequest, answer: CallAnswer | CallRefused) -> ZoneReply:
    match answer:
        case CallRefused():
            return _refusal(request.id, answer, request.correlation_id)
        case ZoneCallSucceeded(result):
            return ZoneReply(with_result(request.id, result))
        case ZoneCallErrored(error):
            return ZoneReply(with_error(request.id, error))
        case ZoneCallAccepted(task_id):
            return ZoneReply(with_result(request.id, encode({"status": "accepted", "task_id": task_id})))


def _refusal(id_: bytes, refused: CallRefused, correlation_id: str | None = None) -> ZoneReply:
    fault, headers = refused.fault(), ()
    if refused.retry_after is not None:
        fault.data["retry_after_ms"] = refused.retry_after * 1000
        headers = ((b"retry-after", b"%d" % refused.retry_after),)
    elif refused.status == HTTPStatus.UNAUTHORIZED:
        headers = ((b"www-authenticate", b"Bearer"),)
    return ZoneReply(with_fault(id_, fault, correlation_id), refused.status, headers)


def _not_running() -> ZoneFault:
    return ZoneFault(OTHER, "The zone is not running. Send the request again later.", {"reason": "stopping"})


def _unavailable(exc: Unavailable) -> ZoneFault:
    message = f"The call could not be checked, so it was not run: {exc.message} Send it again later."
    return ZoneFault(OTHER, message, {"reason": "store_unavailable"})


@contextmanager
def _open_store(folder: Path | None, secret_key: str | None) -> Generator[tuple[ZoneStore, Vault]]:
    if folder is None:
        log.warning(
            log_events.ZONE_NOT_DURABLE, fix="Give the zone a data folder: Zone(data=…) or TRUNKLINE_DATA."
        )
        with zone_in_memory() as store:
            yield store, Vault(os.urandom(KEY_BYTES))
        return
    with open_zone_file(zone_file(folder)) as store:
        yield store, Vault(*load_keys(secret_key, folder / "secret.key"))
