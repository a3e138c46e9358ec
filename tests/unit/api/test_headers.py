"""A caller's correlation id is taken only where it is safe to print."""

from __future__ import annotations

import pytest

from trunkline.api.correlation_ids import choose_correlation_id


def test_a_sane_id_is_taken() -> None:
    assert choose_correlation_id([(b"host", b"x"), (b"x-correlation-id", b"order-7/a")]) == "order-7/a"


@pytest.mark.parametrize("given", [b"", b"a b", b"a\r\nSet-Cookie: x", b"\xff", b"x" * 129])
def test_any_other_is_replaced(given: bytes) -> None:
    chosen = choose_correlation_id([(b"x-correlation-id", given)])
    assert len(chosen) == 36


def test_without_one_each_request_gets_its_own() -> None:
    assert choose_correlation_id([]) != choose_correlation_id([])
