"""A mail server on loopback that keeps what it accepts, with TLS and a password if wanted."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from email import message_from_bytes, policy
from typing import Any, cast

from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session


class ReceivedMail:
    def __init__(self, envelope: Envelope) -> None:
        self.sender = envelope.mail_from
        self.recipients = envelope.rcpt_tos
        content = cast("bytes", envelope.content)
        self.message = message_from_bytes(content, policy=policy.default)
        self.text = self.message.get_content()


class MailServer:
    """The handler of the server, and what has arrived."""

    def __init__(self) -> None:
        self.port = 0
        self.attempts = 0
        # By the number of the attempt: the response to a message.
        self.answer: Callable[[int], str] = lambda _: "250 OK"
        self.mails: list[ReceivedMail] = []

    async def handle_DATA(self, _server: SMTP, _session: Session, envelope: Envelope) -> str:  # noqa: N802 - its name there
        self.attempts += 1
        answer = self.answer(self.attempts)
        if answer.startswith("250"):
            self.mails.append(ReceivedMail(envelope))
        return answer

    async def accepts(self, count: int) -> list[ReceivedMail]:
        """As soon as there are so many."""
        async with asyncio.timeout(60):
            while len(self.mails) < count:
                await asyncio.sleep(0.02)
        return self.mails


@asynccontextmanager
async def mail_server(
    *, tls: ssl.SSLContext | None = None, login: tuple[str, str] | None = None
) -> AsyncGenerator[MailServer]:
    """`tls`: STARTTLS is required; `login`: so are a user and a password."""
    handler = MailServer()

    def authenticated(_server: Any, _session: Any, _envelope: Any, _mechanism: str, data: Any) -> AuthResult:
        ok = isinstance(data, LoginPassword) and (data.login.decode(), data.password.decode()) == login
        return AuthResult(success=ok, handled=False)

    def connection() -> SMTP:
        return SMTP(
            handler,
            hostname="mail.test",
            tls_context=tls,
            require_starttls=tls is not None,
            authenticator=authenticated,
            auth_required=login is not None,
        )

    server = await asyncio.get_running_loop().create_server(connection, "127.0.0.1", 0)
    handler.port = server.sockets[0].getsockname()[1]
    async with server:
        yield handler
