"""``edit``: one LeRobot data set, or several, become a new one with other episodes or features."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..._files.atomic_write import require_place, written_beside
from ..._files.overwrite import lies_in
from ..._printable import plural, printable
from .._errors import Damage, FormatError, LeftOut, needed
from .._formats.lerobot.frames import is_camera
from .._formats.lerobot.lerobot import sniff
from .._formats.lerobot.meta import Feature
from .._formats.lerobot.stored_statistics import DataSet
from .._options import Options
from .._write import video
from .._write.resize import Resize, ResizeArgument, resized_shape, resizes_of
from .choices import Changes, Cut, cuts_of, features_of, splits_of
from .write import Written, write


@dataclass
class Edit:
    """The result of :func:`edit`. ``print`` shows it."""

    output: str
    episodes: int
    rows: int
    features: tuple[str, ...]
    parts: dict[str, int] = field(default_factory=dict)  #: episodes by name of a split
    notes: tuple[str, ...] = ()  #: what was encoded or computed again
    left_out: tuple[LeftOut, ...] = ()  #: what is not in the output

    def to_dict(self) -> dict[str, Any]:
        """Return the result as dicts, lists and numbers."""
        return {
            **dataclasses.asdict(self),
            "features": list(self.features),
            "notes": list(self.notes),
            "left_out": [{"place": o.place, "reason": o.reason} for o in self.left_out],
        }

    def __repr__(self) -> str:
        parts = "".join(f"; {name}: {count}" for name, count in self.parts.items())
        head = f"{printable(self.output)}: {plural(self.episodes, 'episode')}, "
        head += f"{plural(self.rows, 'row')}{parts}"
        lines = [f"note: {note}" for note in self.notes]
        return "\n".join([head, *lines, *(f"omitted: {each}" for each in self.left_out)])


def edit(
    sources: Any,
    out: str | os.PathLike[str],
    *,
    drop: Any = None,
    keep: Any = None,
    trim: Mapping[Any, Any] | None = None,
    tasks: str | Mapping[Any, str] | None = None,
    remove: Sequence[str] = (),
    rename: Mapping[str, str] | None = None,
    split: Mapping[str, Any] | None = None,
    resize: ResizeArgument | Mapping[str, ResizeArgument] | None = None,
    lossless: bool = False,
    overwrite: bool = False,
    follow_links: bool = False,
    progress: bool | None = None,
) -> Edit:
    """Write a LeRobot data set with some episodes, features or tasks of others, or resize images.

    The output is LeRobot v3.0, so v2.0 and v2.1 are converted. It is a new copy, which appears
    completely or not at all; the sources are not changed. Values keep their bits. Videos are
    copied without decoding where their keyframes allow it, and encoded again else. Statistics of
    numbers are computed again, exactly. Whole episodes keep the statistics of their cameras, unless
    these cannot be right.

    Parameters
    ----------
    sources
        A data set, or several, which are merged: they need the same rate and the same features.
    out
        The new folder.
    drop
        Episodes to drop: numbers, or a text such as "0,2,5-7". Episodes are plural from 0 over
        all sources, in every argument.
    keep
        Episodes to keep, in this order. None: all.
    trim
        By episodes, the rows to keep: ``{"0-3": "10:", 5: (0, 100)}``. "all" names all episodes.
    tasks
        The task of all episodes, or by episodes: ``{"all": "pick", "0-3": "place"}``, where later
        ones come before earlier ones. None: as recorded.
    remove
        Features to remove.
    rename
        New names of features.
    split
        By name of a part, its episodes or its fraction: ``{"train": 0.8, "val": 0.2}``. Each part
        becomes a data set in the folder ``out``.
    resize
        New sizes of the frames of cameras: a height and a width, or an int for both; a dict with
        the arguments ``size``, ``rule``, ``filter``, ``fit``, ``pad_anchor`` and ``pad_value`` of
        :func:`robocache.images`; or a preset of :func:`robocache.image_preset`, or its name. By
        camera, as in ``{"front": 224}``, or for all cameras. The videos are encoded again, and the
        statistics of these cameras are computed again from a sample of their frames.
    lossless
        Whether videos that are encoded are H.264 that loses nothing, in RGB, instead of AV1. Their
        files are much larger.
    overwrite
        Whether to replace an existing output, such as the source itself.
    follow_links, progress
        As for :func:`open`.

    Returns
    -------
    Edit
        What was written, encoded again and omitted.

    Raises
    ------
    FileExistsError
        The output exists.
    FormatError
        A source is damaged, or is not a LeRobot data set.
    ValueError
        The sources differ in their rates or features, or an argument does not fit them.
    """
    needed("pyarrow.parquet", "lerobot", "a LeRobot data set")
    target = os.fsdecode(out)
    paths = [sources] if isinstance(sources, (str, os.PathLike)) else list(sources)
    if not paths:
        raise ValueError("sources: has none, expected a data set")
    names = [os.fsdecode(path) for path in paths]
    sets = [_opened(name, target, follow_links, progress) for name in names]
    chosen = features_of(sets[0], list(remove), rename or {})
    cameras = [name for name in chosen.values() if is_camera(sets[0].info.features[name])]
    resizes = resizes_of(resize, cameras, "resize")
    for name, camera_resize in resizes.items():
        _require_even(sets[0].info.features[name], camera_resize, lossless)
    for each, name in zip(sets[1:], names[1:]):
        _require_same(sets[0], each, names[0], name, list(chosen.values()), resizes)
    cuts = cuts_of(sets, drop, keep, trim, tasks)
    count = sum(len(each.plan.lengths) for each in sets)
    parts = None if split is None else splits_of(split, cuts, count)
    if lossless:
        video.require_lossless()
    changes = Changes(chosen, resizes, lossless)
    require_place(target, overwrite)
    with written_beside(target, overwrite) as part:
        if parts is None:
            done = [write(sets, cuts, changes, part, progress)]
        else:
            os.mkdir(part)
            done = [
                write(sets, own, changes, os.path.join(part, name), progress)
                for name, own in parts.items()
            ]
    return _result(target, cuts, chosen, parts, done)


def _result(
    out: str,
    cuts: Sequence[Cut],
    features: Mapping[str, str],
    parts: Mapping[str, Sequence[Cut]] | None,
    done: Sequence[Written],
) -> Edit:
    own = {} if parts is None else {name: len(each) for name, each in parts.items()}
    used = list(cuts) if parts is None else [cut for each in parts.values() for cut in each]
    left_out = [each for one in done for each in one.left_out]
    if len(used) < len(cuts):
        count = len(cuts) - len(used)
        text = f"{plural(count, 'episode')} {'is' if count == 1 else 'are'} in no part"
        left_out.append(LeftOut("split", text))
    return Edit(
        out,
        len(used),
        sum(cut.rows for cut in used),
        tuple(features),
        own,
        tuple(dict.fromkeys(note for one in done for note in one.notes)),
        tuple(dict.fromkeys(left_out)),
    )


def _opened(path: str, out: str, follow_links: bool, progress: bool | None) -> DataSet:
    if not sniff(path):
        raise FormatError(path, "", "is not a LeRobot data set; convert makes one")
    same = os.path.realpath(path) == os.path.realpath(out)
    if not same and lies_in(path, out):
        raise FileExistsError(
            f"{printable(out)}: contains {printable(path)}, which it would replace; write elsewhere"
        )
    if not same and lies_in(out, path):
        raise FileExistsError(f"{printable(out)}: is inside {printable(path)}; write elsewhere")
    options = Options(Damage(), follow_links=follow_links, progress=progress)
    made = DataSet.open(path, options)
    if made.info.fps is None:
        raise FormatError(made.info.path, "fps", "is missing")
    if not len(made.plan.lengths):
        raise FormatError(path, "", "has no episodes")
    return made


def _require_even(feature: Feature, resize: Resize, lossless: bool) -> None:
    """Refuse a size that a video cannot have, before anything is written."""
    height, width, _ = resized_shape(_entry(feature), resize)
    if feature.is_video and not lossless and (height % 2 or width % 2):
        raise ValueError(
            f"resize: {feature.name} would have {width} x {height} pixels, but videos need even "
            "numbers; choose another size, or lossless=True"
        )


def _require_same(
    first: DataSet,
    other: DataSet,
    name: str,
    other_name: str,
    features: Sequence[str],
    resizes: Mapping[str, Resize],
) -> None:
    """Require that two data sets can be one."""
    than = f"{printable(other_name)}: differs from {printable(name)}"
    for key in ("fps", "robot_type"):
        own, given = first.info.entries.get(key), other.info.entries.get(key)
        if own != given:
            raise ValueError(f"{than}: {key} is {given!r}, expected {own!r}")
    for feature in features:
        mine, theirs = first.info.features[feature], other.info.features.get(feature)
        if theirs is None:
            text = f"has no feature {feature!r}; remove it, or rename one first"
            raise ValueError(f"{than}: {text}")
        resize = resizes.get(feature)
        if _facts(mine, resize) != _facts(theirs, resize):
            text = f"{feature} is {_facts(theirs, resize)}, expected {_facts(mine, resize)}"
            raise ValueError(f"{than}: {text}")


def _facts(feature: Feature, resize: Resize | None) -> tuple[Any, ...]:
    shape = feature.shape if resize is None else tuple(resized_shape(_entry(feature), resize))
    return feature.dtype, shape, feature.names


def _entry(feature: Feature) -> dict[str, Any]:
    return {"shape": feature.shape, "names": feature.names}
