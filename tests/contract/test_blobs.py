"""What every place for long files promises."""

from __future__ import annotations

from pathlib import Path

import pytest

from trunkline.ids import RunId, new_run_id
from trunkline.stores.blobs import BlobStore, digest_of
from trunkline.stores.blobs.folder import BlobFolder

pytestmark = pytest.mark.anyio


@pytest.fixture
def blobs(tmp_path: Path) -> BlobStore:
    return BlobFolder(tmp_path / "blobs")


async def test_a_file_comes_back_as_it_was(blobs: BlobStore) -> None:
    run_id = new_run_id()
    content = bytes(range(256)) * 4_096
    digest = await blobs.put(run_id, content)
    assert digest == digest_of(content)
    assert await blobs.get(run_id, digest) == content


async def test_a_file_that_is_put_twice_is_there_once(blobs: BlobStore) -> None:
    run_id = new_run_id()
    assert await blobs.put(run_id, b"twice") == await blobs.put(run_id, b"twice")
    assert await blobs.runs(limit=10) == [run_id]


async def test_a_file_belongs_to_its_run_alone(blobs: BlobStore) -> None:
    digest = await blobs.put(new_run_id(), b"mine")
    assert await blobs.get(new_run_id(), digest) is None


@pytest.mark.parametrize(
    ("run", "digest"),
    [("..", "passwd"), ("../..", "0" * 64), ("", "0" * 64), ("0" * 36, "../secret"), ("/etc", "passwd")],
)
async def test_a_name_that_leads_elsewhere_is_no_file(
    blobs: BlobStore, tmp_path: Path, run: str, digest: str
) -> None:
    (tmp_path / "passwd").write_text("secret")
    assert await blobs.get(RunId(run), digest) is None


async def test_what_is_deleted_is_gone_and_what_is_not_stays(blobs: BlobStore) -> None:
    first, second = sorted((new_run_id(), new_run_id()))
    digests = {run_id: await blobs.put(run_id, b"content") for run_id in (first, second)}
    await blobs.delete(first)
    await blobs.delete(first)
    assert await blobs.get(first, digests[first]) is None
    assert await blobs.get(second, digests[second]) == b"content"


async def test_runs_with_files_come_in_order_page_by_page(blobs: BlobStore) -> None:
    runs = sorted(new_run_id() for _ in range(5))
    for run_id in runs:
        await blobs.put(run_id, b"content")
    page = await blobs.runs(limit=2)
    rest = await blobs.runs(limit=10, after=page[-1])
    assert [*page, *rest] == runs
    assert await blobs.runs(limit=10, after=runs[-1]) == []
