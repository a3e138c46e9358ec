"""The setting `mail`: which server sends mail, in whose name, and to whom. Sending is in `smtp.py`."""

from __future__ import annotations

import re
from typing import Annotated, Literal

import msgspec
from msgspec import Meta
from pydantic import BeforeValidator, InstanceOf, WithJsonSchema
from pydantic_settings import NoDecode

SmtpTls = Literal["starttls", "tls", "none"]
MAX_ADDRESS = 254
# One mailbox, without a name, comments or quotes.
_MAIL_ADDRESS = re.compile(r"[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?")


def is_mail_address(text: str) -> bool:
    return len(text) <= MAX_ADDRESS and _MAIL_ADDRESS.fullmatch(text) is not None and ".." not in text


class MailSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The setting `mail`."""

    host: Annotated[str, Meta(min_length=1)]
    # The address that messages come from.
    sender: str
    port: Annotated[int, Meta(ge=1, le=65_535)] = 587
    tls: SmtpTls = "starttls"
    # In place of the certificates of the machine.
    ca_file: str | None = None
    user: str | None = None
    # The name of a secret.
    password_secret: str | None = None
    # Of people, by name.
    addresses: dict[str, str] = {}
    # To which mail may be sent; none: to all.
    domains: tuple[str, ...] = ()


_EXAMPLE = '{"host": "smtp.example.com", "sender": "trunkline@example.com"}'


def read_mail_settings(value: object) -> object:
    """Raises `ValueError`."""
    if value is None or isinstance(value, MailSettings):
        return value
    try:
        if isinstance(value, str):
            settings = msgspec.json.decode(value, type=MailSettings)
        else:
            settings = msgspec.convert(value, MailSettings)
    except msgspec.DecodeError as exc:
        raise ValueError(f"{exc}; use an object such as {_EXAMPLE}") from exc
    for address in (settings.sender, *settings.addresses.values()):
        if not is_mail_address(address):
            raise ValueError(
                f"{address!r} is not a mail address; use one such as ops@example.com, without a name"
            )
    if (settings.user is None) != (settings.password_secret is None):
        raise ValueError("'user' and 'password_secret' belong together; add the other one, or remove both")
    if settings.user is not None and settings.tls == "none":
        raise ValueError("a password must not be sent without TLS; use tls: starttls, or remove the user")
    return settings


# A field of the settings.
Mail = Annotated[
    InstanceOf[MailSettings],
    NoDecode,
    BeforeValidator(read_mail_settings),
    WithJsonSchema({"type": "object"}),
]
