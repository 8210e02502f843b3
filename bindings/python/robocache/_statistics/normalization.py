"""Normalization of values by shift, scale, bias and clipping, and its inverse."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Union, overload

from .._arguments.arrays import SEQUENCES
from .._arguments.to_numpy import on_host
from .._library.errors import REFUSALS, blamed, shown
from .._printable import kind_of
from .._typing import Array, Numbers
from .result import StatisticsResult

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from .normalization_styles import Mode, Style


class Parameters:
    """Parameters by name: float64 arrays of one shape, with cached conversions of them."""

    def __init__(
        self, host: dict[str, NDArray[np.float64]], shape: tuple[int, ...], divides: bool
    ) -> None:
        self.host = host
        self.shape = shape
        self.divides = divides
        self._made: dict[Any, dict[str, Any]] = {}  # converted, by library, dtype and device

    def with_parameters(self, values: Any) -> tuple[Any, dict[str, Any], Any]:
        """Return values and parameters in the dtype of the arithmetic, and the result's dtype."""
        import numpy as np

        if type(values) in SEQUENCES:
            try:
                values = np.asarray(values, np.float64)
            except REFUSALS as error:
                raise blamed(error, "values") from None
        # This test can be traced by every version of torch.compile.
        if hasattr(values, "__torch_function__"):
            values, p, kind = self._convert_torch(values)
        elif isinstance(values, (np.ndarray, np.generic)):
            values, p, kind = self._convert_numpy(values)
        else:
            raise TypeError(
                f"values: is {kind_of(values)}, expected an array of NumPy or torch, or a "
                "list of numbers"
            )
        self._require_shape(tuple(values.shape))
        return values, p, kind

    def _convert_numpy(self, values: Any) -> tuple[Any, dict[str, Any], Any]:
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

    def _convert_torch(self, values: Any) -> tuple[Any, dict[str, Any], Any]:
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
            with torch.inference_mode(False):  # inference tensors cannot be used for gradients
                p = {
                    name: torch.tensor(array.tolist(), dtype=computed, device=values.device)
                    for name, array in rounded.items()
                }
            self._made[key] = p
        return values.to(computed), p, kind

    def _rounded(self, dtype: Any) -> dict[str, Any]:
        """Return the parameters in the dtype of the arithmetic, for both directions."""
        import numpy as np

        rounded = {}
        for name, array in self.host.items():
            with np.errstate(over="ignore", under="ignore"):
                rounded[name] = array.astype(dtype)
            lost = np.isinf(rounded[name]) & np.isfinite(array)
            if name == "scale" and self.divides:
                lost |= rounded[name] == 0
            if lost.any() and name not in ("low", "high"):
                raise ValueError(
                    f"{name}: exceeds the range of {dtype} in {place_of(lost)}; "
                    "pass values of float64"
                )
        # y - 0 is y, also for a y of -0, which y - -0 is not.
        rounded["back_bias"] = np.where(rounded["bias"] == 0, np.array(0, dtype), rounded["bias"])
        scale = rounded["scale"]
        # A constant channel has the shift as its inverse: 0 y, or y / inf.
        if self.divides:
            rounded["back"] = np.where(np.isinf(scale), np.array(0, dtype), scale)
        else:
            rounded["back"] = np.where(scale == 0, np.array(np.inf, dtype), scale)
        return rounded

    def _require_shape(self, shape: tuple[int, ...]) -> None:
        own = self.shape
        for mine, size in zip(reversed(own), reversed(shape)):
            if mine not in (1, size):
                break
        else:
            if len(shape) >= len(own):
                return
        raise ValueError(
            f"values: shape is {list(shape)}, expected it to end in {list(own)}, the shape of the "
            "parameters"
        )


def clipped(values: Any, p: dict[str, Any]) -> Any:
    """Return values within the limits. NaN stays NaN."""
    if "low" not in p and "high" not in p:
        return values
    return values.clip(p.get("low"), p.get("high"))


def rounded_to(kind: Any, values: Any) -> Any:
    if hasattr(values, "astype"):
        return values.astype(kind, copy=False)
    return values.to(kind)


def array_of(parameter: Any, name: str, divides: bool = False) -> Any:
    """Return a copy of a parameter as float64. ``divides``: the scale is a divisor."""
    import numpy as np

    if parameter is None:
        if name in ("shift", "scale", "bias"):
            raise TypeError(f"{name}: is None, expected a number or an array")
        return None
    try:
        array = np.array(on_host(parameter, name) if hasattr(parameter, "dtype") else parameter)
    except REFUSALS as error:
        raise blamed(error, name) from None
    if array.dtype.kind not in "iuf" and array.dtype.name != "bfloat16":
        raise TypeError(f"{name}: is {shown(parameter)}, expected a number or an array of numbers")
    array = array.astype(np.float64)
    divisor = divides and name == "scale"
    wrong = np.isnan(array) if divisor or name in ("low", "high") else ~np.isfinite(array)
    expected = "a number"
    if divisor:
        wrong |= array == 0
        expected += " other than 0, to divide by"
    if wrong.any():
        raise ValueError(f"{name}: is {array[wrong][0]} in {place_of(wrong)}, expected {expected}")
    return array


def place_of(wrong: Any) -> str:
    """Return the first True element of a mask as text."""
    import numpy as np

    if wrong.ndim == 0:
        return "all channels"
    index = [int(i) for i in np.argwhere(wrong)[0]]
    return f"channel {index[0]}" if len(index) == 1 else f"element {index}"


Parameter = Union[float, Numbers, Sequence[Sequence[float]]]

_NAMES = ("shift", "scale", "bias", "low", "high", "inverse_scale")


class Normalization:
    """The transform y = clip((x - shift) * scale + bias, low, high), and its inverse.

    With ``divides`` it is y = clip((x - shift) / scale + bias, low, high). The last bits of the two
    differ, so that only the one that a project computes gives its results bit for bit.

    Parameters are numbers, or arrays that broadcast against values: [D] for each channel, or [T,D]
    for each step and channel.

    Each operation is rounded in the dtype of the values (for float16 and bfloat16, in float32).
    Fused multiply-add is never used, so all implementations give the same result.

    Parameters
    ----------
    shift
        Subtracted from the values.
    scale
        Factor; with ``divides``, divisor. 0, or a divisor of infinity, gives ``bias``, for constant
        channels.
    bias
        Added to the result.
    low, high
        Limits of the result. None: no limit; an infinity: no limit for its channel.
    inverse_scale
        Factor that :meth:`invert` uses instead of ``scale``, as LeRobot does for mean and std.
    divides
        Whether values are divided by ``scale``, and multiplied by it in the inverse.

    Raises
    ------
    ValueError
        A parameter is NaN, a divisor is 0, the shapes do not broadcast, or ``low`` is above
        ``high``.
    TypeError
        A parameter is not a number.

    Examples
    --------
    >>> import numpy as np
    >>> import robocache as rbc
    >>> degrees = rbc.Normalization(shift=[0.0, 90.0], scale=[2 / 180, 0.0], bias=[-1.0, 0.0])
    >>> y = degrees.apply(np.array([[90.0, 90.0], [180.0, 91.0]]))
    >>> y
    array([[0., 0.],
           [1., 0.]])
    >>> degrees.invert(y)
    array([[ 90.,  90.],
           [180.,  90.]])
    """

    def __init__(
        self,
        shift: Parameter,
        scale: Parameter,
        bias: Parameter = 0.0,
        low: Parameter | None = None,
        high: Parameter | None = None,
        *,
        inverse_scale: Parameter | None = None,
        divides: bool = False,
    ) -> None:
        import numpy as np

        if not isinstance(divides, (bool, np.bool_)):
            raise TypeError(f"divides: is {shown(divides)}, expected True or False")
        arguments = (shift, scale, bias, low, high, inverse_scale)
        arrays = {
            name: array_of(number, name, bool(divides)) for name, number in zip(_NAMES, arguments)
        }
        known = {name: array for name, array in arrays.items() if array is not None}
        try:
            shape = np.broadcast_shapes(*(array.shape for array in known.values()))
        except ValueError:
            shapes = {name: list(array.shape) for name, array in known.items()}
            raise ValueError(f"shift, scale: shapes do not broadcast: {shapes}") from None
        self._parameters = Parameters(
            {name: np.broadcast_to(array, shape) for name, array in known.items()},
            shape,
            bool(divides),
        )
        if self.low is not None and self.high is not None and (self.low > self.high).any():
            raise ValueError(f"low: is above high in {place_of(self.low > self.high)}")

    # Read-only, so that the cached conversions stay valid.
    @property
    def shift(self) -> NDArray[np.float64]:
        """Number that is subtracted, as float64."""
        return self._parameters.host["shift"]

    @property
    def scale(self) -> NDArray[np.float64]:
        """Factor, or divisor if the normalization divides."""
        return self._parameters.host["scale"]

    @property
    def bias(self) -> NDArray[np.float64]:
        """Number that is added."""
        return self._parameters.host["bias"]

    @property
    def low(self) -> NDArray[np.float64] | None:
        """The lower limit of the result, or None."""
        return self._parameters.host.get("low")

    @property
    def high(self) -> NDArray[np.float64] | None:
        """The upper limit of the result, or None."""
        return self._parameters.host.get("high")

    @property
    def inverse_scale(self) -> NDArray[np.float64] | None:
        """Factor of the inverse, or None if ``scale`` is the number of the inverse too."""
        return self._parameters.host.get("inverse_scale")

    @property
    def divides(self) -> bool:
        """Whether values are divided by ``scale``."""
        return self._parameters.divides

    @classmethod
    def of(  # plain: ok
        cls,
        result: StatisticsResult,
        mode: Mode,
        *,
        style: Style = "lerobot",
        mask: Sequence[bool] | Numbers | None = None,
        clip: bool | None = None,
        epsilon: float | None = None,
        dtype: Literal["float32", "float64"] = "float64",
    ) -> Normalization:
        """Create the normalization that a project computes from statistics, with its constants.

        Parameters
        ----------
        result
            The statistics of the values.
        mode
            "mean_std", "min_max", "quantiles" (1 % and 99 %), "quantile10" (10 % and 90 %) or
            "gaussian" (mean and std, in diffusion_policy and for robomimic's actions). Not every
            project has every mode.
        style
            "lerobot", "openpi", "gr00t", "openvla", "octo", "diffusion_policy" or "robomimic".
        mask
            One bool per channel, only for octo and openvla: channels with False are unchanged.
        clip
            Whether to clip to [-1, 1]. None: as the project does. Required for GR00T's "mean_std",
            which clips actions but not states.
        epsilon
            Replacement for the project's own constant against small divisors. diffusion_policy uses
            1e-4 for normalizations that it fits itself, and 1e-7 for those from statistics.
        dtype
            The dtype of the project's statistics. "float32": they are rounded to it, and divisors
            are computed in it. LeRobot does so for values of float32, which then have its results
            bit for bit. openpi always computes in float64, and ignores this.

        Returns
        -------
        Normalization
            Its arrays have the shape of ``result.mean``.

        Raises
        ------
        ValueError
            The style does not have the mode or the option, or ``result`` lacks the statistics that
            it needs.
        TypeError
            ``result`` is not a :class:`StatisticsResult`.
        """
        from .normalization_styles import parameters

        return cls(**parameters(result, mode, style, mask, clip, epsilon, dtype))

    @overload
    def apply(self, values: Sequence[Any]) -> NDArray[np.float64]: ...
    @overload
    def apply(self, values: Array) -> Array: ...
    def apply(self, values: Any) -> Any:
        """Normalize values [..., D] of NumPy or torch, on their device.

        Floats keep their dtype. Integers become float64 in NumPy and the default dtype in torch.
        Gradients of torch are supported.
        """
        values, p, kind = self._parameters.with_parameters(values)
        result = values - p["shift"]
        result = result / p["scale"] if self.divides else result * p["scale"]
        result = result + p["bias"]
        return rounded_to(kind, clipped(result, p))

    @overload
    def invert(self, values: Sequence[Any]) -> NDArray[np.float64]: ...
    @overload
    def invert(self, values: Array) -> Array: ...
    def invert(self, values: Any) -> Any:
        """Return the original values: (clip(y, low, high) - bias) / scale + shift.

        A normalization that divides multiplies here. In a constant channel, with a scale of 0 or a
        divisor of infinity, the result is ``shift``. Clipped values are not restored: they give the
        limit.
        """
        values, p, kind = self._parameters.with_parameters(values)
        result = clipped(values, p) - p["back_bias"]
        if "inverse_scale" in p:
            result = result * p["inverse_scale"]
        elif self.divides:
            result = result * p["back"]
        else:
            result = result / p["back"]
        return rounded_to(kind, result + p["shift"])

    @property
    def mean(self) -> list[float]:
        """The argument ``mean`` of :func:`resample` and :func:`fuse`: the shift of each channel.

        Raises
        ------
        ValueError
            The normalization has a bias or limits, which these functions do not support.
        """
        self._require_plain("mean")
        return list(map(float, self.shift))

    @property
    def std(self) -> list[float]:
        """The argument ``std`` of :func:`resample` and :func:`fuse`: 1 / scale; infinite for 0."""
        self._require_plain("std")
        if self.divides:
            return list(map(float, self.scale))
        return [1.0 / scale if scale != 0 else float("inf") for scale in map(float, self.scale)]

    def _require_plain(self, name: str) -> None:
        if self.low is not None or self.high is not None:
            raise ValueError(
                f"{name}: this normalization clips, which resample and fuse do not; "
                "apply it to their result"
            )
        if self.bias.any():
            raise ValueError(
                f"{name}: this normalization has a bias, which resample and fuse do not take; "
                "apply it to their result"
            )
        shape = list(self.shift.shape)
        if len(shape) != 1:
            raise ValueError(
                f"{name}: parameters have shape {shape}, but resample and fuse take [D] "
                "(one per channel)"
            )

    def to_dict(self) -> dict[str, Any]:
        """Return the parameters as lists and numbers, for :meth:`from_dict`."""
        host = self._parameters.host
        numbers = {name: host[name].tolist() if name in host else None for name in _NAMES}
        return {**numbers, "divides": self.divides}

    @classmethod
    def from_dict(cls, parameters: Mapping[str, Any]) -> Normalization:
        """Create a normalization from the result of :meth:`to_dict`."""
        for name in parameters:
            if name not in (*_NAMES, "divides"):
                expected = ", ".join((*_NAMES, "divides"))
                raise ValueError(f"{name}: is not a parameter, expected {expected}")
        for name in ("shift", "scale"):
            if name not in parameters:
                raise ValueError(f"{name}: is missing")
        return cls(**parameters)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Normalization):
            return NotImplemented
        return self.to_dict() == other.to_dict()

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        parameters = self.to_dict()
        unset = [name for name, value in parameters.items() if value is None or value is False]
        for name in unset:
            del parameters[name]
        return f"Normalization({', '.join(f'{name}={each}' for name, each in parameters.items())})"

    def __getstate__(self) -> dict[str, Any]:
        return self.to_dict()

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc]
