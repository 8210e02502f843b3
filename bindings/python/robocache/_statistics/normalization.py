"""Values made comparable: shifted, scaled, perhaps clipped, and back again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Union, overload

from .._arguments.arrays import SEQUENCES
from .._arguments.to_numpy import on_host
from .._library.errors import REFUSALS, blamed, shown
from .._typing import Array, Numbers
from .result import StatisticsResult

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from .normalization_styles import Mode, Style


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


Parameter = Union[float, Numbers, Sequence[Sequence[float]]]

_NAMES = ("shift", "scale", "bias", "low", "high", "inverse_scale")


class Normalization:
    """y = clip((x - shift) * scale + bias, low, high), and the way back.

    Parameters are numbers, or arrays that broadcast against values: [D] one a channel, [T,D] one a
    step and channel.

    Each step is rounded, in the dtype of the values (float16 and bfloat16: in float32). It is never
    a fused multiply-add, so all ways to compute it agree.

    Parameters
    ----------
    shift
        What is subtracted.
    scale
        What is multiplied by. 0 gives ``bias``: for a channel that does not vary.
    bias
        What is added.
    low, high
        The limits of the result; None: there is none. Infinities are none for their channel.
    inverse_scale
        What :meth:`invert` multiplies by where it does not divide by ``scale``. LeRobot's mean and
        std have such an inverse.

    Raises
    ------
    ValueError
        A parameter is NaN, shapes do not go together, or ``low`` is above ``high``.
    TypeError
        A parameter is no number.

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
    ) -> None:
        import numpy as np

        given = (shift, scale, bias, low, high, inverse_scale)
        arrays = {name: array_of(each, name) for name, each in zip(_NAMES, given)}
        known = {name: array for name, array in arrays.items() if array is not None}
        try:
            shape = np.broadcast_shapes(*(array.shape for array in known.values()))
        except ValueError:
            shapes = {name: list(array.shape) for name, array in known.items()}
            raise ValueError(f"shift, scale: shapes do not go together: {shapes}") from None
        self._parameters = Parameters(
            {name: np.broadcast_to(array, shape) for name, array in known.items()}, shape
        )
        if self.low is not None and self.high is not None and (self.low > self.high).any():
            raise ValueError(f"low: is above high in {place_of(self.low > self.high)}")

    # Attributes that cannot be set, so that what was made of them stays right.
    @property
    def shift(self) -> NDArray[np.float64]:
        """What is subtracted, float64."""
        return self._parameters.host["shift"]

    @property
    def scale(self) -> NDArray[np.float64]:
        """What is multiplied by."""
        return self._parameters.host["scale"]

    @property
    def bias(self) -> NDArray[np.float64]:
        """What is added."""
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
        """What the way back multiplies by, or None: it divides by ``scale``."""
        return self._parameters.host.get("inverse_scale")

    @classmethod
    def of(
        cls,
        result: StatisticsResult,
        mode: Mode,
        *,
        style: Style = "lerobot",
        mask: Sequence[bool] | Numbers | None = None,
        clip: bool | None = None,
        epsilon: float | None = None,
    ) -> Normalization:
        """The normalization that a project makes of statistics, to the last constant.

        Parameters
        ----------
        result
            The statistics of the values.
        mode
            "mean_std", "min_max", "quantiles" (1 % and 99 %), "quantile10" (10 % and 90 %) or
            "gaussian" (mean and std, of diffusion_policy and of robomimic's actions), where the
            project has it.
        style
            "lerobot", "openpi", "gr00t", "openvla", "octo", "diffusion_policy" or "robomimic".
        mask
            One bool a channel, of octo and openvla alone: a channel with False stays as it is.
        clip
            Whether to clip to [-1, 1]; None: as the project does. GR00T clips actions and not
            states by "mean_std", so there it must be said.
        epsilon
            In place of the project's own constant against small divisors. diffusion_policy has
            1e-4 for what it fits itself, and 1e-7 for what it makes from statistics.

        Returns
        -------
        Normalization
            With arrays of the shape of ``result.mean``.

        Raises
        ------
        ValueError
            The style does not have the mode or the option, or ``result`` lacks what it takes.
        TypeError
            ``result`` is no :class:`StatisticsResult`.
        """
        from .normalization_styles import parameters

        return cls(**parameters(result, mode, style, mask, clip, epsilon))

    @overload
    def apply(self, values: Sequence[Any]) -> NDArray[np.float64]: ...
    @overload
    def apply(self, values: Array) -> Array: ...
    def apply(self, values: Any) -> Any:
        """Normalize values [..., D] of NumPy or torch, where they are.

        Floats keep their dtype. Integers become what their library divides them to: float64 in
        NumPy, the default dtype in torch. Gradients of torch go through.
        """
        values, p, kind = self._parameters.beside(values)
        result = (values - p["shift"]) * p["scale"] + p["bias"]
        return rounded_to(kind, clipped(result, p))

    @overload
    def invert(self, values: Sequence[Any]) -> NDArray[np.float64]: ...
    @overload
    def invert(self, values: Array) -> Array: ...
    def invert(self, values: Any) -> Any:
        """The values that were normalized: (clip(y, low, high) - bias) / scale + shift.

        Where ``scale`` is 0 that is ``shift``. What was clipped comes back as the limit.
        """
        values, p, kind = self._parameters.beside(values)
        result = clipped(values, p) - p["bias"]
        if "inverse_scale" in p:
            result = result * p["inverse_scale"]
        else:
            result = result / p["divisor"]
        return rounded_to(kind, result + p["shift"])

    @property
    def mean(self) -> list[float]:
        """What :func:`resample` and :func:`fuse` take as ``mean``: the shift of each channel.

        An error where there is a bias or a clip, which those do not have.
        """
        self._require_plain("mean")
        return list(map(float, self.shift))

    @property
    def std(self) -> list[float]:
        """What :func:`resample` and :func:`fuse` take as ``std``: 1 / scale; infinite for 0."""
        self._require_plain("std")
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
                f"{name}: parameters have shape {shape}, and resample and fuse take "
                "[D], one a channel"
            )

    def to_dict(self) -> dict[str, Any]:
        """Plain lists and numbers, which :meth:`from_dict` takes."""
        host = self._parameters.host
        return {name: host[name].tolist() if name in host else None for name in _NAMES}

    @classmethod
    def from_dict(cls, parameters: Mapping[str, Any]) -> Normalization:
        """The normalization that :meth:`to_dict` was called on."""
        for name in parameters:
            if name not in _NAMES:
                raise ValueError(f"{name}: is no parameter, expected {', '.join(_NAMES)}")
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
        given = {name: each for name, each in self.to_dict().items() if each is not None}
        return f"Normalization({', '.join(f'{name}={each}' for name, each in given.items())})"

    def __getstate__(self) -> dict[str, Any]:
        return self.to_dict()

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc]
