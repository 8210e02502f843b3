"""The parts of golden vectors: a case as lines of text, dtypes, and exact inputs.

Inputs are dyadic fractions with few bits, so that lines, samples and affines are exact up to the
last rounding.
"""

import ml_dtypes
import numpy as np

BF16 = np.dtype(ml_dtypes.bfloat16)
DTYPES = {
    "f16": np.dtype(np.float16),
    "bf16": BF16,
    "f32": np.dtype(np.float32),
    "f64": np.dtype(np.float64),
    "i8": np.dtype(np.int8),
    "i16": np.dtype(np.int16),
    "i32": np.dtype(np.int32),
    "i64": np.dtype(np.int64),
    "u8": np.dtype(np.uint8),
    "u16": np.dtype(np.uint16),
    "u32": np.dtype(np.uint32),
    "u64": np.dtype(np.uint64),
    "bool": np.dtype(bool),
}
NAMES = {dtype: name for name, dtype in DTYPES.items()}
EPOCH = 1_700_000_000_000_000_000  # in nanoseconds


class Case:
    """One case as lines of text."""

    def __init__(self, name, op):
        self.lines = [f"case {name}", f"op {op}"]

    def set(self, **fields):
        for name, value in fields.items():
            numbers = value if isinstance(value, tuple) else (value,)
            words = [f"{x:.17g}" if isinstance(x, float) else str(x) for x in numbers]
            self.lines.append(" ".join(["set", name, *words]))

    def grid(self, origin, voxel_size, shape):
        numbers = [f"{x:.17g}" for x in (*origin, *voxel_size)]
        self.lines.append(" ".join(["grid", *numbers, *map(str, shape)]))

    def input(self, **tensors):
        self._tensors("in", tensors)

    def output(self, **tensors):
        self._tensors("out", tensors)

    def _tensors(self, direction, tensors):
        for name, tensor in tensors.items():
            if tensor is None:
                continue
            shape = "x".join(map(str, tensor.shape)) or "scalar"
            data = exact_bytes(tensor).hex() or "-"
            self.lines.append(f"{direction} {name} {NAMES[tensor.dtype]} {shape} {data}")

    def text(self):
        return "\n".join([*self.lines, "end", ""])


def exact_bytes(tensor):
    """Return the bytes, with the library's only NaN: positive, all payload bits set."""
    tensor = np.array(tensor, order="C")
    if tensor.dtype in (DTYPES["f16"], BF16, DTYPES["f32"], DTYPES["f64"]):
        bits = tensor.view(f"u{tensor.dtype.itemsize}")
        bits[np.isnan(tensor)] = np.iinfo(bits.dtype).max >> 1
    return tensor.tobytes()


def dyadic(random, shape, dtype, bits=None):
    """Return fractions in -4 .. 4, exact in `dtype`."""
    dtype = DTYPES[dtype]
    bits = bits or {DTYPES["f16"]: 8, BF16: 5, DTYPES["f64"]: 45}.get(dtype, 20)
    return (random.randint(-(4 << bits), 4 << bits, shape) / (1 << bits)).astype(dtype)


def ascending(random, shape, dtype, start=0):
    """Return times with steps of 0 (not first), 1, 2 or 4; i64: in steps of 2^20 ticks from
    `start`.
    """
    steps = random.choice([1, 2, 4, 4, 2, 1, 0], shape)
    steps[..., :1] = 1
    return _as_times(np.cumsum(steps, axis=-1), dtype, start)


def queries(random, shape, dtype, last, start=0):
    """Return multiples of 1/8 (for steps of 1) from before the first time to after `last`."""
    return _as_times(random.randint(-8, (last + 3) * 8, shape) / 8, dtype, start)


def _as_times(times, dtype, start):
    if dtype == "i64":
        return (times * (1 << 20)).astype(np.int64) + start
    return times.astype(DTYPES[dtype])


def rounded(x, dtype):
    with np.errstate(over="ignore", invalid="ignore"):
        return x.astype(dtype)
