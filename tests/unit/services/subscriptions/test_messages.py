"""What people read of a change: titles, texts, templates, links, and that nobody's text becomes markup or a header."""

from __future__ import annotations

from email.message import EmailMessage

import pytest

from trunkline.clock import Instant
from trunkline.jsontypes import JsonObject, decode
from trunkline.services.subscriptions.definition import CHANGE_TYPES
from trunkline.services.subscriptions.messages import (
    MAX_LINKS,
    MAX_TEXT,
    MAX_TITLE,
    ChangeMessage,
    mail_of,
    message_of,
    slack_body,
    teams_body,
)

AT = Instant(1_767_225_600_000_000)


def event(type_: str = "run.failed", **data: object) -> JsonObject:
    facts: JsonObject = {"workflow": "refund", "run_id": "r1", **data}  # pyright: ignore[reportAssignmentType] - JSON
    return {"type": type_, "subject": "r1", "id": "r1/4", "data": facts}


def message(found: JsonObject, template: str | None = None) -> ChangeMessage:
    return message_of(found, template, {}, None)


def mail(found: ChangeMessage) -> EmailMessage:
    return mail_of(found, "r1/4", "trunkline@example.com", "ada@example.com", AT)


def test_a_failed_run_says_why_and_what_to_do() -> None:
    found = message(event(error={"code": "x", "message": "It broke.", "fix": "Mend it."}))
    assert found.title == "Run of refund failed"
    assert found.text.splitlines() == ["It broke.", "Mend it.", "Run: r1"]


@pytest.mark.parametrize("type_", CHANGE_TYPES)
def test_every_type_has_a_title(type_: str) -> None:
    assert message({**event(type_, step="check"), "subject": "Ada"}).title != type_


def test_a_template_replaces_the_text() -> None:
    found = message(
        event(error={"message": "It broke."}), "${ event.data.workflow }: ${ event.data.error.message }"
    )
    assert found.text == "refund: It broke."


def test_an_event_that_the_template_does_not_fit_has_the_usual_text() -> None:
    assert message(event(reason="why"), "${ event.data.missing.deep }").text.startswith("why")


def test_texts_and_links_are_limited() -> None:
    links = {f"p{number}": "https://x/" for number in range(MAX_LINKS + 5)}
    found = message_of(event(text="a" * 10_000, workflow="w" * 1_000), None, links, None)
    assert (len(found.title), len(found.text), len(found.links)) == (MAX_TITLE, MAX_TEXT, MAX_LINKS)


def test_nothing_becomes_markup_of_slack() -> None:
    found = message_of(
        event(workflow="<!channel> & co"), None, {"a": "https://x/1", "<b>": "https://x/2"}, None
    )
    body = decode(slack_body(found))
    assert isinstance(body, dict)
    assert body["text"] == "Run of &lt;!channel&gt; &amp; co failed"
    blocks = body["blocks"]
    assert isinstance(blocks, list)
    assert [block["text"]["type"] for block in blocks] == ["plain_text", "plain_text", "mrkdwn"]  # type: ignore
    assert blocks[2]["text"]["text"] == (  # type: ignore
        "<https://x/1|Answer as a> · <https://x/2|Answer as &lt;b&gt;>"
    )


def test_nothing_becomes_markup_of_teams() -> None:
    body = teams_body(message(event(workflow="[click](https://bad)", text="*a*")))
    assert b"\\\\[click\\\\](https://bad)" in body
    assert b"\\\\*a\\\\*" in body


def test_a_title_cannot_add_a_header_to_a_mail() -> None:
    found = mail(message(event("question.asked", title="Pay?\r\nBcc: all@example.com\n\nhello")))
    assert found["Bcc"] is None
    assert found["Subject"] == "[Trunkline] refund asks: Pay? Bcc: all@example.com hello"


def test_a_mail_is_the_same_in_every_attempt() -> None:
    found = message_of(event(text="Grüße 🚲"), None, {"ada": "https://x/answer/t"}, "https://x/runs/r1")
    assert mail(found).as_bytes() == mail(found).as_bytes()
    assert mail(found)["Message-ID"] == "<r1.4@trunkline>"
    text = mail(found).get_content()
    assert "Grüße 🚲" in text
    assert "Answer:\nhttps://x/answer/t\n" in text.replace("\r\n", "\n")
