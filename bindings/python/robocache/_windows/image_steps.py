"""The calls of ``images`` that make the images of one camera, and the part that a cache stores."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from .._operations.image_draws import ImageDraws, image_draws
from .._operations.image_presets import image_preset
from .._operations.images import ImageLayout, images
from .._printable import plural

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .images import Images

_Size = tuple[int, int]
_Stage = dict[str, Any]  # arguments of images()


@dataclass(frozen=True, eq=False)
class ImageSteps:
    """The calls of :func:`images` that make the images of frames of one shape.

    ``stored`` are calls with bytes as results, the same in every epoch: a cache stores their
    results. ``rest`` are the calls for stored frames, and ``whole`` the calls for frames of the
    data set; both end in the same bits.
    """

    frame_shape: tuple[int, int, int]
    stored: tuple[_Stage, ...]
    rest: tuple[_Stage, ...]
    whole: tuple[_Stage, ...]
    size: _Size  # of the images
    layout: ImageLayout
    dtype: Any
    pad_value: Any
    draw_options: Mapping[str, Any] = field(repr=False)  # of image_draws(); empty: nothing random
    color_first: bool = field(repr=False)
    table: Any = field(repr=False)  # [C,256] of float32, or None

    @property
    def stored_shape(self) -> tuple[int, int, int]:
        """The shape of the frames that a cache stores."""
        size = self.stored[-1]["size"] if self.stored else self.frame_shape[:2]
        return (*size, self.frame_shape[2])

    @property
    def image_shape(self) -> tuple[int, int, int]:
        channels = self.frame_shape[2]
        return (channels, *self.size) if self.layout == "chw" else (*self.size, channels)

    @property
    def is_random(self) -> bool:
        return bool(self.draw_options)

    def document(self) -> list[Any]:
        """Return the stored calls in values of JSON, for a key."""
        return [["images", {n: _plain(v) for n, v in stage.items()}] for stage in self.stored]

    def store(self, frames: Any, out: Any) -> None:
        """Write the frames that a cache stores to ``out``, uint8 [n,h,w,C]."""
        *first, last = self.stored
        for stage in first:
            frames = images(frames, dtype="uint8", layout="hwc", **stage)
        images(frames, out=out, layout="hwc", **last)

    def on(self, move: Callable[[NDArray[Any]], Any]) -> ImageSteps:
        """Return the same calls with arrays on another device; ``move`` copies them there."""
        import numpy as np

        def moved(stage: _Stage) -> _Stage:
            if "boxes" not in stage:
                return stage
            return {**stage, "boxes": move(np.asarray(stage["boxes"], np.int64))}

        return replace(
            self,
            stored=tuple(map(moved, self.stored)),
            rest=tuple(map(moved, self.rest)),
            whole=tuple(map(moved, self.whole)),
            table=None if self.table is None else move(np.array(self.table)),
        )

    def draws(self, samples: Any, seed: int, epoch: int, camera: int) -> ImageDraws[Any] | None:
        """Return the random numbers of samples; None if nothing is random."""
        if not self.draw_options:
            return None
        return image_draws(samples, seed=seed, epoch=epoch, camera=camera, **self.draw_options)

    def apply(
        self,
        frames: Any,
        *,
        rows: Any = None,
        draws: Mapping[str, Any] | None = None,
        are_stored: bool = False,
        out: Any = None,
        backend: Any = None,
    ) -> Any:
        """Make images.

        Parameters
        ----------
        frames
            [n,H,W,C], or a list of such arrays: frames of the data set, or stored ones.
        rows
            The frame of each image; -1 gives the padding.
        draws
            Arguments of :func:`images`, one per image, from :meth:`draws`.
        are_stored
            Whether ``stored`` was applied to the frames.
        """
        *first, last = self.rest if are_stored else self.whole
        for stage in first:
            options, draws = _with_crop(stage, draws)
            options["pad_value"] = options.get("pad_value", self.pad_value)
            frames = images(
                frames, dtype="uint8", layout="hwc", rows=rows, backend=backend, **options
            )
            rows = None if rows is None else _positions(rows)
        options, draws = _with_crop(last, draws)
        is_bytes = str(self.dtype).rpartition(".")[2] == "uint8"
        if not is_bytes:
            options["table"] = self.table
        options["pad_value"] = options.get("pad_value", self.pad_value)
        return images(
            frames,
            rows=rows,
            layout=self.layout,
            dtype=self.dtype if out is None else None,
            color_first=self.color_first,
            out=out,
            backend=backend,
            **options,
            **(draws or {}),
        )


def _with_crop(
    stage: _Stage, draws: Mapping[str, Any] | None
) -> tuple[dict[str, Any], Mapping[str, Any] | None]:
    """Return the arguments of a call with the random boxes, if it has them, and the other draws."""
    options = dict(stage)
    if not options.pop("is_random", False) or draws is None or "boxes" not in draws:
        return options, draws
    options.pop("crop_size", None)
    options["boxes"] = draws["boxes"]
    if "crop_size" in draws:
        options["crop_size"] = draws["crop_size"]
    left = {name: each for name, each in draws.items() if name not in ("boxes", "crop_size")}
    return options, left


def _positions(rows: Any) -> Any:
    """Return the rows of the next call: the place of each image, -1 where there is only padding."""
    import numpy as np

    if isinstance(rows, np.ndarray):
        return np.where(rows < 0, -1, np.arange(len(rows)))
    places = rows.new_ones(rows.shape).cumsum(0) - 1
    return places.where(rows >= 0, rows)


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def planned(spec: Images, frame: tuple[int, ...]) -> ImageSteps:
    if len(frame) != 3 or frame[2] not in (1, 3, 4):
        raise ValueError(f"frames: shape is {list(frame)}, expected [H,W,C] with 1 or 3 channels")
    height, width, channels = frame
    first: list[_Stage] = []
    size: _Size = (height, width)
    if isinstance(spec.store, tuple):
        size = spec.store
        first = [{"size": size, "rule": spec.rule, "filter": spec.filter}]
    stages, random_at, draw_crop = _stages(spec, size, channels)
    whole = [*first, *stages]
    colors = spec.augment is not None and any(each is not None for each in spec.augment.ranges())
    changes = colors or spec.flip > 0
    if isinstance(spec.store, tuple):
        stored, rest = first, stages
    elif spec.store == "full" or (spec.color_first and colors):
        stored, rest = [], whole
    elif random_at is not None:
        stored, rest = whole[:random_at], whole[random_at:]
    else:
        stored, rest = _split(whole, (height, width), changes)
    draw_options: dict[str, Any] = {}
    if spec.random:
        if draw_crop is not None:
            draw_options.update(draw_crop)
        if spec.flip > 0:
            draw_options["flip"] = spec.flip
        if colors:
            draw_options["color"] = spec.augment
    last_size: _Size = whole[-1]["size"]
    return ImageSteps(
        frame_shape=(height, width, channels),
        stored=tuple(stored),
        rest=tuple(rest),
        whole=tuple(whole),
        size=last_size,
        layout=spec.layout,
        dtype=spec.dtype,
        pad_value=spec.pad_value,
        draw_options=draw_options,
        color_first=spec.color_first,
        table=spec._table(channels),
    )


def _stages(
    spec: Images, size: _Size, channels: int
) -> tuple[list[_Stage], int | None, dict[str, Any] | None]:
    """Return the calls, which of them has the random crop, and the arguments of its draw."""
    if spec.model is not None:
        return _stages_of_model(spec, size, channels)
    stage: _Stage = {"size": spec.size or size}
    if spec.size is not None:
        stage.update(rule=spec.rule, filter=spec.filter)
        if spec.fit != "stretch":
            stage["fit"] = spec.fit
        if spec.fit == "pad":
            stage.update(pad_anchor=spec.pad_anchor, pad_value=_plain(spec.pad_value))
    if spec.crop is None:
        return [stage], None, None
    draw = {"crop": spec.crop, "frame_size": size}
    if isinstance(spec.crop, str):
        if spec.size is None:
            raise ValueError("size: is None, but crops of random areas need a size")
        draw.update(area=spec.area, ratio=spec.ratio)
    else:
        box = _center_box(size, spec.crop)
        stage.update(boxes=box, crop_size=tuple(box[2:]))
        if spec.size is None:
            stage["size"] = tuple(box[2:])
    stage["is_random"] = True
    return [stage], 0, draw


def _stages_of_model(
    spec: Images, size: _Size, channels: int
) -> tuple[list[_Stage], int | None, dict[str, Any] | None]:
    assert spec.model is not None
    if channels != 3:
        raise ValueError(f"frames: have {plural(channels, 'channel')}, but the model takes 3")
    stages = [dict(stage) for stage in image_preset(spec.model, size=spec.size).stages(size)]
    for stage in stages:
        if stage.get("fit") == "pad":
            stage.setdefault("pad_value", 0)
    if spec.crop is None:
        return stages, None, None
    before = size
    for at, stage in enumerate(stages):
        if "crop_size" in stage:
            stage["is_random"] = True
            return stages, at, {"crop": stage["crop_size"], "frame_size": before}
        before = stage["size"]
    raise ValueError(f"crop: is 'random', but the model {spec.model!r} has no crop")


def _center_box(size: _Size, crop: Any) -> list[int]:
    height, width = size
    if isinstance(crop, float):
        inner = max(int(height * crop), 1), max(int(width * crop), 1)
    else:
        inner = crop
    if inner[0] > height or inner[1] > width:
        raise ValueError(
            f"frames: have {height} x {width} pixels, expected at least {inner[0]} x {inner[1]} "
            "for the crop"
        )
    return [(height - inner[0]) // 2, (width - inner[1]) // 2, *inner]


def _split(whole: list[_Stage], frame: _Size, changes: bool) -> tuple[list[_Stage], list[_Stage]]:
    """Divide calls without a random crop into stored calls and the last one.

    ``changes``: flips or colours are random. They come before the padding, so the images are stored
    without it where a second call can add it without a resize; else what comes before is stored.
    """
    *first, last = whole
    if last["size"] == frame and len(whole) == 1 and "fit" not in last:
        return [], whole  # frames keep their size
    if last.get("fit") != "pad" or not changes:
        identity: _Stage = {"size": last["size"]}
        return whole, [identity]
    before: _Size = first[-1]["size"] if first else frame
    box: _Size = last.get("crop_size", before)
    height, width = last["size"]
    ratio = max(box[1] / width, box[0] / height)
    inner = max(int(box[0] / ratio), 1), max(int(box[1] / ratio), 1)
    if max(inner[1] / width, inner[0] / height) != 1.0:
        return first, [last]
    resize = {k: v for k, v in last.items() if k not in ("fit", "pad_anchor", "pad_value")}
    pad = {k: v for k, v in last.items() if k not in ("boxes", "crop_size")}
    return [*first, {**resize, "size": inner}], [pad]
