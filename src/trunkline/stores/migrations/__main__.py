"""
Prints the statements that lead from one revision to another.

    python -m trunkline.stores.migrations upgrade|downgrade sqlite|postgresql START TO

An empty START is an empty database.
"""

from __future__ import annotations

import sys
from typing import cast

from trunkline.stores.migrations import SqlDialect, render_downgrade, render_upgrade


def main(direction: str, dialect: str, start: str, to: str) -> None:
    sql_dialect = cast("SqlDialect", dialect)
    rendered = (
        render_upgrade(sql_dialect, start or None, to)
        if direction == "upgrade"
        else render_downgrade(sql_dialect, start, to)
    )
    sys.stdout.write(rendered)


if __name__ == "__main__":
    main(*sys.argv[1:])
