"""Contact sheets: frames before and after a resize, as an HTML page or a PNG picture."""

from __future__ import annotations

import base64
import html
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .._operations.images import images
from ._write import pictures

SUFFIXES = (".html", ".png")
_WIDEST = 480  # pixels of a frame in the PNG
_GAP = 8
_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
:root {{ color-scheme: light dark; }}
body {{ font: 15px/1.5 system-ui, sans-serif; margin: 1.5rem; }}
.pair {{ display: flex; flex-wrap: wrap; gap: 1rem; align-items: flex-start; margin: 1rem 0 2rem; }}
figure {{ margin: 0; max-width: 100%; }}
figcaption {{ color: GrayText; }}
img {{ max-width: 100%; height: auto; }}
</style></head><body>
<h1>{title}</h1>
{pairs}
</body></html>
"""


@dataclass(frozen=True)
class Pair:
    """A frame before and after."""

    name: str
    before: Any  # uint8 [h,w,3]
    after: Any


def contents(pairs: Sequence[Pair], title: str, suffix: str) -> bytes:
    """Return the content of a sheet with the suffix .html or .png."""
    return _html(pairs, title) if suffix == ".html" else pictures.png(_grid(pairs))


def _html(pairs: Sequence[Pair], title: str) -> bytes:
    parts = []
    for pair in pairs:
        figures = [_figure(pair.before, "before"), _figure(pair.after, "after")]
        name = html.escape(pair.name)
        parts.append(f'<h2>{name}</h2>\n<div class="pair">{"".join(figures)}</div>')
    page = _PAGE.format(title=html.escape(title), pairs="\n".join(parts))
    return page.encode("utf-8", "backslashreplace")


def _figure(image: Any, word: str) -> str:
    height, width = image.shape[:2]
    content = base64.b64encode(pictures.png(image)).decode("ascii")
    caption = f"{word}: {width} x {height} pixels"
    return (
        f'<figure><img width="{width}" height="{height}" alt="{caption}" '
        f'src="data:image/png;base64,{content}"><figcaption>{caption}</figcaption></figure>'
    )


def _grid(pairs: Sequence[Pair]) -> Any:
    """Return a picture with a row for each pair: before at the left, after at the right."""
    import numpy as np

    rows = [(_shrunk(pair.before), _shrunk(pair.after)) for pair in pairs]
    columns = [max(row[i].shape[1] for row in rows) for i in range(2)]
    heights = [max(image.shape[0] for image in row) for row in rows]
    page = np.full((sum(heights) + _GAP * (len(rows) + 1), sum(columns) + _GAP * 3, 3), 255, "u1")
    top = _GAP
    for row, height in zip(rows, heights):
        left = _GAP
        for image, width in zip(row, columns):
            page[top : top + image.shape[0], left : left + image.shape[1]] = image
            left += width + _GAP
        top += height + _GAP
    return page


def _shrunk(image: Any) -> Any:
    """Return an image that is not wider than a column."""
    height, width = image.shape[:2]
    if width <= _WIDEST:
        return image
    size = (max(1, round(height * _WIDEST / width)), _WIDEST)
    return images(image[None], size, dtype="uint8", layout="hwc")[0]
