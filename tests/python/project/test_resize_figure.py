"""The pictures of docs/concepts/images.md are those that the library makes."""

from __future__ import annotations

import base64
import re
import sys
from pathlib import Path

import numpy as np
import pytest

import robocache as rbc

EXTENSIONS = Path(__file__).resolve().parents[3] / "docs" / "extensions"


@pytest.fixture(scope="module")
def frames():
    sys.path.insert(0, str(EXTENSIONS))
    try:
        import resized_frames
    finally:
        sys.path.remove(str(EXTENSIONS))
    return resized_frames


def resized(frames, size, **options):
    image = rbc.images(frames.frame()[None], size, dtype="uint8", layout="hwc", **options)
    return image[0]


def test_the_pictures_have_the_bits_of_the_library(frames):
    shown = list(frames.rules())
    assert len(shown) == 11
    for rule, name, image in shown:
        expected = resized(frames, frames.SMALL, rule=rule, filter=name)
        np.testing.assert_array_equal(image, expected)
    for fit, image in frames.fits():
        np.testing.assert_array_equal(image, resized(frames, frames.SQUARE, fit=fit))


@pytest.mark.parametrize(("kind", "count"), [("rules", 12), ("fits", 4)])
def test_the_figure(frames, kind, count):
    page = frames.figure(kind)
    found = re.findall(r'base64,([^"]+)"', page)
    assert len(found) == count
    assert len(page) < 150_000
    image = pytest.importorskip("PIL.Image")
    import io

    first = np.asarray(image.open(io.BytesIO(base64.b64decode(found[0]))))
    np.testing.assert_array_equal(first, frames.frame())
