"""
Throws mutated bytes at the targets, guided by what they reach.

    python -m tests.fuzz TARGET RUNS

Begins with the golden files. Ends with an error and the bytes that led to it when a target raises, takes longer than
ten seconds for one input, or more than a gigabyte of memory.
"""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory

# Longer than any golden file needs; a fuzzer that writes novels finds less.
MAX_INPUT_BYTES = 6_000


def main() -> None:
    name, runs = sys.argv[1], int(sys.argv[2])
    atheris = import_module("atheris")
    with atheris.instrument_imports(include=["trunkline"]):
        targets = import_module("tests.fuzz.targets")
    import_module("trunkline.telemetry.logs").configure_logs("error", "json")
    target = targets.TARGETS[name]
    with TemporaryDirectory() as folder:
        for number, seed in enumerate(target.seeds()):
            (Path(folder) / str(number)).write_bytes(seed)
        limits = [f"-runs={runs}", f"-max_len={MAX_INPUT_BYTES}", "-timeout=10", "-rss_limit_mb=1024"]
        atheris.Setup([sys.argv[0], folder, *limits, "-print_final_stats=1"], target.run)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
