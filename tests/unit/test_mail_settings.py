"""The setting for mail: what is accepted, and what each mistake is told."""

from __future__ import annotations

import pytest

from trunkline.mail_settings import MailSettings, is_mail_address, read_mail_settings

GOOD = '"host": "mail.example.com", "sender": "t@example.com"'


def test_the_defaults_send_over_starttls_to_everyone() -> None:
    found = read_mail_settings(f"{{{GOOD}}}")
    assert isinstance(found, MailSettings)
    assert (found.port, found.tls, found.domains, found.user) == (587, "starttls", (), None)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "use an object such as"),
        ("{}", "missing required field `host`"),
        (f'{{{GOOD}, "prot": 25}}', "unknown field `prot`"),
        (f'{{{GOOD}, "port": 70000}}', "port"),
        (f'{{{GOOD}, "tls": "maybe"}}', "tls"),
        ('{"host": "m", "sender": "Ada <a@example.com>"}', "not a mail address"),
        (f'{{{GOOD}, "addresses": {{"ada": "ada"}}}}', "'ada' is not a mail address"),
        (f'{{{GOOD}, "user": "u"}}', "belong together"),
        (f'{{{GOOD}, "user": "u", "password_secret": "p", "tls": "none"}}', "without TLS"),
    ],
)
def test_a_mistake_is_named(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=r".") as caught:
        read_mail_settings(text)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    "text",
    ["a@b.c\r\nBcc: x@y.z", "a b@c.d", "a@b..c", "@b.c", "a@", "a@b@c.d", "<a@b.c>", "a" * 250 + "@b.c"],
)
def test_only_one_plain_mailbox_is_an_address(text: str) -> None:
    assert not is_mail_address(text)
    assert is_mail_address("o'neil+x@mail.example.co")
