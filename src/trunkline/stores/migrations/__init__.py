"""
The history of the database's schema, as SQL for the store's own driver.

Alembic only renders here, in its offline mode: it never opens a connection. It costs a third of a second to
import and 20 MB to keep, so a process that goes on to serve never imports it. The statements for an empty database are
in a file per dialect, which `make docs` writes, and another process renders those for an older one.
"""

from __future__ import annotations

import io
import subprocess
import sys
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import msgspec

from trunkline.errors import ConfigurationError, WrongSchema

if TYPE_CHECKING:
    from alembic.config import Config

SqlDialect = Literal["sqlite", "postgresql"]
Direction = Literal["upgrade", "downgrade"]

# Oldest first. Known without Alembic, so that a start on a database of today costs one SELECT.
REVISIONS = (
    "0001",
    "0002",
    "0003",
    "0004",
    "0005",
    "0006",
    "0007",
    "0008",
    "0009",
    "0010",
    "0011",
    "0012",
    "0013",
    "0014",
    "0015",
    "0016",
    "0017",
    "0018",
    "0019",
    "0020",
    "0021",
    "0022",
    "0023",
    "0024",
    "0025",
    "0026",
    "0027",
    "0028",
    "0029",
    "0030",
    "0031",
    "0032",
)
HEAD = REVISIONS[-1]
# Before the first revision: no table at all.
BASE = "base"


class SchemaState(msgspec.Struct, frozen=True, kw_only=True):
    # Without who logs in.
    place: str
    # None: there are no tables yet.
    revision: str | None
    needed: str = HEAD

    def check(self) -> None:
        """Raises `WrongSchema` unless the revision is the one that this program was written for."""
        if self.revision == self.needed:
            return
        self.check_known()
        if self.revision is None:
            raise WrongSchema(f"The database at {self.place} has no Trunkline tables yet.")
        raise WrongSchema(
            f"The database at {self.place} is at schema revision {self.revision}; this version of Trunkline needs"
            f" {self.needed}."
        )

    def check_known(self) -> None:
        """Raises `WrongSchema` when a newer program has written the database."""
        if self.revision is not None and self.revision not in REVISIONS:
            raise WrongSchema(
                f"The database at {self.place} is at schema revision {self.revision}, which this "
                f"version of Trunkline does not support (it supports up to {self.needed}).",
                fix="Install the newer version of Trunkline that created it.",
            )


def holds_newer_data(reason: str) -> ConfigurationError:
    """A downgrade would make the database unreadable: a check of its revision has failed."""
    return ConfigurationError(
        f"The database has data that older versions cannot read, such as large payloads: {reason}.",
        fix="Keep this version, or delete the runs that have large inputs and outputs first.",
    )


def new_schema_file(dialect: SqlDialect) -> Path:
    """The file with the statements for an empty database, without BEGIN and COMMIT."""
    return Path(__file__).with_name(f"new_{dialect}.sql")


@lru_cache(maxsize=8)
def upgrade_statements(dialect: SqlDialect, start: str | None) -> str:
    """
    What brings a database nearer to `HEAD`, without importing Alembic into this process. None: an empty database.

    One call may not be enough: a revision may be newer than the file for empty databases. Look at the revision again.
    """
    if start is None:
        return new_schema_file(dialect).read_text(encoding="utf-8")
    return _render_in_subprocess("upgrade", dialect, start, HEAD)


def downgrade_statements(dialect: SqlDialect, start: str, to: str) -> str:
    """As `render_downgrade`, without importing Alembic into this process."""
    return _render_in_subprocess("downgrade", dialect, start, to)


@lru_cache(maxsize=8)
def render_upgrade(dialect: SqlDialect, start: str | None, to: str = HEAD) -> str:
    """The statements from `start` (None: an empty database) up to `to`, without BEGIN and COMMIT."""
    from alembic import command  # noqa: PLC0415 - see above: only when there is something to render

    config = _config(dialect)
    command.upgrade(config, f"{start}:{to}" if start else to, sql=True)
    return _rendered(config)


@lru_cache(maxsize=8)
def render_downgrade(dialect: SqlDialect, start: str, to: str = BASE) -> str:
    """The statements from `start` down to `to`, without BEGIN and COMMIT."""
    from alembic import command  # noqa: PLC0415 - see above: only when there is something to render

    config = _config(dialect)
    command.downgrade(config, f"{start}:{to}", sql=True)
    # Alembic empties its table and leaves it, and then wants to create it on the way up.
    last = "DROP TABLE alembic_version;\n" if to == BASE else ""
    return _rendered(config) + last


@lru_cache(maxsize=8)
def _render_in_subprocess(direction: Direction, dialect: SqlDialect, start: str, to: str) -> str:
    arguments = [sys.executable, "-m", __name__, direction, dialect, start, to]
    rendering = subprocess.run(arguments, capture_output=True, text=True, check=False)  # noqa: S603 - our own program
    if rendering.returncode != 0:
        raise ConfigurationError(
            f"Cannot generate the database schema: {rendering.stderr.strip()[-500:]}",
            fix="Reinstall Trunkline. A part of it, or of Alembic, is missing.",
        )
    return rendering.stdout


def _config(dialect: SqlDialect) -> Config:
    from alembic.config import Config  # noqa: PLC0415 - see above: only when there is something to render

    config = Config(output_buffer=io.StringIO())
    config.set_main_option("script_location", str(Path(__file__).parent).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    config.attributes["dialect"] = dialect
    return config


def _rendered(config: Config) -> str:
    buffer = config.output_buffer
    assert isinstance(buffer, io.StringIO)  # noqa: S101 - given by _config
    return buffer.getvalue()
