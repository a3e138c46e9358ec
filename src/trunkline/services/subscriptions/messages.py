"""
What people read of a change: its event as a message for Slack, for Microsoft Teams, or as a mail.

Texts of agents and people are shown as text only: what would be markup is escaped.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime
from functools import lru_cache
from typing import NamedTuple

from trunkline.clock import Instant
from trunkline.jsontypes import Json, JsonObject, encode
from trunkline.workflow import ExpressionError, Template
from trunkline.workflow.expressions import CelCompiler, TemplateCompiler
from trunkline.workflow.validation_report import ValidationReport

# A section of Slack holds 3,000 characters, and a message of Teams 28 kB.
MAX_TEXT = 2_500
MAX_TITLE = 140
# Of buttons in a message.
MAX_LINKS = 20
_MAX_TEMPLATES = 256

_TITLES = {
    "run.completed": "Run of {workflow} completed",
    "run.failed": "Run of {workflow} failed",
    "run.cancelled": "Run of {workflow} was cancelled",
    "run.waiting": "Run of {workflow} waits for people",
    "step.failed": "Step {step} of {workflow} failed",
    "question.asked": "{workflow} asks: {question}",
    "question.escalated": "{workflow} still asks: {question}",
    "agent.unhealthy": "Agent {subject} is unhealthy",
    "breaker.open": "The circuit breaker of agent {subject} opened",
    "check.grade_changed": "The grade of agent {subject} changed",
    "dead_letter": "A message on {subject} became a dead letter",
    "subscription.test": "Test of the subscription {subject}",
}


class ChangeMessage(NamedTuple):
    title: str
    text: str
    # Where each person can answer, by the text of the link.
    links: Mapping[str, str]


def message_of(
    event: JsonObject, template: str | None, links: Mapping[str, str], run_url: str | None
) -> ChangeMessage:
    """`links`: answer links by person; `run_url`: of the web UI."""
    data = event.get("data")
    facts = data if isinstance(data, dict) else {}
    text = _from_template(template, event) or _text(facts)
    shown = {
        f"Answer as {person}" if len(links) > 1 else "Answer": url
        for person, url in [*links.items()][:MAX_LINKS]
    }
    if run_url is not None:
        shown["Open the run"] = run_url
    return ChangeMessage(_one_line(_title(event, facts)), text[:MAX_TEXT], shown)


def slack_body(message: ChangeMessage) -> bytes:
    """Of an incoming webhook."""
    blocks: list[Json] = [{"type": "header", "text": {"type": "plain_text", "text": message.title}}]
    if message.text:
        blocks.append({"type": "section", "text": {"type": "plain_text", "text": message.text}})
    if message.links:
        links = " · ".join(f"<{url}|{_slack(name)}>" for name, url in message.links.items())
        blocks.append({"type": "section", "text": {"type": "mrkdwn", "text": links}})
    return encode({"text": _slack(message.title), "blocks": blocks, "unfurl_links": False})


def teams_body(message: ChangeMessage) -> bytes:
    """An adaptive card, as a webhook of a Teams workflow takes it."""
    lines = [line for line in message.text.splitlines() if line.strip()]
    body: list[Json] = [{**_text_block(message.title), "weight": "bolder", "size": "medium"}]
    body.extend({**_text_block(line), "spacing": "small"} for line in lines)
    actions: list[Json] = [
        {"type": "Action.OpenUrl", "title": name, "url": url} for name, url in message.links.items()
    ]
    card: JsonObject = {
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "type": "AdaptiveCard",
        "version": "1.4",
        "body": body,
        "actions": actions,
    }
    attachment: JsonObject = {
        "contentType": "application/vnd.microsoft.card.adaptive",
        "contentUrl": None,
        "content": card,
    }
    return encode({"type": "message", "attachments": [attachment]})


def mail_of(message: ChangeMessage, event_id: str, sender: str, to: str, at: Instant) -> EmailMessage:
    """The same in every attempt, but for its date."""
    mail = EmailMessage(policy=SMTP)
    mail["From"], mail["To"], mail["Subject"] = sender, to, f"[Trunkline] {message.title}"
    mail["Date"] = format_datetime(datetime.fromtimestamp(at // 1_000_000, UTC))
    mail["Message-ID"] = f"<{re.sub(r'[^A-Za-z0-9-]', '.', event_id)}@trunkline>"
    mail["Auto-Submitted"] = "auto-generated"
    links = "".join(f"\n{name}:\n{url}\n" for name, url in message.links.items())
    mail.set_content(f"{message.title}\n\n{message.text}\n{links}", charset="utf-8")
    return mail


def compile_message_template(text: str, report: ValidationReport) -> Template | None:
    """Over `event`, the CloudEvent."""
    template, _ = TemplateCompiler(CelCompiler((), ("event",)), report).template(text, ("template",))
    return None if report.errors else template


@lru_cache(maxsize=_MAX_TEMPLATES)
def _compiled(text: str) -> Template | None:
    return compile_message_template(text, ValidationReport())


def _from_template(text: str | None, event: JsonObject) -> str:
    """Empty if it does not fit this event: then people read the usual text."""
    template = None if text is None else _compiled(text)
    if template is None:
        return ""
    scope: Mapping[str, Json] = {"event": event}
    try:
        made = template.evaluate(scope.__getitem__)
    except ExpressionError:
        return ""
    return made if isinstance(made, str) else encode(made).decode()


def _title(event: JsonObject, facts: JsonObject) -> str:
    type_ = str(event["type"])
    words = {
        "workflow": str(facts.get("workflow") or "a workflow"),
        "step": str(facts.get("step")),
        "subject": str(event["subject"]),
        "question": str(facts.get("title") or f"step {facts.get('step')}"),
    }
    return _TITLES.get(type_, type_).format(**words)


def _text(facts: JsonObject) -> str:
    lines = [text for name in ("text", "message", "reason") if isinstance(text := facts.get(name), str)]
    error = facts.get("error")
    if isinstance(error, dict):
        lines += [str(error[name]) for name in ("message", "fix") if error.get(name)]
    assignees = facts.get("assignees")
    if isinstance(assignees, list) and assignees:
        lines.append(f"Assignees: {', '.join(map(str, assignees))}")
    for name, label in (("due", "Due"), ("run_id", "Run"), ("labels", "Labels")):
        value = facts.get(name)
        if isinstance(value, dict):
            value = ", ".join(f"{key}: {text}" for key, text in value.items())
        if value:
            lines.append(f"{label}: {value}")
    return "\n".join(lines)


def _one_line(text: str) -> str:
    """As a header and a title have it."""
    line = " ".join(text.split())
    line = "".join(character for character in line if character.isprintable())
    return line if len(line) <= MAX_TITLE else f"{line[: MAX_TITLE - 1]}…"


def _text_block(text: str) -> JsonObject:
    return {"type": "TextBlock", "text": _teams(text), "wrap": True}


def _slack(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _teams(text: str) -> str:
    # A text block reads a part of Markdown.
    return re.sub(r"([\\`*_\[\]])", r"\\\1", text)
