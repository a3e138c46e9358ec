"""Smaller things that we rely on in libraries and that their documentation does not promise."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from importlib import import_module
from typing import cast

import apsw
import jsonschema_rs
import msgspec
import pytest
import structlog
import yaml
from joserfc import jws
from joserfc.jwk import OKPKey
from jsonschema_rs import ValidationErrorKind
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import HistogramMetricFamily

from trunkline.agents.authentication.signed_tokens import TOKEN_ALGORITHMS
from trunkline.jsontypes import JsonObject
from trunkline.stores.sqlite.database.statements import execute, is_duplicate
from trunkline.telemetry.logs import json_line

pytestmark = pytest.mark.anyio


class Point(msgspec.Struct):
    x: int


def test_msgspec_says_at_the_end_of_its_message_where_a_value_is_wrong() -> None:
    with pytest.raises(msgspec.ValidationError) as raised:
        msgspec.convert({"x": "one"}, Point)
    assert str(raised.value) == "Expected `int`, got `str` - at `$.x`"


def test_msgspec_puts_a_type_under_defs_and_refers_to_it() -> None:
    schema = msgspec.json.schema(Point)
    assert schema["$ref"] == "#/$defs/Point"
    assert schema["$defs"]["Point"]["properties"] == {"x": {"type": "integer"}}


def test_jsonschema_names_the_missing_and_the_unknown_properties() -> None:
    schema: JsonObject = {"required": ["a"], "properties": {"a": True}, "additionalProperties": False}
    kinds = [error.kind for error in jsonschema_rs.validator_for(schema).iter_errors({"b": 1})]
    missing = [kind.property for kind in kinds if isinstance(kind, ValidationErrorKind.Required)]
    unknown = [
        kind.unexpected for kind in kinds if isinstance(kind, ValidationErrorKind.AdditionalProperties)
    ]
    assert (missing, unknown) == (["a"], [["b"]])


def test_joserfc_asks_the_registry_for_the_algorithm_of_a_token() -> None:
    key = OKPKey.generate_key("Ed25519")
    with warnings.catch_warnings():
        # The registry is ours so that a token signed with EdDSA does not warn at each use.
        warnings.simplefilter("error")
        token = jws.serialize_compact({"alg": "EdDSA"}, b"{}", key, registry=TOKEN_ALGORITHMS)
        signed = jws.extract_compact(token.encode(), registry=TOKEN_ALGORITHMS)
        assert jws.validate_compact(signed, key, registry=TOKEN_ALGORITHMS)
    assert signed.headers() == {"alg": "EdDSA"}
    assert {"EdDSA", "Ed25519", "ES256"} <= TOKEN_ALGORITHMS.algorithms.keys()


def test_yaml_gives_events_with_their_places_and_has_its_c_parser() -> None:
    scalars = [event for event in yaml_events("a:\n  - b\n") if isinstance(event, yaml.ScalarEvent)]
    marks = [cast("yaml.Mark", each.start_mark) for each in scalars]
    assert [(mark.line, mark.column) for mark in marks] == [(0, 0), (1, 4)]
    with pytest.raises(yaml.reader.ReaderError) as raised:
        yaml_events("a: \x01")
    assert raised.value.position == 3


def yaml_events(text: str) -> list[yaml.Event]:
    # The stubs leave the type of the events open.
    return list(cast("Iterator[yaml.Event]", yaml.parse(text, Loader=yaml.CSafeLoader)))  # pyright: ignore[reportUnknownMemberType]


def test_apsw_has_an_exception_for_each_error_that_we_tell_apart() -> None:
    names = ["Busy", "CantOpen", "Constraint", "Corrupt", "Full", "IO", "NotADB", "ReadOnly", "SQL"]
    assert all(issubclass(getattr(apsw, f"{name}Error"), apsw.Error) for name in names)
    assert isinstance(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, int)


def test_apsw_says_which_constraint_was_violated() -> None:
    db = apsw.Connection(":memory:")
    execute(db, "CREATE TABLE t (a INTEGER PRIMARY KEY, b CHECK (b > 0))")
    execute(db, "INSERT INTO t VALUES (1, 1)")
    with pytest.raises(apsw.ConstraintError) as doubled:
        execute(db, "INSERT INTO t VALUES (1, 1)")
    assert is_duplicate(doubled.value)
    with pytest.raises(apsw.ConstraintError) as checked:
        execute(db, "INSERT INTO t VALUES (2, 0)")
    assert not is_duplicate(checked.value)


def test_structlog_calls_proxy_to_logger_with_the_name_of_the_method() -> None:
    lines: list[bytes] = []

    class Writer:
        def info(self, line: bytes) -> None:
            lines.append(line)

    class OneStep(structlog.BoundLoggerBase):
        def _proxy_to_logger(self, method_name: str, event: str | None = None, **event_kw: object) -> None:
            line = json_line(self._logger, method_name, {**self._context, **event_kw, "event": event})
            getattr(self._logger, method_name)(line)

    filtering = structlog.make_filtering_bound_logger(20)
    wrapper = type("Wrapper", (OneStep, filtering), {})
    structlog.wrap_logger(Writer(), wrapper_class=wrapper, context_class=dict).bind(a=1).info("event", b=2)
    assert {"event": "event", "a": 1, "b": 2, "level": "info"}.items() <= json.loads(lines[0]).items()


def test_prometheus_takes_buckets_by_the_text_of_their_bounds() -> None:
    class Collected:
        def collect(self) -> list[HistogramMetricFamily]:
            family = HistogramMetricFamily("seconds", "How long", labels=["a"])
            family.add_metric(["x"], [("0.1", 1), ("+Inf", 2)], 3.0)
            return [family]

    registry = CollectorRegistry()
    registry.register(Collected())  # pyright: ignore[reportArgumentType] - a collector by its method
    assert 'seconds_bucket{a="x",le="+Inf"} 2.0' in generate_latest(registry).decode()


@pytest.mark.parametrize(
    ("module", "names"),
    [
        ("confluent_kafka.cimpl", ["NewTopic", "NewPartitions"]),
        ("confluent_kafka.admin._metadata", ["ClusterMetadata"]),
        ("confluent_kafka.admin._topic", ["TopicDescription"]),
    ],
)
def test_kafka_has_its_types_where_type_checkers_find_them(module: str, names: list[str]) -> None:
    kafka = pytest.importorskip("confluent_kafka")
    assert kafka is not None
    assert [name for name in names if not hasattr(import_module(module), name)] == []


def test_kafka_knows_the_names_of_its_errors() -> None:
    kafka = pytest.importorskip("confluent_kafka")
    for name in ("_TRANSPORT", "_ALL_BROKERS_DOWN", "_TIMED_OUT", "_AUTHENTICATION", "_UNKNOWN_TOPIC"):
        assert kafka.KafkaError(getattr(kafka.KafkaError, name)).name() == name
    assert hasattr(import_module("confluent_kafka.admin").AdminClient, "__exit__")
