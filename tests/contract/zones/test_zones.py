"""One contract, whatever carries it: every case over every transport, byte for byte the same payloads at both ends."""

from __future__ import annotations

from collections.abc import AsyncGenerator

import jsonschema_rs
import pytest
from tests.contract.zones.cases import CASES, PROPER
from tests.contract.zones.golden import FOLDER, path_of, text_of
from tests.contract.zones.transports import TRANSPORTS, ZoneTransport

from trunkline.jsontypes import decode
from trunkline.zones.documents import contract_schemas

pytestmark = pytest.mark.anyio


SCHEMAS = jsonschema_rs.Registry([(f"{name}.json", schema) for name, schema in contract_schemas().items()])
REQUEST, RESPONSE = (
    jsonschema_rs.Draft202012Validator({"$ref": f"{name}.json"}, registry=SCHEMAS)
    for name in ("request", "response")
)


@pytest.fixture(scope="module", params=list(TRANSPORTS))
async def transport(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncGenerator[ZoneTransport]:
    async with TRANSPORTS[str(request.param)](tmp_path_factory.mktemp("zone")) as opened:
        yield opened


@pytest.mark.parametrize("case", list(CASES))
async def test_every_transport_carries_the_same_bytes(transport: ZoneTransport, case: str) -> None:
    transport.forget()
    await CASES[case](transport)
    assert sorted(transport.here) == sorted(transport.there)
    assert text_of(transport.here) == path_of(case).read_text()
    for request, response in transport.there:
        RESPONSE.validate(decode(response))
        if case in PROPER:
            REQUEST.validate(decode(request))


def test_there_is_a_golden_file_for_each_case_and_no_other() -> None:
    assert {path.stem for path in FOLDER.glob("*.json")} == set(CASES)
