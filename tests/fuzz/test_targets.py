"""The targets take what they begin with, and anything else, also where nobody has a fuzzer."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.fuzz.targets import TARGETS


@pytest.mark.parametrize("name", TARGETS)
def test_a_target_takes_its_seeds_whole_and_cut(name: str) -> None:
    target = TARGETS[name]
    seeds = list(target.seeds())
    assert seeds
    for seed in seeds:
        target.run(seed)
        target.run(seed[: len(seed) // 2])


@pytest.mark.parametrize("name", TARGETS)
@settings(deadline=None, derandomize=True)
@given(data=st.binary())
def test_a_target_takes_any_bytes(name: str, data: bytes) -> None:
    TARGETS[name].run(data)
