"""A strip of frames of each camera of an episode or a bag, as small JPEG files in the page."""

from __future__ import annotations

import base64
import io
import os
from html import escape
from typing import Any

from ..._printable import printable
from .._convert.cameras import frames_of as frames_of_bag
from .._convert.messages import is_known
from .._errors import FormatError
from .._formats.lerobot import lerobot
from .._formats.lerobot.frames import frames_of, is_camera
from .._formats.lerobot.stored_statistics import DataSet
from .._time_units import per_second
from .facts import Facts

_FRAMES = 8  # per camera
_CAMERAS = 4
_HIGH = 120  # pixels


def strips(source: Any, episode: int) -> str:
    """Return the frames of the cameras of an episode; why they are missing, if they are."""
    path = source.source
    if path is None or not lerobot.sniff(os.fspath(path)):
        return ""
    data_set = DataSet.open(os.fspath(path), _options())
    cameras = [each for each in data_set.info.features.values() if is_camera(each)][:_CAMERAS]
    chosen = source._about.chosen
    place = int(episode if chosen is None else chosen[episode])
    parts = []
    for camera in cameras:
        try:
            parts.append(_strip(data_set, camera, place, episode))
        except ModuleNotFoundError as error:
            return f'<p class="soft">Frames of cameras are not shown: {_text(error)}</p>'
        except (FormatError, ValueError) as error:
            text = f"{camera.name}: no frames are shown: {error}"
            parts.append(f'<p class="soft">{_text(text)}</p>')
    return f"<h4>Cameras, episode {episode}</h4>{''.join(parts)}" if parts else ""


def cameras_section(facts: Facts) -> str:
    """Return frames of the cameras of a recording, which lead to their times in the plots."""
    recording = facts.source
    chosen: dict[str, tuple[int, Any]] = {}  # by camera: the place of its stream, some frames
    for i, stream in enumerate(facts.streams):
        is_bag = hasattr(recording._source, "messages")
        if is_bag and len(chosen) < _CAMERAS and is_known(recording.info(stream.name).kind):
            count = len(recording[stream.name])
            if count:
                chosen[stream.name] = i, spread(count)
    if not chosen:
        return ""
    figures: dict[str, list[str]] = {name: [] for name in chosen}
    why: dict[str, str] = {}
    try:
        wanted = {name: rows for name, (_, rows) in chosen.items()}
        for name, frame in frames_of_bag(recording, wanted):
            place, rows = chosen[name]
            try:
                content, size = _jpeg(frame.image)
            except (ModuleNotFoundError, FormatError, ValueError) as error:
                why.setdefault(name, str(error))
                continue
            at = _seconds_of(facts, recording[name], int(rows[frame.row]))
            figures[name].append(_figure(name, at, place, content, size))
    except (ModuleNotFoundError, FormatError, ValueError) as error:
        why.update({name: str(error) for name in chosen if not figures[name]})
    parts = []
    for name in chosen:
        parts.append(f'<p class="soft">{_text(name)}</p>')
        if figures[name]:
            parts.append(f'<div class="strip wide" tabindex="0">{"".join(figures[name])}</div>')
        if name in why:
            parts.append(f'<p class="soft">Some frames are not shown: {_text(why[name])}</p>')
    return f'<h2>Cameras</h2><div class="card">{"".join(parts)}</div>'


def _seconds_of(facts: Facts, stream: Any, row: int) -> float:
    """Return the time of a sample since the begin of all streams."""
    clock = facts.overview["clock"]
    times = stream.times(clock if clock in stream.clocks else None)
    origin = facts.overview["begin"] or 0
    return float(times[row] - origin) / per_second(stream.unit)


def _figure(name: str, at: float, place: int, content: str, size: tuple[int, int]) -> str:
    alt = _text(f"{name} at {at:.3f} s")
    link = f'<a href="#s{place}" data-at="{at:.9g},{at:.9g}">{at:.3f} s</a>'
    return (
        f'<figure><img src="data:image/jpeg;base64,{content}" width="{size[0]}" '
        f'height="{size[1]}" alt="{alt}" title="{alt}"><figcaption>{link}</figcaption></figure>'
    )


def spread(count: int) -> Any:
    """Return the indices of some frames, evenly from the first to the last."""
    import numpy as np

    return np.unique(np.linspace(0, count - 1, _FRAMES).round().astype(int))


def _options() -> Any:
    from .._errors import Damage
    from .._options import Options

    return Options(Damage("keep"), progress=False)


def _strip(data_set: DataSet, camera: Any, place: int, episode: int) -> str:
    info, plan = data_set.info, data_set.plan
    length = int(plan.lengths[place])
    if length == 0:
        return ""
    wanted = {place: spread(length).tolist()}
    figures = []
    for _, row, pixels in frames_of(info, plan, camera, wanted, data_set.options):
        content, size = _jpeg(pixels)
        alt = _text(f"{camera.name}, row {row}")
        figures.append(
            f'<figure><img src="data:image/jpeg;base64,{content}" width="{size[0]}" '
            f'height="{size[1]}" alt="{alt}" title="{alt}"><figcaption>row {row}</figcaption>'
            "</figure>"
        )
    head = f'<p class="soft">{_text(camera.name)}</p>'
    strip = f'<div class="strip wide" tabindex="0">{"".join(figures)}</div>'
    return f"<div>{head}{strip}</div>"


def _jpeg(pixels: Any) -> tuple[str, tuple[int, int]]:
    from PIL import Image

    image = Image.fromarray(pixels)
    image.thumbnail((4 * _HIGH, _HIGH))
    out = io.BytesIO()
    image.save(out, "JPEG", quality=70)
    return base64.b64encode(out.getvalue()).decode("ascii"), image.size


def _text(value: Any) -> str:
    return escape(printable(value), quote=True)
