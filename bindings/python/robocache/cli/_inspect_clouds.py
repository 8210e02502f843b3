"""The part of ``robocache inspect`` for point clouds."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from ..data import FormatError, PointCloud, PointClouds
from ..data._report.overview import disk_size
from ..data.checks import Finding


def clouds_of(source: PointCloud | PointClouds) -> list[tuple[str, Any]]:
    """Return file names, each with a function that reads the cloud."""
    if isinstance(source, PointCloud):
        return [(os.path.basename(source.path), lambda: source)]
    return [(name, lambda i=i: source[i]) for i, name in enumerate(source.names)]


def inspect_clouds(source: PointCloud | PointClouds) -> dict[str, Any]:
    """Return facts and findings about point clouds, in the form of `overview`."""
    streams: dict[str, Any] = {}
    findings: list[Finding] = []
    left_out: list[dict[str, str]] = []
    for name, read in clouds_of(source):
        try:
            cloud = read()
            points = cloud.points
        except FormatError as error:
            where = f"{error.path} {error.place}".strip()
            findings.append(Finding("error", "damage", "", where, error.reason))
            continue
        for part in cloud.left_out:
            place = part.place if isinstance(source, PointCloud) else f"{name}: {part.place}"
            left_out.append({"place": place, "reason": part.reason})
        good = np.isfinite(points).all(axis=1)
        kept = points[good].astype(np.float64)
        if not good.any():
            findings.append(Finding("error", "nan", name, "", "no point is finite"))
        elif not good.all():
            text = f"{int((~good).sum())} of {len(points)} points are not finite"
            findings.append(Finding("note", "nan", name, "", text))
        zeros = int((kept == 0).all(axis=1).sum())
        if zeros > 1:
            text = f"{zeros} points are at 0, 0, 0, which some drivers write for no return"
            findings.append(Finding("note", "constant", name, "", text))
        streams[name] = {
            "samples": len(points),
            "finite": int(good.sum()),
            "extent": np.ptp(kept, axis=0).tolist() if good.any() else None,
            "min": kept.min(axis=0).tolist() if good.any() else None,
            "max": kept.max(axis=0).tolist() if good.any() else None,
            "fields": list(cloud.fields),
            "organized": [cloud.width, cloud.height] if cloud.height > 1 else None,
        }
    return {
        "path": source.path,
        "format": "point clouds" if isinstance(source, PointClouds) else "point cloud",
        "size_bytes": disk_size(source.path),
        "kind": "clouds",
        "streams": streams,
        "left_out": left_out,
        "findings": [finding.to_dict() for finding in findings],
    }
