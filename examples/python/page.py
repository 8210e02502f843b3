"""Fonts, titles and saving, shared by the pictures of the demo."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")  # writes files without a screen

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure
from PIL import Image

STYLE: dict[Any, Any] = {
    "font.size": 12,
    "axes.edgecolor": "#8C8C8C",
    "axes.labelcolor": "#222222",
    "axes.labelsize": 11.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 12,
    "axes.titlecolor": "#222222",
    "axes.titlelocation": "left",
    "xtick.color": "#444444",
    "ytick.color": "#444444",
    "hatch.linewidth": 0.7,
}

#: Inches. The picture is made for a page about 1000 pixels wide, and sharp at twice that.
WIDTH = 13.0

_DPI = 150

#: Colour of unknown areas.
UNKNOWN = "#E4E4E4"


def draw_title(figure: Figure, left: float, title: str, subtitle: str) -> None:
    """Two lines on top, `left` inches from the edge."""
    height = figure.get_figheight()
    figure.text(
        left / WIDTH,
        1 - 0.45 / height,
        title,
        fontsize=18,
        fontweight="bold",
        color="#111111",
    )
    figure.text(left / WIDTH, 1 - 0.75 / height, subtitle, fontsize=12.5, color="#555555")


def save(figure: Figure, path: Path, colours: int | None = None) -> None:
    """Write a PNG; with `colours`, with a palette of that size, which makes the file smaller."""
    if colours is None:
        # Without the version of matplotlib, the file depends only on its contents.
        figure.savefig(path, dpi=_DPI, metadata={"Software": None})
    else:
        figure.set_dpi(_DPI)
        figure.canvas.draw()
        drawn = Image.fromarray(np.asarray(figure.canvas.buffer_rgba())).convert("RGB")
        few = drawn.quantize(colours, dither=Image.Dither.NONE)
        few.save(path, optimize=True)
    plt.close(figure)
