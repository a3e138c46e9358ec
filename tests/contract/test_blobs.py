"""What every place for long files promises."""

from __future__ import annotations

import resource
import secrets
from collections.abc import Generator
from pathlib import Path

import pytest
from deploy.local.object_store import ObjectStore
from tests.services import needed

from trunkline.errors import Unavailable
from trunkline.id_generation import new_run_id
from trunkline.ids import RunId
from trunkline.stores.blobs import BlobStore, digest_of
from trunkline.stores.blobs.bucket import BlobBucket
from trunkline.stores.blobs.folder import BlobFolder

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def object_store(tmp_path_factory: pytest.TempPathFactory) -> Generator[ObjectStore]:
    with needed(), ObjectStore(tmp_path_factory.mktemp("objects")) as store:
        yield store


@pytest.fixture(params=["folder", "bucket", "bucket with a prefix"])
def blobs(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> BlobStore:
    if request.param == "folder":
        return BlobFolder(tmp_path / "blobs")
    store: ObjectStore = request.getfixturevalue("object_store")
    for name, value in store.env.items():
        monkeypatch.setenv(name, value)
    bucket = f"test-{secrets.token_hex(8)}"
    store.make_bucket(bucket)
    return BlobBucket(bucket, "a/prefix" if "prefix" in request.param else "")


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
    [("..", "passwd"), ("..", "0" * 64), ("", "0" * 64), ("0" * 36, "../secret"), ("/etc", "passwd")],
)
async def test_a_name_that_leads_elsewhere_is_no_file(
    blobs: BlobStore, tmp_path: Path, run: str, digest: str
) -> None:
    (tmp_path / "blobs" / ("0" * 36)).mkdir(parents=True)
    for elsewhere in ("passwd", "0" * 64, "blobs/secret"):
        (tmp_path / elsewhere).write_text("secret")
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


async def test_a_place_that_cannot_be_reached_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(Unavailable, match="Cannot use the attachments folder") as caught:
        await BlobFolder(tmp_path / "file").put(new_run_id(), b"content")
    assert caught.value.fix


async def test_a_file_that_could_not_be_written_to_its_end_is_not_there(tmp_path: Path) -> None:
    run_id, content = new_run_id(), b"x" * 100_000
    blobs = BlobFolder(tmp_path / "blobs")
    present, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(content) // 2, most))
    try:
        with pytest.raises(Unavailable):
            await blobs.put(run_id, content)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (present, most))
    assert await blobs.get(run_id, digest_of(content)) is None
    await blobs.put(run_id, content)
    assert await blobs.get(run_id, digest_of(content)) == content


async def test_a_bucket_that_does_not_exist_says_so(
    object_store: ObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in object_store.env.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(Unavailable, match="no-such-bucket") as caught:
        await BlobBucket("no-such-bucket").put(new_run_id(), b"content")
    assert caught.value.fix
