"""
Mail over SMTP: sends one message to one recipient.

The conversation runs in threads of its own, because the library for it blocks. It is ended from outside when its time
is up, so a server that is slow on purpose does not keep a thread.
"""

from __future__ import annotations

import asyncio
import smtplib
import socket
import ssl
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from email.message import EmailMessage

import msgspec

from trunkline.mail_settings import SmtpTls

# More wait for a thread.
MAX_AT_ONCE = 4


class SmtpServer(msgspec.Struct, frozen=True, kw_only=True):
    host: str
    port: int
    tls: SmtpTls
    # Of the messages.
    sender: str
    user: str | None = None


class SmtpError(Exception):
    """The server did not accept the message. Perhaps it has, if the connection was lost at the end."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class SmtpClient:
    def __init__(
        self, server: SmtpServer, timeout_seconds: float, context: ssl.SSLContext | None = None
    ) -> None:
        """`timeout_seconds`: of a whole conversation. `context`: whose certificates are accepted."""
        self._server = server
        self._timeout_seconds = timeout_seconds
        self._context = context or ssl.create_default_context()
        self._threads = ThreadPoolExecutor(MAX_AT_ONCE, thread_name_prefix="smtp")

    async def send(self, message: EmailMessage, recipient: str, password: str | None = None) -> None:
        """Raises `SmtpError`."""
        conversation = _Conversation(self._server, self._context, self._timeout_seconds)
        work = asyncio.get_running_loop().run_in_executor(
            self._threads, conversation.send, message, recipient, password
        )
        try:
            async with asyncio.timeout(self._timeout_seconds):
                await asyncio.shield(work)
        except TimeoutError as exc:
            raise SmtpError(f"The mail server did not respond in {self._timeout_seconds:g} s.") from exc
        finally:
            conversation.end()
            # It ends soon now, with an error that has no reader.
            work.add_done_callback(lambda done: done.cancelled() or done.exception())

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)


class _Conversation:
    """In a thread, but for `end`."""

    def __init__(self, server: SmtpServer, context: ssl.SSLContext, timeout_seconds: float) -> None:
        self._server = server
        self._context = context
        self._timeout_seconds = timeout_seconds
        self._connection: smtplib.SMTP | None = None
        self._is_over = False

    def send(self, message: EmailMessage, recipient: str, password: str | None) -> None:
        if self._is_over:
            return
        server = self._server
        try:
            with self._connect() as connection:
                self._connection = connection
                if self._is_over:
                    return
                if server.tls == "starttls":
                    connection.starttls(context=self._context)
                if server.user is not None:
                    connection.login(server.user, password or "")
                connection.send_message(message, server.sender, [recipient])
        except smtplib.SMTPResponseException as exc:
            raise SmtpError(
                f"The mail server answered with {exc.smtp_code}: {_words(exc.smtp_error)}"
            ) from exc
        except smtplib.SMTPRecipientsRefused as exc:
            code, error = next(iter(exc.recipients.values()))
            raise SmtpError(f"The mail server rejected the recipient with {code}: {_words(error)}") from exc
        except (OSError, smtplib.SMTPException, ValueError) as exc:
            raise SmtpError(f"The mail server {server.host}:{server.port} cannot be used: {exc}") from exc

    def _connect(self) -> smtplib.SMTP:
        server = self._server
        if server.tls == "tls":
            return smtplib.SMTP_SSL(
                server.host, server.port, timeout=self._timeout_seconds, context=self._context
            )
        return smtplib.SMTP(server.host, server.port, timeout=self._timeout_seconds)

    def end(self) -> None:
        """From the loop: a read that goes on in the thread returns."""
        self._is_over = True
        connection = self._connection
        if connection is not None and connection.sock is not None:
            with suppress(OSError):
                connection.sock.shutdown(socket.SHUT_RDWR)


def _words(error: bytes | str) -> str:
    return error.decode(errors="replace") if isinstance(error, bytes) else error
