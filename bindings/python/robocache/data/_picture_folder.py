"""Folders of PNG and JPEG pictures: their frames, and the same pictures in another size."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from .. import __version__
from .._files.atomic_write import written_beside
from .._files.overwrite import PICTURES
from ._errors import FormatError, LeftOut
from ._file_access import opened, walked
from ._frames.picture_decoder import PictureDecoder
from ._progress import progress
from ._write import pictures
from ._write.resize import Resize

SUFFIXES = (".png", ".jpg", ".jpeg")
KINDS = {"png": ".png", "jpeg": ".jpg"}  # suffixes of the output
_GRAY_ALPHA, _RGBA = 4, 6  # types of colour in the header of a PNG


@dataclass
class Resized:
    """Pictures that were written: their sizes before and after, with counts."""

    pictures: int = 0
    sizes: Counter[tuple[tuple[int, int], tuple[int, int]]] = field(default_factory=Counter)
    left_out: list[LeftOut] = field(default_factory=list)


def pictures_in(path: str) -> tuple[list[str], list[str]]:
    """Return the pictures of a folder relative to it, sorted, and its other files.

    A path of a picture gives its own name.
    """
    if not os.path.isdir(path):
        name = os.path.basename(path)
        return ([name], []) if name.lower().endswith(SUFFIXES) else ([], [name])
    found: list[str] = []
    others: list[str] = []
    for base, _, names in walked(path):
        for name in names:
            place = os.path.relpath(os.path.join(base, name), path)
            (found if name.lower().endswith(SUFFIXES) else others).append(place)
    return sorted(found), sorted(others)


class Pictures:
    """Reads the pictures of a folder."""

    def __init__(self, path: str, names: Sequence[str]) -> None:
        self.path, self.names = path, list(names)
        self.decoder = PictureDecoder("RGB")
        self.with_alpha = 0

    def place(self, name: str) -> str:
        return os.path.join(self.path, name) if os.path.isdir(self.path) else self.path

    def read(self, name: str) -> Any:
        """Return a picture as RGB, uint8 [h,w,3].

        Raises
        ------
        FormatError
            It is damaged, or has 16 bits, such as a depth image.
        """
        place = self.place(name)
        with opened(place) as file:
            content = file.read()
        if content.startswith(pictures.PNG) and len(content) > 25:
            if content[24] == 16:
                text = "has 16 bits, as depth images do; robocache cloud reads those"
                raise FormatError(place, "", text)
            self.with_alpha += content[25] in (_GRAY_ALPHA, _RGBA)
        try:
            return self.decoder.rgb(content)
        except ValueError as error:
            raise FormatError(place, "", str(error)) from None


def write_resized(
    source: Pictures, out: str, resize: Resize, kind: str, overwrite: bool, show: bool | None
) -> Resized:
    """Write all pictures in another size, with the same names and folders.

    ``out`` is a folder, or a file if the source is one picture. It appears completely or not at
    all.
    """
    done = Resized()
    one = not os.path.isdir(source.path)
    targets = _targets(source, kind)
    with written_beside(out, overwrite) as part:
        if not one:
            os.mkdir(part)
        with progress("Resizing", len(source.names), show, "pictures") as advance:
            for name, target in zip(source.names, targets):
                frame = source.read(name)
                resized = resize(frame)
                place = part if one else os.path.join(part, target)
                os.makedirs(os.path.dirname(place), exist_ok=True)
                with open(place, "xb") as file:
                    file.write(pictures.encoded(resized, kind))
                done.sizes[(frame.shape[:2], resized.shape[:2])] += 1
                done.pictures += 1
                advance(1)
        if not one:
            facts = {"robocache": __version__, "source": source.path, "resize": resize.facts}
            with open(os.path.join(part, PICTURES), "x", encoding="utf-8") as file:
                json.dump(facts, file, indent=1)
    if source.with_alpha:
        text = f"the alpha of {source.with_alpha} pictures, which are written as RGB"
        done.left_out.append(LeftOut(source.path, text))
    return done


def _targets(source: Pictures, kind: str) -> list[str]:
    """Return the name of each picture in the output."""
    originals: dict[str, str] = {}
    for name in source.names:
        target = os.path.splitext(name)[0] + KINDS[kind]
        if target in originals:
            raise ValueError(
                f"{source.path}: {originals[target]} and {name} would both be {target}; rename one"
            )
        originals[target] = name
    return list(originals)


def spread(names: Sequence[Any], count: int) -> list[Any]:
    """Return at most ``count`` of some names, from the first to the last, evenly apart."""
    if len(names) <= count:
        return list(names)
    if count == 1:
        return [names[0]]
    return [names[round(i * (len(names) - 1) / (count - 1))] for i in range(count)]


def samples_of(source: Pictures, count: int) -> Iterator[tuple[str, Any]]:
    """Yield the names and the frames of some pictures."""
    for name in spread(source.names, count):
        yield name, source.read(name)
