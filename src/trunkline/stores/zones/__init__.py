"""
What a zone stores: its calls, the tokens it has seen, and the calls it has rejected.

A zone does not use the system's database: it runs elsewhere, often in another account, and has its own file.
`begin` and `finish` survive the death of the process; what `accept` has returned from survives the machine's, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol, TypeAlias

import msgspec

from trunkline.clock import Instant

CallStatus: TypeAlias = Literal["running", "finished"]


class CallKey(msgspec.Struct, frozen=True):
    """One call of one caller; `id` is the JSON text of the request's id, so that 1 and "1" are two."""

    caller: str
    id: bytes


class ZoneCall(msgspec.Struct, frozen=True, kw_only=True):
    """A call that was let in. Its params are sealed, kept only where it may run again, and go when it has ended."""

    key: CallKey
    task_id: str
    method: str
    # Of the method and the params without what is secret in them: the same id with another digest is another call.
    digest: bytes
    began_at: Instant
    params: bytes | None = None
    correlation_id: str | None = None
    status: CallStatus = "running"
    # Whether its caller has been told to ask later.
    accepted: bool = False
    # How often it was begun: more than once only after restarts, where its method allows that.
    runs: int = 1
    # The JSON text of the answer's `result` or `error`; exactly one of them when it has finished.
    result: bytes | None = None
    error: bytes | None = None
    finished_at: Instant | None = None


class RefusedCall(msgspec.Struct, frozen=True, kw_only=True):
    """A call that was not let in, for the audit."""

    at: Instant
    caller: str
    reason: str
    method: str | None = None
    correlation_id: str | None = None


class ZoneStore(Protocol):
    """
    One process at a time; every method but `accept` returns without waiting for the disk.

    Raises `Unavailable` when nothing can be written; then nothing has been.
    """

    def begin(self, call: ZoneCall) -> ZoneCall | None:
        """Writes the call down before it runs; the one that its key already has, if there is one."""
        ...

    def begin_again(self, key: CallKey) -> None:
        """After a restart: one run more."""
        ...

    async def accept(self, key: CallKey) -> None:
        """The call goes on after its first answer; returns when that is on the disk."""
        ...

    def finish(
        self, key: CallKey, now: Instant, *, result: bytes | None = None, error: bytes | None = None
    ) -> None:
        """What became of it; a second end is ignored. The params go."""
        ...

    def call(self, caller: str, task_id: str) -> ZoneCall | None:
        """One that was accepted."""
        ...

    def running(self) -> Sequence[ZoneCall]:
        """Those that have not finished: at start, the ones that an earlier process has left."""
        ...

    def use_token(self, caller: str, token_id: str, until: Instant, now: Instant) -> bool:
        """Whether this is the token's first use; remembered until it is worth nothing anyway."""
        ...

    def note_refusal(self, refusal: RefusedCall) -> None: ...

    def refusals(self, limit: int) -> Sequence[RefusedCall]:
        """The newest first; only so many are kept."""
        ...

    def forget(self, before: Instant, now: Instant) -> int:
        """Deletes some of the calls that finished before, and of the tokens that have run out; 0: none is left."""
        ...
