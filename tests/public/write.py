"""
Writes again what is generated from the program and checked in: `make docs`.

The tests next to this file fail while one of these files is not as the program is; this is the way to agree to a
change, and the difference shows in review.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal, get_args

import msgspec
from tests.public.reference_pages import PAGES, REFERENCE
from tests.public.test_checks import CHECKS_FILE, checks_page
from tests.public.test_cli_help import GROUPS, group_help
from tests.public.test_new_schema import new_schema
from tests.public.test_sabotage import PAGE as SABOTAGE_FILE
from tests.sabotage.all_rules import page as sabotage_page

from trunkline.api.documents.asyncapi import build_asyncapi
from trunkline.jsontypes import JsonObject
from trunkline.messages import TopicNames
from trunkline.stores.migrations import SqlDialect, new_schema_file
from trunkline.telemetry.logs import configure_logs
from trunkline.testing import running_system
from trunkline.workflow import workflow_json_schema

HERE = Path(__file__).parent


async def openapi_document() -> JsonObject:
    with TemporaryDirectory() as folder:
        async with running_system(Path(folder)) as system:
            return (await system.call("GET", "//openapi.json")).json


def write_json(
    name: str, document: JsonObject, *, indent: int, order: Literal["sorted"] | None = None
) -> None:
    text = msgspec.json.encode(document, order=order)
    (HERE / name).write_bytes(msgspec.json.format(text, indent=indent) + b"\n")


def main() -> None:
    configure_logs("warning", "console")
    for group in GROUPS:
        (HERE / f"cli-{group}.txt").write_text(group_help(group))
    write_json("openapi.json", asyncio.run(openapi_document()), indent=1, order="sorted")
    write_json("asyncapi.json", build_asyncapi(TopicNames()), indent=1, order="sorted")
    write_json("workflow-schema.json", workflow_json_schema(), indent=2)
    CHECKS_FILE.write_text(checks_page())
    for page, written in PAGES.items():
        (REFERENCE / page).write_text(written())
    SABOTAGE_FILE.write_text(sabotage_page())
    for dialect in get_args(SqlDialect):
        new_schema_file(dialect).write_text(new_schema(dialect))


if __name__ == "__main__":
    main()
