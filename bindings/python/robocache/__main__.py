"""``python -m robocache``: the command line. Its command ``info`` needs no other package."""

from __future__ import annotations

import sys

from .cli import main

if __name__ == "__main__":
    sys.exit(main())
