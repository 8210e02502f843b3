"""Statistics that a data set holds beside those of its data."""

from __future__ import annotations

import dataclasses
import os
from typing import Any

from .. import StatisticsResult, statistics_files
from ..data import Episodes, checks
from ..data.checks import Finding
from ._common import Failure

_MOST = 50  # findings by episode


def compare(
    given: Any, results: dict[str, StatisticsResult], names: dict[str, Any]
) -> tuple[list[Finding], int]:
    """What is not so, and how many stored statistics were compared: of tracks, or of episodes."""
    if not results:
        raise Failure("--check: there are no values to compare stored statistics with")
    stored = given.stored_statistics() if isinstance(given, Episodes) else {}
    if stored:
        findings = []
        for name, result in results.items():
            if name in stored:
                findings += checks.check_stored(given, name, stored[name], result)
            else:
                findings.append(_missing(name, ""))
        return findings, sum(name in stored for name in results)
    by_episode = _stored_by_episode(given)
    if not by_episode:
        raise Failure("--check: this data set holds no statistics to compare with")
    return _compare_episodes(given, list(results), names, by_episode)


def _missing(name: str, of: str) -> Finding:
    text = f"no statistics are stored{of}; stats --write makes a file of them"
    return Finding("error", "statistics", name, "", text)


def _stored_by_episode(given: Any) -> list[dict[str, StatisticsResult]]:
    """In LeRobot v2.1 each episode has its own, and there are no others."""
    if not isinstance(given, Episodes) or given.source is None:
        return []
    file = os.path.join(given.source, "meta", "episodes_stats.jsonl")
    if not os.path.isfile(file):
        return []
    try:
        stored = statistics_files.read_lerobot_episodes(file)
    except (ValueError, TypeError) as error:
        raise Failure(f"{file}: {error}") from None
    if len(stored) != len(given):
        raise Failure(
            f"{file}: has statistics of {len(stored)} episodes, the data set {len(given)}"
        )
    return [stored[number] for number in sorted(stored)]


def _compare_episodes(
    given: Episodes,
    tracks: list[str],
    names: dict[str, Any],
    stored: list[dict[str, StatisticsResult]],
) -> tuple[list[Finding], int]:
    exact = given.select(tracks=tracks).statistics(per_episode=True)
    findings: list[Finding] = []
    for name in tracks:
        without = sum(name not in told for told in stored)
        if without:
            findings.append(_missing(name, f" of {without} of {len(stored)} episodes"))
    compared = 0
    for e, told in enumerate(stored):
        compared += any(name in told for name in tracks)
        for name in tracks:
            if name not in told:
                continue
            for found in checks.check_statistics(name, told[name], exact[name].row(e), names[name]):
                place = f"episode {e} {found.place}".strip()
                findings.append(dataclasses.replace(found, place=place))
        if len(findings) >= _MOST:
            break
    return findings, compared
