"""Cases of rbcConvertRotations."""

import numpy as np
from vectors import DTYPES, NAMES, Case, exact_bytes, rounded

import rotation_reference

ROTATIONS = {value: name for name, value in rotation_reference.NAMES.items()}
CHOICES = {"source": ROTATIONS, "target": ROTATIONS}


def convert_rotations(rotations, source, target, dtype):
    """Return a case; its output is certain to the bit, unless it is as precise as the library."""
    out_dtype, numbers = DTYPES[dtype], rotation_reference.NAMES
    exact = rotation_reference.convert(rotations, source, target)
    out = rounded(exact.astype(np.float64), out_dtype)
    angles = target == "rotvec" or target.startswith("euler")
    bound = np.where(exact == 0, 0, 2.0**-49 if angles else 2.0**-50)
    if dtype != "f64":
        for apart in (exact - bound, exact + bound):
            assert exact_bytes(rounded(apart.astype(np.float64), out_dtype)) == exact_bytes(out)
    name = f"{source} to {target}, {NAMES[rotations.dtype]} to {dtype}"
    case = Case(f"convert_rotations/{name}", "convert_rotations")
    case.set(source=numbers[source], target=numbers[target])
    case.input(rotations=rotations)
    case.output(out=out)
    return case


def cases():
    """Yield every representation to two others, with all float dtypes in turn."""
    random = np.random.RandomState(6)
    names = list(rotation_reference.NAMES)
    floats = ["f64", "f32", "bf16", "f16"]
    for i, source in enumerate(names):
        for step in (1, 12):
            quaternions = random.standard_normal((2, 3, 4))
            written = rotation_reference.convert(quaternions, "quat_xyzw", source)
            rotations = rounded(written.astype(np.float64), DTYPES[floats[(i + step) % 4]])
            rotations[1, 2, 0] = np.nan
            target = names[(i + step) % len(names)]
            yield convert_rotations(rotations, source, target, floats[1 + (i // 4) % 3])

    # Either sign, also where w is 0; and invalid rotations.
    quaternions = [[0, 0, 0, -2], [0, 4, 0, 0], [0, 0, -1, 0], [-0.5, 0.5, 0.5, -0.5], [0, 0, 0, 0]]
    quaternions = np.array([*quaternions, [np.inf, 0, 0, 1]])
    yield convert_rotations(quaternions, "quat_xyzw", "quat_wxyz", "f64")
    vectors = np.array([[1, 0, 0, 2, 0, 0], [0, 0, 0, 0, 1, 0], [0, 3, 0, 1, 5, 0]], np.float32)
    yield convert_rotations(vectors, "rot6d_rows", "quat_xyzw", "f32")
    mirrored = np.array([[-1, 0, 0, 0, 1, 0, 0, 0, 1], [3, 0, 0, 0, 3, 0, 0, 0, 3]], np.float16)
    yield convert_rotations(mirrored, "matrix", "quat_xyzw", "f64")
    yield convert_rotations(np.zeros((0, 3), np.float32), "rotvec", "matrix", "f32")
