"""
The command line.

Data goes to stdout, everything else to stderr. Nothing heavy is imported before a command needs it:
`trunkline --help` imports no command, and a command only what it uses.
"""

from __future__ import annotations


def main() -> None:
    """The `trunkline` program."""
    import gc  # noqa: PLC0415  (this package is imported by every demo agent: keep it empty)
    import sys  # noqa: PLC0415

    # What a start imports stays. Collections that look through it again and again take a sixth of the start.
    gc.set_threshold(100_000, 25, 50)
    from trunkline.cli.app import run_command_line  # noqa: PLC0415

    sys.exit(run_command_line(sys.argv[1:]))
