"""Camera frames to batches of images."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any, Literal, Union, overload

from .. import _core
from .._arguments.arrays import shape_of
from .._arguments.call import array_of, begin, finished, writable
from .._arguments.options import code_of, count, number, struct_of
from .._library.context import CPU
from .._library.dtypes import dtype_name
from .._library.errors import REFUSALS, shown, with_python_names
from .._typing import Array, Indices, Out, SupportsDLPack

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray
    from typing_extensions import TypedDict, Unpack

    from .._library.context import Context

ImageRule = Literal["pillow", "pillow_12", "pillow_13", "torchvision", "opencv", "exact"]
ImageFilter = Literal[
    "box", "bilinear", "hamming", "bicubic", "lanczos3", "linear", "linear_exact", "area"
]
ImageFit = Literal["stretch", "pad", "cover"]
PadAnchor = Literal["center", "start", "end"]
ImageLayout = Literal["chw", "hwc"]
ImageSize = Union[int, "Sequence[int]"]

if TYPE_CHECKING:

    class ImagesOptions(TypedDict, total=False):
        rows: Indices | None
        boxes: Indices | Sequence[Sequence[int]] | None
        crop_size: ImageSize | None
        rule: ImageRule
        filter: ImageFilter
        fit: ImageFit
        pad_anchor: PadAnchor
        pad_value: float | Sequence[float]
        flips: SupportsDLPack | Sequence[int] | None
        colors: SupportsDLPack | Sequence[Sequence[float]] | None
        color_order: SupportsDLPack | Sequence[Sequence[int]] | None
        color_first: bool
        table: SupportsDLPack | Sequence[Sequence[float]] | None
        layout: ImageLayout
        dtype: Any
        backend: str | Context | None


_OF_PILLOW = ("box", "bilinear", "hamming", "bicubic", "lanczos3")
# The filters of each rule; other pairs are unsupported.
FILTERS_OF = {
    "pillow": _OF_PILLOW,
    "pillow_12": _OF_PILLOW,
    "pillow_13": _OF_PILLOW,
    "torchvision": ("bilinear", "bicubic", "linear"),
    "opencv": ("linear", "linear_exact", "area"),
    "exact": _OF_PILLOW,
}
RULES = {name: getattr(_core, f"IMAGES_RULE_{name.upper()}") for name in FILTERS_OF}
FILTERS = {
    name: getattr(_core, f"IMAGES_FILTER_{name.upper()}")
    for names in FILTERS_OF.values()
    for name in names
}
FITS = {name: getattr(_core, f"IMAGES_FIT_{name.upper()}") for name in ("stretch", "pad", "cover")}
ANCHORS = {
    name: getattr(_core, f"IMAGES_PAD_{name.upper()}") for name in ("center", "start", "end")
}
LAYOUTS = {name: getattr(_core, f"IMAGES_LAYOUT_{name.upper()}") for name in ("chw", "hwc")}

MOST_PIXELS = 65536  # of a side
_MOST_ARRAYS = _core.IMAGES_MAX_FRAMES

_new_frames = struct_of("ImagesFrames")[0]
_FRAMES = _new_frames()
_new, *_setters = struct_of(
    "ImagesParams",
    *("flags", "rule", "filter", "fit", "pad_anchor", "layout"),
    *("pad_value", "crop_height", "crop_width"),
)
_set_flags, _set_rule, _set_filter, _set_fit, _set_anchor, _set_layout, *_more = _setters
_set_pad, _set_crop_height, _set_crop_width = _more


def size_of(size: Any, name: str) -> tuple[int, int]:
    """Return (height, width) of two ints, or of one for both."""
    expected = "height and width, or an int"
    if isinstance(size, (bool, str)):
        raise TypeError(f"{name}: is {shown(size)}, expected {expected}")
    try:
        side = operator.index(size)
    except REFUSALS:
        pass
    else:
        return (_pixels(side, name),) * 2
    try:
        height, width = size
    except REFUSALS:
        raise TypeError(f"{name}: is {shown(size)}, expected {expected}") from None
    return _pixels(height, f"{name}[0]"), _pixels(width, f"{name}[1]")


def _pixels(side: Any, name: str) -> int:
    pixels = count(side, name)
    if pixels > MOST_PIXELS:
        raise ValueError(f"{name}: is {pixels}, expected at most {MOST_PIXELS}")
    return pixels


# The dtype of the result differs from the dtype of the frames.
@overload
def images(
    frames: NDArray[Any] | Sequence[NDArray[Any]],
    size: ImageSize | None = ...,
    *,
    out: None = ...,
    **options: Unpack[ImagesOptions],
) -> NDArray[Any]: ...
@overload
def images(
    frames: Array | Sequence[Array],
    size: ImageSize | None = ...,
    *,
    out: None = ...,
    **options: Unpack[ImagesOptions],
) -> Array: ...
@overload
def images(
    frames: SupportsDLPack | Sequence[SupportsDLPack],
    size: ImageSize | None = ...,
    *,
    out: Out,
    **options: Unpack[ImagesOptions],
) -> Out: ...
def images(
    frames: Any,
    size: Any = None,
    *,
    rows: Any = None,
    boxes: Any = None,
    crop_size: Any = None,
    rule: Any = "pillow",
    filter: Any = "bilinear",  # noqa: A002
    fit: Any = "stretch",
    pad_anchor: Any = "center",
    pad_value: Any = 0,
    flips: Any = None,
    colors: Any = None,
    color_order: Any = None,
    color_first: bool = False,
    table: Any = None,
    layout: Any = "chw",
    dtype: Any = None,
    out: Any = None,
    backend: Any = None,
) -> Any:
    """Make images from camera frames: crop, resize, flip, colours, padding and normalization.

    The result is the same on the CPU and on CUDA, bit for bit. A rule gives the resized bytes of a
    library: Pillow, torchvision on x86 CPUs, or OpenCV. Everything is one call; images may go
    directly into ``out``, such as a part of a window.

    Arrays may come from any library with ``__dlpack__`` and have any strides; none is copied.

    Parameters
    ----------
    frames : array [n,H,W,C], or a list of up to 64 of them with the same H, W and C
        uint8, with C of 1, 3 or 4. 4 channels are independent: Pillow would multiply with alpha.
    size
        Height and width of the images, or one int for both. None: that of ``out``.
    rows : array or list [B] of int32 or int64
        The frame of each image, counted through all arrays of ``frames``; -1 gives ``pad_value``.
        None: all frames in their order.
    boxes : array or list [B,4], or [4] for all images, of int32 or int64
        The crop of each image: y, x, height, width in pixels. The resize reads no pixel outside of
        it. None: whole frames.
    crop_size
        Height and width of all boxes, if they are the same: it needs less memory and less time.
    rule
        "pillow" (before 12.2), "pillow_12" (12.2 and 12.3), "pillow_13", "torchvision" (of uint8),
        "opencv", or "exact", which rounds once. The three of Pillow differ only in the order of
        their passes, for narrow or for tall images.
    filter
        "bilinear" and "bicubic" of all rules but "opencv"; "box", "hamming" and "lanczos3" of
        the rules of Pillow and of "exact"; "linear" of "torchvision", where it is not antialiased,
        and of "opencv"; "linear_exact" and "area" of "opencv".
    fit
        "stretch"; "pad": as large as fits, the rest is ``pad_value``; "cover": as small as covers
        the output, then its centre.
    pad_anchor
        Where "pad" places the image: "center", "start" or "end".
    pad_value
        Integer of 0 to 255, or one for each channel; it goes through ``table``.
    flips : array or list [B] of uint8
        0 none, 1 left-right, 2 up-down, 3 both.
    colors : array or list [B,4] of float32 or float64
        Factors of brightness, contrast and saturation, as in torchvision's ``ColorJitter``, and
        the part of the circle that hues turn by, -0.5 to 0.5. NaN leaves a step out.
    color_order : array or list [B,4] of uint8
        The order of the steps: 0 brightness, 1 contrast, 2 saturation, 3 hue. None: 0, 1, 2, 3.
    color_first
        Whether colours act on the whole frame before the crop, as in LeRobot.
    table : array or list [C,256] of any float
        The value of each byte, such as from :func:`normalization_table`. None: 0 to 255.
    layout
        "chw" or "hwc".
    dtype
        "uint8" or any float. None: float32 on the CPU, bfloat16 on CUDA; float32 for CuPy,
        which has no bfloat16.
    out : array [B,C,h,w] or [B,h,w,C]
        Array to write to; any strides.
    backend
        Device to compute on. None: the device of the frames. "cpu", "cuda" and "cuda:N" require
        the frames to be there; a :class:`Context` is used directly.

    Returns
    -------
    array [B,C,h,w], or [B,h,w,C] with the layout "hwc"
        In the library of ``frames``, on its device; ``out``, if that is given. On CUDA the work is
        enqueued on that library's current stream.

    Raises
    ------
    ValueError
        A value, a shape or a device is invalid. The message begins with the argument's name. On
        CUDA, boxes and rows out of range are clamped.
    TypeError
        A dtype is not supported, or an argument is not an array.
    MemoryError
        Not enough memory.
    RoboCacheError
        The rule does not have the filter, the colours are not supported, the device is not
        available, or a CUDA error occurred.

    Examples
    --------
    >>> import numpy as np
    >>> import robocache as rbc
    >>> frames = np.arange(2 * 4 * 6 * 3, dtype=np.uint8).reshape(2, 4, 6, 3)
    >>> rbc.images(frames, (2, 3), dtype="uint8")[0, 0].tolist()
    [[15, 21, 26], [43, 49, 54]]
    >>> table = rbc.normalization_table("x / 127.5 - 1")
    >>> rbc.images(frames, 2, rows=[1, -1], boxes=[0, 0, 4, 4], table=table).shape
    (2, 3, 2, 2)
    """
    arrays = list(frames) if isinstance(frames, (list, tuple)) else [frames]
    if not 0 < len(arrays) <= _MOST_ARRAYS:
        have = f"has {len(arrays)} arrays" if arrays else "is empty"
        raise ValueError(f"frames: {have}, expected an array, or 1 to {_MOST_ARRAYS} arrays")
    first: Any = arrays[0]
    framework, context, ordered, _ = begin(first, "frames", backend)
    params = _new()
    if color_first is not False and _is_true(color_first, "color_first"):
        _set_flags(params, _core.IMAGES_FLAG_COLOR_FIRST)
    _set_rule(params, code_of(RULES, rule, "rule"))
    _set_filter(params, code_of(FILTERS, filter, "filter"))
    _set_fit(params, code_of(FITS, fit, "fit"))
    _set_anchor(params, code_of(ANCHORS, pad_anchor, "pad_anchor"))
    _set_layout(params, code_of(LAYOUTS, layout, "layout"))
    if type(pad_value) is not int or pad_value != 0:
        _set_pad(params, _four(pad_value, shape_of(first, "frames", context)))
    if crop_size is not None:
        if boxes is None:
            raise ValueError(f"crop_size: is {shown(crop_size)}, expected None without boxes")
        height, width = size_of(crop_size, "crop_size")
        _set_crop_height(params, height)
        _set_crop_width(params, width)

    def optional(argument: Any, name: str, kind: str) -> Any:
        return None if argument is None else array_of(framework, argument, name, first, kind)

    row_array = optional(rows, "rows", "int64")
    operands = (
        optional(boxes, "boxes", "int64"),
        optional(flips, "flips", "uint8"),
        optional(colors, "colors", "float64"),
        optional(color_order, "color_order", "uint8"),
        optional(table, "table", "float64"),
    )
    owner = None
    if out is None:
        if size is None:
            raise TypeError("size: is None, expected height and width, or out")
        height, width = size_of(size, "size")
        channels = shape_of(first, "frames", context)[-1:] or (1,)
        if row_array is None:
            counts = [shape_of(each, f"frames[{n}]", context)[:1] for n, each in enumerate(arrays)]
            batch = sum([each[0] if each else 0 for each in counts])
        else:
            batch = (*shape_of(row_array, "rows", context), 0)[0]
        shape = (batch, *channels, height, width)
        if layout == "hwc":
            shape = (batch, height, width, *channels)
        name = _default_dtype(first, context) if dtype is None else dtype_name(dtype)
        result = framework.empty(first, shape, name, context)
    else:
        owner = writable(out, "out", dtype)
        _require_size(out, size, layout, context)
        result = out
    native = [(_FRAMES, each) for each in arrays]
    try:
        _core.rbc_images(context._handle, native, row_array, result, (params, *operands))
    except (TypeError, ValueError) as error:
        raise with_python_names(error) from error.__cause__
    return finished(framework, context, ordered, "frames", owner, result)


def _default_dtype(frames: Any, context: Context) -> str:
    has_bfloat16 = type(frames).__module__.partition(".")[0] != "cupy"
    return "bfloat16" if context._device_id != CPU and has_bfloat16 else "float32"


def _is_true(value: Any, name: str) -> bool:
    if type(value).__name__ not in ("bool", "bool_"):  # bool_ is NumPy's
        raise TypeError(f"{name}: is {shown(value)}, expected True or False")
    return bool(value)


def _four(pad_value: Any, shape: Sequence[int]) -> list[float]:
    """Return the padding of four channels."""
    if isinstance(pad_value, (str, bytes)):
        raise TypeError(f"pad_value: is {shown(pad_value)}, expected a number")
    try:
        each = list(pad_value)
    except REFUSALS:
        return [number(pad_value, "pad_value")] * 4
    channels = shape[3] if len(shape) == 4 else len(each)
    if not 1 <= len(each) <= 4 or len(each) != channels:
        raise ValueError(
            f"pad_value: has {len(each)} numbers, expected one, or one for each of {channels} "
            "channels"
        )
    values = [number(value, f"pad_value[{c}]") for c, value in enumerate(each)]
    return [*values, 0.0, 0.0, 0.0][:4]


def _require_size(out: Any, size: Any, layout: str, context: Context) -> None:
    if size is None:
        return
    shape = shape_of(out, "out", context)
    begin = 1 if layout == "hwc" else 2
    own = tuple(shape[begin : begin + 2])
    if own != size_of(size, "size"):
        raise ValueError(f"size: is {shown(size)}, but out has images of {own}")


def normalization_table(
    formula: str = "x / 255",
    *,
    mean: Sequence[float] | float | None = None,
    std: Sequence[float] | float | None = None,
    channels: int = 3,
) -> NDArray[np.float32]:
    """Return the table of a normalization for :func:`images`: the value of each byte.

    Each formula is computed in float32, one operation after the other, as torch and NumPy do.

    Parameters
    ----------
    formula
        "x", "x / 255", "x / 255 * 2 - 1" or "x / 127.5 - 1", where x is the byte. The first is
        useful with ``mean`` and ``std``.
    mean, std
        Numbers for each channel, or one for all: the result of the formula minus ``mean``, divided
        by ``std``.
    channels
        Number of channels, 1, 3 or 4.

    Returns
    -------
    array [C,256] of float32

    Raises
    ------
    ValueError
        The formula is not known, ``mean`` or ``std`` does not have ``channels`` finite numbers, or
        the table would not be finite.

    Examples
    --------
    >>> import robocache as rbc
    >>> rbc.normalization_table("x / 127.5 - 1")[0, [0, 255]].tolist()
    [-1.0, 1.0]
    >>> imagenet = {"mean": (0.485, 0.456, 0.406), "std": (0.229, 0.224, 0.225)}
    >>> rbc.normalization_table(**imagenet).shape
    (3, 256)
    """
    import numpy as np

    number_of_channels = count(channels, "channels")
    if number_of_channels not in (1, 3, 4):
        raise ValueError(f"channels: is {number_of_channels}, expected 1, 3 or 4")
    byte = np.arange(256, dtype=np.float32)
    one, most, half = np.float32(1), np.float32(255), np.float32(127.5)
    rows = {
        "x": byte,
        "x / 255": byte / most,
        "x / 255 * 2 - 1": byte / most * np.float32(2) - one,
        "x / 127.5 - 1": byte / half - one,
    }
    if not isinstance(formula, str) or formula not in rows:
        expected = ", ".join(map(repr, rows))
        raise ValueError(f"formula: is {shown(formula)}, expected one of {expected}")
    table: Any = np.broadcast_to(rows[formula], (number_of_channels, 256))
    if mean is not None:
        table = table - _by_channel(mean, "mean", number_of_channels)
    if std is not None:
        scale = _by_channel(std, "std", number_of_channels)
        if (scale == 0).any():
            raise ValueError("std: has a 0, expected numbers other than 0")
        with np.errstate(over="ignore"):
            table = table / scale
        if not np.isfinite(table).all():
            raise ValueError(f"std: is {shown(std)}, so small that float32 overflows")
    return np.ascontiguousarray(table, np.float32)


def _by_channel(numbers: Any, name: str, channels: int) -> Any:
    """Return [C,1] or [1,1] of float32."""
    import numpy as np

    try:
        with np.errstate(over="ignore"):  # infinity is refused
            each = np.asarray(numbers, np.float32).reshape(-1, 1)
    except REFUSALS:
        raise TypeError(f"{name}: is {shown(numbers)}, expected numbers") from None
    if len(each) not in (1, channels) or not np.isfinite(each).all():
        raise ValueError(f"{name}: is {shown(numbers)}, expected {channels} finite numbers")
    return each
