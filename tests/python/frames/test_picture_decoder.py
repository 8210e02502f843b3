"""PNG and JPEG pictures as frames: what is decoded, and what is refused."""

import io
import warnings

import numpy as np
import pytest

from robocache.data._frames import picture_decoder
from robocache.data._frames.picture_decoder import PictureDecoder, shape_of

Image = pytest.importorskip("PIL.Image")

PIXELS = np.random.default_rng(0).integers(0, 256, (24, 40, 3), np.uint8)


def encoded(image, kind="PNG", **options):
    content = io.BytesIO()
    image = Image.fromarray(image) if isinstance(image, np.ndarray) else image
    image.save(content, kind, **options)
    return content.getvalue()


def test_rgb_and_gray():
    decoder = PictureDecoder()
    assert (decoder.rgb(encoded(PIXELS)) == PIXELS).all()
    gray = decoder.rgb(encoded(PIXELS[:, :, 0]))
    assert (gray == PIXELS[:, :, :1]).all() and gray.shape == PIXELS.shape
    bits = Image.fromarray(PIXELS[:, :, 0] > 127)
    assert (decoder.rgb(encoded(bits)) == (PIXELS[:, :, :1] > 127) * 255).all()
    for kind in ("PNG", "JPEG"):
        content = encoded(PIXELS, kind)
        assert shape_of(content) == PIXELS.shape
        assert (decoder.rgb(content) == np.asarray(Image.open(io.BytesIO(content)))).all()


def rgb16():
    """A PNG picture of 16 bits per channel: Pillow reads it, but does not write it."""
    import struct
    import zlib

    def chunk(kind, content):
        check = struct.pack(">I", zlib.crc32(kind + content))
        return struct.pack(">I", len(content)) + kind + content + check

    rows = PIXELS.astype(">u2") * 257
    lines = b"".join(b"\0" + row.tobytes() for row in rows)
    head = struct.pack(">IIBBBBB", PIXELS.shape[1], PIXELS.shape[0], 16, 2, 0, 0, 0)
    parts = chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(lines)) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + parts


def odd_pictures():
    image = Image.fromarray(PIXELS)
    wide = PIXELS[:, :, 0].astype(np.uint16) * 257
    return {
        "an alpha channel": (encoded(image.convert("RGBA")), PIXELS),
        "a palette": (encoded(image.convert("P")), image.convert("P").convert("RGB")),
        "the colors CMYK": (encoded(image.convert("CMYK"), "JPEG"), None),
        "16 bits": (encoded(wide), PIXELS[:, :, :1]),
        "16 bits per channel": (rgb16(), PIXELS),
        "alpha channel": (encoded(image, transparency=(1, 2, 3)), PIXELS),
    }


@pytest.mark.parametrize("what", odd_pictures())
def test_other_pictures_need_convert(what):
    content, expected = odd_pictures()[what]
    with pytest.raises(ValueError, match=rf'{what}.*expected 8-bit RGB or gray; convert="RGB"'):
        PictureDecoder().rgb(content)
    found = PictureDecoder("RGB").rgb(content)
    assert found.shape == PIXELS.shape and found.dtype == np.uint8
    if expected is not None:
        assert (found == np.asarray(expected)).all()


@pytest.mark.parametrize("kind", ["PNG", "JPEG"])
def test_damage(kind):
    content = encoded(PIXELS, kind)
    for length in range(0, len(content) - 14, 37):
        with pytest.raises(ValueError, match="truncated|damaged|begins with|has no size"):
            PictureDecoder().rgb(content[:length])
    with pytest.raises(ValueError, match="begins with 47 49 46 38, expected a JPEG or PNG"):
        PictureDecoder().rgb(b"GIF89a")
    large = bytearray(encoded(PIXELS))
    large[16:24] = b"\0\1\0\0\0\1\0\0"
    with pytest.raises(ValueError, match="has 65536 x 65536 pixels, expected at most"):
        PictureDecoder().rgb(bytes(large))


def test_truncated_pictures_are_never_allowed(monkeypatch):
    from PIL import ImageFile

    monkeypatch.setattr(ImageFile, "LOAD_TRUNCATED_IMAGES", True)
    with pytest.raises(ValueError, match="LOAD_TRUNCATED_IMAGES is set; set it to False"):
        PictureDecoder().rgb(encoded(PIXELS))


def test_the_orientation_is_not_applied(monkeypatch):
    monkeypatch.setattr(picture_decoder, "_warned", False)
    exif = Image.Exif()
    exif[0x0112] = 6
    content = encoded(PIXELS, "JPEG", exif=exif)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = [PictureDecoder().rgb(content) for _ in range(3)]
    assert [str(each.message) for each in caught if "orientation 6" in str(each.message)]
    assert len(caught) == 1 and found[0].shape == PIXELS.shape


def test_arguments():
    with pytest.raises(ValueError, match="convert: is 'L', expected None or 'RGB'"):
        PictureDecoder("L")
    assert "convert" in PictureDecoder("RGB").arithmetic()
