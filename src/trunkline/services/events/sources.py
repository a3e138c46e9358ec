"""
Event sources: topics of other systems whose records become events.

A source says with expressions which event a record is. They read `record`: `value` (parsed JSON), `key` and `headers`
(text), `topic`, `partition` and `offset`. A record that does not fit becomes a dead letter. Consuming the topics is
left to `services/messaging/event_deliveries.py`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from trunkline.errors import ConfigurationError, Invalid
from trunkline.jsontypes import Json, JsonObject, decode, has_too_many_containers, is_too_deep
from trunkline.messages import BrokerRecord
from trunkline.messages.codec import UnreadableMessage
from trunkline.services.events.new_events import MAX_ID, SentEvent, new_event
from trunkline.stores.port.automation.received_events import NewEvent
from trunkline.workflow.document.locations import path_text
from trunkline.workflow.expressions import (
    CelCompiler,
    Condition,
    ExpressionError,
    Template,
    TemplateCompiler,
    strip_delimiters,
)
from trunkline.workflow.field_reader import FieldReader
from trunkline.workflow.validation_report import ValidationReport

SOURCE_KEYS = ("topic", "type", "key", "id", "data", "filter", "format", "servers", "max_bytes")
FORMATS = ("json", "text")
# Each has a consumer of its own, so that none waits for another one.
MAX_SOURCES = 32
MAX_TOPIC = 249
MAX_EXPRESSION = 10_000
# How the reason of a dead letter without its value begins.
TOO_LARGE = "The record has"
DEFAULT_MAX_BYTES = 1024 * 1024
LARGEST_MAX_BYTES = 16 * 1024 * 1024


class EventSource(NamedTuple):
    """A topic, and how its records become events."""

    topic: str
    # host:port, separated by commas; None: those of the broker.
    servers: str | None
    max_bytes: int
    is_text: bool
    type: Template
    # None: the record's own key.
    key: Template | None
    # None: topic, partition and offset.
    id: Template | None
    # None: the value of the record.
    data: Template | None
    filter: Condition | None

    def read(self, record: BrokerRecord) -> NewEvent | None:
        """The event; None if the filter leaves the record out. Raises `UnreadableMessage`."""
        size = len(record.value or b"")
        if size > self.max_bytes:
            raise UnreadableMessage(
                "too_large",
                f"{TOO_LARGE} {size:,} bytes, but the source accepts {self.max_bytes:,} (max_bytes). Its value is "
                "not kept here. Raise the limit, and send the record again, or delete this dead letter.",
            )
        shown = _shown(record, self._value(record))
        scope: Mapping[str, Json] = {"record": shown}
        if self.filter is not None:
            try:
                if not self.filter.holds(scope.__getitem__):
                    return None
            except ExpressionError as exc:
                raise _unmapped("filter", exc) from exc
        type_ = self._text("type", self.type, scope)
        key = shown["key"] if self.key is None else _evaluated("key", self.key, scope)
        sent = SentEvent(
            type=type_,
            key=key if isinstance(key, str | int) and key != "" else None,
            data=shown["value"] if self.data is None else _evaluated("data", self.data, scope),
            id=_default_id(record) if self.id is None else self._text("id", self.id, scope),
            source=f"kafka/{self.topic}",
        )
        if key is not None and sent.key is None and key != "":
            raise UnreadableMessage(
                "unmapped", "The key of the event is neither text nor a whole number. Correct 'key'."
            )
        try:
            return new_event(sent)
        except Invalid as exc:
            reason = f"{exc.message} Correct the source of {self.topic}, and replay this dead letter."
            raise UnreadableMessage("unmapped", reason) from exc

    def _value(self, record: BrokerRecord) -> Json:
        if record.value is None:
            return None
        try:
            if self.is_text:
                return record.value.decode()
            if has_too_many_containers(record.value):
                raise UnreadableMessage("malformed", "The value has too many objects and arrays.")
            value = decode(record.value)
        except (msgspec.DecodeError, UnicodeDecodeError) as exc:
            what = "UTF-8 text" if self.is_text else "JSON"
            raise UnreadableMessage(
                "malformed",
                f"The value is not valid {what}: {exc}. Correct the sender, or delete this dead letter.",
            ) from exc
        if is_too_deep(value):
            raise UnreadableMessage("malformed", "The value is nested too deeply.")
        return value

    def _text(self, field: str, template: Template, scope: Mapping[str, Json]) -> str:
        value = _evaluated(field, template, scope)
        if isinstance(value, int) and not isinstance(value, bool):
            value = str(value)
        if not isinstance(value, str):
            raise UnreadableMessage("unmapped", f"'{field}' of the source is not text for this record.")
        return value


def event_sources(
    given: Sequence[Mapping[str, Any]], *, servers: str | None, own_topics: Sequence[str]
) -> list[EventSource]:
    """
    The sources of the setting `sources`; raises `ConfigurationError` that names everything that is wrong.

    `servers`: of the broker, or None if it is in memory. `own_topics`: which the broker uses itself.
    """
    report = ValidationReport()
    found = [_source(dict(value), report.within((number,)), servers) for number, value in enumerate(given)]
    seen: set[str] = set()
    for number, source in enumerate(found):
        if source is None:
            continue
        if source.topic in seen:
            report.error(
                (number, "topic"), f"'{source.topic}' has two sources; use one, with an expression for 'type'"
            )
        if source.servers is None and source.topic in own_topics:
            report.error(
                (number, "topic"), f"'{source.topic}' is a topic of Trunkline itself; use another topic"
            )
        seen.add(source.topic)
    if len(given) > MAX_SOURCES:
        report.error((), f"there are {len(given)} sources, but the limit is {MAX_SOURCES}")
    if report.errors:
        raise ConfigurationError(
            "; ".join(f"sources{path_text(error.path)}: {error.message}" for error in report.errors),
            fix="Correct TRUNKLINE_SOURCES, or [[sources]] in trunkline.toml.",
        )
    return [source for source in found if source is not None]


def _source(value: dict[str, Json], report: ValidationReport, servers: str | None) -> EventSource | None:
    fields = FieldReader(value, (), SOURCE_KEYS, report)
    before = len(report.errors)
    compiler = TemplateCompiler(CelCompiler((), ("record",)), report)

    def expression(field: str) -> Template | None:
        text = fields.text(field, MAX_EXPRESSION)
        if text is None:
            return None
        return compiler.template(text if "${" in text else f"${{{text}}}", (field,))[0]

    topic = fields.required_text("topic", MAX_TOPIC, "orders")
    type_ = fields.required_text("type", MAX_EXPRESSION, "order.created")
    filter_ = fields.text("filter", MAX_EXPRESSION)
    own_servers = fields.text("servers", MAX_EXPRESSION)
    if own_servers is not None:
        own_servers = own_servers.removeprefix("kafka://")
        if not _are_servers(own_servers):
            fields.error("servers", "'servers' must be kafka://host:port,host:port")
    elif servers is None:
        fields.error(
            "servers",
            "'servers' is missing; the broker is memory://, so add the address of the topic's Kafka, such as servers: "
            "kafka://host:9092",
        )
    text_format = fields.choice("format", FORMATS, "json")
    max_bytes = fields.integer("max_bytes", 1, LARGEST_MAX_BYTES) or DEFAULT_MAX_BYTES
    key, id_, data = expression("key"), expression("id"), expression("data")
    template = None if type_ is None else compiler.template(type_, ("type",))[0]
    condition = None if filter_ is None else compiler.condition(strip_delimiters(filter_), ("filter",))[0]
    if topic is None or template is None or len(report.errors) > before:
        return None
    return EventSource(
        topic=topic,
        servers=own_servers,
        max_bytes=max_bytes,
        is_text=text_format == "text",
        type=template,
        key=key,
        id=id_,
        data=data,
        filter=condition,
    )


def _are_servers(text: str) -> bool:
    return all(
        host and port.isdigit()
        for host, _, port in (server.strip().rpartition(":") for server in text.split(","))
    )


def _shown(record: BrokerRecord, value: Json) -> JsonObject:
    """What the expressions can read."""
    return {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "key": None if record.key is None else _readable(record.key),
        # Of two headers with the same name, the last one counts.
        "headers": {name: _readable(text) for name, text in record.headers},
        "value": value,
    }


def _readable(text: bytes) -> str | None:
    """None: it is not text."""
    try:
        return text.decode()
    except UnicodeDecodeError:
        return None


def _default_id(record: BrokerRecord) -> str:
    text = f"{record.topic}:{record.partition}:{record.offset}"
    return text if len(text) <= MAX_ID else f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def _evaluated(field: str, template: Template, scope: Mapping[str, Json]) -> Json:
    try:
        return template.evaluate(scope.__getitem__)
    except ExpressionError as exc:
        raise _unmapped(field, exc) from exc


def _unmapped(field: str, exc: ExpressionError) -> UnreadableMessage:
    return UnreadableMessage(
        "unmapped",
        f"'{field}' of the source cannot be evaluated: {exc}. Correct the source, and replay this dead letter.",
    )
