"""Statistics, alignment and windows with Ray Data, for data too large for one machine.

Stages are classes for ``map_batches``: Ray creates one in each actor of a pool, and it keeps its
context and open files. ``pip install 'robocache[ray]'``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .. import data
from .._arguments.options import count
from .._printable import printable
from .._public import publish
from ..data._errors import needed
from ._rows import EPISODE, PATH
from ._stages import Align, Windows
from ._statistics import Statistics, statistics

if TYPE_CHECKING:
    import os

__all__ = ["Align", "Statistics", "Windows", "episodes", "statistics"]


def episodes(
    paths: str | os.PathLike[str] | Sequence[Any],
    *,
    num_blocks: int | None = None,
    **options: Any,
) -> Any:
    """Return a Ray data set with one row per episode: its ``path`` and number.

    Only indexes are read here. The stages of this module read the rest where they run, so paths
    must be valid on all machines, as on a shared file system.

    Parameters
    ----------
    paths
        One path or a list of paths to recordings and data sets, as for
        :func:`robocache.data.open`. A recording is one episode.
    num_blocks
        Number of blocks of rows; an actor takes one block at a time. None: up to 256.
    options
        Options of :func:`robocache.data.open`. Stages take their own.

    Returns
    -------
    ray.data.Dataset
        Columns ``path`` and ``episode``.

    Raises
    ------
    FormatError
        The format of a path is not known.
    ModuleNotFoundError
        Ray is not installed.
    """
    import os

    ray_data = needed("ray.data", "ray", "robocache.ray.episodes")
    if isinstance(paths, (str, os.PathLike)):
        paths = [paths]
    rows = []
    for path in map(os.path.abspath, paths):
        found = data.open(path, **options)
        if not isinstance(found, (data.Episodes, data.Recording)):
            raise ValueError(
                f"{printable(path)} is a point cloud, expected a recording or a data set"
            )
        numbers = range(len(found)) if isinstance(found, data.Episodes) else [0]
        rows += [{PATH: path, EPISODE: number} for number in numbers]
    blocks = min(len(rows), 256) if num_blocks is None else count(num_blocks, "num_blocks")
    return ray_data.from_items(rows, override_num_blocks=max(1, blocks))


publish(__name__)


def __dir__() -> list[str]:
    return __all__
