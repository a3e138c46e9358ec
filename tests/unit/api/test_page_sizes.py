"""Pages of large items end early, and nothing between two pages is lost or repeated."""

from __future__ import annotations

import pytest

from trunkline.api.paging import read_within

pytestmark = pytest.mark.anyio


class Items:
    """Numbered items, and how many were read."""

    def __init__(self, sizes: list[int]) -> None:
        self._sizes = sizes
        self.read_bytes = 0

    async def read(self, after: int, limit: int) -> list[int]:
        numbers = list(range(after + 1, len(self._sizes)))[:limit]
        self.read_bytes += sum(map(self.size, numbers))
        return numbers

    def size(self, number: int) -> int:
        return self._sizes[number]


async def pages(items: Items, limit: int, max_bytes: int) -> list[list[int]]:
    found: list[list[int]] = []
    start, more = -1, True
    while more:
        page, more = await read_within(
            items.read, start, limit, key=int, size_bytes=items.size, max_bytes=max_bytes
        )
        found.append(page)
        start = page[-1] if page else start
    return found


@pytest.mark.parametrize("limit", [1, 3, 4, 5, 50, 1_000])
@pytest.mark.parametrize("size", [0, 1, 30, 99, 100, 1_000])
async def test_all_items_are_on_exactly_one_page(limit: int, size: int) -> None:
    found = await pages(Items([size] * 57), limit, 100)
    assert [number for page in found for number in page] == list(range(57))
    assert all(len(page) <= limit for page in found)


async def test_a_full_page_that_is_the_last_one_says_so() -> None:
    assert await pages(Items([1] * 20), 10, 1_000) == [list(range(10)), list(range(10, 20))]


async def test_a_page_ends_when_its_items_are_large_enough() -> None:
    items = Items([60] * 1_000)
    page, more = await read_within(items.read, -1, 1_000, key=int, size_bytes=items.size, max_bytes=6_000)
    assert (len(page), more) == (100, True)
    assert items.read_bytes == 6_000


async def test_one_large_item_does_not_load_the_others() -> None:
    items = Items([1, 1, 1, 1_000, *[1_000] * 500])
    page, more = await read_within(items.read, -1, 500, key=int, size_bytes=items.size, max_bytes=100)
    assert (page, more) == ([0, 1, 2, 3], True)


async def test_many_small_items_do_not_load_all_large_ones_behind_them() -> None:
    items = Items([1] * 200 + [1_000] * 500)
    page, more = await read_within(items.read, -1, 500, key=int, size_bytes=items.size, max_bytes=5_000)
    assert more
    assert len(page) > 200
    assert items.read_bytes <= 200 + 16 * 1_000
    # What was read beyond the size of a page is left out.
    assert 5_000 <= sum(map(items.size, page)) < 6_000
