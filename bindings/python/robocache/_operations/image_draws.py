"""Random boxes, flips and colours for images."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Literal, Union, overload

from .. import _core
from .._arguments.arrays import shape_of
from .._arguments.call import array_of, begin, finished
from .._arguments.options import number, struct_of
from .._library.errors import REFUSALS, shown
from .._typing import Array
from .images import ImageSize, size_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray
    from typing_extensions import TypedDict, Unpack

    from .._library.context import Context

    class _DrawsOptions(TypedDict, total=False):
        epoch: int
        camera: int
        crop: float | ImageSize | Literal["area"] | None
        area: Sequence[float]
        ratio: Sequence[float]
        flip: float
        color: ColorJitter | None
        random_order: bool
        backend: str | Context | None


Range = Union[float, "Sequence[float]", None]

_CROPS = {
    name: getattr(_core, f"IMAGES_CROP_{name.upper()}")
    for name in ("none", "fixed", "fraction", "area")
}
_STEPS = ("brightness", "contrast", "saturation", "hue")
_new, *_setters = struct_of(
    "ImageDrawsParams",
    *("seed", "epoch", "camera", "crop", "frame_height", "frame_width"),
    *("crop_height", "crop_width", "crop_fraction", "area", "ratio", "flip_probability"),
    *_STEPS,
)
_set_seed, _set_epoch, _set_camera, _set_crop, _set_height, _set_width, *_more = _setters
_set_crop_height, _set_crop_width, _set_fraction, _set_area, _set_ratio, *_rest = _more
_set_flip, *_set_steps = _rest


@dataclass(frozen=True)
class ColorJitter:
    """Random colours, with the arguments of torchvision's class: for :func:`image_draws`.

    A number f is the range [max(0, 1 - f), 1 + f], or [-f, f] of hue; two numbers are the range
    itself. None leaves a step out.

    Examples
    --------
    >>> import robocache as rbc
    >>> rbc.ColorJitter(brightness=0.2, contrast=(0.8, 1.2)).ranges()
    ((0.8, 1.2), (0.8, 1.2), None, None)
    """

    brightness: Range = None  #: range of the factor
    contrast: Range = None  #: range of the factor
    saturation: Range = None  #: range of the factor
    hue: Range = None  #: range of the turn, at most -0.5 to 0.5; a number f is [-f, f]

    def ranges(self) -> tuple[tuple[float, float] | None, ...]:
        """Return the range of each step, or None: brightness, contrast, saturation, hue.

        Raises
        ------
        ValueError
            A range is not valid.
        TypeError
            A value is not a number.
        """
        return tuple([_range_of(getattr(self, name), name) for name in _STEPS])


def _range_of(value: Any, name: str) -> tuple[float, float] | None:
    if value is None or (type(value) in (int, float) and value == 0):
        return None
    try:
        low, high = value
    except REFUSALS:
        f = number(value, name)
        if not f >= 0:
            raise ValueError(f"{name}: is {f}, expected 0 or more, or a range") from None
        return (-f, f) if name == "hue" else (max(0.0, 1 - f), 1 + f)
    return number(low, name), number(high, name)


@dataclass(frozen=True, eq=False)
class ImageDraws(Generic[Array]):
    """The result of :func:`image_draws`. What was not drawn is None."""

    boxes: Array | None  #: [B,4] of int64: y, x, height, width
    flips: Array | None  #: [B] of uint8: 1 left-right, else 0
    colors: Array | None  #: [B,4] of float32: brightness, contrast, saturation, hue
    color_order: Array | None  #: [B,4] of uint8: the steps in their order
    crop_size: tuple[int, int] | None  #: height and width of all boxes, if they are the same

    def options(self) -> dict[str, Any]:
        """Return the draws as arguments of :func:`images`: ``images(frames, 224, **options)``."""
        fields = ("boxes", "flips", "colors", "color_order", "crop_size")
        return {name: getattr(self, name) for name in fields if getattr(self, name) is not None}


# The dtypes of the results differ from the dtype of the samples.
@overload
def image_draws(
    samples: NDArray[Any],
    frame_size: ImageSize | None = ...,
    *,
    seed: int,
    **options: Unpack[_DrawsOptions],
) -> ImageDraws[NDArray[Any]]: ...
@overload
def image_draws(
    samples: Array,
    frame_size: ImageSize | None = ...,
    *,
    seed: int,
    **options: Unpack[_DrawsOptions],
) -> ImageDraws[Array]: ...
def image_draws(
    samples: Any,
    frame_size: Any = None,
    *,
    seed: int,
    epoch: int = 0,
    camera: int = 0,
    crop: Any = None,
    area: Any = (0.08, 1.0),
    ratio: Any = (3 / 4, 4 / 3),
    flip: float = 0.0,
    color: ColorJitter | None = None,
    random_order: bool = True,
    backend: Any = None,
) -> Any:
    """Draw random boxes, flips and colours for :func:`images`.

    A draw depends only on the seed, the epoch, the number of the sample and the camera. So the
    number of workers and ranks, the size of batches and a resumed run change nothing, and the
    result is the same on the CPU and on CUDA, bit for bit.

    Parameters
    ----------
    samples : array [B] of int32 or int64
        Number of each sample, such as its row in the data set. A sample that occurs again in an
        epoch adds 2**40 for each time before.
    frame_size
        Height and width of the frames, or one int for both. Needed for a crop.
    seed
        An int of 64 bits.
    epoch
        Number of the epoch, modulo 2**32.
    camera
        Number of the camera, 0 to 2**24 - 1, such as its index in the sorted names. Cameras with
        the same number have the same draws.
    crop
        Two ints: height and width of a box at a random place; a float: the fraction of both sides;
        "area": as torchvision's ``RandomResizedCrop``, with ``area`` and ``ratio``. None: no boxes.
    area, ratio
        Ranges of the share of the frame's area, and of width / height, for the crop "area".
    flip
        Probability of a flip left-right.
    color
        Random colours.
    random_order
        Whether the order of the colours' steps is random, as in torchvision.
    backend
        Device to compute on. None: the device of the samples. "cpu", "cuda" and "cuda:N" require
        the samples to be there; a :class:`Context` is used directly.

    Returns
    -------
    ImageDraws
        Its arrays are from the library of ``samples``, on its device. On CUDA the work is enqueued
        on that library's current stream.

    Raises
    ------
    ValueError
        A value, a shape or a device is invalid. The message begins with the argument's name.
    TypeError
        A dtype is not supported, or an argument is not an array.
    MemoryError
        Not enough memory.
    RoboCacheError
        The device is not available, or a CUDA error occurred.

    Examples
    --------
    >>> import numpy as np
    >>> import robocache as rbc
    >>> color = rbc.ColorJitter(brightness=0.2)
    >>> draws = rbc.image_draws(np.arange(2), (480, 640), seed=7, crop=0.95, flip=0.5, color=color)
    >>> draws.crop_size, draws.boxes.shape, draws.colors.shape
    ((456, 608), (2, 4), (2, 4))
    >>> frames = np.zeros((2, 480, 640, 3), np.uint8)
    >>> rbc.images(frames, 224, **draws.options()).shape
    (2, 3, 224, 224)
    """
    framework, context, ordered, _ = begin(samples, "samples", backend)
    params = _new()
    _set_seed(params, _signed(seed, "seed"))
    _set_epoch(params, _signed(epoch, "epoch"))
    try:
        _set_camera(params, operator.index(camera))
    except OverflowError:
        raise ValueError(f"camera: is {camera}, expected 0 to 2**24 - 1") from None
    except REFUSALS:
        raise TypeError(f"camera: is {shown(camera)}, expected an int") from None
    crop_size = _add_crop(params, crop, frame_size)
    if crop is not None:
        _set_area(params, _pair(area, "area"))
        _set_ratio(params, _pair(ratio, "ratio"))
    _set_flip(params, number(flip, "flip"))
    if color is not None:
        if not isinstance(color, ColorJitter):
            raise TypeError(f"color: is {shown(color)}, expected a ColorJitter")
        for put, limits in zip(_set_steps, color.ranges()):
            if limits is not None:
                put(params, list(limits))
    sample_array: Any = array_of(framework, samples, "samples", samples)
    batch = tuple(shape_of(sample_array, "samples", context)[:1])

    def empty(drawn: bool, shape: tuple[int, ...], dtype: str) -> Any:
        return framework.empty(samples, shape, dtype, context) if drawn else None

    results = (
        empty(crop is not None, (*batch, 4), "int64"),
        empty(flip != 0, batch, "uint8"),
        empty(color is not None, (*batch, 4), "float32"),
        empty(color is not None and random_order, (*batch, 4), "uint8"),
    )
    _core.rbc_image_draws(context._handle, sample_array, *results, params)
    arrays = finished(framework, context, ordered, "samples", None, results)
    boxes, flips, colors, color_order = arrays
    return ImageDraws(boxes, flips, colors, color_order, crop_size)


def _signed(value: Any, name: str) -> int:
    """Return an int of 64 bits; its bits are the same if it is unsigned."""
    try:
        whole = operator.index(value)
    except REFUSALS:
        raise TypeError(f"{name}: is {shown(value)}, expected an int") from None
    if not -(2**63) <= whole < 2**64:
        raise ValueError(f"{name}: is {whole}, expected an int of 64 bits")
    return whole - 2**64 if whole >= 2**63 else whole


def _pair(value: Any, name: str) -> list[float]:
    try:
        low, high = value
    except REFUSALS:
        raise TypeError(f"{name}: is {shown(value)}, expected two numbers") from None
    return [number(low, name), number(high, name)]


def _add_crop(params: Any, crop: Any, frame_size: Any) -> tuple[int, int] | None:
    """Set the fields of the crop; return the size of the boxes, if it is the same for all."""
    if crop is None:
        return None
    if frame_size is None:
        raise TypeError("frame_size: is None, expected height and width for a crop")
    height, width = size_of(frame_size, "frame_size")
    _set_height(params, height)
    _set_width(params, width)
    if isinstance(crop, str):
        if crop != "area":
            raise ValueError(f"crop: is {shown(crop)}, expected 'area', a size or a fraction")
        _set_crop(params, _CROPS["area"])
        return None
    if isinstance(crop, float):
        _set_crop(params, _CROPS["fraction"])
        _set_fraction(params, crop)
        if not 0 < crop <= 1:
            return None  # the library refuses it
        return max(int(crop * height), 1), max(int(crop * width), 1)
    size = size_of(crop, "crop")
    _set_crop(params, _CROPS["fixed"])
    _set_crop_height(params, size[0])
    _set_crop_width(params, size[1])
    return size
