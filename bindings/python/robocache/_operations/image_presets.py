"""The image preprocessing of projects that train robot policies, as calls of ``images``."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, overload

from .._arguments.arrays import shape_of
from .._arguments.call import begin
from .._library.context import CPU
from .._library.dtypes import dtype_name
from .._library.errors import shown
from .._suggestions import did_you_mean
from .images import ImageSize, images, normalization_table, size_of

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from typing_extensions import TypedDict, Unpack

    from .._library.context import Context
    from .._typing import Array, Indices, Out, SupportsDLPack
    from .images import ImageLayout

    class _CallOptions(TypedDict, total=False):
        rows: Indices | None
        layout: ImageLayout
        dtype: Any
        backend: str | Context | None


_Size = tuple[int, int]
_Stages = list[dict[str, Any]]

_IMAGENET: dict[str, Any] = {"mean": (0.485, 0.456, 0.406), "std": (0.229, 0.224, 0.225)}
_NO_RANDOM: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class ImagePreset:
    """How a project makes the images of its policy from camera frames: see :func:`image_preset`.

    A preset is a function of frames. It calls :func:`images` once for each time that the project
    itself rounds to bytes, so it has the project's bits where that computes in integers.
    :attr:`steps` says which steps have them, and how far the others may be off.

    Examples
    --------
    >>> import numpy as np
    >>> import robocache as rbc
    >>> preset = rbc.image_preset("openpi")
    >>> frames = np.zeros((2, 48, 64, 3), np.uint8)
    >>> preset(frames).shape, float(preset(frames).min())
    ((2, 3, 224, 224), -1.0)
    >>> preset.stages((48, 64))
    [{'size': (224, 224), 'rule': 'pillow', 'filter': 'bilinear', 'fit': 'pad'}]
    """

    name: str  #: the argument of :func:`image_preset`
    project: str  #: the project, and the function that has this preprocessing
    steps: tuple[tuple[str, str], ...]  #: each step, and "exact" or how near it is
    missing: tuple[str, ...]  #: random steps of the training that robocache does not have
    size: _Size | None  #: height and width that frames are resized to; None: they keep their size
    table: NDArray[Any] = field(repr=False)  #: [3,256] of float32: the value of each byte
    _plan: Callable[[_Size, _Size], _Stages] = field(repr=False)
    _rule: str | None = field(default=None, repr=False)
    _prepared: dict[Any, Any] = field(default_factory=dict, repr=False)

    def stages(self, frame_size: ImageSize) -> _Stages:
        """Return the arguments of each call of :func:`images` for frames of a size.

        The output of a call is the input of the next one. Each output except the last one is of
        uint8 and "hwc".

        Raises
        ------
        ValueError
            The frames are too small for the crop.
        TypeError
            ``frame_size`` is not a height and a width, or an int for both.
        """
        frame = size_of(frame_size, "frame_size")
        stages = self._plan(frame, self.size or frame)
        if self._rule is not None:
            stages = [{**s, "rule": self._rule} if "rule" in s else s for s in stages]
        return stages

    def output_size(self, frame_size: ImageSize) -> _Size:
        """Return the height and the width of the images that frames of a size become."""
        height, width = self.stages(frame_size)[-1]["size"]
        return height, width

    # The dtype of the result differs from the dtype of the frames.
    @overload
    def __call__(
        self,
        frames: NDArray[Any] | Sequence[NDArray[Any]],
        *,
        out: None = ...,
        **options: Unpack[_CallOptions],
    ) -> NDArray[Any]: ...
    @overload
    def __call__(
        self,
        frames: Array | Sequence[Array],
        *,
        out: None = ...,
        **options: Unpack[_CallOptions],
    ) -> Array: ...
    @overload
    def __call__(
        self,
        frames: SupportsDLPack | Sequence[SupportsDLPack],
        *,
        out: Out,
        **options: Unpack[_CallOptions],
    ) -> Out: ...
    def __call__(
        self,
        frames: Any,
        *,
        rows: Any = None,
        layout: Any = "chw",
        dtype: Any = None,
        out: Any = None,
        backend: Any = None,
    ) -> Any:
        """Make images from frames [n,H,W,3], with the arguments of :func:`images`.

        With ``dtype="uint8"``, or an ``out`` of uint8, images have the bytes before the
        normalization.
        """
        arrays = list(frames) if isinstance(frames, (list, tuple)) else [frames]
        if not arrays:
            return images(arrays)  # which refuses it
        framework, context, _, _ = begin(arrays[0], "frames", backend)
        shape = tuple(shape_of(arrays[0], "frames", context))
        if len(shape) != 4 or shape[3] != 3:
            extents = ",".join(map(str, shape))
            raise ValueError(f"frames: shape is [{extents}], expected [n,H,W,3]")
        key = (framework, context._device_id, shape[1:3])
        if key not in self._prepared:
            self._prepared[key] = self._prepare(*key, arrays[0])
        (*first, last), table = self._prepared[key]
        options: dict[str, Any] = {"rows": rows, "backend": backend}
        for stage in first:
            frames = images(frames, dtype="uint8", layout="hwc", **options, **stage)
            options["rows"] = None
        if _is_bytes(dtype, out):
            table = None
        options.update(layout=layout, dtype=dtype, out=out, table=table)
        return images(frames, **options, **last)

    def _prepare(self, framework: Any, device_id: int, frame: _Size, like: Any) -> Any:
        """Return the stages and the table for frames of a size, with arrays on their device."""
        stages = self.stages(frame)
        if device_id == CPU:
            return stages, self.table

        def moved(values: Any, name: str, dtype: str) -> Any:
            return framework.sequence(values, name, dtype, like)

        stages = [
            {k: moved(v, k, "int64") if k == "boxes" else v for k, v in stage.items()}
            for stage in stages
        ]
        return stages, moved(self.table.tolist(), "table", "float32")

    def __reduce__(self) -> Any:
        return _restored, (self.name, self.size, self._rule)


def _restored(name: str, size: _Size | None, rule: str | None) -> ImagePreset:
    return image_preset(name, size=size, rule=rule)


def _is_bytes(dtype: Any, out: Any) -> bool:
    if dtype is None and out is not None:
        return str(getattr(out, "dtype", "")).rpartition(".")[2] == "uint8"
    return dtype is not None and dtype_name(dtype) == "uint8"


# ---- crops --------------------------------------------------------------------------------------


def _box(top: int, left: int, height: int, width: int) -> dict[str, Any]:
    return {"boxes": [top, left, height, width], "crop_size": (height, width)}


def _center(frame: _Size, size: _Size, half: Callable[[int], int]) -> dict[str, Any]:
    """Return the box of a size in the middle; ``half`` rounds half of the pixels around it."""
    if size[0] > frame[0] or size[1] > frame[1]:
        raise ValueError(
            f"frames: have {frame[0]} x {frame[1]} pixels, expected at least {size[0]} x {size[1]} "
            "for a crop"
        )
    top, left = half(frame[0] - size[0]), half(frame[1] - size[1])
    return _box(top, left, *size)


def _down(pixels: int) -> int:
    return pixels // 2


def _even(pixels: int) -> int:
    """Return the half, as torchvision's CenterCrop rounds it: ties to even."""
    return round(pixels / 2)


def _part(frame: _Size, fraction: float) -> _Size:
    return max(int(frame[0] * fraction), 1), max(int(frame[1] * fraction), 1)


def _area_box(size: _Size, share: float) -> dict[str, Any]:
    """Return the whole pixels of TensorFlow's centred box with a share of the area.

    ``crop_and_resize`` takes the pixels at a + b i with b = sqrt(share) (n - 1) / (n - 1), so n b
    pixels; of the numbers with the same rest as n, whose box is in the middle, this is the nearest.
    """
    sides = []
    for n in size:
        less = max(round(n * (1 - math.sqrt(share)) / 2), 0)
        sides.append((less, max(n - 2 * less, 1)))
    return _box(sides[0][0], sides[1][0], sides[0][1], sides[1][1])


# ---- projects -----------------------------------------------------------------------------------


def _padded(rule: str, filter_name: str, anchor: str = "center") -> Any:
    def plan(frame: _Size, size: _Size) -> _Stages:
        options = {"size": size, "rule": rule, "filter": filter_name, "fit": "pad"}
        return [options if anchor == "center" else {**options, "pad_anchor": anchor}]

    return plan


def _gr00t_n1d5(frame: _Size, size: _Size) -> _Stages:
    crop = _center(frame, _part(frame, 0.95), _even)
    return [{"size": size, "rule": "exact", "filter": "bilinear", **crop}]


def _smallest(frame: _Size, size: _Size) -> _Size:
    """Return the sides that albumentations' SmallestMaxSize gives, for a shorter side."""
    scale = min(size) / min(frame)
    return max(1, round(frame[0] * scale)), max(1, round(frame[1] * scale))


def _gr00t_n1d6(frame: _Size, size: _Size) -> _Stages:
    area = {"rule": "opencv", "filter": "area"}
    first = _smallest(frame, size)
    crop = _part(first, 0.95)
    return [
        {"size": first, **area},
        {"size": _smallest(crop, size), **area, **_center(first, crop, _down)},
    ]


def _gr00t_n1d7(frame: _Size, size: _Size) -> _Stages:
    area = {"rule": "opencv", "filter": "area"}
    crop = _center(size, _part(size, 230 / 256), _down)
    return [{"size": size, **area}, {"size": size, **area, **crop}]


def _lerobot(frame: _Size, size: _Size) -> _Stages:
    return [{"size": frame}]


def _diffusion_policy(frame: _Size, size: _Size) -> _Stages:
    (high, wide), (h, w) = frame, size
    if wide / high >= w / h:
        covering, enlarged = (h, math.ceil(h / high * wide)), h > high
    else:
        covering, enlarged = (math.ceil(w / wide * high), w), w > wide
    top, left = (covering[0] - h) // 2, (covering[1] - w) // 2
    crop = _part(size, 0.9)
    inner = (top + _even(h - crop[0]), left + _even(w - crop[1]))
    resized = {"size": covering, "rule": "opencv", "filter": "linear" if enlarged else "area"}
    return [resized, {"size": crop, **_box(*inner, *crop)}]


def _robomimic(frame: _Size, size: _Size) -> _Stages:
    return [{"size": size, **_center(frame, size, _down)}]


def _lanczos(frame: _Size, size: _Size) -> _Stages:
    return [{"size": size, "rule": "exact", "filter": "lanczos3"}]


def _tensorflow(frame: _Size, size: _Size) -> _Stages:
    linear = {"size": size, "rule": "torchvision", "filter": "linear"}
    return [*_lanczos(frame, size), {**linear, **_area_box(size, 0.9)}]


@dataclass(frozen=True)
class _Project:
    title: str
    plan: Callable[[_Size, _Size], _Stages]
    size: _Size | None
    table: dict[str, Any]  # arguments of normalization_table
    steps: tuple[tuple[str, str], ...]
    missing: tuple[str, ...] = _NO_RANDOM
    rules: tuple[str, ...] = ()  # other rules that may replace the one of the resize


_PILLOW = ("pillow", "pillow_12", "pillow_13")
_ROTATED = ("rotation by up to 5 degrees",)
_TO_ONE: dict[str, Any] = {"formula": "x / 255 * 2 - 1"}
_FUSED: dict[str, Any] = {"formula": "x", "mean": 127.5, "std": 127.5}
_TO_ONE_STEP = ("x / 255 * 2 - 1", "exact")
_FUSED_STEP = ("(x - 127.5) / 127.5, of the backbone's image processor", "exact")

_PROJECTS: dict[str, _Project] = {
    "openpi": _Project(
        "openpi's resize_with_pad of its client and its data transforms, with Pillow",
        _padded("pillow", "bilinear"),
        (224, 224),
        _TO_ONE,
        (("resize with padding, Pillow's bilinear", "exact"), _TO_ONE_STEP),
        _ROTATED,
        _PILLOW,
    ),
    "openpi_jax": _Project(
        "openpi's resize_with_pad in JAX, for frames that its model resizes",
        _padded("exact", "bilinear"),
        (224, 224),
        _TO_ONE,
        (("resize with padding, JAX's linear", "near: 1 level"), _TO_ONE_STEP),
        _ROTATED,
    ),
    "openpi_torch": _Project(
        "openpi's resize_with_pad_torch, also of pi0 and pi0.5 in LeRobot",
        _padded("torchvision", "linear"),
        (224, 224),
        _TO_ONE,
        (("resize with padding, bilinear without antialiasing", "near: 1 level"), _TO_ONE_STEP),
        _ROTATED,
    ),
    "gr00t_n1d5": _Project(
        "GR00T N1.5's VideoCrop and VideoResize, with torchvision on floats",
        _gr00t_n1d5,
        (224, 224),
        _FUSED,
        (
            ("centre crop of 0.95", "exact"),
            ("resize, antialiased bilinear of floats, truncated", "near: 1 level"),
            _FUSED_STEP,
        ),
    ),
    "gr00t_n1d6": _Project(
        "GR00T N1.6's SmallestMaxSize and FractionalCenterCrop, with OpenCV",
        _gr00t_n1d6,
        (256, 256),
        _FUSED,
        (
            ("resize of the shorter side to 256, OpenCV's area", "exact"),
            ("centre crop of 0.95", "exact"),
            ("resize of the shorter side to 256, OpenCV's area", "exact"),
            _FUSED_STEP,
        ),
        ("rotation",),
    ),
    "gr00t_n1d7": _Project(
        "GR00T N1.7's Resize and FractionalCenterCrop, with OpenCV",
        _gr00t_n1d7,
        (256, 256),
        _FUSED,
        (
            ("resize to 256 x 256, OpenCV's area", "exact"),
            ("centre crop of 230 / 256", "exact"),
            ("resize to 256 x 256, OpenCV's area", "exact"),
            _FUSED_STEP,
        ),
        ("rotation",),
    ),
    "lerobot": _Project(
        "LeRobot's ACT and diffusion policies, with the statistics of ImageNet",
        _lerobot,
        None,
        {
            "formula": "x / 255",
            "mean": _IMAGENET["mean"],
            "std": _IMAGENET["std"],
            "epsilon": 1e-8,
        },
        (("(x / 255 - mean) / (std + 1e-8)", "exact"),),
        ("sharpness", "rotation and translation"),
    ),
    "smolvla": _Project(
        "LeRobot's SmolVLA: resize_with_pad, with the image at the lower right",
        _padded("torchvision", "linear", "end"),
        (512, 512),
        _TO_ONE,
        (("resize with padding, bilinear without antialiasing", "near: 1 level"), _TO_ONE_STEP),
        ("sharpness", "rotation and translation"),
    ),
    "diffusion_policy": _Project(
        "diffusion policy on robots: get_image_transform with OpenCV, then a centre crop of 0.9",
        _diffusion_policy,
        (240, 320),
        {"formula": "x / 255 * 2 - 1", **_IMAGENET},
        (
            ("resize that covers the size, OpenCV's area, and its centre", "exact"),
            ("centre crop of 0.9", "exact"),
            ("(x / 255 * 2 - 1 - mean) / std, with the statistics of ImageNet", "exact"),
        ),
    ),
    "robomimic": _Project(
        "robomimic's CropRandomizer of images of 84 x 84",
        _robomimic,
        (76, 76),
        {"formula": "x / 255"},
        (("centre crop of 76 x 76", "exact"), ("x / 255", "exact")),
    ),
    "openvla": _Project(
        "OpenVLA in LIBERO: resize_image without its JPEG step, and center_crop_image",
        _tensorflow,
        (224, 224),
        {"formula": "x / 255", "mean": 0.5, "std": 0.5},
        (
            ("resize, TensorFlow's lanczos3", "near: 1 level"),
            ("crop of 0.9 of the area and resize, TensorFlow's crop_and_resize", "near: 1/2 pixel"),
            ("(x / 255 - 0.5) / 0.5, of SigLIP; DINOv2 takes other numbers", "exact"),
        ),
    ),
    "octo": _Project(
        "Octo's ResizeImageWrapper for the primary camera",
        _tensorflow,
        (256, 256),
        {"formula": "x / 127.5 - 1"},
        (
            ("resize, TensorFlow's lanczos3", "near: 1 level"),
            ("crop of 0.9 of the area and resize, TensorFlow's crop_and_resize", "near: 1/2 pixel"),
            ("x / 127.5 - 1", "exact"),
        ),
    ),
    "octo_wrist": _Project(
        "Octo's ResizeImageWrapper for the wrist camera",
        _lanczos,
        (128, 128),
        {"formula": "x / 127.5 - 1"},
        (("resize, TensorFlow's lanczos3", "near: 1 level"), ("x / 127.5 - 1", "exact")),
    ),
}


def image_presets() -> tuple[str, ...]:
    """Return the names that :func:`image_preset` knows.

    Returns
    -------
    tuple of str

    Examples
    --------
    >>> import robocache as rbc
    >>> rbc.image_presets()[:3]
    ('openpi', 'openpi_jax', 'openpi_torch')
    """
    return tuple(_PROJECTS)


def image_preset(
    name: str, *, size: ImageSize | None = None, rule: str | None = None
) -> ImagePreset:
    """Return the image preprocessing of a project, for its evaluation and for a robot.

    It resizes, crops and normalizes as the project does when it does not train. Random crops, flips
    and colours of its training come from :func:`image_draws`.

    Parameters
    ----------
    name
        A name of :func:`image_presets`, such as "openpi", "gr00t_n1d7" or "lerobot".
    size
        Height and width that the project resizes frames to, or one int for both. None: the default
        of the project. A crop that follows keeps its share of it. For "robomimic" it is the size
        of the crop; "lerobot" has no size.
    rule
        For "openpi": "pillow", "pillow_12" or "pillow_13", by the version of Pillow that the
        project runs with. They differ only for narrow or tall frames. None: "pillow".

    Returns
    -------
    ImagePreset
        A function of frames [n,H,W,3] of uint8.

    Raises
    ------
    ValueError
        The name is not known, or it has no such size or rule.
    TypeError
        ``size`` is not a height and a width, or an int for both.

    Examples
    --------
    >>> import numpy as np
    >>> import robocache as rbc
    >>> preset = rbc.image_preset("gr00t_n1d6")
    >>> [stage["size"] for stage in preset.stages((480, 640))]
    [(256, 341), (256, 340)]
    >>> preset(np.zeros((1, 480, 640, 3), np.uint8), dtype="uint8").shape
    (1, 3, 256, 340)
    """
    project = _PROJECTS.get(name) if isinstance(name, str) else None
    if project is None:
        near = did_you_mean(name, _PROJECTS) if isinstance(name, str) else ""
        expected = ", ".join(map(repr, _PROJECTS))
        raise ValueError(f"name: is {shown(name)}, expected one of {expected}{near}")
    resized_size = project.size
    if size is not None:
        if resized_size is None:
            raise ValueError(f"size: is {shown(size)}, but {name!r} keeps the size of the frames")
        resized_size = size_of(size, "size")
    if rule is not None and rule not in project.rules:
        expected = f"expected one of {', '.join(map(repr, project.rules))}"
        if not project.rules:
            expected = f"but {name!r} has one rule"
        raise ValueError(f"rule: is {shown(rule)}, {expected}")
    options = dict(project.table)
    epsilon = options.pop("epsilon", None)
    if epsilon is not None:
        options["std"] = _plus(options["std"], epsilon)
    table = normalization_table(**options)
    table.flags.writeable = False
    return ImagePreset(
        name,
        project.title,
        project.steps,
        project.missing,
        resized_size,
        table,
        project.plan,
        rule,
    )


def _plus(std: Sequence[float], epsilon: float) -> Any:
    """Return the sum in float32, as torch computes it."""
    import numpy as np

    return np.asarray(std, np.float32) + np.float32(epsilon)
