"""convert_rotations: comparison with SciPy's Rotation, and arguments in Python."""

import numpy as np
import pytest

import robocache as rbc
import rotation_reference
from rotation_reference import NAMES

QUATERNIONS = np.random.default_rng(3).standard_normal((50, 4))
EULER = [name for name in NAMES if name.startswith("euler")]


def by_scipy(rotations, source, target):
    Rotation = pytest.importorskip("scipy.spatial.transform").Rotation
    if source == "quat_xyzw":
        made = Rotation.from_quat(rotations)
    elif source == "quat_wxyz":
        made = Rotation.from_quat(np.roll(rotations, -1, axis=1))
    elif source == "rotvec":
        made = Rotation.from_rotvec(rotations)
    elif source == "matrix":
        made = Rotation.from_matrix(rotations.reshape(-1, 3, 3))
    else:
        made = Rotation.from_euler(source[6:], rotations)
    if target.startswith("quat"):
        q = made.as_quat(canonical=True)
        return q if target == "quat_xyzw" else np.roll(q, 1, axis=1)
    if target == "rotvec":
        return made.as_rotvec()
    m = made.as_matrix()
    return {
        "matrix": lambda: m.reshape(-1, 9),
        "rot6d_rows": lambda: m[:, :2].reshape(-1, 6),
        "rot6d_columns": lambda: m.transpose(0, 2, 1)[:, :2].reshape(-1, 6),
        "rot6d_interleaved": lambda: m[:, :, :2].reshape(-1, 6),
    }.get(target, lambda: made.as_euler(target[6:]))()


@pytest.mark.parametrize("source", [name for name in NAMES if not name.startswith("rot6d")])
def test_as_scipy(source):
    rotations = by_scipy(QUATERNIONS, "quat_xyzw", source)
    for target in NAMES:
        ours = rbc.convert_rotations(rotations, source, target)
        np.testing.assert_allclose(ours, by_scipy(rotations, source, target), atol=2e-14)


@pytest.mark.parametrize("name", EULER)
@pytest.mark.filterwarnings("ignore:Gimbal lock")
def test_gimbal_lock_as_scipy(name):
    symmetric = name[6] == name[8]
    for end in (0, np.pi) if symmetric else (-np.pi / 2, np.pi / 2):
        angles = np.array([[0.3, end, 0.5], [-2, end + 1e-9, 1], [1, end - 1e-9, -3]])
        ours = rbc.convert_rotations(angles, name, name)
        np.testing.assert_allclose(ours, by_scipy(angles, name, name), atol=1e-7)
        assert (ours[:, 2] == 0).all()


@pytest.mark.parametrize("name", NAMES)
def test_there_and_back(name):
    """Two conversions, each within its bound."""
    once = rbc.convert_rotations(QUATERNIONS, "quat_xyzw", name)
    back = rbc.convert_rotations(once, name, "quat_xyzw")
    exact = rotation_reference.convert(QUATERNIONS, "quat_xyzw", "quat_xyzw")
    assert np.abs(back - exact).max() <= 12 * 2.0**-52
    again = rbc.convert_rotations(back, "quat_xyzw", name)
    np.testing.assert_allclose(again, once, rtol=0, atol=4e-15 if name not in EULER else 1e-13)


def test_half_turns_have_one_axis():
    q = np.array([[-1.0, 0, 0, 0], [0, -1, 0, 0], [0, 0, -1, 0], [0, -3, 4, 0]])
    axes = rbc.convert_rotations(q, "quat_xyzw", "rotvec") / np.pi
    expected = [[1, 0, 0], [0, 1, 0], [0, 0, 1], [0, 0.6, -0.8]]
    np.testing.assert_allclose(axes, expected, atol=2e-16)


def test_dtypes_shapes_and_out():
    q = QUATERNIONS.reshape(5, 2, 5, 4)
    assert rbc.convert_rotations(q, "quat_xyzw", "matrix").shape == (5, 2, 5, 9)
    half = rbc.convert_rotations(q, "quat_xyzw", "rotvec", dtype="float16")
    assert half.dtype == np.float16 and half.shape == (5, 2, 5, 3)
    assert rbc.convert_rotations(q.astype(np.float32), "quat_xyzw", "rotvec").dtype == np.float32
    wide = np.zeros((5, 2, 5, 10))
    given = wide[..., 2:8]
    assert rbc.convert_rotations(q, "quat_xyzw", "rot6d_rows", out=given) is given
    expected = rbc.convert_rotations(q, "quat_xyzw", "rot6d_rows")
    assert (given == expected).all() and (wide[..., :2] == 0).all() and (wide[..., 8:] == 0).all()
    assert rbc.convert_rotations(q[0, 0, 0], "quat_xyzw", "quat_wxyz").shape == (4,)


def test_torch():
    torch = pytest.importorskip("torch")
    q = torch.from_numpy(QUATERNIONS)
    ours = rbc.convert_rotations(q, "quat_wxyz", "rot6d_columns", dtype=torch.bfloat16)
    assert isinstance(ours, torch.Tensor) and ours.dtype == torch.bfloat16 and ours.shape == (50, 6)
    with pytest.raises(ValueError, match="rotations: requires grad"):
        rbc.convert_rotations(q.clone().requires_grad_(), "quat_wxyz", "matrix")


def test_refused():
    q = QUATERNIONS
    with pytest.raises(ValueError, match="source: is 'quat', expected one of 'quat_xyzw'"):
        rbc.convert_rotations(q, "quat", "matrix")
    with pytest.raises(ValueError, match="target: is 'euler_xxy', expected one of"):
        rbc.convert_rotations(q, "quat_xyzw", "euler_xxy")
    with pytest.raises(ValueError, match="target: is 'euler_xYz', expected one of"):
        rbc.convert_rotations(q, "quat_xyzw", "euler_xYz")
    with pytest.raises(ValueError, match=r"rotations: shape is \[50,4\], expected \[...,9\]"):
        rbc.convert_rotations(q, "matrix", "quat_xyzw")
    with pytest.raises(ValueError, match="rotations: rank is 0"):
        rbc.convert_rotations(np.array(1.0), "quat_xyzw", "matrix")
    with pytest.raises(TypeError, match="rotations: dtype is int64, expected a float"):
        rbc.convert_rotations(np.ones((2, 4), np.int64), "quat_xyzw", "matrix")
    with pytest.raises(ValueError, match="rotations: overlaps out"):
        rbc.convert_rotations(q, "quat_xyzw", "quat_wxyz", out=q)
    with pytest.raises(ValueError, match=r"out: shape is \[50,3\], expected \[...,9\]"):
        rbc.convert_rotations(q, "quat_xyzw", "matrix", out=np.empty((50, 3)))
    with pytest.raises(TypeError, match="rotations: is a list"):
        rbc.convert_rotations([[0, 0, 0, 1]], "quat_xyzw", "matrix")
