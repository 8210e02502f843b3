"""A WindowLoader over small episodes, with any part of it changed."""

from __future__ import annotations

import numpy as np

import robocache as rbc

LENGTHS = (4, 0, 7, 1, 3)


def episodes(lengths=LENGTHS, channels=3, dtype=np.float32, scale=1):
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    values = np.arange(offsets[-1] * channels).reshape(-1, channels) * scale
    return rbc.Episodes({
        "arm": rbc.Track(values.astype(dtype), offsets, times=np.arange(float(offsets[-1]))),
        "frame": rbc.Track(None, offsets, times=np.arange(float(offsets[-1]))),
    })  # fmt: skip


def relative(reference=("past", -1), **options):
    return rbc.Transform("subtract", 0, 2, reference=reference, **options)


def window(offsets=range(3), **options):
    options.setdefault("transforms", [relative()])
    options.setdefault("normalization", rbc.Normalization([1.0, 2.0, 3.0], 0.5))
    return rbc.Window(offsets, track="arm", **options)


def spec(future=None, *, past=None, **options):
    past = rbc.Window([-1, 0], track="arm") if past is None else past
    windows = {"past": past, "future": window() if future is None else future, "frame": [0]}
    return rbc.WindowSpec(windows, **options)


def loader(given=None, windows=None, batch_size=4, **options):
    options.setdefault("seed", 3)
    given = episodes() if given is None else given
    windows = spec() if windows is None else windows
    return rbc.torch.WindowLoader(given, windows, batch_size, **options)


WEIGHTS = [1.0, 5.0, 0.5, 0.0, 2.0]
