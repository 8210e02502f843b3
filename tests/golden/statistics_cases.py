"""Cases of rbcStatistics."""

import numpy as np
from vectors import DTYPES, Case, dyadic

import statistics_reference

FLAGS = {"per_row": 1 << 16}


def statistics_case(name, values, levels=(0.0, 0.3, 0.5, 1.0), per_row=False, ddof=0, **options):
    """Return a case of values [B,S,D] or [S,D], or packed with batch_offsets.

    Options are lengths, batch_offsets and sample_mask.
    """
    case = Case(f"statistics/{name}", "statistics")
    if per_row:
        case.set(flags=FLAGS["per_row"])
    if ddof:
        case.set(ddof=ddof)
    levels = np.array(levels, np.float64)
    case.input(values=values, levels=levels, **options)
    mask = options.get("sample_mask", np.ones(values.shape[:-1], bool)).astype(bool)
    if "batch_offsets" in options:
        ends = options["batch_offsets"]
        rows = [slice(begin, end) for begin, end in zip(ends[:-1], ends[1:])]
        groups = [values[row][mask[row]] for row in rows]
    elif values.ndim == 2:
        groups = [values[mask]]
    else:
        lengths = options.get("lengths", [values.shape[1]] * len(values))
        groups = [row[:n][m[:n]] for row, m, n in zip(values, mask, lengths)]
    if not per_row:
        groups = [np.concatenate(groups)]
    answers = [statistics_reference.statistics(group, levels, ddof) for group in groups]
    for output in answers[0]:
        answer = np.stack([answer[output] for answer in answers])
        case.output(**{output: answer if per_row else answer[0]})
    return case


def cases():
    """Yield every dtype, every division of a batch, and numbers that a sum of floats gets wrong."""
    random = np.random.RandomState(7)
    for name in ("f16", "bf16", "f32", "f64"):
        values = dyadic(random, (9, 2), name)
        values[3, 1] = np.nan
        yield statistics_case(name, values)
    for name in ("i8", "i16", "i32", "i64", "u8"):
        limits = np.iinfo(DTYPES[name])
        values = random.randint(limits.min, limits.max, (7, 2), DTYPES[name])
        yield statistics_case(name, values, ddof=1)
    yield statistics_case("bool", random.randint(0, 2, (7, 2)).astype(bool))

    values = dyadic(random, (3, 5, 2), "f32")
    mask = random.randint(0, 4, (3, 5)) > 0
    lengths = np.array([5, 0, 2], np.int32)
    yield statistics_case("padded", values, lengths=lengths, sample_mask=mask)
    yield statistics_case("rows", values, per_row=True, lengths=lengths, sample_mask=mask, ddof=1)
    offsets = np.array([0, 4, 4, 13])
    yield statistics_case("packed", values.reshape(15, 2), per_row=True, batch_offsets=offsets)

    steady = np.float32([[499.99], [500.01]])[random.randint(0, 2, 31)]
    yield statistics_case("steady f32", steady)
    yield statistics_case("spike f64", np.array([[1.0], [1e30], [-3.0], [1e-30]]))
    yield statistics_case("huge f64", np.array([[1e200], [-1e-170], [3e200], [-1e200]]))
    yield statistics_case("subnormal f64", np.array([[3.0], [-1.0], [7.0]]) * 5e-324)
    yield statistics_case("nothing f32", np.zeros((0, 2), np.float32))
    yield statistics_case("one f64", np.array([[0.1, -0.0]]), ddof=1)
    yield statistics_case("not finite f32", np.float32([[np.inf], [np.nan], [-np.inf]]))
