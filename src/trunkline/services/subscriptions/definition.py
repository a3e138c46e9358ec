"""
What a subscription is made of, and how it is read out of a document.

A subscription reports changes of some types to one address. The store keeps the canonical form: equal content, equal
bytes.
"""

from __future__ import annotations

import re
from typing import Literal, get_args

import msgspec

from trunkline.agents.http_urls import UrlError, parse_url
from trunkline.jsontypes import Json, encode
from trunkline.mail_settings import is_mail_address
from trunkline.services.subscriptions.messages import compile_message_template
from trunkline.triggers import TriggerDocument
from trunkline.workflow import SECRET_NAME_RULE, is_secret_name, label_problem
from trunkline.workflow.field_reader import FieldReader, describe_value
from trunkline.workflow.validation_report import ValidationReport, did_you_mean

ChangeType = Literal[
    "run.completed", "run.failed", "run.cancelled", "run.waiting", "step.failed", "question.asked",
    "question.escalated", "agent.unhealthy", "breaker.open", "check.grade_changed", "dead_letter",
]  # fmt: skip
CHANGE_TYPES: tuple[ChangeType, ...] = get_args(ChangeType)
# Those that are about one run: the filters by workflow and label apply to them.
RUN_CHANGES = frozenset(type_ for type_ in CHANGE_TYPES if type_.startswith(("run.", "step.", "question.")))
# What a test delivery reports.
TEST_TYPE = "subscription.test"

KIND = "subscription"
SUBSCRIPTION_KEYS = (
    "name", "description", "url", "mail", "format", "template", "types", "workflow", "label", "secret", "answer_links",
    "enabled", "kind", "$schema",
)  # fmt: skip
NAME_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,127}$"
MAX_DESCRIPTION = 10_000
MAX_URL = 2_048
MAX_WORKFLOW_NAME = 255
MAX_LABELS = 20
# The current one and the next one, during a rotation.
MAX_SECRETS = 2
_MAX_LABEL_TEXT = 1_000

_NAME = re.compile(NAME_PATTERN)
_KNOWN_TYPES = f"; the types are {', '.join(CHANGE_TYPES)}"


# What is sent to the address: the event itself, or a message that people read.
DeliveryFormat = Literal["cloudevents", "slack", "teams"]
FORMATS: tuple[DeliveryFormat, ...] = get_args(DeliveryFormat)
MAX_RECIPIENTS = 20
MAX_TEMPLATE = 10_000
# In place of an address: those whose answer a question waits for.
ASSIGNEES = "assignees"


class SubscriptionDefinition(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    name: str
    description: str | None = None
    # Either this or recipients of mail.
    url: str | None = None
    mail: tuple[str, ...] = ()
    format: DeliveryFormat = "cloudevents"
    # Of the text of a message, over `event`.
    template: str | None = None
    # In the order of `CHANGE_TYPES`.
    types: tuple[ChangeType, ...]
    workflow: str | None = None
    # A run must have all of them.
    labels: tuple[tuple[str, str], ...] = ()
    # Names of secrets; a delivery is signed with each of them.
    secrets: tuple[str, ...] = ()
    # Whether questions come with a link for each assignee, at which anyone who has it can answer.
    answer_links: bool = False
    enabled: bool = True

    @property
    def is_read_by_people(self) -> bool:
        return bool(self.mail) or self.format != "cloudevents"


_definitions: msgspec.json.Decoder[SubscriptionDefinition] = msgspec.json.Decoder(SubscriptionDefinition)


def canonical_subscription(definition: SubscriptionDefinition) -> bytes:
    return encode(definition)


def subscription_from_canonical(canonical: bytes) -> SubscriptionDefinition:
    return _definitions.decode(canonical)


def load_subscription(text: bytes, name: str | None = None) -> SubscriptionDefinition:
    """`name`: the one that it must have. Raises `Invalid` with every finding and its place in the text."""
    document = TriggerDocument(text, "body")
    definition = _read(document.value, document.report)
    if definition is not None and name is not None and definition.name != name:
        document.error(("name",), f"'{definition.name}' is not the name in the address, '{name}'")
    document.check()
    if definition is None:
        raise AssertionError("a subscription without findings has a definition")
    return definition


def _read(value: Json, report: ValidationReport) -> SubscriptionDefinition | None:
    if not isinstance(value, dict):
        report.error(
            (),
            f"a subscription must be a mapping with 'name', 'url' or 'mail', and 'types', {describe_value(value)}",
        )
        return None
    fields = FieldReader(value, (), SUBSCRIPTION_KEYS, report)
    if value.get("kind", KIND) != KIND:
        fields.error("kind", f"'kind' must be {KIND}, {describe_value(value['kind'])}")
    name, url, types = _name(fields), _url(fields), _types(fields, report)
    _check_filters(fields, value, types)
    mail = _mail(fields, types)
    if (url is None) == (not mail) and ("url" in value) == ("mail" in value):
        report.error(
            fields.path, "a subscription needs either 'url' or 'mail'; add url: https://example.com/hooks"
        )
    definition = SubscriptionDefinition(
        name=name or "",
        description=fields.text("description", MAX_DESCRIPTION),
        url=url,
        mail=mail,
        format=fields.choice("format", FORMATS, "cloudevents"),
        template=_template(fields, report),
        types=types,
        workflow=fields.text("workflow", MAX_WORKFLOW_NAME),
        labels=_labels(fields),
        secrets=_secrets(fields),
        answer_links=fields.boolean("answer_links") or False,
        enabled=fields.boolean("enabled") is not False,
    )
    _check_format(fields, value, definition)
    return None if report.errors else definition


def _mail(fields: FieldReader, types: tuple[ChangeType, ...]) -> tuple[str, ...]:
    listed = _one_or_more(fields, "mail", MAX_RECIPIENTS)
    for address in listed:
        if address == ASSIGNEES:
            others = [type_ for type_ in types if not type_.startswith("question.")]
            if others:
                fields.error(
                    "mail", f"'{ASSIGNEES}' is only for questions, but {', '.join(others)} has no assignees"
                )
        elif not is_mail_address(address):
            fields.error(
                "mail",
                f"{_shown(address)} is not a mail address; use one such as ops@example.com, without a name",
            )
    return tuple(dict.fromkeys(listed))


def _template(fields: FieldReader, report: ValidationReport) -> str | None:
    text = fields.text("template", MAX_TEMPLATE)
    if text is not None:
        compile_message_template(text, report)
    return text


def _check_format(fields: FieldReader, value: dict[str, Json], definition: SubscriptionDefinition) -> None:
    if definition.mail and "format" in value:
        fields.error("format", "'format' has no effect with 'mail'; remove it")
    if definition.template is not None and not definition.is_read_by_people:
        fields.error("template", "'template' has no effect on a CloudEvent; add format: slack, or remove it")
    if definition.secrets and definition.is_read_by_people:
        fields.error("secret", "'secret' signs CloudEvents, but this subscription sends messages; remove it")


def _name(fields: FieldReader) -> str | None:
    name = fields.required_text("name", 128, "billing")
    if name is not None and not _NAME.fullmatch(name):
        fields.error(
            "name",
            f"'{name[:40]}' is not a valid name; use letters, digits, '.', '_' and '-', and begin with a letter "
            "or a digit",
        )
    return name


def _url(fields: FieldReader) -> str | None:
    url = fields.text("url", MAX_URL)
    if url is not None:
        try:
            parse_url(url)
        except UrlError as exc:
            fields.error("url", f"'url' cannot be called: {exc}")
    return url


def _types(fields: FieldReader, report: ValidationReport) -> tuple[ChangeType, ...]:
    if isinstance(fields.any("types"), msgspec.UnsetType):
        report.error(fields.path, "'types' is missing; add it, such as types: [run.failed]")
        return ()
    listed = fields.list("types")
    if listed is None:
        return ()
    if not listed:
        fields.error("types", f"'types' is empty{_KNOWN_TYPES}")
    for index, each in enumerate(listed):
        if each not in CHANGE_TYPES:
            hint = did_you_mean(each, CHANGE_TYPES) if isinstance(each, str) else ""
            report.error((*fields.path, "types", index), f"unknown type {_shown(each)}{hint or _KNOWN_TYPES}")
    return tuple(type_ for type_ in CHANGE_TYPES if type_ in listed)


def _check_filters(fields: FieldReader, value: dict[str, Json], types: tuple[ChangeType, ...]) -> None:
    others = [type_ for type_ in types if type_ not in RUN_CHANGES]
    for key in ("workflow", "label"):
        if key in value and others:
            fields.error(
                key,
                f"'{key}' selects runs, but {', '.join(others)} is not about a run; use another subscription for it",
            )


def _labels(fields: FieldReader) -> tuple[tuple[str, str], ...]:
    listed = _one_or_more(fields, "label", MAX_LABELS)
    found: dict[str, str] = {}
    for text in listed:
        key, colon, value = text.partition(":")
        problem = label_problem(key, value) if colon else "it must be such as team:billing"
        if problem is not None or len(text) > _MAX_LABEL_TEXT:
            fields.error("label", f"'label' {_shown(text)} cannot match: {problem or 'it is too long'}")
        elif key in found:
            fields.error("label", f"'label' has the key '{key}' twice; a run has one value for it")
        else:
            found[key] = value
    return tuple(sorted(found.items()))


def _secrets(fields: FieldReader) -> tuple[str, ...]:
    names = _one_or_more(fields, "secret", MAX_SECRETS)
    for name in names:
        if not is_secret_name(name):
            fields.error("secret", f"{_shown(name)} is not a valid secret name; use {SECRET_NAME_RULE}")
    return tuple(dict.fromkeys(names))


def _one_or_more(fields: FieldReader, key: str, most: int) -> list[str]:
    """A text, or a list of them."""
    value = fields.any(key)
    if isinstance(value, msgspec.UnsetType):
        return []
    listed: list[Json] = value if isinstance(value, list) else [value]
    texts = [each for each in listed if isinstance(each, str)]
    if len(texts) != len(listed) or not 1 <= len(texts) <= most:
        fields.error(key, f"'{key}' must be a string or a list of 1 to {most} strings")
        return []
    return texts


def _shown(value: Json) -> str:
    return f"'{value[:100]}'" if isinstance(value, str) else describe_value(value).removeprefix("but it is ")
