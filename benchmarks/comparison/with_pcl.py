"""PCL's VoxelGrid by its command line tool, which reports the time of only the filter."""

from __future__ import annotations

import pathlib
import re
import shutil
import subprocess
import tempfile
from typing import Any

import numpy as np

_TOOL, _CONVERT = "pcl_voxel_grid", "pcl_convert_pcd_ascii_binary"


class VoxelGrid:
    """Write a cloud to a separate file. Raises FileNotFoundError without PCL's tools."""

    def __init__(self, points: Any, voxel_size: float) -> None:
        for tool in (_TOOL, _CONVERT):
            if shutil.which(tool) is None:
                raise FileNotFoundError(f"no {tool} (Debian: pcl-tools)")
        self._folder = tempfile.TemporaryDirectory()
        folder = pathlib.Path(self._folder.name)
        self._cloud, self._result = folder / "cloud.pcd", folder / "result.pcd"
        self._leaf = ",".join([str(voxel_size)] * 3)
        header = (
            "VERSION 0.7\nFIELDS x y z\nSIZE 4 4 4\nTYPE F F F\nCOUNT 1 1 1\n"
            f"WIDTH {len(points)}\nHEIGHT 1\nVIEWPOINT 0 0 0 1 0 0 0\n"
            f"POINTS {len(points)}\nDATA binary\n"
        )
        data = np.ascontiguousarray(points[:, :3], "float32").tobytes()
        self._cloud.write_bytes(header.encode() + data)

    def seconds(self) -> float:
        """Return the time of only the filter."""
        command = [_TOOL, str(self._cloud), str(self._result), "-leaf", self._leaf]
        # Its report uses both streams, with colours.
        done = subprocess.run(
            command, check=True, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        report = re.sub(r"\x1b\[[0-9;]*m", "", done.stdout)
        found = re.search(r"Computing\s*\[done, ([\d.e+-]+) ms", report)
        if found is None:
            raise RuntimeError(f"{_TOOL} reports no time: {report[-200:]}")
        return float(found[1]) * 1e-3

    def centroids(self) -> Any:
        """Return the centroids of the last filter."""
        plain = self._result.with_name("plain.pcd")
        command = [_CONVERT, str(self._result), str(plain), "1"]
        subprocess.run(command, check=True, capture_output=True)
        header, _, data = plain.read_bytes().partition(b"DATA binary\n")
        count = int(re.search(rb"POINTS (\d+)", header)[1])
        # The file may be longer.
        return np.frombuffer(data, "float32", 3 * count).reshape(-1, 3)
