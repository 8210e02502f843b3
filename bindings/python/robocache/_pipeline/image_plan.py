"""The images of a pipeline: the operations of the file as one call of :func:`robocache.images`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .._printable import kind_of
from .strict_json import step

FLIPS = {"left_right": 1, "up_down": 2, "both": 3}
FORMULAS = {
    "unit": "x / 255",
    "symmetric": "x / 255 * 2 - 1",
    "symmetric_255": "x / 127.5 - 1",
    "mean_std": "x / 255",
}
COLOR_STEPS = ("brightness", "contrast", "saturation")
_HUE = 3  # the number of the step that no file has


@dataclass(frozen=True, eq=False)
class ImagePlan:
    """One entry of ``images``, ready for use."""

    name: str
    source: Mapping[str, Any]
    frame_shape: tuple[int, int, int]  # height, width and channels of the frames
    size: tuple[int, int]  # of the images
    is_resized: bool
    options: Mapping[str, Any]  # of images(), the same for every frame
    box: list[int] | None
    flip: int | None
    colors: list[float] | None
    color_order: list[int] | None

    @classmethod
    def from_entry(cls, name: str, entry: Mapping[str, Any]) -> ImagePlan:
        operations = {operation["kind"]: operation for operation in entry["operations"]}
        height, width = entry["size"]
        channels = entry["channels"]
        layout = operations["layout"]
        options: dict[str, Any] = {"layout": layout["layout"], "dtype": layout["dtype"]}
        box = operations["crop"]["box"] if "crop" in operations else None
        size = (height, width) if box is None else (box[2], box[3])
        if "resize" in operations:
            resize = operations["resize"]
            size = tuple(resize["size"])
            options.update({key: resize[key] for key in ("rule", "filter", "fit")})
        if "pad" in operations:
            pad = operations["pad"]
            options.update(pad_anchor=pad["anchor"], pad_value=pad["value"])
        if "table" in operations:
            options["table"] = _table(operations["table"], channels)
        options["color_first"] = entry["operations"][0]["kind"] == "color"
        colors = operations.get("color")
        return cls(
            name=name,
            source=entry["source"],
            frame_shape=(height, width, channels),
            size=size,
            is_resized="resize" in operations,
            options=options,
            box=box,
            flip=FLIPS[operations["flip"]["axes"]] if "flip" in operations else None,
            colors=None if colors is None else _factors(colors),
            color_order=None if colors is None else _order(colors),
        )

    @property
    def place(self) -> str:
        """The JSON pointer of the image."""
        return f"/images{step(self.name)}"

    @property
    def topic(self) -> str | None:
        topic: str | None = self.source.get("topic")
        return topic

    def require_frame(self, frame: Any) -> None:
        """Raise if one frame [H,W,C] does not have the shape of the file."""
        if frame.shape != self.frame_shape:
            raise ValueError(
                f"{self.place}/size: {list(self.frame_shape[:2])}; the frame has the shape "
                f"{list(frame.shape)}, expected {list(self.frame_shape)}"
            )

    def apply(self, frames: Any, draws: Any = None, out: Any = None, backend: Any = None) -> Any:
        """Return the images of frames [n,H,W,C], or of a list of such arrays."""
        from .._operations.images import images

        count = self._count(frames)
        options: dict[str, Any] = dict(self.options)
        if self.box is not None:
            options.update(boxes=self.box, crop_size=tuple(self.box[2:]))
        if self.flip is not None:
            options["flips"] = [self.flip] * count
        if self.colors is not None:
            options["colors"] = [self.colors] * count
            options["color_order"] = [self.color_order] * count
        if draws is not None:
            self._replace(options, draws)
        if count == 0:  # an empty list has no second dimension
            for name in ("flips", "colors", "color_order"):
                options.pop(name, None)
        return images(frames, self.size, out=out, backend=backend, **options)

    def _replace(self, options: dict[str, Any], draws: Any) -> None:
        """Replace the fixed crop, flip and colours by those that were drawn."""
        from .._operations.image_draws import ImageDraws

        if not isinstance(draws, ImageDraws):
            raise TypeError(f"draws: is {kind_of(draws)}, expected the result of image_draws")
        if draws.boxes is not None:
            if not self.is_resized and draws.crop_size != self.size:
                crop = None if draws.crop_size is None else list(draws.crop_size)
                raise ValueError(
                    f"draws: has crops of {crop or 'several sizes'}, expected {list(self.size)}: "
                    f"{self.place}/operations has no resize"
                )
            options.pop("crop_size", None)
        if draws.colors is not None:
            options.pop("color_order", None)
        options.update(draws.options())

    def _count(self, frames: Any) -> int:
        """Return the number of frames; refuse frames with a shape that the file does not have."""
        from .._arguments.arrays import shape_of

        arrays = list(frames) if isinstance(frames, (list, tuple)) else [frames]
        count = 0
        for number, array in enumerate(arrays):
            name = "frames" if array is frames else f"frames[{number}]"
            shape = tuple(shape_of(array, name))
            if len(shape) != 4 or shape[1:] != self.frame_shape:
                height, width, channels = self.frame_shape
                key, value = "size", f"[{height}, {width}]"
                if len(shape) == 4 and shape[1:3] == (height, width):
                    key, value = "channels", f"{channels}"
                raise ValueError(
                    f"{self.place}/{key}: {value}; {name} has the shape {list(shape)}, expected "
                    f"[n, {height}, {width}, {channels}]"
                )
            count += int(shape[0])
        return count


def _table(operation: Mapping[str, Any], channels: int) -> Any:
    from .._operations.images import normalization_table

    formula = FORMULAS[operation["form"]]
    return normalization_table(
        formula, mean=operation["mean"], std=operation["std"], channels=channels
    )


def _factors(operation: Mapping[str, Any]) -> list[float]:
    """Return brightness, contrast, saturation and hue; NaN leaves a step out."""
    none = float("nan")
    factors = [operation[key] for key in COLOR_STEPS]
    return [*(none if factor is None else float(factor) for factor in factors), none]


def _order(operation: Mapping[str, Any]) -> list[int]:
    return [*(COLOR_STEPS.index(key) for key in operation["order"]), _HUE]
