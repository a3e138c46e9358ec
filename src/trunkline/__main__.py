"""`python -m trunkline` is the same program as `trunkline`."""

from __future__ import annotations

from trunkline.cli import main

if __name__ == "__main__":
    main()
