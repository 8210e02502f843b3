"""Checks of output paths: a command never overwrites what it reads."""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Optional

from .._files.atomic_write import require_place
from .._files.overwrite import lies_in
from ._common import Failure


def check_output(
    output: Path,
    overwrite: bool,
    inputs: Iterable[Optional[Path]],
    option: str = "--output",
    within: Optional[str] = None,
) -> None:
    """Check, before any work is done, that an output replaces nothing by mistake.

    ``within``: suffix of output names that may replace a file inside a data set that is read.
    """
    for input_path in inputs:
        if input_path is None:
            continue
        if lies_in(str(input_path), str(output)):
            relation = (
                "is the input"
                if lies_in(str(output), str(input_path))
                else f"contains {input_path}"
            )
            raise Failure(f"{option}: {output} {relation}, which it would replace; write elsewhere")
        inside = lies_in(str(output), str(input_path)) and os.path.lexists(output)
        if inside and not _belongs(output, within):
            raise Failure(
                f"{option}: {output} exists inside the input {input_path}; write elsewhere"
            )
    require_place(str(output), overwrite)


def _belongs(output: Path, within: Optional[str]) -> bool:
    return within is not None and output.name.endswith(within)


def definition_files(definitions: Optional[list[str]]) -> list[Path]:
    """Return the files of --definition TYPE=FILE."""
    return [Path(text.partition("=")[2]) for text in definitions or () if "=" in text]
