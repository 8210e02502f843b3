"""A pipeline file ready for use: its streams, its windows, and the times of its rows."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .._windows.spec import WindowSpec
from .._windows.transform import Transform
from .._windows.window import Window
from .image_plan import ImagePlan
from .sources import TICKS, StreamPlan, ticks_of_seconds
from .statistics import normalization_of


@dataclass(frozen=True, eq=False)
class Plan:
    """The content of a document, as objects of the operations."""

    document: Mapping[str, Any]

    @functools.cached_property
    def period(self) -> int:
        """Nanoseconds between two rows. Both sides add it, so their times are equal."""
        rate: float = self.document["clock"]["rate"]
        return max(1, round(TICKS / rate))

    @functools.cached_property
    def lag(self) -> int:
        return ticks_of_seconds(self.document["clock"]["lag"])

    @property
    def dtype(self) -> str:
        dtype: str = self.document["clock"]["dtype"]
        return dtype

    @property
    def has_arrivals(self) -> bool:
        """Whether a row uses only samples that had arrived."""
        return bool(self.document["clock"]["availability"] == "arrival")

    @functools.cached_property
    def observed(self) -> tuple[str, ...]:
        """The windows that the robot computes: without future rows, and not the actions."""
        actions = self.document["actions"]
        acted = None if actions is None else actions["window"]
        return tuple(
            name
            for name, window in self.document["windows"].items()
            if name != acted and max(window["offsets"]) <= 0
        )

    @functools.cached_property
    def streams(self) -> dict[str, StreamPlan]:
        """The streams that windows use, in the order of the file."""
        used = {window["stream"] for window in self.document["windows"].values()}
        return {
            name: StreamPlan.from_entry(name, entry, self.dtype)
            for name, entry in self.document["streams"].items()
            if name in used
        }

    @functools.cached_property
    def seen(self) -> dict[str, StreamPlan]:
        """The streams that the robot sees. The others are labels, known only in training."""
        names = {self.document["windows"][name]["stream"] for name in self.observed}
        return {name: stream for name, stream in self.streams.items() if name in names}

    @functools.cached_property
    def reach(self) -> int:
        """The rows before the newest one that the robot's windows have."""
        windows = self.document["windows"]
        return max((-min(windows[name]["offsets"]) for name in self.observed), default=0)

    @functools.cached_property
    def images(self) -> dict[str, ImagePlan]:
        """The images of the file, in its order."""
        entries = self.document["images"]
        return {name: ImagePlan.from_entry(name, entry) for name, entry in entries.items()}

    def image(self, name: str) -> ImagePlan:
        """Return an image by its name."""
        if name not in self.document["images"]:
            known = ", ".join(map(repr, self.document["images"])) or "none"
            raise ValueError(f"image: is {name!r}, expected one of the pipeline's: {known}")
        return self.images[name]

    def spec(self, *, normalized: bool = True, only: tuple[str, ...] | None = None) -> WindowSpec:
        """Return the windows; ``only``: some of them."""
        entries = self.document["windows"]
        normalization = self.document["normalization"]
        chosen = tuple(entries) if only is None else only
        made = {}
        for name in chosen:
            entry = entries[name]
            own = normalization_of(normalization[name], self.dtype) if normalized else None
            made[name] = Window(
                entry["offsets"],
                track=entry["stream"],
                outside=entry["outside"],
                fill_value=float(self.document["streams"][entry["stream"]]["fill"]),
                missing="nan",
                transforms=[transform_of(each) for each in entry["transforms"]],
                normalization=own,
            )
        anchor = next((name for name in chosen if name in self.observed), None)
        return WindowSpec(made, anchor=anchor, dtype=self.dtype)


def transform_of(entry: Mapping[str, Any]) -> Transform:
    reference = entry["reference"]
    return Transform(
        entry["kind"],
        entry["begin"],
        entry["count"],
        reference=(reference["window"], reference["index"]),
        reference_begin=entry["reference_begin"],
        rotation=entry["rotation"],
        reference_rotation=entry["reference_rotation"],
        out_rotation=entry["out_rotation"],
    )
