"""Counters and histograms say what the library's own would say."""

from __future__ import annotations

from collections.abc import Sequence

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest

from trunkline.telemetry.metric_families import CounterFamily, HistogramFamily

BUCKETS = (0.1, 1, 10)
# On a bound, between two, below the first and above the last.
AMOUNTS = (0.1, 0.5, 0.05, 11.0, 1.0)


def shown(registry: CollectorRegistry) -> list[str]:
    """All but the times at which something was first counted."""
    return [line.split(" ")[0] if "_created{" in line else line for line in text(registry).splitlines()]


def text(registry: CollectorRegistry) -> str:
    return generate_latest(registry).decode()


def both(labels: Sequence[str]) -> tuple[CollectorRegistry, CollectorRegistry]:
    ours, theirs = CollectorRegistry(), CollectorRegistry()
    counters = CounterFamily("calls_total", "Calls made", labels, registry=ours)
    counter = Counter("calls_total", "Calls made", labels, registry=theirs)
    histograms = HistogramFamily("call_seconds", "How long", labels, buckets=BUCKETS, registry=ours)
    histogram = Histogram("call_seconds", "How long", labels, buckets=BUCKETS, registry=theirs)
    for name in ("one", 'a "quoted"\nname', "one"):
        values = [name] * len(labels)
        counters.labels(*values).inc()
        (counter.labels(*values) if labels else counter).inc()
        for amount in AMOUNTS:
            histograms.labels(*values).observe(amount)
            (histogram.labels(*values) if labels else histogram).observe(amount)
    return ours, theirs


def test_with_labels_they_are_shown_as_the_library_shows_its_own() -> None:
    ours, theirs = both(["agent_name"])
    assert shown(ours) == shown(theirs)
    assert 'call_seconds_bucket{agent_name="one",le="1.0"} 8.0' in shown(ours)


def test_without_labels_too() -> None:
    ours, theirs = both([])
    assert [line for line in shown(ours) if "_created" not in line] == [
        line for line in shown(theirs) if "_created" not in line
    ]
    assert "calls_total 3.0" in shown(ours)


def test_the_time_of_the_first_is_shown() -> None:
    ours, _ = both(["agent_name"])
    assert 'call_seconds_created{agent_name="one"} 1.' in text(ours)
    assert 'calls_created{agent_name="one"} 1.' in text(ours)
