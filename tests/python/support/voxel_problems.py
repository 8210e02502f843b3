"""Random calls of rbc.voxelize and rbc.voxelize_sparse, and the arrays of a result by name."""

import math

import numpy as np
from hypothesis import strategies as st

from resample_problems import FLOATS, relaid

MODES = ["occupancy", "count", "sum", "mean", "max", "min"]
REDUCTIONS = MODES[2:]
ORDERS = ["lexicographic", "first_point"]
ARRAYS = ["coords", "points_per_voxel", "features", "grouped", "point_to_voxel"]
SCALARS = [
    "num_voxels",
    "num_points_outside",
    "num_voxels_over_capacity",
    "num_points_over_capacity",
    "num_points_over_group",
]


def by_name(voxels):
    return {name: getattr(voxels, name) for name in (*ARRAYS, *SCALARS)}


@st.composite
def clouds(draw):
    """Points, features or None, and the options that dense and sparse share."""
    batch = draw(st.integers(0, 3))
    rows = draw(st.integers(0, 24))
    form = draw(st.sampled_from(["padded", "packed", "single"]))
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    options = {
        "origin": draw(st.sampled_from([(0, 0, 0), (-1.5, 2.25, 0.1), (1e3, -1e3, 0)])),
        "voxel_size": draw(st.sampled_from([1, 0.5, 0.1, (1, 2.5, 0.25), (1e-3, 1.0, 100.0)])),
        "shape": draw(st.sampled_from([(1, 1, 1), (3, 2, 4), (2, 5, 1), (1, 3, 2), (8, 8, 3)])),
    }
    if form == "packed":
        cuts = np.sort(random.integers(0, rows + 1, max(batch - 1, 0)))
        offsets = np.concatenate([[0], cuts, [rows]] if batch else [[0]])
        options["batch_offsets"] = offsets.astype(draw(st.sampled_from(["int32", "int64"])))
    elif form == "padded" and draw(st.booleans()):
        options["lengths"] = random.integers(0, rows + 1, batch).astype(
            draw(st.sampled_from(["int32", "int64"]))
        )
    leading = (batch, rows) if form == "padded" else (rows,)

    # On faces of voxels, within them, around the grid, and nowhere.
    columns = draw(st.integers(3, 6))
    steps = random.integers(-2, 2 * np.array(options["shape"]) + 3, (*leading, 3)) / 2
    steps += random.choice([0, 0, 0.3], (*leading, 3))
    points = random.normal(size=(*leading, columns))
    points[..., :3] = np.asarray(options["origin"]) + steps * np.asarray(options["voxel_size"])
    points[..., :3] *= random.choice([1, 1, 1, 1, 1, 1, 1, -1], points[..., :3].shape)
    if draw(st.booleans()):
        nowhere = random.choice([math.nan, math.inf, -math.inf, 1e30, -0.0], points.shape)
        points = np.where(random.random(points.shape) < 0.05, nowhere, points)
    features = None
    if draw(st.booleans()):
        features = random.normal(size=(*leading, draw(st.sampled_from([0, 1, 2, 5]))))
        features *= draw(st.sampled_from([1, 1, 1e-42, 1e-310, 1e30, 1e300]))
        if draw(st.booleans()):
            special = random.choice([math.nan, math.inf, -math.inf, 0.0, -0.0], features.shape)
            features = np.where(random.random(features.shape) < 0.2, special, features)
    with np.errstate(over="ignore"):
        points = points.astype(draw(st.sampled_from(FLOATS)))
        if features is not None:
            features = features.astype(draw(st.sampled_from(FLOATS)))
            features = relaid(draw, features, math.nan)
    return relaid(draw, points, math.nan), features, options


@st.composite
def dense_problems(draw):
    points, features, options = draw(clouds())
    options["reduction"] = mode = draw(st.sampled_from(MODES if features is None else REDUCTIONS))
    others = {"occupancy": ["bool", "uint8", "int32"], "count": ["int32", "int64"]}.get(mode, [])
    options["dtype"] = draw(st.sampled_from([None, *FLOATS, *others, *others]))
    floats = options["dtype"] in FLOATS or (options["dtype"] is None and mode in REDUCTIONS)
    options["fill_value"] = draw(st.sampled_from([0, 1] + [-2.5, math.nan, math.inf] * floats))
    return points, features, options


@st.composite
def sparse_problems(draw):
    points, features, options = draw(clouds())
    options["reduction"] = draw(st.sampled_from(REDUCTIONS))
    options["order"] = draw(st.sampled_from([None, *ORDERS]))
    options["max_voxels"] = draw(st.sampled_from([None, 1, 3, 100]))
    options["max_points"] = draw(st.sampled_from([None, 1, 2, 7]))
    options["dtype"] = draw(st.sampled_from([None, *FLOATS]))
    options["return_point_to_voxel"] = draw(st.booleans())
    return points, features, options
