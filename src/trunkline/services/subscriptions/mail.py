"""Mail: to whom it may be sent, and sending it over the mail server of the settings."""

from __future__ import annotations

import ssl
from collections.abc import Collection

from trunkline.errors import ConfigurationError, Finding, Invalid
from trunkline.mail_settings import MailSettings, is_mail_address
from trunkline.services.callbacks.sender import REQUEST_SECONDS
from trunkline.services.callbacks.sources import CallbackMail
from trunkline.services.security.secrets import Secrets
from trunkline.services.subscriptions.definition import ASSIGNEES
from trunkline.transports.smtp import SmtpClient, SmtpError, SmtpServer


class MailPolicy:
    def __init__(self, settings: MailSettings) -> None:
        self.sender = settings.sender
        self._addresses = settings.addresses
        self._domains = frozenset(domain.lower() for domain in settings.domains)

    def address_of(self, person: str) -> str | None:
        """None: it is not known, or may not be used."""
        address = self._addresses.get(person, person)
        return address if is_mail_address(address) and self._is_allowed(address) else None

    def check(self, recipients: Collection[str]) -> None:
        """Raises `Invalid`."""
        for address in recipients:
            if address != ASSIGNEES and not self._is_allowed(address):
                allowed = ", ".join(sorted(self._domains))
                message = f"'{address}' is not in a domain that mail may be sent to; use one of {allowed}"
                raise Invalid(f"mail: {message}.", findings=[Finding(path="mail", message=message)])

    def _is_allowed(self, address: str) -> bool:
        return not self._domains or address.rpartition("@")[2].lower() in self._domains


class SmtpMailer:
    """Implements `MailSender`."""

    def __init__(self, settings: MailSettings, secrets: Secrets) -> None:
        self._secrets = secrets
        self._password_secret = settings.password_secret
        server = SmtpServer(
            host=settings.host,
            port=settings.port,
            tls=settings.tls,
            sender=settings.sender,
            user=settings.user,
        )
        context = ssl.create_default_context(cafile=settings.ca_file)
        self._client = SmtpClient(server, REQUEST_SECONDS, context)

    async def send(self, mail: CallbackMail) -> str | None:
        try:
            await self._client.send(mail.message, mail.to, await self._password())
        except (SmtpError, ConfigurationError) as exc:
            return exc.message
        return None

    def close(self) -> None:
        self._client.close()

    async def _password(self) -> str | None:
        name = self._password_secret
        if name is None:
            return None
        opened = await self._secrets.open(name)
        if opened is None:
            raise ConfigurationError(
                f"The secret {name!r}, the password of the mail server, does not exist.",
                fix=f"Set it: trunkline secrets set {name}.",
            )
        return opened.value
