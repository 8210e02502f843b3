"""Cases of rbcTakeRows."""

import numpy as np
from vectors import DTYPES, Case


def take_rows(name, values, indices, fill_value=None):
    case = Case(f"take_rows/{name}", "take_rows")
    batches = np.broadcast_to(values, (*indices.shape[:-1], *values.shape[-2:]))
    fill = np.array(fill_value or 0).astype(values.dtype)
    taken = np.take_along_axis(batches, np.maximum(indices, 0)[..., None], axis=-2)
    if fill_value is not None:
        case.set(fill_value=fill_value)
    case.input(values=values, indices=indices)
    case.output(out=np.where(indices[..., None] < 0, fill, taken).astype(values.dtype))
    return case


def cases():
    random = np.random.RandomState(9)
    values = random.randint(0, 100, (2, 6, 3))
    indices = np.array([[5, -1, 0, 0], [1, 2, -1, 4]])
    yield take_rows("f32", values.astype(np.float32), indices)
    yield take_rows(
        "bf16, i32 indices, -1 gives 2",
        values.astype(DTYPES["bf16"]),
        indices.astype(np.int32),
        2.0,
    )
    yield take_rows("u8 of one array", values[0].astype(np.uint8), indices, 255.0)
    yield take_rows("i64, without batch", values[0].astype(np.int64), indices[1], -7.0)
