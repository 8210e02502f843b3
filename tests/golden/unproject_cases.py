"""Cases of rbcUnproject."""

import numpy as np
from vectors import DTYPES, Case

import cloud_reference

CAMERA = np.array([8, 8, 2.5, 1.5], np.float32)
POSE = np.array([[0, 0, 1, 0.5], [-1, 0, 0, -0.25], [0, -1, 0, 1], [0, 0, 0, 1]])


def unproject(name, depth, intrinsics, dtype, pose=None, colors=None, crop=None, **options):
    case = Case(f"unproject/{name}", "unproject")
    whole = depth if depth.ndim == 3 else depth[None]
    answers = [
        cloud_reference.unproject(
            image,
            np.broadcast_to(intrinsics, (len(whole), 4))[b],
            None if pose is None else np.broadcast_to(pose, (len(whole), 4, 4))[b],
            colors=None if colors is None else colors.reshape(*whole.shape, -1)[b],
            crop=crop,
            dtype=DTYPES[dtype],
            **options,
        )
        for b, image in enumerate(whole)
    ]
    points, counts, pixels, overflow = (np.array(each) for each in zip(*answers))
    points = points.astype(DTYPES[dtype])
    if depth.ndim == 2:
        points, counts, pixels, overflow = points[0], counts[0], pixels[0], overflow[0]
    options.pop("max_points", None)
    case.set(**options)
    if crop is not None:
        case.set(crop_min=tuple(map(float, crop[:3])), crop_max=tuple(map(float, crop[3:])))
    case.input(depth=depth, intrinsics=intrinsics, pose=pose, colors=colors)
    case.output(
        points=points,
        num_points=np.asarray(counts, np.int64),
        num_points_over_capacity=np.asarray(overflow, np.int64),
        pixels=pixels.astype(np.int64),
    )
    return case


def cases():
    random = np.random.RandomState(7)
    depth = (random.randint(0, 24, (2, 4, 6)) / 8).astype(np.float32)
    depth[0, 1, 2], depth[1, 3, 3], depth[1, 0, 1] = np.nan, np.inf, -1
    colors = random.randint(0, 256, (2, 4, 6, 3)).astype(np.uint8)
    cameras = np.stack([CAMERA, [7, 9, 3, 2]]).astype(np.float64)
    yield unproject("f32", depth, CAMERA, "f32")
    yield unproject("one image, poses, to f64", depth[0], CAMERA, "f64", POSE)
    yield unproject("f64 cameras, colours, to f16", depth, cameras, "f16", None, colors)
    yield unproject(
        "crop, beyond the capacity, scaled colours",
        depth,
        cameras,
        "f32",
        POSE.astype(np.float32),
        colors,
        (0.0, -1.0, 0.25, 2.5, 1.0, 1.75),
        color_divisor=255.0,
        max_points=7,
    )
    yield unproject(
        "f16, every second pixel, centres at 0.5, limits",
        depth.astype(np.float16),
        CAMERA,
        "f32",
        pixel_stride=2,
        pixel_offset=0.5,
        min_depth=0.75,
        max_depth=2.5,
        depth_scale=1.25,
    )
    millimetres = random.randint(0, 4000, (2, 4, 6)).astype(np.uint16)
    millimetres[1, 2] = 65535, 0, 40000, 1, 1000, 32768
    yield unproject("u16, in millimetres", millimetres, CAMERA, "f64")
    yield unproject("no pixels", np.zeros((2, 0, 3), np.float32), CAMERA, "f32", max_points=2)
