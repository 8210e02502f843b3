"""The features of the output, and the streams and channels that they consist of."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from ..._printable import printable
from ..._suggestions import did_you_mean
from .._errors import some
from .._kinds.selectors import ALL, columns_of, of_topic, split
from .._source import is_media

STATE, ACTION, CAMERA = "observation.state", "action", "observation.images."
# Words of a topic that say what it carries, not which camera it is.
_COMMON = {"image", "image_raw", "image_rect", "image_color", "image_rect_color", "compressed"}
_COMMON |= {"color", "rgb", "camera", "raw", "image_raw_compressed"}


@dataclass(frozen=True)
class Part:
    """Some channels of a stream, in a feature."""

    stream: str
    channels: str = "*"
    label: str = ""  # put before the names of the channels

    @property
    def text(self) -> str:
        own = self.stream if self.channels == "*" else f"{self.stream}:{self.channels}"
        return f"{self.label}={own}" if self.label else own


@dataclass(frozen=True)
class Wanted:
    """The requested features, before a recording is read."""

    tracks: Mapping[str, tuple[str, ...]]  # parts by feature, as texts
    images: Mapping[str, str]  # streams by feature
    exclude: tuple[str, ...] = ()  # patterns of streams
    all_tracks: bool = False  # no track was named: take every stream


def wanted_of(
    tracks: Mapping[str, Any] | None, images: Mapping[str, str] | None, exclude: Iterable[str]
) -> Wanted:
    """Check the arguments of ``convert``."""
    made: dict[str, tuple[str, ...]] = {}
    for name, parts in (tracks or {}).items():
        texts = (parts,) if isinstance(parts, str) else tuple(parts)
        if not texts or not all(isinstance(text, str) and text for text in texts):
            raise TypeError(
                f"tracks[{name!r}]: is {parts!r}, expected streams, such as "
                "['/joint_states:position']"
            )
        made[str(name)] = texts
    cameras: dict[str, str] = {}
    for name, stream in (images or {}).items():
        if not isinstance(stream, str) or not stream:
            raise TypeError(f"images[{name!r}]: is {stream!r}, expected the name of a stream")
        full = name if name.startswith("observation.") else f"{CAMERA}{name}"
        cameras[full] = stream
    both = [name for name in cameras if name in made]
    if both:
        raise ValueError(f"images: {both[0]!r} is the name of a track too")
    if isinstance(exclude, str):
        exclude = (exclude,)
    return Wanted(made, cameras, tuple(exclude), all_tracks=tracks is None)


def excluded(name: str, patterns: Collection[str]) -> bool:
    """Whether a stream, or its topic, matches a pattern such as "/camera/*"."""
    return any(fnmatchcase(name, p) or fnmatchcase(name, f"{p}/*") for p in patterns)


def part_of(text: str, known: Sequence[str], where: str) -> Part:
    """Return the part that a text names: [LABEL=]STREAM[:CHANNELS].

    Names of streams may contain "=" and ":": the longest existing name is used.
    """
    known = tuple(known)
    options = [("", text)]
    for at, sign in enumerate(text):
        if sign == "=" and at:
            options.append((text[:at], text[at + 1 :]))
    fits = []
    for label, rest in options:
        found = split(rest, known)
        if found is not None:
            fits.append((len(found[0]), Part(*found, label)))
    if fits:
        return max(fits, key=lambda fit: fit[0])[1]
    _, _, stream = text.rpartition("=")
    topic = of_topic(stream.partition(":")[0], known)
    split_into = f". It is split into {some(topic)}" if topic else ""
    like = "" if topic else did_you_mean(stream.partition(":")[0], known)
    raise KeyError(
        f"{where}: no such stream {text!r}{split_into}; expected one of {some(known)}{like}"
    )


def named(text: str) -> tuple[str, str]:
    """Split NAME=STREAM; without a name, take the word of the topic that names the camera."""
    name, equals, stream = text.partition("=")
    if equals and name and stream and "/" not in name:
        return name, stream
    words = [word for word in re.split(r"[/.]", text) if word]
    own = [word for word in words if word not in _COMMON] or words[:1] or ["camera"]
    return re.sub(r"[^0-9A-Za-z_-]", "_", own[-1]), text


def parts_of(
    wanted: Wanted, streams: Mapping[str, str], where: str
) -> tuple[dict[str, tuple[Part, ...]], dict[str, str]]:
    """Return the parts of each feature, and the stream of each camera.

    ``streams``: the streams of the source, with their types.
    """
    known = list(streams)
    features: dict[str, tuple[Part, ...]] = {}
    if wanted.all_tracks:
        for name, kind in streams.items():
            if not is_media(kind) and not excluded(name, wanted.exclude):
                features[plain_name(name, features)] = (Part(name),)
    for feature, texts in wanted.tracks.items():
        at = f"{where}: tracks[{feature!r}]"
        features[feature] = tuple(part_of(text, known, at) for text in texts)
        for part in features[feature]:
            _require_numbers(part, streams[part.stream], at)
    cameras = {}
    for feature, stream in wanted.images.items():
        if stream not in streams:
            media = [name for name, kind in streams.items() if is_media(kind)] or known
            raise KeyError(
                f"{where}: images[{feature!r}]: no such stream {stream!r}, expected one of "
                f"{some(media)}{did_you_mean(stream, media)}"
            )
        cameras[feature] = stream
    return features, cameras


def _require_numbers(part: Part, kind: str, place: str) -> None:
    """Refuse all numbers of a picture, a sound or a point cloud, which only describe it."""
    if part.channels != ALL or not is_media(kind):
        return
    name = printable(part.stream)
    keep = "name it with images= to keep them"
    if kind == "Image":  # the camera of a data set, which has no channels
        raise ValueError(f"{place}: {name} holds images, expected numbers; {keep}")
    content, keep = ("images", f"{keep}, or ") if "image" in kind.lower() else (kind, "")
    raise ValueError(
        f"{place}: {name} holds {content}, whose numbers are not a robot's state; {keep}name one "
        f"of its channels, such as {name}:height"
    )


def plain_name(stream: str, known: Collection[str]) -> str:
    """Return a name for the track of a stream: without slashes, which few formats store."""
    plain = stream.strip("/").replace("/", ".") or "stream"
    return plain if plain not in known else f"{plain}#{len(known)}"


def columns_in(part: Part, names: Sequence[str] | None, width: int, where: str) -> list[int]:
    """Return the columns of a part in its stream."""
    return columns_of(part.channels, names, width, f"{where}: {part.text}", part.stream)


def joined_names(named_parts: Sequence[tuple[Part, Sequence[str]]]) -> list[str]:
    """Return the names of the channels of a feature, which are unique.

    A label is put before the names; names that several parts have get the stream before them.
    """
    given = [f"{p.label}.{name}" if p.label else name for p, names in named_parts for name in names]
    if len(set(given)) == len(given):
        return given
    full = [
        f"{p.label or p.stream.strip('/')}.{name}" for p, names in named_parts for name in names
    ]
    if len(set(full)) == len(full):
        return full
    return [f"{name}#{i}" if full.count(name) > 1 else name for i, name in enumerate(full)]
