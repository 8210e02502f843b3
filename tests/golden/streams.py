"""The shared parts of cases of resample and fuse: reference results, and a stream's params."""

import numpy as np
from vectors import DTYPES, rounded

import reference

METHODS = ["linear", "nearest", "previous", "next", "cubic", "pchip", "slerp", "angle"]
PERIODS = [  # of angles
    "angle",
    "angle_deg",
    "angle_turn",
    "angle_positive",
    "angle_deg_positive",
    "angle_turn_positive",
]
OUTSIDE = ["hold", "fill", "extrapolate"]
CHECK_TIMES, CAUSAL = 1, 2  # RBC_FLAG_...
EXACT = {"linear", "nearest", "previous", "next"}  # on the inputs of vectors.py
EXACT |= {name for name in PERIODS if "deg" in name or "turn" in name}
STREAM_CHOICES = {"method": METHODS, "outside": OUTSIDE}


def interpolated(values, times, query_times, dtype, **options):
    """Return out in `dtype`, and the mask; certain bit for bit."""
    out_dtype = DTYPES[dtype]
    with np.errstate(all="ignore"):
        out, mask = reference.resample(
            values, times, query_times, floats=out_dtype.kind not in "iub", **options
        )
    if out.dtype.kind in "iub":
        return out.astype(out_dtype), mask
    method = options.get("method", "linear")
    bound = reference.error_bound(values, times, out, "float64", method)
    for begin, count, name in [(0, None, method)] if isinstance(method, str) else method:
        if name in EXACT:
            bound[..., begin : None if count is None else begin + count] = 0
    # The fill value, or a sample; some quaternions are invalid, and their neighbours have a value.
    exact = np.repeat(~mask[..., None], out.shape[-1], axis=-1)
    if "slerp" in str(method):
        exact &= out == options.get("fill_value", 0.0)
    bound[exact] = 0
    for begin, count, name in [(0, None, method)] if isinstance(method, str) else method:
        if name in reference.TURNS:
            part = slice(begin, None if count is None else begin + count)
            out[..., part] = _below_the_end(out[..., part], name, out_dtype)
    for apart in (out - bound, out + bound):
        np.testing.assert_array_equal(rounded(apart, out_dtype), rounded(out, out_dtype))
    computed_in_f64 = values.dtype in (np.float64, np.int32, np.int64)
    return rounded(out if computed_in_f64 else rounded(out, np.float32), out_dtype), mask


def put_stream(case, options):
    """Set the params of a stream from keywords of the reference."""
    method = options.get("method", "linear")
    if isinstance(method, str):
        case.set(method=METHODS.index(method))
    else:
        case.lines += [f"group {begin} {n} {_codes(name)}" for begin, n, name in method]
    if "outside" in options:
        case.set(outside=OUTSIDE.index(options["outside"]))
    limits = ("fill_value", "max_gap", "tolerance", "max_age")
    case.set(**{k: options[k] for k in limits if k in options})
    case.input(**{k: options.get(k) for k in ("lengths", "batch_offsets")})
    case.input(shift=options.get("mean"), sample_mask=options.get("sample_mask"))
    case.input(arrivals=options.get("arrivals"))
    if "std" in options:
        case.input(scale=1 / options["std"])


def put_lag(case, lag, times):
    """Set the lag of a call in the field that fits its times."""
    if lag:
        case.set(**{"lag_ticks" if times.dtype == np.int64 else "lag": lag})


def arrivals_of(random, times):
    """Return arrivals in any order: most a little after their times, some much later or never."""
    delays = random.choice([0, 1, 3, 8, 30], times.shape, p=[0.2, 0.35, 0.25, 0.15, 0.05])
    if times.dtype == np.int64:
        return times + delays * (1 << 18)
    arrivals = times + delays / 4
    arrivals[random.random_sample(times.shape) < 0.1] = np.nan
    return arrivals.astype(times.dtype)


def _below_the_end(angles, method, dtype):
    """Replace values that round to the end of the range by the last number before it."""
    start, length = reference.TURNS[method]
    end = start + length
    digits = {"float16": 11, "bfloat16": 8, "float32": 24, "float64": 53}[dtype.name]
    spacing = 2.0 ** (np.ceil(np.log2(end)) - digits)
    top = (np.ceil(end / spacing) - 1) * spacing
    return np.where(angles < end, np.minimum(angles, top), angles)


def _codes(method):
    """Return the method's number, and the period's if it is not 0."""
    if method in METHODS:
        return METHODS.index(method)
    return f"{METHODS.index('angle')} {PERIODS.index(method)}"


def quaternions(random, shape, dtype):
    q = random.randint(-64, 64, (*shape, 4)) + np.array([0.5, 0.25, 0, 0])
    return (q / np.linalg.norm(q, axis=-1, keepdims=True)).astype(DTYPES[dtype])


def with_no_rotations(random, shape, dtype):
    """Make two quaternions per sample, some of them invalid, possibly the last one."""
    q = np.stack([quaternions(random, shape, dtype) for _ in range(2)], axis=-2)
    q[0, 1, 0], q[0, 4, 1], q[0, 8, 1] = 0, [0, -0.0, 0, -0.0], 0
    q[1, 0, 0, 2], q[1, 3, 1, 3], q[1, 6, 0, 0] = np.nan, np.inf, -np.inf
    return q.reshape(*shape, 8)


def without(values, there):
    """Fill missing samples with values that must not be used."""
    odd = np.nan if values.dtype.kind == "f" else 12345
    rows = np.reshape(there, values.shape[:-1]) if values.ndim == 3 else np.ravel(there)
    values[rows == 0] = odd
    return values
