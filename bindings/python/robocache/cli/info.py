"""``robocache info``."""

import dataclasses

from .. import info as facts
from ._common import AsJson
from ._display import print_json


def info(as_json: AsJson = False) -> None:
    """Show the version, the devices, and if CUDA is not used, the reason."""
    if as_json:
        print_json(dataclasses.asdict(facts()))
    else:
        print(facts())
