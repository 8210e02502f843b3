"""Cases of rbcImageDraws."""

import numpy as np
from vectors import Case

import images_reference

CROPS = ["none", "fixed", "fraction", "area"]
STEPS = ("brightness", "contrast", "saturation", "hue")


def image_draws(name, samples, crop, dtype=np.float32, seed=0, epoch=0, camera=0, **options):
    case = Case(f"image_draws/{name}", "image_draws")
    ranges = [options.pop(step, None) for step in STEPS]
    frame, flip = options.pop("frame", (4, 5)), options.pop("flip", 0.0)
    case.set(seed=seed, epoch=epoch, camera=camera, flip_probability=flip)
    case.set(frame_height=frame[0], frame_width=frame[1])
    case.set(crop=CROPS.index("none" if crop is None else crop[0]))
    if crop is not None and crop[0] == "fixed":
        case.set(crop_height=crop[1], crop_width=crop[2])
    elif crop is not None and crop[0] == "fraction":
        case.set(crop_fraction=crop[1])
    elif crop is not None:
        case.set(area=crop[1], ratio=crop[2])
    case.set(**{s: tuple(map(float, r)) for s, r in zip(STEPS, ranges) if r is not None})
    drawn = [
        images_reference.draws(
            int(sample), seed, epoch, camera, frame=frame, crop=crop, flip=flip, ranges=ranges
        )
        for sample in samples
    ]
    boxes, flips, colors, order = zip(*drawn)
    case.input(samples=samples)
    case.output(
        boxes=np.array(boxes, np.int64),
        flips=np.array(flips, np.uint8),
        colors=np.array(colors, dtype),
        color_order=np.array(order, np.uint8),
    )
    return case


def cases():
    samples = np.array([0, 1, 2, 77, 1 << 40, 5 + (1 << 40)])
    jitter = {"brightness": (0.8, 1.2), "contrast": (0.5, 1.5), "saturation": (0.0, 2.0)}
    yield image_draws("all zero", np.zeros(1, np.int64), None)
    yield image_draws(
        "fixed", samples, ("fixed", 224, 200), seed=7, epoch=3, frame=(240, 320), flip=0.5, **jitter
    )
    yield image_draws(
        "fraction, f64", samples, ("fraction", 0.95), np.float64, camera=2, frame=(480, 640)
    )
    area = ("area", (0.08, 1.0), (0.75, 4 / 3))
    yield image_draws("area", np.arange(20), area, seed=-5, frame=(480, 640), flip=0.25)
    yield image_draws("area of a strip", samples[:3], area, seed=1, frame=(20, 900))
    yield image_draws(
        "i32 samples, another epoch",
        *(samples[:4].astype(np.int32), None),
        seed=2**40 + 5,
        epoch=2**32 + 1,
        brightness=(1, 1),
    )
