"""The statements for an empty database are those of all revisions."""

from __future__ import annotations

import pytest

from trunkline.stores.migrations import SqlDialect, new_schema_file, render_upgrade

HEADER = "-- Generated from the revisions in versions/ by `make docs`. Don't edit.\n\n"


def new_schema(dialect: SqlDialect) -> str:
    return HEADER + render_upgrade(dialect, None)


@pytest.mark.parametrize("dialect", ["sqlite", "postgresql"])
def test_an_empty_database_gets_the_statements_of_all_revisions(dialect: SqlDialect) -> None:
    assert new_schema_file(dialect).read_text() == new_schema(dialect)
