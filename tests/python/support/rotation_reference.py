"""Rotations by the textbook, with the 64 bits of NumPy's longdouble: every representation is read
as a matrix and written from one. It shares nothing with the library.

>>> convert([0, 0, 1, 1], "quat_xyzw", "euler_XYZ").astype(float) / np.pi
array([0. , 0. , 0.5])
"""

import numpy as np

ORDERS = "xyz xzy yxz yzx zxy zyx xyx xzx yxy yzy zxz zyz".split()
NAMES = {  # and their numbers in C
    name: i
    for i, name in enumerate(
        "quat_xyzw quat_wxyz rotvec matrix rot6d_rows rot6d_columns rot6d_interleaved".split()
    )
}
NAMES.update((f"euler_{order}", 16 + i) for i, order in enumerate(ORDERS))
NAMES.update((f"euler_{order.upper()}", 32 + i) for i, order in enumerate(ORDERS))
CHANNELS = {name: 3 for name in NAMES}
CHANNELS.update(quat_xyzw=4, quat_wxyz=4, matrix=9, rot6d_rows=6, rot6d_columns=6)
CHANNELS.update(rot6d_interleaved=6)

_GIMBAL_LOCK = 1e-7
_wide = np.longdouble
_PI = np.arctan2(_wide(0), _wide(-1))


def convert(rotations, source, target):
    """Convert [...,C] to [...,D] in longdouble. Input that is not a rotation gives NaN."""
    rotations = np.asarray(rotations)
    rows = rotations.reshape(-1, rotations.shape[-1]).astype(_wide)
    out = [_one(row, source, target) for row in rows]
    return np.array(out, _wide).reshape(*rotations.shape[:-1], CHANNELS[target])


def _one(row, source, target):
    with np.errstate(all="ignore"):
        matrix = read(source, row)
    if matrix is None or not np.isfinite(matrix).all():
        return np.full(CHANNELS[target], np.nan, _wide)
    return 0 + np.array(write(target, matrix))  # zeros without a sign


def read(name, row):
    """The matrix, or None."""
    if not np.isfinite(row).all():
        return None
    if name == "quat_wxyz":
        return _of_quaternion(*row)
    if name == "quat_xyzw":
        return _of_quaternion(row[3], *row[:3])
    if name == "rotvec":
        return _of_rotvec(row)
    if name == "matrix":
        return _nearest(row.reshape(3, 3))
    if name == "rot6d_rows":
        return _gram_schmidt(*row.reshape(2, 3)).T
    if name == "rot6d_columns":
        return _gram_schmidt(*row.reshape(2, 3))
    if name == "rot6d_interleaved":
        return _gram_schmidt(*row.reshape(3, 2).T)
    first, second, third = (_about(axis, angle) for axis, angle in zip(name[6:].lower(), row))
    return first @ second @ third if name[6:].isupper() else third @ second @ first


def write(name, matrix):
    if name.startswith("quat"):
        w, *xyz = _quaternion(matrix)
        return [w, *xyz] if name == "quat_wxyz" else [*xyz, w]
    if name == "rotvec":
        w, *xyz = _quaternion(matrix)
        length = np.sqrt(sum(x * x for x in xyz))
        return np.array(xyz) * (2 * np.arctan2(length, w) / length if length > 0 else _wide(2))
    if name == "matrix":
        return matrix.ravel()
    if name == "rot6d_rows":
        return matrix[:2].ravel()
    if name == "rot6d_columns":
        return matrix.T[:2].ravel()
    if name == "rot6d_interleaved":
        return matrix[:, :2].ravel()
    axes = ["xyz".index(axis) for axis in name[6:].lower()]
    return _euler(matrix, axes) if name[6:].isupper() else _extrinsic(matrix, axes)


def _of_quaternion(w, x, y, z):
    n = w * w + x * x + y * y + z * z
    if n == 0:
        return None
    return (
        np.array(
            [
                [n - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
                [2 * (x * y + w * z), n - 2 * (x * x + z * z), 2 * (y * z - w * x)],
                [2 * (x * z - w * y), 2 * (y * z + w * x), n - 2 * (x * x + y * y)],
            ]
        )
        / n
    )


def _of_rotvec(v):
    half = np.sqrt(v @ v) / 2
    return _of_quaternion(np.cos(half), *(v * (np.sin(half) / half if half > 0 else 1) / 2))


def _about(axis, angle):
    v = np.zeros(3, _wide)
    v["xyz".index(axis)] = np.sin(angle / 2)
    return _of_quaternion(np.cos(angle / 2), *v)


def _inverse(m):
    cofactors = np.array([np.cross(m[1], m[2]), np.cross(m[2], m[0]), np.cross(m[0], m[1])])
    return cofactors.T, m[0] @ cofactors[0]


def _nearest(m):
    """Return the nearest rotation, by Newton's method."""
    if _inverse(m)[1] <= 1e-11 * np.sqrt((m * m).sum()) ** 3:
        return None
    for _ in range(60):
        adjugate, determinant = _inverse(m)
        m = (m + adjugate.T / determinant) / 2
    return m


def _gram_schmidt(a, b):
    x = a / np.sqrt(a @ a)
    y = b - (x @ b) * x
    if y @ y <= 1e-30 * (b @ b):  # parallel, or what rounding left of that
        return np.full((3, 3), np.nan, _wide)
    y = y / np.sqrt(y @ y)
    return np.stack([x, y, np.cross(x, y)], axis=1)


def _quaternion(m):
    """Return the column of 4 q q^T with the largest entry on the diagonal."""
    (a, b, c), (d, e, f), (g, h, i) = m
    products = np.array(
        [
            [1 + a + e + i, h - f, c - g, d - b],
            [h - f, 1 + a - e - i, b + d, c + g],
            [c - g, b + d, 1 - a + e - i, f + h],
            [d - b, c + g, f + h, 1 - a - e + i],
        ]
    )
    q = products[np.argmax(np.diag(products))]
    q = q / np.sqrt(q @ q)
    return -q if next(x for x in q if x != 0) < 0 else q


def _euler(m, axes):
    """The angles of Ra(first) Rb(second) Rc(third), the third 0 in gimbal lock."""
    a, b, c = axes
    k = 3 - a - b
    even = 1 if (b - a) % 3 == 1 else -1
    if a == c:
        rest = np.hypot(m[a, b], m[a, k])
        second = np.arctan2(rest, m[a, a])
        first = np.arctan2(m[b, a], -even * m[k, a])
        third = np.arctan2(m[a, b], even * m[a, k])
    else:
        rest = np.hypot(m[a, a], m[a, b])
        second = np.arctan2(even * m[a, c], rest)
        first = np.arctan2(-even * m[b, c], m[c, c])
        third = np.arctan2(-even * m[a, b], m[a, a])
    if rest <= _GIMBAL_LOCK:
        first, third = np.arctan2(even * m[k, b], m[b, b]), 0
    return [first, second, third]


def _extrinsic(m, axes):
    """Those about axes that stand still: of the inverse about axes that turn, negated."""
    first, second, third = _euler(m.T, axes)
    if axes[0] != axes[2]:
        return [-first, -second, 0 - third]
    # The second stays positive: except in gimbal lock, the others change by half a turn for that.
    a, b, _ = axes
    if np.hypot(m[a, b], m[a, 3 - a - b]) <= _GIMBAL_LOCK:
        return [-first, second, 0]
    return [_opposite(-first), second, _opposite(-third)]


def _opposite(angle):
    return angle - _PI if angle > 0 else angle + _PI
