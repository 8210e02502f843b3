"""``python -m robocache info``: the version, the devices, and why CUDA is not used if it is not."""

from __future__ import annotations

import argparse

from ._info import info


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m robocache", description=__doc__)
    parser.add_argument("command", choices=["info"])
    parser.parse_args()
    print(info())


if __name__ == "__main__":
    main()
