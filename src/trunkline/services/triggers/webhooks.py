"""
Webhooks: requests of other systems that start runs of a trigger's workflow.

The address of a trigger contains its id and a signature that only this installation can make, so it cannot be guessed.
It is derived from the encryption keys: nothing is stored, and an address that was made with an earlier key is accepted
for as long as that key is configured. What a sender has to prove beyond knowing it is up to the trigger.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import uuid
from collections import OrderedDict
from collections.abc import Mapping
from hashlib import sha256
from typing import NamedTuple
from urllib.parse import parse_qsl

import msgspec
import structlog

from trunkline.agents.call_limits.token_bucket import TokenBucket, refilled, whole_tokens, without
from trunkline.agents.model import RateLimit
from trunkline.clock import Clock
from trunkline.errors import Conflict, Invalid, NotFound, SignatureRefused, TooManyRequests, Unavailable
from trunkline.ids import RunId
from trunkline.jsontypes import Json, JsonObject, decode, has_too_many_containers, is_too_deep
from trunkline.machine.inputs import RunRequested
from trunkline.services.runs.intake import Intake
from trunkline.services.runs.queued_starts import key_text
from trunkline.services.security.secrets import Secrets
from trunkline.services.triggers.starts import FiringContext, TriggeredRuns, new_firing
from trunkline.stores.base import Store
from trunkline.stores.port.automation.triggers import FiringOutcome, TriggerRecord
from trunkline.telemetry import log_events
from trunkline.telemetry.metrics import Metrics
from trunkline.triggers import CompiledTrigger, WebhookDefinition
from trunkline.triggers.signatures import WebhookDelivery, default_key, is_signed
from trunkline.workflow import ExpressionError

log = structlog.stdlib.get_logger()

HOOK_PATH = "/hooks/triggers"
_DERIVED = b"trunkline webhook addresses, version 1"
_MAC_BYTES = 24
_ID_BYTES = 16
# Of triggers whose webhooks were called lately.
_MAX_BUCKETS = 10_000
# What authenticates a request is not for expressions, whose values end up in runs.
_HIDDEN_HEADERS = frozenset({"authorization", "cookie", "proxy-authorization", "x-api-key"})


class WebhookAddresses:
    def __init__(self, vault_key: bytes, *previous: bytes) -> None:
        """`previous`: addresses that were made with these are still accepted."""
        self._keys = [hmac.digest(key, _DERIVED, sha256) for key in (vault_key, *previous)]

    def token_of(self, trigger_id: str) -> str:
        return _token(self._keys[0], uuid.UUID(trigger_id).bytes)

    def trigger_of(self, token: str) -> str | None:
        """The id of the trigger; None: the token is not ours."""
        try:
            named = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))[:_ID_BYTES]
        except (binascii.Error, ValueError):
            return None
        ours = False
        for key in self._keys:
            # Each address has exactly one text.
            ours |= hmac.compare_digest(_token(key, named).encode(), token.encode())
        return str(uuid.UUID(bytes=named)) if ours and len(named) == _ID_BYTES else None


def _token(key: bytes, named: bytes) -> str:
    mac = hmac.digest(key, named, sha256)[:_MAC_BYTES]
    return base64.urlsafe_b64encode(named + mac).decode().rstrip("=")


class Hook(NamedTuple):
    """A trigger whose address was called."""

    record: TriggerRecord
    trigger: CompiledTrigger
    webhook: WebhookDefinition


class DeliveryOutcome(NamedTuple):
    """What a delivery led to."""

    # None: nothing was started.
    run_id: RunId | None
    # What Slack wants to read before it sends anything.
    challenge: str | None = None


class Webhooks:
    def __init__(
        self,
        store: Store,
        runs: TriggeredRuns,
        secrets: Secrets,
        addresses: WebhookAddresses,
        intake: Intake,
        clock: Clock,
        metrics: Metrics,
        *,
        public_url: str | None = None,
    ) -> None:
        self._store = store
        self._runs = runs
        self._secrets = secrets
        self._addresses = addresses
        self._intake = intake
        self._clock = clock
        self._metrics = metrics
        self._public_url = public_url
        self._buckets: OrderedDict[str, TokenBucket] = OrderedDict()

    def url_of(self, record: TriggerRecord) -> str:
        """A path, if the system does not know its own address."""
        return f"{self._public_url or ''}{HOOK_PATH}/{self._addresses.token_of(record.id)}"

    async def find(self, token: str) -> Hook:
        """Raises `NotFound`, and `TooManyRequests` for a trigger that is called too often."""
        trigger_id = self._addresses.trigger_of(token)
        record = None if trigger_id is None else await self._store.triggers.by_id(trigger_id)
        trigger = None if record is None else self._runs.compiled(record)
        webhook = None if trigger is None else trigger.definition.webhook
        if record is None or trigger is None or webhook is None:
            raise NotFound(
                "No webhook has this address.",
                fix="Use the address of the trigger: trunkline triggers show NAME.",
            )
        self._take_token(record, webhook)
        return Hook(record, trigger, webhook)

    def _take_token(self, record: TriggerRecord, webhook: WebhookDefinition) -> None:
        rate = webhook.rate
        limit = RateLimit(per_second=rate.count / rate.per.total_seconds(), burst=rate.count)
        bucket = refilled(self._buckets.pop(record.id, None), limit, self._clock.now())
        if not whole_tokens(bucket):
            self._buckets[record.id] = bucket
            raise TooManyRequests(
                f"The webhook of trigger {record.name} is called more often than its rate allows."
            )
        self._buckets[record.id] = without(bucket, 1)
        if len(self._buckets) > _MAX_BUCKETS:
            self._buckets.popitem(last=False)

    async def receive(
        self, hook: Hook, headers: Mapping[str, str], query: JsonObject, body: bytes, correlation_id: str
    ) -> DeliveryOutcome:
        """
        Durable when it returns. The same delivery again leads to the same run.

        Raises `SignatureRefused`, `Conflict` for a paused trigger, and `Invalid` if there can be no run.
        """
        delivery = WebhookDelivery(headers, body, self._clock.now())
        await self._verify(hook, delivery)
        content = _content(headers, body)
        if (
            hook.webhook.scheme == "slack"
            and isinstance(content, dict)
            and content.get("type") == "url_verification"
        ):
            return DeliveryOutcome(None, str(content.get("challenge", "")))
        if not hook.trigger.definition.enabled:
            raise Conflict(
                f"The trigger {hook.record.name} is paused.",
                fix=f"Resume it: trunkline triggers resume {hook.record.name}.",
            )
        hidden = {*_HIDDEN_HEADERS}
        if hook.webhook.scheme == "api-key" and hook.webhook.header is not None:
            hidden.add(hook.webhook.header.lower())
        shown: JsonObject = {name: value for name, value in headers.items() if name not in hidden}
        request: JsonObject = {"headers": shown, "query": query, "body": content}
        context = FiringContext(
            fired_at=self._clock.now(),
            scheduled_at=None,
            key=None,
            correlation_id=correlation_id,
            started_by=f"trigger:{hook.record.name}",
            request=request,
        )
        reason = _filtered(hook, context)
        if reason is not None:
            await self._note(hook, context, "filtered", reason)
            return DeliveryOutcome(None)
        return DeliveryOutcome(
            await self._start(hook, context._replace(key=_key(hook, context, delivery, content)))
        )

    async def _verify(self, hook: Hook, delivery: WebhookDelivery) -> None:
        secrets: list[str] = []
        for name in hook.webhook.secrets:
            opened = await self._secrets.open(name)
            if opened is not None:
                secrets.append(opened.value)
        if hook.webhook.secrets and not secrets:
            log.error(
                log_events.WEBHOOK_REFUSED, trigger=hook.record.name, reason="its secret does not exist"
            )
            raise Unavailable(
                "This webhook cannot check signatures at the moment.",
                fix="Set the secret that the trigger names: trunkline secrets set NAME.",
            )
        if not is_signed(delivery, hook.webhook.scheme, secrets, hook.webhook.header):
            log.warning(
                log_events.WEBHOOK_REFUSED, trigger=hook.record.name, reason="wrong or outdated signature"
            )
            raise SignatureRefused

    async def _start(self, hook: Hook, context: FiringContext) -> RunId:
        try:
            run = await self._runs.prepare(hook.record, context)
        except (Invalid, NotFound) as exc:
            await self._note(hook, context, "failed", exc.message)
            raise
        firing = new_firing(hook.record.id, context.fired_at, "started", run_id=run.id)
        existing = await self._intake.start(run, RunRequested(), None, firing)
        if existing is not None:
            return existing.id
        self._metrics.runs_started.inc()
        log.info(
            log_events.RUN_STARTED,
            run_id=run.id,
            workflow=run.workflow_name,
            correlation_id=run.correlation_id,
            trigger=run.trigger,
        )
        return run.id

    async def _note(self, hook: Hook, context: FiringContext, outcome: FiringOutcome, reason: str) -> None:
        async with self._store.transaction() as tx:
            await tx.triggers.put_firings(
                [new_firing(hook.record.id, context.fired_at, outcome, reason=reason)]
            )


def _filtered(hook: Hook, context: FiringContext) -> str | None:
    """Why the filter does not let the delivery through."""
    if hook.trigger.filter is None:
        return None
    try:
        holds = hook.trigger.filter.holds(context.scope(hook.record.name).__getitem__)
    except ExpressionError as exc:
        return f"The filter cannot be evaluated for this delivery: {exc}"
    return None if holds else "The filter is false for this delivery."


def _key(hook: Hook, context: FiringContext, delivery: WebhookDelivery, content: Json) -> str | None:
    given: Json = default_key(delivery, hook.webhook.scheme, content)
    if hook.trigger.idempotency_key is not None:
        try:
            given = hook.trigger.idempotency_key.evaluate(context.scope(hook.record.name).__getitem__)
        except ExpressionError as exc:
            raise Invalid(f"The idempotency key of the trigger cannot be evaluated: {exc}.") from exc
    text = key_text(given)
    return None if text is None else f"trigger/{hook.record.id}/webhook/{text}"


def _content(headers: Mapping[str, str], body: bytes) -> Json:
    """The body as JSON, as the fields of a form, or as text."""
    if headers.get("content-type", "").startswith("application/x-www-form-urlencoded"):
        try:
            return dict(parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=1_000))
        except ValueError:
            return body.decode(errors="replace")
    if not body:
        return None
    if has_too_many_containers(body):
        raise Invalid("The body has too many objects and arrays.", fix="Send it in several deliveries.")
    try:
        value = decode(body)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return body.decode(errors="replace")
    if is_too_deep(value):
        raise Invalid("The body is nested too deeply.")
    return value
