"""The state of a loader: its position, and digests of everything that decides its batches."""

from __future__ import annotations

import datetime
import hashlib
import math
import operator
from collections.abc import Mapping
from typing import Any

from .._episodes.episodes import Episodes
from .._library.dtypes import dtype_name
from .._library.errors import REFUSALS, shown
from .._operations.image_draws import ColorJitter
from .._printable import kind_of
from .._statistics.normalization import Normalization
from .._windows.spec import WindowSpec
from .._windows.transform import Transform
from .._windows.window import Window

_VERSION = 1
_LARGEST = (1 << 63) - 1


class StateChecks:
    """The numbers that a state and its loader must share; they are the same in every process."""

    def __init__(
        self, episodes: Episodes, spec: WindowSpec, num_samples: int, shuffle: bool, weights: Any
    ) -> None:
        """``weights`` come from :func:`checked_weights`: only their proportions count."""
        self.num_samples = num_samples
        self.digests = {
            "shuffle": int(shuffle),
            "weights": 0 if weights is None else _digest(_plain(weights)),
            "spec": _digest(_spec(spec)),
            "episodes": digest_of_episodes(episodes, spec),
        }

    def state(self, seed: int, epoch: int, position: int) -> dict[str, int]:
        """Return a state of ints, for JSON and ``torch.load(weights_only=True)``."""
        return {
            "version": _VERSION,
            "seed": seed,
            "epoch": epoch,
            "position": position,
            "num_samples": self.num_samples,
            **self.digests,
        }

    def position(self, state: Any) -> tuple[int, int, int]:
        """Return the seed, the epoch and the position of a state.

        Raises
        ------
        ValueError
            A number is missing or out of range, or a loader with other arguments saved the state.
        TypeError
            The state is not a mapping, or holds something other than ints.
        """
        if not isinstance(state, Mapping):
            raise TypeError(
                f"state: is {kind_of(state)}, expected the dict that state_dict returned"
            )
        numbers: dict[str, int] = {}
        for name in self.state(0, 0, 0):
            if name not in state:
                raise ValueError(f"state: lacks {name!r}, expected the result of state_dict")
            numbers[name] = checked_int(state[name], f"state: {name}")
        if numbers["version"] != _VERSION:
            raise ValueError(f"state: has version {numbers['version']}, expected {_VERSION}")
        if numbers["num_samples"] != self.num_samples:
            raise ValueError(
                f"state: has {numbers['num_samples']} samples, but this loader has "
                f"{self.num_samples}; the episodes or the spec differ"
            )
        differences = [
            _DIFFERENCES[name](numbers[name], digest)
            for name, digest in self.digests.items()
            if numbers[name] != digest
        ]
        if differences:
            raise ValueError(
                f"state: {'; '.join(differences)}; create the loader with the same arguments as "
                "the loader that saved the state"
            )
        epoch, position = numbers["epoch"], numbers["position"]
        if epoch < 0:
            raise ValueError(f"state: epoch is {epoch}, expected 0 or more")
        if not 0 <= position <= self.num_samples:
            raise ValueError(
                f"state: position is {position}, expected 0 to {self.num_samples}, the samples "
                "of an epoch"
            )
        return numbers["seed"], epoch, position


def checked_int(value: Any, name: str) -> int:
    """Return an int of 64 bits.

    Raises
    ------
    TypeError
        The value is not an int.
    ValueError
        The value does not fit into 64 bits.
    """
    try:
        if isinstance(value, bool):
            raise TypeError
        number = operator.index(value)
    except REFUSALS:
        raise TypeError(f"{name} is {shown(value)}, expected an int") from None
    if not -_LARGEST - 1 <= number <= _LARGEST:
        raise ValueError(f"{name} is {shown(number)}, expected an int of 64 bits")
    return number


def _weights_text(digest: int) -> str:
    return f"weights with the digest {digest}" if digest else "None"


_DIFFERENCES = {
    "shuffle": lambda saved, here: f"shuffle is {bool(saved)}, expected {bool(here)}",
    "weights": lambda saved, here: (
        f"weights: {_weights_text(saved)}, expected {_weights_text(here)}"
    ),
    "spec": lambda saved, here: f"spec has the digest {saved}, expected {here}",
    "episodes": lambda saved, here: (
        f"episodes have the digest {saved} of their lengths, channels and dtypes, expected {here}"
    ),
}


# ---- digests ------------------------------------------------------------------------------------


def digest_of_episodes(episodes: Episodes, spec: WindowSpec) -> int:
    """Return a digest of the lengths, channels and dtypes of the tracks that a spec needs."""
    return _digest(_episodes(episodes, spec))


def _digest(plain: Any) -> int:
    """Return a hash of nested tuples of strings and None: 63 bits, more than 0."""
    hashed = hashlib.blake2b(repr(plain).encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return (int.from_bytes(hashed, "little") >> 1) or 1


def _spec(spec: WindowSpec) -> Any:
    windows = sorted(
        (name, spec.track(name), _window(window, spec)) for name, window in spec.windows.items()
    )
    return windows, spec.anchor, _plain(spec.anchors), _dtype(spec.dtype), _plain(spec.lag)


def _window(window: Window, spec: WindowSpec) -> Any:
    fields = {
        name: _plain(value)
        for name, value in vars(window).items()
        if name not in ("track", "images")
    }
    if window.images is not None:
        images = {name: _plain(value) for name, value in vars(window.images).items()}
        fields["images"] = sorted({**images, "dtype": _dtype(window.images.dtype)}.items())
    fields["dtype"] = _dtype(window.dtype)
    fields["transforms"] = tuple(_transform(each, spec) for each in window.transforms)
    return sorted(fields.items())


def _transform(transform: Transform, spec: WindowSpec) -> Any:
    """Return a transform with a normalized reference: a window's name, and an offset from 0."""
    stream, offset = transform.reference
    name = stream if isinstance(stream, str) else list(spec.windows)[stream]
    fields = {name: _plain(value) for name, value in vars(transform).items()}
    fields["reference"] = (name, _plain(offset % len(spec.windows[name].offsets)))
    return sorted(fields.items())


def _dtype(dtype: Any) -> Any:
    return None if dtype is None else dtype_name(dtype)


def _episodes(episodes: Episodes, spec: WindowSpec) -> Any:
    tracks = {name: episodes[name] for name in map(spec.track, spec.numbers)}
    if not tracks:
        name = spec._rows_track(episodes)
        tracks = {name: episodes[name]}
    return [
        (
            name,
            None if track.values is None else dtype_name(track.values.dtype),
            track.num_channels,
            track.times is not None,
            track.arrivals is not None,
            _plain(track.lengths),
        )
        for name, track in sorted(tracks.items())
    ]


def _plain(value: Any) -> Any:
    """Return a value as nested strings: equal for equal values, and in every process."""
    import numpy as np

    if isinstance(value, (str, type(None))):
        return value
    if type(value) is datetime.timedelta:
        return "timedelta", str(value // datetime.timedelta(microseconds=1))
    if isinstance(value, np.generic) and value.dtype.kind in "biuf":
        value = value.item()
    if isinstance(value, float) and value.is_integer() and math.copysign(1.0, value) > 0:
        value = int(value)
    if isinstance(value, float):
        return "float", value.hex()
    if isinstance(value, int):
        return "int", str(int(value))
    if isinstance(value, (list, tuple)):
        return tuple(map(_plain, value))
    if isinstance(value, ColorJitter):
        return "color", _plain(value.ranges())
    if isinstance(value, Normalization):
        return "normalization", _plain(sorted(value.to_dict().items()))
    if hasattr(value, "__array__"):
        array = np.ascontiguousarray(value)
        hashed = hashlib.blake2b(array.tobytes(), digest_size=16).hexdigest()
        return "array", array.dtype.str, str(array.shape), hashed
    return type(value).__qualname__, str(value)
