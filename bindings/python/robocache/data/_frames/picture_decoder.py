"""PNG and JPEG pictures as frames: RGB bytes, by Pillow.

Pillow decodes JPEG with libjpeg(-turbo), as LeRobot, TensorFlow and OpenCV do: the same bytes for
the same file. Its SIMD and its C code give the same bytes too.
"""

from __future__ import annotations

import io
import struct
import warnings
from typing import TYPE_CHECKING, Any

from .._errors import needed

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

PNG = b"\x89PNG\r\n\x1a\n"
JPEG = b"\xff\xd8\xff"
_MOST = 1 << 28  # pixels of a picture, so that a damaged header does not fill the memory
_ORIENTATION = 0x0112  # tag of EXIF
_ALLOWED = ("RGB", "L", "1")  # modes of Pillow that are RGB or gray of at most 8 bits
_REMEDY = 'convert="RGB" converts it'
_warned = False


class PictureDecoder:
    """Decodes PNG and JPEG pictures to RGB.

    Gray becomes three equal channels. The orientation in EXIF is not applied: the rows of the
    file are the rows of the frame, and the first picture with another orientation gives a warning.

    Parameters
    ----------
    convert
        ``"RGB"`` also accepts pictures that are not 8-bit RGB or gray: CMYK is converted by
        Pillow, alpha is dropped, palettes are looked up, and of 16 bits the upper 8 are kept.
        None refuses them.
    """

    def __init__(self, convert: str | None = None) -> None:
        if convert not in (None, "RGB"):
            raise ValueError(f"convert: is {convert!r}, expected None or 'RGB'")
        self.convert = convert

    def rgb(self, data: bytes) -> NDArray[np.uint8]:
        """Return a picture as RGB, uint8 [H,W,3].

        Raises
        ------
        ValueError
            The content is not PNG or JPEG, is damaged, or is a picture that ``convert`` does not
            accept. The text continues a sentence that begins with the picture.
        """
        import numpy as np

        pillow = needed("PIL.Image", "video", "a picture")
        kind = _require_size(data)
        if needed("PIL.ImageFile", "video", "a picture").LOAD_TRUNCATED_IMAGES:
            text = "PIL.ImageFile.LOAD_TRUNCATED_IMAGES is set; set it to False"
            raise ValueError(f"cannot be checked, since {text}")
        try:
            opened = pillow.open(io.BytesIO(data), formats=(kind.upper(),))
        except (OSError, ValueError, SyntaxError, pillow.DecompressionBombError) as error:
            raise ValueError(f"is a damaged {kind.upper()} picture: {error}") from None
        with opened:
            odd = _odd(opened, data)
            if odd is not None and self.convert is None:
                raise ValueError(f"{odd}, expected 8-bit RGB or gray; {_REMEDY}")
            try:
                opened.load()
                _warn_of_orientation(opened)
                if opened.mode.startswith("I"):  # 16-bit gray
                    gray = (np.asarray(opened).astype(np.uint32) >> 8).astype(np.uint8)
                    return np.repeat(gray[:, :, None], 3, axis=2)
                return np.array(opened if opened.mode == "RGB" else opened.convert("RGB"))
            except (OSError, ValueError, SyntaxError) as error:
                text = f"is a damaged or truncated {kind.upper()} picture: {error}"
                raise ValueError(text) from None

    def arithmetic(self) -> dict[str, Any]:
        """Return what computes the bytes: a part of the key of stored frames."""
        features = needed("PIL.features", "video", "a picture")
        turbo = features.version("libjpeg_turbo")
        library = f"libjpeg-turbo {turbo}" if turbo else f"libjpeg {features.version('jpg')}"
        versions: dict[str, Any] = {"pictures": 1, "jpeg": f"{library} islow, fancy upsampling"}
        if self.convert:  # Pillow converts
            versions |= {"convert": self.convert, "pillow": needed("PIL", "video", "x").__version__}
        return versions


def shape_of(data: bytes) -> tuple[int, int, int]:
    """Return the shape of the frame of a picture, from its header.

    Raises
    ------
    ValueError
        As from :meth:`PictureDecoder.rgb`.
    """
    _require_size(data)
    return (*size_of(data), 3)


def _require_size(data: bytes) -> str:
    """Require a PNG or JPEG picture of a size that can be decoded, and return its kind."""
    kind = kind_of(data)
    if kind is None:
        raise ValueError(f"begins with {data[:4].hex(' ')}, expected a JPEG or PNG picture")
    try:
        height, width = size_of(data)
    except (ValueError, IndexError) as error:
        raise ValueError(f"is a damaged {kind.upper()} picture: {error}") from None
    except Exception as error:  # struct.error, of a header that ends
        raise ValueError(f"is a truncated {kind.upper()} picture: {error}") from None
    if height * width > _MOST:
        raise ValueError(f"has {width} x {height} pixels, expected at most {_MOST:,}")
    return kind


def _odd(opened: Any, data: bytes) -> str | None:
    """Return what a picture has that RGB or gray of 8 bits has not; None if it has nothing."""
    if opened.format == "PNG" and data[24:25] == b"\x10":
        return "has 16 bits per channel"
    if opened.mode in ("P", "PA"):
        return "has a palette"
    if opened.mode in ("RGBA", "LA", "La", "RGBa") or "transparency" in opened.info:
        return "has an alpha channel"
    if opened.mode not in _ALLOWED:
        return f"has the colors {opened.mode}"
    return None


def _warn_of_orientation(opened: Any) -> None:
    """Warn once per process of a picture that viewers show rotated or mirrored."""
    global _warned
    if _warned or opened.format != "JPEG" or "exif" not in opened.info:
        return
    turned = opened.getexif().get(_ORIENTATION, 1)
    if turned != 1:
        _warned = True
        text = f"a JPEG picture has the orientation {turned} in EXIF, which is not applied: "
        warnings.warn(f"{text}the rows of the file are the rows of the frame", stacklevel=4)


# ---- headers ------------------------------------------------------------------------------------


def kind_of(data: bytes) -> str | None:
    """Return "png" or "jpeg" for an encoded picture; None for another content."""
    if data.startswith(PNG):
        return "png"
    return "jpeg" if data.startswith(JPEG) else None


def size_of(data: bytes) -> tuple[int, int]:
    """Return the height and the width of a PNG or JPEG picture."""
    if data.startswith(PNG):
        width, height = struct.unpack(">II", data[16:24])
        return height, width
    at = 2
    while at + 9 <= len(data):
        if data[at] != 0xFF:
            break
        mark = data[at + 1]
        if mark == 0xFF or 0xD0 <= mark <= 0xD8:  # fill bytes, and marks without a content
            at += 1 if mark == 0xFF else 2
        elif 0xC0 <= mark <= 0xCF and mark not in (0xC4, 0xC8, 0xCC):
            height, width = struct.unpack(">HH", data[at + 5 : at + 9])
            return height, width
        else:
            at += 2 + int.from_bytes(data[at + 2 : at + 4], "big")
    raise ValueError("its header has no size, or is truncated")
