"""How the frames of a camera become the images of a window."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .._arguments.options import code_of, number
from .._library.dtypes import dtype_name
from .._library.errors import REFUSALS, shown
from .._operations.image_draws import ColorJitter
from .._operations.image_presets import image_preset, image_presets
from .._operations.images import (
    ANCHORS,
    FILTERS,
    FILTERS_OF,
    FITS,
    LAYOUTS,
    RULES,
    ImageFilter,
    ImageFit,
    ImageLayout,
    ImageRule,
    ImageSize,
    PadAnchor,
    normalization_table,
    size_of,
)
from .._printable import plural
from .._suggestions import did_you_mean
from .image_steps import ImageSteps, planned

if TYPE_CHECKING:
    pass

_IMAGENET: dict[str, Any] = {"mean": (0.485, 0.456, 0.406), "std": (0.229, 0.224, 0.225)}
_UNIT = "x / 255"
_Size = tuple[int, int]
_Stage = dict[str, Any]  # arguments of images()
_DTYPES = ("uint8", "float16", "bfloat16", "float32", "float64")


@dataclass(frozen=True, eq=False, init=False, repr=False)
class Images:
    """The images of one camera in a :class:`Window`: crop, resize, augmentation, normalization.

    A frame goes through these steps: ``store``, crop, resize, flip, colours, padding,
    normalization. The same description serves training and the robot: :meth:`eval` gives it without
    anything random, and is itself a function of frames.

    Random crops, flips and colours depend only on the seed and the epoch of the loader, the row of
    the sample and the camera, so the number of ranks, the batch size and a resumed run change
    nothing. All frames of a window have the same crop, flip and colours.

    Parameters
    ----------
    camera
        Name of the camera in the episodes: see :attr:`Episodes.cameras`. None: the track of the
        window, or its name.
    size
        Height and width of the images, or one int for both. None: the size of the crop or of the
        frames.
    fit, rule, filter, pad_anchor, pad_value
        How frames are resized: see :func:`images`.
    crop
        A random crop before the resize: a float, the part of both sides, such as 0.95; or height
        and width; or "area", as torchvision's ``RandomResizedCrop``, with ``area`` and ``ratio``.
        For a ``model``: "random", a crop at a random place of the size that the model's evaluation
        crops from the centre. None: no crop, or the centre that the model takes.
    area, ratio
        Ranges of the share of the frame's area and of width / height, for ``crop="area"``.
    flip
        Probability of a flip left-right.
    augment
        Random colours.
    color_first
        Whether colours change the whole frame, before the crop, as in LeRobot.
    normalize
        "imagenet", a formula of :func:`normalization_table`, or a table [C,256] of the value of
        each byte. None: "x / 255".
    model
        The preprocessing of a project: a name of :func:`image_presets`. It replaces ``size``,
        ``fit``, ``rule``, ``filter`` and ``normalize``; ``size`` may change its size.
    store
        Which frames a cache stores: "full", or height and width to which frames are resized, by
        ``rule`` and ``filter``, before every other step, also without a cache. None: the largest
        part of the steps that is the same in every epoch, which changes no bit. "none": nothing.
    convert
        "RGB": frames with alpha, palettes, CMYK or 16 bits become RGB. None: they are an error.
    rotate
        True: frames are turned as a video says, by a multiple of 90 degrees. False: such a video is
        an error.
    max_age
        The longest time from a frame to its row, for cameras of recordings, in seconds. None: no
        limit.
    layout
        "chw" or "hwc".
    dtype
        "uint8", which is not normalized, or any float. None: float32 on the CPU, bfloat16 on CUDA.

    Raises
    ------
    ValueError
        A name is not known, or a value is out of range.
    TypeError
        An argument has a wrong type.

    Examples
    --------
    >>> import numpy as np
    >>> import robocache as rbc
    >>> color = rbc.ColorJitter(brightness=0.2)
    >>> front = rbc.Images("front", (24, 32), crop=0.9, augment=color, normalize="imagenet")
    >>> frames = np.zeros((2, 48, 64, 3), np.uint8)
    >>> front.eval()(frames).shape
    (2, 3, 24, 32)
    """

    camera: str | None
    size: _Size | None
    fit: ImageFit
    rule: ImageRule
    filter: ImageFilter
    pad_anchor: PadAnchor
    pad_value: Any
    crop: Any
    area: tuple[float, float]
    ratio: tuple[float, float]
    flip: float
    augment: ColorJitter | None
    color_first: bool
    normalize: Any
    model: str | None
    store: Any
    convert: str | None
    rotate: bool
    max_age: float | None
    layout: ImageLayout
    dtype: Any
    random: bool  #: False for the result of :meth:`eval`

    def __init__(
        self,
        camera: str | None = None,
        size: ImageSize | None = None,
        *,
        fit: ImageFit = "stretch",
        rule: ImageRule = "pillow",
        filter: ImageFilter = "bilinear",  # noqa: A002
        pad_anchor: PadAnchor = "center",
        pad_value: float | Sequence[float] = 0,
        crop: Any = None,
        area: Sequence[float] = (0.08, 1.0),
        ratio: Sequence[float] = (3 / 4, 4 / 3),
        flip: float = 0.0,
        augment: ColorJitter | None = None,
        color_first: bool = False,
        normalize: Any = None,
        model: str | None = None,
        store: Any = None,
        convert: str | None = None,
        rotate: bool = False,
        max_age: float | None = None,
        layout: ImageLayout = "chw",
        dtype: Any = None,
    ) -> None:
        if camera is not None and not isinstance(camera, str):
            raise TypeError(f"camera: is {shown(camera)}, expected a name")
        if augment is not None and not isinstance(augment, ColorJitter):
            raise TypeError(f"augment: is {shown(augment)}, expected a robocache.ColorJitter")
        if augment is not None:
            augment.ranges()
        if convert not in (None, "RGB"):
            raise ValueError(f"convert: is {shown(convert)}, expected 'RGB' or None")
        if max_age is not None and not number(max_age, "max_age") >= 0:
            raise ValueError(f"max_age: is {max_age}, expected 0 or more seconds")
        for known, value, name in (
            (FITS, fit, "fit"),
            (RULES, rule, "rule"),
            (FILTERS, filter, "filter"),
            (ANCHORS, pad_anchor, "pad_anchor"),
            (LAYOUTS, layout, "layout"),
        ):
            code_of(known, value, name)
        if filter not in FILTERS_OF[rule]:
            known_filters = ", ".join(map(repr, FILTERS_OF[rule]))
            raise ValueError(
                f"filter: is {filter!r}, which the rule {rule!r} does not have; expected one of "
                f"{known_filters}"
            )
        if not 0 <= number(flip, "flip") <= 1:
            raise ValueError(f"flip: is {flip}, expected a probability of 0 to 1")
        self.__dict__.update(
            camera=camera,
            size=None if size is None else size_of(size, "size"),
            fit=fit,
            rule=rule,
            filter=filter,
            pad_anchor=pad_anchor,
            pad_value=pad_value,
            crop=_checked_crop(crop, model),
            area=_checked_range(area, "area"),
            ratio=_checked_range(ratio, "ratio"),
            flip=float(flip),
            augment=augment,
            color_first=_checked_bool(color_first, "color_first"),
            normalize=normalize,
            model=model,
            store=_checked_store(store),
            convert=convert,
            rotate=_checked_bool(rotate, "rotate"),
            max_age=None if max_age is None else float(max_age),
            layout=layout,
            dtype=None if dtype is None else _checked_dtype(dtype),
            random=True,
        )
        if model is not None:
            self._require_only_model()
            image_preset(_checked_model(model), size=self.size)
        elif not isinstance(normalize, (str, type(None))):
            try:
                channels = len(normalize)
            except REFUSALS:
                raise TypeError(
                    f"normalize: is {shown(normalize)}, expected a formula or a table [C,256]"
                ) from None
            self._table(channels)
        else:
            self._table(3)

    def _require_only_model(self) -> None:
        for name in ("fit", "rule", "filter", "pad_anchor", "pad_value", "normalize"):
            if not _is_default(name, getattr(self, name)):
                raise ValueError(f"{name}: only valid without a model, which determines it")

    def eval(self) -> Images:
        """Return the images without random steps, for evaluation and for the robot.

        Crops become the centre of the same size, rounded down; crops of random areas take the whole
        frame. Everything that ``store`` changes stays.
        """
        made = object.__new__(Images)
        made.__dict__.update({**self.__dict__, "random": False})
        return made

    @property
    def source_options(self) -> dict[str, Any]:
        """The options of how frames are read."""
        return {"convert": self.convert, "rotate": self.rotate, "max_age": self.max_age}

    @property
    def missing(self) -> tuple[str, ...]:
        """Random steps of the model's own training that robocache does not have."""
        return () if self.model is None else image_preset(self.model).missing

    def __call__(self, frames: Any, *, out: Any = None, backend: Any = None) -> Any:
        """Make the images of frames [n,H,W,C] of uint8, as :meth:`eval` describes them.

        Returns
        -------
        array [n,C,h,w], or [n,h,w,C] with the layout "hwc"
            In the library of ``frames``; ``out``, if that is given.
        """
        shape = tuple(frames.shape)
        if len(shape) != 4:
            raise ValueError(f"frames: shape is {list(shape)}, expected [n,H,W,C]")
        return self.steps(shape[1:]).apply(frames, out=out, backend=backend)

    def steps(self, frame_shape: Sequence[int]) -> ImageSteps:
        """Return the calls of :func:`images` for frames [H,W,C].

        Raises
        ------
        ValueError
            The frames are too small for the crop, or have another number of channels than the
            normalization.
        """
        return planned(self, tuple(map(int, frame_shape)))

    def _table(self, channels: int) -> Any:
        import numpy as np

        if self.dtype is not None and str(self.dtype).rpartition(".")[2] == "uint8":
            return None
        if self.model is not None:
            return image_preset(self.model).table
        if self.normalize is None or isinstance(self.normalize, str):
            options: dict[str, Any] = {"formula": self.normalize or _UNIT}
            if self.normalize == "imagenet":
                if channels != 3:
                    raise ValueError(
                        f"normalize: is 'imagenet', but frames have {plural(channels, 'channel')}"
                    )
                options = _IMAGENET
            try:
                return normalization_table(channels=channels, **options)
            except ValueError as error:
                raise ValueError(f"normalize: {error}") from None
        table = np.asarray(self.normalize)
        if table.shape != (channels, 256):
            raise ValueError(f"normalize: shape is {list(table.shape)}, expected [{channels},256]")
        return table

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Images):
            return NotImplemented
        same: bool = _comparable(self) == _comparable(other)
        return same

    def __hash__(self) -> int:
        return hash(str(_comparable(self)))

    def __repr__(self) -> str:
        parts = [] if self.camera is None else [repr(self.camera)]
        for each in dataclasses.fields(self)[1:-1]:
            value = getattr(self, each.name)
            if not _is_default(each.name, value):
                shape = getattr(value, "shape", None)
                text = repr(value) if shape is None else f"<array {list(shape)}>"
                parts.append(f"{each.name}={text}")
        return f"Images({', '.join(parts)}){'' if self.random else '.eval()'}"


_DEFAULTS: dict[str, Any] = {
    name: tuple(value) if isinstance(value, (list, tuple)) else value
    for name, value in {"size": None, **(Images.__init__.__kwdefaults__ or {})}.items()
}


def _is_default(name: str, value: Any) -> bool:
    default = _DEFAULTS[name]
    plain = isinstance(value, (str, int, float, tuple))
    is_equal: bool = plain and value == default
    return value is default or is_equal


def _comparable(spec: Images) -> Any:
    values = dict(spec.__dict__)
    if hasattr(values["normalize"], "tolist"):
        values["normalize"] = values["normalize"].tolist()
    return values


def _checked_crop(crop: Any, model: str | None) -> Any:
    if crop is None or (model is None and isinstance(crop, str) and crop == "area"):
        return crop
    if model is not None:
        if not (isinstance(crop, str) and crop == "random"):
            raise ValueError(f"crop: is {shown(crop)}, expected 'random' or None for a model")
        return crop
    if isinstance(crop, float):
        if not 0 < crop <= 1:
            raise ValueError(f"crop: is {crop}, expected a part of more than 0, at most 1")
        return crop
    if isinstance(crop, str):
        raise ValueError(f"crop: is {shown(crop)}, expected 'area', a size or a fraction")
    return size_of(crop, "crop")


def _checked_range(values: Any, name: str) -> tuple[Any, ...]:
    """Return a range as a tuple; its numbers are checked where a crop uses them."""
    try:
        return tuple(values)
    except REFUSALS:
        raise TypeError(f"{name}: is {shown(values)}, expected two numbers") from None


def _checked_bool(value: Any, name: str) -> bool:
    if isinstance(value, bool) or type(value).__name__ in ("bool", "bool_"):
        return bool(value)
    raise TypeError(f"{name}: is {shown(value)}, expected True or False")


def _checked_dtype(dtype: Any) -> str:
    name = dtype_name(dtype)
    if name not in _DTYPES:
        raise TypeError(f"dtype: is {name}, expected uint8 or a float")
    return name


def _checked_model(model: Any) -> str:
    names = image_presets()
    if isinstance(model, str) and model in names:
        return model
    expected = ", ".join(map(repr, names))
    near = did_you_mean(model, names)
    raise ValueError(f"model: is {shown(model)}, expected one of {expected}{near}")


def _checked_store(store: Any) -> Any:
    if store is None:
        return None
    if isinstance(store, str):
        if store not in ("full", "none"):
            raise ValueError(f"store: is {shown(store)}, expected 'full', 'none' or a size")
        return store
    return size_of(store, "store")
