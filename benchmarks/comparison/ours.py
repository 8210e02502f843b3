"""RoboCache's own calls."""

from __future__ import annotations

from typing import Any

import robocache as rbc

from .cases import Case
from .timing import Work


def call(case: Case, values: list[Any], times: list[Any], queries: Any, **options: Any) -> Work:
    """One call for the whole case. The streams of a fusion are described once, ahead of it."""
    if case.op == "fuse":
        streams = [rbc.Stream(v, t) for v, t in zip(values, times)]
        return lambda: rbc.fuse(streams, queries, **options)
    if case.method != "linear":
        options["method"] = case.method
    return lambda: rbc.resample(values[0], times[0], queries, **options)
