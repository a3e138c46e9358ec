"""The steps of a run, as a person names them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trunkline.cli.exit_codes import Exit
from trunkline.cli.failures import CliError

if TYPE_CHECKING:
    from trunkline.cli.answers import Run


def check_step(run: Run, step: str) -> None:
    names = [known["name"] for known in run["steps"]]
    if step not in names:
        raise CliError(
            f"Run {run['id']} has no step {step}.",
            fix=f"Choose one of: {', '.join(names)}",
            exit_code=Exit.NOT_FOUND,
        )
