"""``report_html``: a recording or a data set as one page that opens anywhere."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Union

from ..._files.atomic_write import require_place, written_beside

if TYPE_CHECKING:
    from ..._episodes.episodes import Episodes
    from .._recording import Recording

    Data = Union[Recording, Episodes]


def report_html(
    given: Data,
    path: str | os.PathLike[str],
    *,
    max_gap: float | None = None,
    jitter: float = 0.2,
    unit: str | None = None,
    overwrite: bool = False,
) -> dict[str, Any]:
    """Write a report as one HTML file: timelines, rates, gaps, ranges, statistics, findings.

    The page needs nothing beside it, no network and no script, and is readable on a phone. Plots
    are envelopes (the least and the greatest of each stretch), so that nothing short is lost and
    the page stays below 3 MB, whatever the size of the data. Recordings that are not in memory are
    gone through once, piece by piece.

    Parameters
    ----------
    given
        A :class:`Recording` or :class:`Episodes`.
    path
        Of the file. It is written beside its place and then renamed.
    max_gap, jitter, unit
        As for :func:`robocache.data.checks.check`.
    overwrite
        Whether to replace what is there.

    Returns
    -------
    dict
        What ``robocache inspect --json`` prints: plain data.

    Raises
    ------
    FileExistsError
        There is something, and ``overwrite`` is not set.
    OSError
        It cannot be written; what was there is still there.
    """
    from .facts import facts_of
    from .page import page

    target = os.fsdecode(path)
    require_place(target, overwrite)
    facts = facts_of(given, max_gap, jitter, unit)
    with written_beside(target, overwrite) as part:
        with open(part, "w", encoding="utf-8") as file:
            file.write(page(facts))
    return facts.told
