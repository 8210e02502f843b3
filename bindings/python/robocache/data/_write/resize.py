"""How frames are resized before they are written: a size, options of ``images``, or a preset."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Union

from ..._library.errors import shown
from ..._operations.image_presets import ImagePreset, image_preset
from ..._operations.images import ImageSize, images, size_of
from ..._suggestions import did_you_mean
from .._errors import some

OPTIONS = ("size", "rule", "filter", "fit", "pad_anchor", "pad_value")
CAMERA = "observation.images."

#: a size, options of images, a preset, or the name of one
ResizeArgument = Union[ImageSize, Mapping[str, Any], ImagePreset, str]


class Resize:
    """Resizes frames [h,w,3] of uint8 with the bits of a rule of ``images``."""

    def __init__(self, argument: Any, argument_name: str) -> None:
        self._preset: ImagePreset | None = None
        self._options: dict[str, Any] = {}
        self.argument = argument  # for functions that take one
        if isinstance(argument, str):
            try:
                argument = image_preset(argument)
            except ValueError as error:
                raise ValueError(f"{argument_name}: {error}") from None
        if isinstance(argument, ImagePreset):
            self._preset = argument
            return
        options = dict(argument) if isinstance(argument, Mapping) else {"size": argument}
        for name in options:
            if name not in OPTIONS:
                near = did_you_mean(name, OPTIONS)
                raise TypeError(
                    f"{argument_name}: has {name!r}, expected one of {some(OPTIONS)}{near}"
                )
        if options.get("size") is None:
            raise TypeError(f"{argument_name}: has no 'size', expected height and width, or an int")
        self._options = {**options, "size": size_of(options["size"], f"{argument_name}: size")}
        self._require_rule()

    def _require_rule(self) -> None:
        """Refuse a rule without this filter, and other options, before anything is read."""
        import numpy as np

        probe = {**self._options, "size": 1}
        images(np.zeros((1, 2, 2, 3), np.uint8), dtype="uint8", **probe)

    def size_of(self, height: int, width: int) -> tuple[int, int]:
        """Return the height and the width that frames of a size get."""
        if self._preset is not None:
            return self._preset.output_size((height, width))
        high, wide = self._options["size"]
        return high, wide

    def __call__(self, frame: Any) -> Any:
        """Return a frame [h,w,3] in the new size."""
        if self._preset is not None:
            return self._preset(frame[None], dtype="uint8", layout="hwc")[0]
        return images(frame[None], dtype="uint8", layout="hwc", **self._options)[0]

    @property
    def facts(self) -> dict[str, Any]:
        """The options, as JSON holds them."""
        if self._preset is not None:
            return {"preset": self._preset.name, "size": self._preset.size}
        return {"rule": "pillow", "filter": "bilinear", "fit": "stretch", **self._options}

    def __str__(self) -> str:
        if self._preset is not None:
            return f"the preset {self._preset.name}"
        facts = self.facts
        fit = "" if facts["fit"] == "stretch" else f", {facts['fit']}"
        return f"the rule {facts['rule']} with {facts['filter']}{fit}"


def resize_of(argument: Any, argument_name: str) -> Resize | None:
    """Return the resize that an argument describes; None for None."""
    return None if argument is None else Resize(argument, argument_name)


def resizes_of(argument: Any, cameras: Collection[str], argument_name: str) -> dict[str, Resize]:
    """Return the resize of each camera that an argument names, by the name of its feature.

    ``argument``: one resize for all cameras, or a mapping from cameras to resizes. A camera may be
    named without "observation.images.".
    """
    if argument is None:
        return {}
    if not cameras:
        raise ValueError(f"{argument_name}: the data set has no camera")
    by_camera = isinstance(argument, Mapping) and not set(argument) & set(OPTIONS)
    if not by_camera:
        return dict.fromkeys(cameras, Resize(argument, argument_name))
    found: dict[str, Resize] = {}
    for name, value in argument.items():
        fits = [camera for camera in cameras if camera in (name, f"{CAMERA}{name}")]
        if not fits:
            near = did_you_mean(name, [*cameras, *(c.removeprefix(CAMERA) for c in cameras)])
            text = f"{argument_name}: no such camera {shown(name)}, expected one of "
            raise KeyError(f"{text}{some(list(cameras))}{near}")
        found[fits[0]] = Resize(value, f"{argument_name}[{name!r}]")
    return found


def resized_shape(entry: Mapping[str, Any], resize: Resize) -> list[int]:
    """Return the shape of a camera in ``info.json``; it may have the channels first."""
    shape = [int(side) for side in entry["shape"]]
    names = [str(name) for name in entry.get("names") or ()]
    first = names[:1] in (["channel"], ["channels"]) or (
        not names and shape[0] in (1, 3) and shape[-1] not in (1, 3)
    )
    if first:
        return [shape[0], *resize.size_of(shape[1], shape[2])]
    return [*resize.size_of(shape[0], shape[1]), *shape[2:]]
