"""
Counters and histograms for what happens several times in every step.

The library's own take a lock, check their labels and look for exemplars for each number that they add to, which costs
several times what it costs to add. These add to plain numbers, on the event loop's thread alone, and tell them in the
library's words when somebody looks: each is a collector of its registry.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import accumulate

from prometheus_client import CollectorRegistry
from prometheus_client.metrics_core import CounterMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector
from prometheus_client.utils import INF, floatToGoString  # pyright: ignore[reportUnknownVariableType] - not annotated


class CounterValue:
    __slots__ = ("number", "since")

    def __init__(self) -> None:
        self.number = 0
        self.since = time.time()

    def inc(self) -> None:
        self.number += 1


class CounterFamily(Collector):
    """A counter for each combination of labels."""

    def __init__(
        self, name: str, documentation: str, labels: Sequence[str], *, registry: CollectorRegistry
    ) -> None:
        self._about = (name, documentation)
        self._labels = labels
        self._kept: dict[tuple[str, ...], CounterValue] = {}
        registry.register(self)

    def labels(self, *values: str) -> CounterValue:
        kept = self._kept.get(values)
        if kept is None:
            kept = self._kept[values] = CounterValue()
        return kept

    def collect(self) -> Iterator[Metric]:
        family = CounterMetricFamily(*self._about, labels=self._labels)
        for values, tally in self._kept.items():
            family.add_metric(values, tally.number, created=tally.since)
        yield family


class HistogramValue:
    """How many amounts lie between which bounds."""

    __slots__ = ("_bounds", "numbers", "since", "total")

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = bounds
        self.numbers = [0] * len(bounds)
        self.total = 0.0
        self.since = time.time()

    def observe(self, amount: float) -> None:
        self.numbers[bisect_left(self._bounds, amount)] += 1
        self.total += amount


class HistogramFamily(Collector):
    """A histogram for each combination of labels."""

    def __init__(
        self,
        name: str,
        documentation: str,
        labels: Sequence[str],
        *,
        buckets: Sequence[float],
        registry: CollectorRegistry,
    ) -> None:
        self._about = (name, documentation)
        self._labels = labels
        self._bounds = (*buckets, INF)
        self._kept: dict[tuple[str, ...], HistogramValue] = {}
        registry.register(self)

    def labels(self, *values: str) -> HistogramValue:
        kept = self._kept.get(values)
        if kept is None:
            kept = self._kept[values] = HistogramValue(self._bounds)
        return kept

    def collect(self) -> Iterator[Metric]:
        family = HistogramMetricFamily(*self._about, labels=self._labels)
        bounds = [floatToGoString(bound) for bound in self._bounds]
        for values, spread in self._kept.items():
            family.add_metric(
                values, list(zip(bounds, accumulate(spread.numbers), strict=True)), spread.total
            )
            labels = dict(zip(self._labels, values, strict=True))
            family.add_sample(f"{family.name}_created", labels, spread.since)
        yield family
