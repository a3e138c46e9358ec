"""Reads the `webhook` of a trigger, and reports everything that does not fit."""

from __future__ import annotations

import re
from datetime import timedelta

from trunkline.triggers.definition import (
    DEFAULT_BODY_BYTES,
    DEFAULT_RATE,
    DEFAULT_WAIT,
    RESPONSES,
    DeliveryRate,
    WebhookDefinition,
)
from trunkline.triggers.signatures import HEADERS, SCHEMES, Scheme
from trunkline.workflow.field_reader import FieldReader
from trunkline.workflow.secret_references import SECRET_NAME_RULE, is_secret_name
from trunkline.workflow.validation_report import ValidationReport

WEBHOOK_KEYS = ("verify", "filter", "idempotency_key", "respond", "wait", "rate", "max_body_bytes")
VERIFY_KEYS = ("scheme", "secret", "header")
# Two, so that one can replace the other without a gap.
MAX_SECRETS = 2
MAX_EXPRESSION = 10_000
MAX_BODY_BYTES = 64 * 1024 * 1024
MAX_RATE = 1_000_000
LONGEST_WAIT = timedelta(minutes=5)

_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}")
_RATE = re.compile(r"([0-9]{1,7})/([smh])")
_PERIODS = {"s": timedelta(seconds=1), "m": timedelta(minutes=1), "h": timedelta(hours=1)}


def read_webhook(trigger: FieldReader, report: ValidationReport) -> WebhookDefinition | None:
    value = trigger.mapping("webhook")
    if value is None:
        return None
    before = len(report.errors)
    fields = FieldReader(value, ("webhook",), WEBHOOK_KEYS, report)
    verify = fields.mapping("verify")
    if verify is None:
        if "verify" not in value:
            report.error(
                ("webhook",), "'verify' is missing; add it, such as verify: {scheme: github, secret: NAME}"
            )
        return None
    checks = FieldReader(verify, ("webhook", "verify"), VERIFY_KEYS, report)
    scheme: Scheme = checks.choice("scheme", SCHEMES, "none")
    if "scheme" not in verify:
        report.error(checks.path, f"'scheme' is missing; use one of {', '.join(SCHEMES)}")
    secrets = _secrets(checks, verify.get("secret"))
    if scheme != "none" and not secrets and "secret" not in verify:
        report.error(
            checks.path,
            f"'secret' is missing: the name of the secret that {scheme} deliveries are signed with",
        )
    if scheme == "none" and "secret" in verify:
        checks.error("secret", "'secret' has no effect with the scheme none; choose another scheme")
    header = checks.text("header", 100)
    if header is not None and (scheme not in HEADERS or not _HEADER.fullmatch(header)):
        checks.error(
            "header", f"'header' must be the name of a header, and only {' and '.join(HEADERS)} have one"
        )
    wait = fields.duration("wait", positive=True)
    if wait is not None and wait > LONGEST_WAIT:
        fields.error("wait", "'wait' must be at most 5m")
    size_bytes = fields.integer("max_body_bytes", 1, MAX_BODY_BYTES) or DEFAULT_BODY_BYTES
    definition = WebhookDefinition(
        scheme=scheme,
        secrets=secrets,
        header=header,
        filter=fields.text("filter", MAX_EXPRESSION),
        idempotency_key=fields.text("idempotency_key", MAX_EXPRESSION),
        respond=fields.choice("respond", RESPONSES, "run"),
        wait=DEFAULT_WAIT if wait is None or wait == DEFAULT_WAIT else wait,
        rate=_rate(fields),
        max_body_bytes=DEFAULT_BODY_BYTES if size_bytes == DEFAULT_BODY_BYTES else size_bytes,
    )
    return definition if len(report.errors) == before else None


def _secrets(checks: FieldReader, given: object) -> tuple[str, ...]:
    if given is None:
        return ()
    listed = [given] if isinstance(given, str) else checks.list("secret") or []
    names = [name for name in listed if isinstance(name, str) and is_secret_name(name)]
    if len(names) != len(listed) or not 1 <= len(names) <= MAX_SECRETS:
        checks.error(
            "secret", f"'secret' must be the name of a secret, or a list of two names; use {SECRET_NAME_RULE}"
        )
        return ()
    return tuple(names)


def _rate(fields: FieldReader) -> DeliveryRate:
    text = fields.text("rate", 20)
    if text is None:
        return DEFAULT_RATE
    match = _RATE.fullmatch(text)
    if match is None or not 1 <= int(match[1]) <= MAX_RATE:
        fields.error(
            "rate",
            f"'rate' must be deliveries per second, minute or hour, such as 10/s or 600/m, but it is '{text}'",
        )
        return DEFAULT_RATE
    rate = DeliveryRate(count=int(match[1]), per=_PERIODS[match[2]])
    # The same object, so that a definition that names the default has the same canonical form.
    return DEFAULT_RATE if rate == DEFAULT_RATE else rate
