from typing import Any

import numpy as np
import numpy.typing as npt
from typing_extensions import assert_type

import robocache as rbc

Frames = npt.NDArray[np.uint8]
Samples = npt.NDArray[np.int64]


def images(frames: Frames, samples: Samples) -> None:
    assert_type(rbc.images(frames, 224, dtype="uint8"), npt.NDArray[Any])
    assert_type(rbc.normalization_table("x / 255"), npt.NDArray[np.float32])
    jitter = rbc.ColorJitter(brightness=0.2, contrast=(0.8, 1.2))
    draws = rbc.image_draws(samples, (480, 640), seed=1, crop=0.95, color=jitter)
    assert_type(draws, rbc.ImageDraws[npt.NDArray[Any]])
    assert_type(draws.crop_size, "tuple[int, int] | None")
    rbc.images([frames, frames], (224, 224), rows=[0, -1], **draws.options())

    preset = rbc.image_preset("openpi", size=(224, 224))
    assert_type(preset(frames, rows=[0]), npt.NDArray[Any])
    assert_type(preset.size, "tuple[int, int] | None")
    out: npt.NDArray[np.float32] = np.empty((1, 3, 224, 224), np.float32)
    assert_type(preset(frames, out=out), npt.NDArray[np.float32])

    preset(frames, size=224)  # type: ignore
    rbc.images(frames, 224, rule="nearest")  # type: ignore
