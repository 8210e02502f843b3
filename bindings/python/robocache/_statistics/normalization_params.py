"""The parameters of a normalization beside values: in their library, dtype and device."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._arguments.arrays import SEQUENCES
from .._arguments.to_numpy import on_host
from .._library.errors import REFUSALS, blamed, shown

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Parameters:
    """Arrays of float64 of one shape by their names, and what was made of them."""

    def __init__(self, host: dict[str, NDArray[np.float64]], shape: tuple[int, ...]) -> None:
        self.host = host
        self.shape = shape
        self._made: dict[Any, dict[str, Any]] = {}  # by library, dtype and device

    def beside(self, values: Any) -> tuple[Any, dict[str, Any], Any]:
        """Values in the dtype of the arithmetic, the parameters beside them, the result's dtype."""
        import numpy as np

        if type(values) in SEQUENCES:
            try:
                values = np.asarray(values, np.float64)
            except REFUSALS as error:
                raise blamed(error, "values") from None
        # By what torch.compile can trace in all its versions.
        if hasattr(values, "__torch_function__"):
            values, p, kind = self._beside_torch(values)
        elif isinstance(values, (np.ndarray, np.generic)):
            values, p, kind = self._beside_numpy(values)
        else:
            raise TypeError(
                f"values: is a {type(values).__name__}, expected an array of NumPy or torch, or a "
                "list"
            )
        self._require_shape(tuple(values.shape))
        return values, p, kind

    def _beside_numpy(self, values: Any) -> tuple[Any, dict[str, Any], Any]:
        import numpy as np

        kind = values.dtype
        if kind.name in ("float16", "bfloat16"):
            computed: Any = np.dtype(np.float32)
        elif kind.kind == "f" and kind.itemsize in (4, 8):
            computed = kind.newbyteorder("=")
        elif kind.kind in "biu":
            computed = kind = np.dtype(np.float64)
        else:
            raise TypeError(f"values: dtype is {kind}, expected a float, integer or bool dtype")
        key = ("numpy", computed)
        if key not in self._made:
            self._made[key] = self._rounded(computed)
        return values.astype(computed, copy=False), self._made[key], kind

    def _beside_torch(self, values: Any) -> tuple[Any, dict[str, Any], Any]:
        import numpy as np
        import torch

        kind = values.dtype
        if kind.is_complex or kind.is_floating_point and torch.finfo(kind).bits < 16:
            raise TypeError(f"values: dtype is {kind}, expected a float, integer or bool dtype")
        if not kind.is_floating_point:
            kind = torch.get_default_dtype()
        computed = torch.float64 if kind == torch.float64 else torch.float32
        key = (computed, values.device)
        p = self._made.get(key)
        if p is None:
            rounded = self._rounded(np.dtype(str(computed).rpartition(".")[2]))
            with torch.inference_mode(False):  # such tensors could not be used for gradients
                p = {
                    name: torch.tensor(array.tolist(), dtype=computed, device=values.device)
                    for name, array in rounded.items()
                }
            self._made[key] = p
        return values.to(computed), p, kind

    def _rounded(self, dtype: Any) -> dict[str, Any]:
        """The parameters in the dtype of the arithmetic, and what the way back divides by."""
        import numpy as np

        rounded = {}
        for name, array in self.host.items():
            with np.errstate(over="ignore"):
                rounded[name] = array.astype(dtype)
            lost = np.isinf(rounded[name]) & np.isfinite(array)
            if lost.any() and name not in ("low", "high"):
                raise ValueError(
                    f"{name}: is beyond {dtype} in {place_of(lost)}; take float64 values"
                )
        scale = rounded["scale"]
        # y / inf is 0, so that a scale of 0 gives the shift.
        rounded["divisor"] = np.where(scale == 0, np.array(np.inf, dtype), scale)
        return rounded

    def _require_shape(self, shape: tuple[int, ...]) -> None:
        own = self.shape
        for mine, given in zip(reversed(own), reversed(shape)):
            if mine not in (1, given):
                break
        else:
            if len(shape) >= len(own):
                return
        raise ValueError(
            f"values: shape is {list(shape)}, expected it to end in {list(own)} as the parameters"
        )


def clipped(values: Any, p: dict[str, Any]) -> Any:
    """NaN stays what it is."""
    if "low" not in p and "high" not in p:
        return values
    return values.clip(p.get("low"), p.get("high"))


def rounded_to(kind: Any, values: Any) -> Any:
    if hasattr(values, "astype"):
        return values.astype(kind, copy=False)
    return values.to(kind)


def array_of(given: Any, name: str) -> Any:
    """A parameter as float64, a copy."""
    import numpy as np

    if given is None:
        if name in ("shift", "scale", "bias"):
            raise TypeError(f"{name}: is None, expected a number or an array")
        return None
    try:
        array = np.array(on_host(given, name) if hasattr(given, "dtype") else given)
    except REFUSALS as error:
        raise blamed(error, name) from None
    if array.dtype.kind not in "iuf" and array.dtype.name != "bfloat16":
        raise TypeError(f"{name}: is {shown(given)}, expected a number or an array of numbers")
    array = array.astype(np.float64)
    wrong = np.isnan(array) if name in ("low", "high") else ~np.isfinite(array)
    if wrong.any():
        raise ValueError(f"{name}: is {array[wrong][0]} in {place_of(wrong)}, expected a number")
    return array


def place_of(wrong: Any) -> str:
    """The first place in words."""
    import numpy as np

    if wrong.ndim == 0:
        return "all channels"
    index = [int(i) for i in np.argwhere(wrong)[0]]
    return f"channel {index[0]}" if len(index) == 1 else f"element {index}"
