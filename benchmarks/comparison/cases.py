"""The cases of cases/*.txt. robocache_bench parses their names and makes their data."""

from __future__ import annotations

import json
import math
import os
import pathlib
import subprocess
from typing import Any

import numpy as np

_FOLDER = pathlib.Path(__file__).resolve().parents[1]
_DTYPES = {"f16": "f2", "bf16": "i2", "f32": "f4", "f64": "f8", "u8": "u1", "i64": "i8"}

_KINDS = {"values", "times", "query_times"}
_METHODS = ("linear", "pchip", "slerp", "angle")


def names_of(user: str) -> list[str]:
    """Return the names of the cases that `user` measures, as table/name."""
    names = []
    for path in sorted((_FOLDER / "cases").glob("*.txt")):
        for line in path.read_text().splitlines():
            if line and not line.startswith("#"):
                table, users, cases = line.split(maxsplit=2)
                if user in users.split(","):
                    names += [f"{table}/{name}" for name in cases.split(" | ")]
    return names


def _program() -> pathlib.Path:
    """Return $ROBOCACHE_BENCH, or the most recently built program."""
    if program := os.environ.get("ROBOCACHE_BENCH"):
        return pathlib.Path(program)
    found = _FOLDER.parent.glob("build/*/benchmarks/robocache_bench")
    if last := max(found, key=lambda path: path.stat().st_mtime, default=None):
        return last
    raise SystemExit(
        "peers.py: no robocache_bench, which makes the data; build it with cmake --preset release "
        "-DROBOCACHE_BUILD_BENCHMARKS=ON && cmake --build --preset release -t robocache_bench"
    )


class Case:
    """The properties of a case as attributes, from robocache_bench, and its arrays.

    Resampling: method, dtype, batch, queries, channels. Voxels: result, clouds, points per cloud,
    columns, features, shape, origin, voxel_size. Statistics: quantiles. All: bytes and in_range.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        with subprocess.Popen([_program(), "--write", name], stdout=subprocess.PIPE) as program:
            facts = json.loads(program.stdout.readline() or '{"arrays": []}')
            self.__dict__.update(facts)
            self._arrays: list[tuple[str, Any]] = []
            for kind, dtype, shape in facts["arrays"]:
                array = np.empty(shape, _DTYPES[dtype])
                program.stdout.readinto(memoryview(array).cast("B"))
                self._arrays.append((kind, array))
        if program.returncode != 0:
            raise SystemExit(f"peers.py: robocache_bench has no data of {name!r}")
        if self.voxels:
            # The first point is the middle of the first voxel, and no point is nearer to the
            # corner: Open3D begins its grid half a voxel before the points.
            points = self._all("points")[0]
            low = np.float32(np.array(self.origin) + 0.5 * self.voxel_size)
            np.maximum(points[:, :3], low, out=points[:, :3])
            points[0, :3] = low
        elif not self.statistics:
            if self.method not in _METHODS or {kind for kind, _ in self._arrays} != _KINDS:
                raise SystemExit(f"peers.py: {name!r} has no peers")

    def __str__(self) -> str:
        return self.name

    @property
    def voxels(self) -> bool:
        return "/" in self.name

    @property
    def statistics(self) -> bool:
        return " of " in self.name

    @property
    def op(self) -> str:
        """The table that the case is in."""
        if self.voxels:
            return "voxelize"
        if self.statistics:
            return "statistics"
        return (
            "fuse" if "->" in self.name else "methods" if self.name.count(" ") > 1 else "resample"
        )

    @property
    def sparse(self) -> bool:
        return self.result == "sparse mean"

    @property
    def total(self) -> int:
        return self.clouds * self.points

    @property
    def volume(self) -> int:
        return math.prod(self.shape)

    def _all(self, kind: str) -> list[Any]:
        return [array for k, array in self._arrays if k == kind]

    def data(self, torch: Any = None, device: str = "cpu") -> tuple[Any, ...]:
        """Return values and times of each stream, and query times; or points, features or None,
        offsets
        or None; or only values. Tensors if torch is passed, else NumPy arrays.
        """

        def convert(array: Any) -> Any:
            of_bf16 = array.dtype == np.int16
            if torch is not None:
                array = torch.from_numpy(array).to(device)
                array = array.view(torch.bfloat16) if of_bf16 else array
            elif of_bf16:
                raise SystemExit("peers.py: NumPy has no bf16; choose f16, f32 or f64 on the CPU")
            if self.voxels or self.statistics or len(array) == self.batch:
                return array
            return array[np.arange(self.batch) % len(array)]

        if self.voxels:
            kinds = ("points", "features", "offsets")
            return tuple(convert(found[0]) if (found := self._all(k)) else None for k in kinds)
        if self.statistics:
            return (convert(self._all("values")[0]),)
        values, times = ([convert(a) for a in self._all(kind)] for kind in ("values", "times"))
        return values, times, convert(self._all("query_times")[0])
