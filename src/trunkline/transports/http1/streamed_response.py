"""
Reads an HTTP response in chunks, never more of it than allowed.

A long one is read on only when there is memory for it (`answer_memory`).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from time import monotonic

from trunkline.protocols.base import AgentAnswer
from trunkline.transports.answer_memory import FREE_STREAM_BYTES
from trunkline.transports.base import StreamLimits, TransportError
from trunkline.transports.failures import EXCHANGE_ERRORS, not_answered, timed_out, too_large
from trunkline.transports.http1.connection import AgentConnection

# Of a stream that broke off, for the record.
_RECORDED_BYTES = 64 * 1024


class StreamedResponse:
    """An answer that is read as it comes."""

    def __init__(
        self,
        connection: AgentConnection,
        limits: StreamLimits,
        deadline: float,
        reserve: Callable[[int], Awaitable[None]],
    ) -> None:
        """
        `connection` has the head of the answer, `deadline` is a time of the monotonic clock, and `reserve` waits until
        there is memory for so many bytes.
        """
        self._connection = connection
        self._limits = limits
        self._deadline = deadline
        self._reserve = reserve
        self._is_counted = False
        self._recorded = bytearray()
        # How many bytes have been read.
        self.size = 0
        self.status = connection.status
        self.headers: Mapping[str, str] = connection.headers
        self._check_head()

    async def chunks(self) -> AsyncIterator[bytes]:
        while chunk := await self._next():
            yield chunk

    async def _next(self) -> bytes:
        idle = self._limits.idle_seconds
        left = self._deadline - monotonic()
        try:
            chunk = await self._connection.read(min(idle, left))
        except TimeoutError as exc:
            if left <= idle:
                raise timed_out(self._limits.total_seconds, self._partial()) from exc
            message = f"The agent's stream was silent for {idle:g} s."
            raise TransportError("agent_timeout", message, partial=self._partial()) from exc
        except EXCHANGE_ERRORS as exc:
            raise not_answered(exc, idle, self._partial(), self.size) from exc
        self._keep(chunk)
        if self.size > FREE_STREAM_BYTES and not self._is_counted:
            self._is_counted = True
            began = monotonic()
            await self._reserve(self._limits.total_bytes)
            # The agent's time does not run while we wait.
            self._deadline += monotonic() - began
        return chunk

    def _keep(self, chunk: bytes) -> None:
        self.size += len(chunk)
        self._recorded += chunk[: _RECORDED_BYTES - len(self._recorded)]
        if self.size > self._limits.total_bytes:
            raise self._refused(too_large(self._limits.total_bytes))

    def _check_head(self) -> None:
        encoding = self.headers.get("content-encoding", "identity").strip().lower()
        if encoding not in ("", "identity"):
            message = (
                f"The answer is compressed (Content-Encoding: {encoding}), "
                "although Trunkline did not request compression."
            )
            raise self._refused(TransportError("agent_answer_compressed", message))
        length = self.headers.get("content-length", "")
        if length.isdecimal() and int(length) > self._limits.total_bytes:
            raise self._refused(too_large(self._limits.total_bytes))

    def _refused(self, why: TransportError) -> TransportError:
        return TransportError(why.code, why.message, partial=self._partial())

    def _partial(self) -> AgentAnswer:
        return AgentAnswer(self.status, self.headers, bytes(self._recorded))
