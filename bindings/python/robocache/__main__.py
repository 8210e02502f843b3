"""``python -m robocache``: the command line. ``python -m robocache info`` needs no other package."""

from __future__ import annotations

import sys

from .cli import main

if __name__ == "__main__":
    sys.exit(main())
