"""
A zone as a server: an author's functions as methods behind one address.

    zone = Zone("execution", accept_after=5.0)

    @zone.method("execute_task", params=SCHEMA)
    async def execute_task(params): return {"status": "success", "response_text": "…"}

`answer` is the whole of it for any transport; the zone itself is also an ASGI application (`zones/http.py`). What it is
asked is done by `zones/work.py`, once for each id.
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
from typing import TYPE_CHECKING, TypeVar

import msgspec
import structlog

from trunkline.errors import Unavailable
from trunkline.jsontypes import JsonObject, encode
from trunkline.services.security.vault import KEY_BYTES, Vault, load_key
from trunkline.stores.zones import CallKey, ZoneCall, ZoneStore
from trunkline.system_clock import SystemClock
from trunkline.telemetry import names
from trunkline.telemetry.redaction import Redaction
from trunkline.zones.caller import ANYBODY, Caller
from trunkline.zones.documents import contract_schemas, documents
from trunkline.zones.echoes import secrets_under, without_echoes
from trunkline.zones.faults import INTERNAL_ERROR, METHOD_NOT_FOUND, OTHER, ZoneFault
from trunkline.zones.handlers import Handler, Method, is_async
from trunkline.zones.http import Application, Receive, Scope, Send
from trunkline.zones.params import Params, ParamsForm, invalid_params
from trunkline.zones.policy import OPEN, RESULT_METHODS, Policy, Refused
from trunkline.zones.replies import NO_ID, Reply, with_error, with_fault, with_result
from trunkline.zones.requests import Request, read_request
from trunkline.zones.threads import Threads
from trunkline.zones.work import Accepted, Answer, Broke, Done, Job, Work

if TYPE_CHECKING:
    from trunkline.zones.door import Door, Shown, Visitor

log = structlog.stdlib.get_logger(__name__)

AnyHandler = TypeVar("AnyHandler", bound=Handler)
Said = TypeVar("Said")

GET_TASK_RESULT = "get_task_result"
_RESERVED = "rpc."
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
# A task and its attachments. AWS AgentCore would carry 100 MB; a policy may allow a caller less.
_MAX_BODY_BYTES = 16 * 1024 * 1024
# Read in a thread: it could take so long that others wait for it.
_LONG_BODY_BYTES = 256 * 1024
_ordered = msgspec.json.Encoder(order="deterministic")


def zone_file(data: Path) -> Path:
    """Where a zone keeps what it must remember, in its data folder."""
    return data / "zone.db"


class Zone:
    def __init__(
        self,
        name: str,
        *,
        accept_after: float = 5.0,
        deadline: float = 600.0,
        policy: Policy | JsonObject | None = None,
        data: str | Path | None = None,
        keep: timedelta = timedelta(hours=24),
        max_body_bytes: int = _MAX_BODY_BYTES,
        stop_timeout: float = 30.0,
    ) -> None:
        """
        `accept_after`: seconds until slow work is answered "accepted"; `deadline`: seconds until work has failed;
        `policy`: who may call what, as a dict (`zones.policy_form`) or read already.

        `data`: the folder of what must survive a restart, or else TRUNKLINE_DATA says where; `keep`: how long answers
        can be asked for; `stop_timeout`: seconds that work may take to end when the zone is stopped.
        """
        if not _NAME.fullmatch(name):
            raise ValueError(
                f"A zone's name has letters, digits, dots, dashes and underscores only: {name!r}."
            )
        if accept_after <= 0 or deadline <= 0:
            raise ValueError("accept_after and deadline must be more than 0 seconds.")
        self.name = name
        self.accept_after = accept_after
        self.deadline = deadline
        self.policy = _read(policy) if isinstance(policy, dict) else policy or OPEN
        self.data = data
        self.keep = keep
        self.max_body_bytes = max_body_bytes
        self.stop_timeout = stop_timeout
        self._methods: dict[str, Method] = {}
        self._questions = Params(contract_schemas()[f"{GET_TASK_RESULT}.params"])
        self._documents: Mapping[str, bytes] = {}
        self._life: _Life | None = None
        self._application = Application(self)

    def method(
        self,
        name: str,
        *,
        params: ParamsForm = None,
        deadline: float | None = None,
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
        if deadline is not None and deadline <= 0:
            raise ValueError("deadline must be more than 0 seconds.")
        form = Params(params)

        def register(handler: AnyHandler) -> AnyHandler:
            self._methods[name] = Method(
                name=name,
                params=form,
                handler=handler,
                deadline=deadline or self.deadline,
                restartable=restartable,
                is_async=is_async(handler),
            )
            self._documents = {}
            return handler

        return register

    @property
    def is_running(self) -> bool:
        return self._life is not None

    @property
    def is_busy(self) -> bool:
        """Whether work goes on whose caller has been answered."""
        return self._life is not None and self._life.work.is_busy

    @asynccontextmanager
    async def running(
        self, data: str | Path | None = None, *, secret_key: str | None = None
    ) -> AsyncGenerator[None]:
        """
        The zone takes calls while the block runs. At its end those under way may end first.

        `data` and `secret_key` (of the params that are kept for a restart) come before what the zone was made with.
        """
        if self._life is not None:
            raise RuntimeError(f"The zone {self.name} is running already.")
        folder = data or self.data or os.environ.get("TRUNKLINE_DATA")
        # Here, since a program that has a zone's code in it and does not run it needs no cryptography.
        from trunkline.zones.door import Door  # noqa: PLC0415

        unknown = self.policy.methods - self._methods.keys() - RESULT_METHODS
        if unknown:
            log.warning(names.ZONE_METHODS_UNKNOWN, methods=sorted(unknown))
        clock = SystemClock()
        with (
            _remembering(Path(folder) if folder else None, secret_key) as (store, vault),
            Threads() as threads,
        ):
            work = Work(store, vault, accept_after=self.accept_after, keep=self.keep, clock=clock)
            self._life = _Life(Door(self.name, self.policy, store, clock), work, threads)
            try:
                await work.start(self._revived)
                yield
            finally:
                await self.drain()
                self._life = None

    async def drain(self) -> None:
        """Nothing is begun any more; what runs may end within `stop_timeout`. Answers can still be asked for."""
        if self._life is not None and not self._life.drained:
            self._life.drained = True
            await self._life.work.stop(self.stop_timeout)

    def greet(self, shown: Shown) -> Visitor | Reply:
        """Who calls, before its body is read; or the answer to whoever may not."""
        return self._at_the_door(lambda door: door.greet(shown))

    def hear(self, visitor: Visitor, body: bytes) -> Reply | None:
        """The answer to a caller whose token is not for this body; None: it may be answered."""
        return self._at_the_door(lambda door: door.hear(visitor, body))

    def _at_the_door(self, ask: Callable[[Door], Said | Refused]) -> Said | Reply:
        if self._life is None:
            return Reply(with_fault(NO_ID, _not_running()))
        try:
            said = ask(self._life.door)
        except Unavailable as exc:
            return Reply(with_fault(NO_ID, _unavailable(exc)))
        return _refusal(NO_ID, said) if isinstance(said, Refused) else said

    async def answer(self, body: bytes, caller: Caller = ANYBODY) -> Reply:
        """The answer to one request, whatever has carried it."""
        began = time.perf_counter()
        try:
            request = read_request(body) if len(body) < _LONG_BODY_BYTES else await _read_aside(body)
        except ZoneFault as fault:
            return Reply(with_fault(NO_ID, fault))
        try:
            answer = await self._answer(request, caller, len(body))
            outcome, reply = type(answer).__name__.lower(), _reply(request, answer)
        except ZoneFault as fault:
            outcome = str(fault.code)
            reply = Reply(with_fault(request.id, fault, request.correlation_id))
        # The outermost layer of every transport: whatever is wrong with us, the caller gets an answer.
        except Exception as exc:  # noqa: BLE001
            outcome = str(INTERNAL_ERROR)
            reply = Reply(with_fault(request.id, ZoneFault(INTERNAL_ERROR), request.correlation_id))
            self._tell(exc, request)
        log.debug(
            names.ZONE_CALL,
            method=request.method,
            caller=caller.name,
            correlation_id=request.correlation_id,
            outcome=outcome,
            duration_ms=round((time.perf_counter() - began) * 1000, 3),
        )
        return reply

    def _tell(self, error: Exception, request: Request) -> None:
        redaction = Redaction.of(*self.policy.secrets_in(request.params))
        text = redaction.text("".join(traceback.format_exception(error)))
        log.error(
            names.ZONE_FAILED, method=request.method, correlation_id=request.correlation_id, traceback=text
        )

    async def _answer(self, request: Request, caller: Caller, size: int) -> Answer | Refused:
        life = self._life
        if life is None:
            raise _not_running()
        params = request.named_params()
        try:
            refused = life.door.admit(
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
            return self._result(params, caller, life.work)
        method = self._methods.get(request.method)
        if method is None:
            raise ZoneFault(METHOD_NOT_FOUND)
        key = CallKey(caller.name, request.id)
        return await life.work.run(self._job(key, method, params, request.correlation_id, life.threads))

    def _job(
        self, key: CallKey, method: Method, params: JsonObject, correlation_id: str | None, threads: Threads
    ) -> Job:
        """Raises a fault for params that are wrong."""
        perform = method.bound_to(params, threads, self.policy.secrets_in, correlation_id)
        secrets = tuple(secrets_under(self.policy.secret_fields, params))
        if secrets:
            perform = partial(without_echoes, perform, secrets)
        same = _ordered.encode([method.name, self.policy.identity_of(params)])
        return Job(
            key=key,
            method=method.name,
            params=params,
            digest=hashlib.sha256(same).digest(),
            perform=perform,
            deadline=method.deadline,
            restartable=method.restartable,
            correlation_id=correlation_id,
        )

    def _result(self, params: JsonObject, caller: Caller, work: Work) -> Answer:
        self._questions.check(params)
        answer = work.result_of(caller.name, str(params["task_id"]))
        if answer is None:
            raise invalid_params([("task_id", "is not known, or was forgotten since")])
        return answer

    def _revived(self, call: ZoneCall, params: JsonObject) -> Job | None:
        method, life = self._methods.get(call.method), self._life
        if method is None or life is None or not method.restartable:
            return None
        return self._job(call.key, method, params, call.correlation_id, life.threads)

    def document(self, path: str) -> bytes | None:
        """What the zone says about itself, by its path."""
        if not self._documents:
            own = {name: method.params.schema for name, method in self._methods.items()}
            self._documents = documents(self.name, {**own, GET_TASK_RESULT: self._questions.schema})
        return self._documents.get(path)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._application(scope, receive, send)


def _read(policy: JsonObject) -> Policy:
    # Here, as the door: no cryptography.
    from trunkline.zones.policy_form import read_policy  # noqa: PLC0415

    return read_policy(policy)


class _Life:
    """What a zone has while it runs."""

    def __init__(self, door: Door, work: Work, threads: Threads) -> None:
        self.door = door
        self.work = work
        self.threads = threads
        self.drained = False


async def _read_aside(body: bytes) -> Request:
    return await asyncio.to_thread(read_request, body)


def _reply(request: Request, answer: Answer | Refused) -> Reply:
    match answer:
        case Refused():
            return _refusal(request.id, answer, request.correlation_id)
        case Done(result):
            return Reply(with_result(request.id, result))
        case Broke(error):
            return Reply(with_error(request.id, error))
        case Accepted(task_id):
            return Reply(with_result(request.id, encode({"status": "accepted", "task_id": task_id})))


def _refusal(id_: bytes, refused: Refused, correlation_id: str | None = None) -> Reply:
    fault, headers = refused.fault(), ()
    if refused.retry_after is not None:
        fault.data["retry_after_ms"] = refused.retry_after * 1000
        headers = ((b"retry-after", b"%d" % refused.retry_after),)
    elif refused.status == HTTPStatus.UNAUTHORIZED:
        headers = ((b"www-authenticate", b"Bearer"),)
    return Reply(with_fault(id_, fault, correlation_id), refused.status, headers)


def _not_running() -> ZoneFault:
    return ZoneFault(OTHER, "The zone does not run now. Send it again later.", {"reason": "stopping"})


def _unavailable(exc: Unavailable) -> ZoneFault:
    message = f"The call could not be checked, so it was not run: {exc.message} Send it again later."
    return ZoneFault(OTHER, message, {"reason": "store_unavailable"})


@contextmanager
def _remembering(folder: Path | None, secret_key: str | None) -> Generator[tuple[ZoneStore, Vault]]:
    # Here, as the door: no SQLite.
    from trunkline.stores.zones.file import open_zone_file, zone_in_memory  # noqa: PLC0415

    if folder is None:
        log.warning(names.ZONE_FORGETS, fix="Give the zone a data folder: Zone(data=…) or TRUNKLINE_DATA.")
        with zone_in_memory() as store:
            yield store, Vault(os.urandom(KEY_BYTES))
        return
    with open_zone_file(zone_file(folder)) as store:
        yield store, Vault(load_key(secret_key, folder / "secret.key"))
