"""
Counters and histograms for what happens several times in every step.

Those of prometheus_client take a lock, check labels and look for exemplars on every increment, which costs several
times the increment itself. These add to plain numbers, only on the event loop's thread. Each family is a custom
collector that the registry asks for its samples when it is scraped.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import accumulate
from math import inf, isinf

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector


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
        for values, counter in self._kept.items():
            family.add_metric(values, counter.number, created=counter.since)
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
        self._bounds = (*buckets, inf)
        self._kept: dict[tuple[str, ...], HistogramValue] = {}
        registry.register(self)

    def labels(self, *values: str) -> HistogramValue:
        kept = self._kept.get(values)
        if kept is None:
            kept = self._kept[values] = HistogramValue(self._bounds)
        return kept

    def collect(self) -> Iterator[Metric]:
        family = HistogramMetricFamily(*self._about, labels=self._labels)
        bounds = ["+Inf" if isinf(bound) else repr(float(bound)) for bound in self._bounds]
        for values, histogram in self._kept.items():
            family.add_metric(
                values, list(zip(bounds, accumulate(histogram.numbers), strict=True)), histogram.total
            )
            labels = dict(zip(self._labels, values, strict=True))
            family.add_sample(f"{family.name}_created", labels, histogram.since)
        yield family
