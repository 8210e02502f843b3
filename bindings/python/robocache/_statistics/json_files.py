"""Statistics in JSON files: strict reading, and atomic writing."""

from __future__ import annotations

import errno
import json
import os
import re
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, Union

from .._arguments.to_numpy import on_host
from .._files.atomic_write import written_beside
from .._library.errors import shown
from .._printable import kind_of, printable
from .result import UNKNOWN, StatisticsResult

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    F64 = NDArray[np.float64]

Path = Union[str, "os.PathLike[str]"]

_QUANTILE = re.compile(r"q(\d\d)")
_MOMENTS = ("min", "max", "mean", "std")


# ---- reading ------------------------------------------------------------------------------------


def parsed(text: str, where: str) -> Any:
    """Return the value of a JSON text."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{where}: is not valid JSON, or is truncated: {error}") from None


def text_of(path: Path) -> str:
    from ..data._file_access import opened

    with opened(os.fspath(path)) as file:
        data = file.read()
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"{printable(os.fsdecode(path))}: is not UTF-8 text: {error}") from None


def entry(value: Any, where: str) -> dict[str, Any]:
    """Return a value, which must be a JSON object."""
    if not isinstance(value, dict):
        raise TypeError(f"{where}: is {_kind(value)}, expected an object")
    return value


def member(members: dict[str, Any], key: str, where: str) -> Any:
    if key not in members:
        raise ValueError(f"{where}.{key}: is missing")
    return members[key]


def read_feature(
    value: Any, where: str, needed: tuple[str, ...], quantiles: tuple[str, ...] | None = None
) -> StatisticsResult:
    """Return the statistics of one feature.

    ``needed`` are the required keys, ``quantiles`` the optional ones; None: any key such as q01.
    Other keys are ignored.
    """
    import numpy as np

    feature = entry(value, where)
    for key in needed:
        member(feature, key, where)
    if quantiles is None:
        quantiles = tuple(sorted(key for key in feature if _QUANTILE.fullmatch(key)))
    else:
        quantiles = tuple(key for key in quantiles if feature.get(key) is not None)
    shape = _array(feature["mean"], f"{where}.mean").shape
    arrays: dict[str, Any] = {}
    for key in (*_MOMENTS, *quantiles):
        if key not in feature:
            arrays[key] = np.full(shape, np.nan)
            continue
        array = _array(feature[key], f"{where}.{key}")
        if array.shape != shape:
            raise ValueError(f"{where}.{key}: shape is {array.shape}, expected {shape} as for mean")
        arrays[key] = array
    _require(arrays["std"] >= 0, f"{where}.std", "is below 0")
    if "min" in feature and "max" in feature:
        _require(arrays["min"] <= arrays["max"], f"{where}.min", "is above max")
    count = UNKNOWN
    if "count" in feature:
        count = _count(feature["count"], f"{where}.count")
    return StatisticsResult(
        np.full(shape, count, np.int64),
        np.full(shape, UNKNOWN, np.int64),
        **{key: arrays[key] for key in _MOMENTS},
        quantiles=np.stack([arrays[key] for key in quantiles], axis=-2)
        if quantiles
        else np.empty((*shape[:-1], 0, shape[-1])),
        levels=tuple(int(key[1:]) / 100 for key in quantiles),
    )


def _array(lists: Any, where: str) -> F64:
    """Return lists of numbers as float64 [D] or [B,D]; (C,1,1) of images becomes [C]."""
    import numpy as np

    if not isinstance(lists, list):
        raise TypeError(f"{where}: is {_kind(lists)}, expected a list of numbers")
    numbers = _numbers(lists, where)
    try:
        array: F64 = np.array(numbers, np.float64)
    except ValueError:
        raise ValueError(f"{where}: its inner lists have different lengths") from None
    if array.ndim == 3 and array.shape[1:] == (1, 1):
        array = array[:, 0, 0]
    if array.ndim > 2 or array.size == 0:
        raise ValueError(
            f"{where}: shape is {array.shape}, expected (D,), (B, D), or (C, 1, 1) for an image"
        )
    return array


def _numbers(item: Any, where: str, depth: int = 3) -> Any:
    """Return nested lists with their numbers as floats. Lists of one level have one length."""
    if isinstance(item, list):
        if depth == 0:
            raise ValueError(f"{where}: is a list, expected at most three levels of lists")
        items = [_numbers(each, f"{where}[{i}]", depth - 1) for i, each in enumerate(item)]
        for i, each in enumerate(items):
            if _length(each) != _length(items[0]):
                raise ValueError(
                    f"{where}[{i}]: is {_words(each)}, expected {_words(items[0])}, as element 0"
                )
        return items
    if not isinstance(item, (int, float)):  # bool is an int, and LeRobot's min of flags is one
        raise TypeError(f"{where}: is {_kind(item)}, expected a number")
    try:
        number = float(item)
    except OverflowError:
        number = float("inf")
    if not abs(number) < float("inf"):
        raise ValueError(f"{where}: is {shown(item)[:40]}, expected a finite number")
    return number


def _length(item: Any) -> int:
    return len(item) if isinstance(item, list) else -1


def _words(item: Any) -> str:
    return f"a list of {len(item)}" if isinstance(item, list) else "a number"


def _count(counts: Any, where: str) -> int:
    if not isinstance(counts, list) or len(counts) != 1:
        raise TypeError(f"{where}: is {_kind(counts)}, expected a list of one integer")
    (count,) = counts
    if not isinstance(count, int) or isinstance(count, bool):
        raise TypeError(f"{where}[0]: is {_kind(count)}, expected an integer")
    if not 0 <= count < 2**63:
        raise ValueError(f"{where}[0]: is {count}, expected 0 to 2^63 - 1")
    return count


def _require(right: Any, where: str, what: str) -> None:
    import numpy as np

    if not right.all():
        raise ValueError(f"{where}{[int(i) for i in np.argwhere(~right)[0]]}: {what}")


def _kind(value: Any) -> str:
    if value is None:
        return "null"
    names = {
        dict: "an object",
        list: f"a list of {_length(value)}",
        str: "a string",
        bool: "a bool",
    }
    return names.get(type(value), f"{shown(value)}")


def others_in(file: str, results: Collection[str]) -> dict[str, Any]:
    """Return the features in LeRobot's file that are not among ``results``, as JSON values."""
    content = entry(parsed(text_of(file), file), file)
    return {name: feature for name, feature in content.items() if name not in results}


# ---- writing ------------------------------------------------------------------------------------


def features(results: Mapping[str, StatisticsResult]) -> Any:
    """Return the items of a dict of statistics."""
    if not isinstance(results, Mapping):
        raise TypeError(f"results: is {kind_of(results)}, expected a dict")
    for feature, result in results.items():
        if not isinstance(feature, str):
            raise TypeError(
                f"results: has the key {shown(feature)}, expected the name of a feature (a string)"
            )
        if not isinstance(result, StatisticsResult):
            raise TypeError(
                f"results[{feature!r}]: is {kind_of(result)}, expected a StatisticsResult"
            )
    return results.items()


def lists_of(array: Any, where: str, *, image: bool = False) -> Any:
    """Return numbers as lists, for an image as (C,1,1). JSON has neither NaN nor infinities."""
    import numpy as np

    numbers = np.asarray(on_host(array, where), np.float64)
    finite = np.isfinite(numbers)
    if not finite.all():
        index = [int(i) for i in np.argwhere(~finite)[0]]
        raise ValueError(
            f"{where}: is {numbers[tuple(index)]} at {index}, which JSON cannot represent"
        )
    if image and numbers.ndim == 1:
        numbers = numbers[:, None, None]
    return numbers.tolist()


def count_of(result: StatisticsResult, where: str) -> list[int]:
    """Return one count for all channels: the largest number of finite values."""
    import numpy as np

    count = int(np.max(on_host(result.count, where)))
    if count < 0:
        raise ValueError(f"{where}: is unknown, but the file requires it")
    return [count]


def lerobot_feature(
    name: str, result: StatisticsResult, image: bool, quantiles: bool = True
) -> dict[str, object]:
    """Return the statistics of a feature as LeRobot stores them in JSON."""
    feature: dict[str, object] = {
        key: lists_of(getattr(result, key), f"{name}.{key}", image=image) for key in _MOMENTS
    }
    feature["count"] = count_of(result, f"{name}.count")
    for level in result.levels if quantiles else ():
        key = key_of(level, f"{name}.levels")
        feature[key] = lists_of(result.quantile(level), f"{name}.{key}", image=image)
    return feature


def key_of(level: float, where: str) -> str:
    """Return the key of a quantile: "q01" for 0.01."""
    percent = round(100 * level)
    if abs(100 * level - percent) > 1e-9 or percent > 99:
        raise ValueError(f"{where}: is {level}, expected a whole percent, for a key such as q01")
    return f"q{percent:02d}"


def replace(path: Path, text: str) -> None:
    """Write a file atomically: readers find the old text or the new one, never a part."""
    target = os.fsdecode(path)
    if os.path.isdir(target):  # a folder must not be replaced by a file
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), target)
    with written_beside(target, overwrite=True) as part:
        # Not by the module tempfile: the file must have the permissions of any new file.
        with open(part, "x", encoding="utf-8") as file:
            file.write(text)
