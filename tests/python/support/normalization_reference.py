"""Normalizations of projects from statistics, by their documentation, and example values."""

import numpy as np
import pytest

import robocache as rbc

LEVELS = (0.01, 0.1, 0.5, 0.9, 0.99)


def statistics(values, ddof=0):
    """Return statistics by NumPy, for finite rows."""
    rows = np.full(values.shape[1], len(values))
    return rbc.StatisticsResult(
        rows,
        0 * rows,
        values.min(axis=0),
        values.max(axis=0),
        values.mean(axis=0),
        values.std(axis=0, ddof=ddof),
        np.quantile(values, LEVELS, axis=0),
        LEVELS,
        ddof,
    )


def example():
    """Channels: wide, narrow, constant, constant 0, almost constant, and with outliers."""
    values = np.random.default_rng(1).standard_normal((500, 7)) * [3, 1e-2, 0, 0, 0, 1, 2e3]
    values += [1, -5, 7.25, 0, 30, 0, -4e3]
    values[:, 4] += np.linspace(0, 5e-5, 500)
    values[:4, 5] = [80, -80, 90, -90]
    return values


# ---- what the projects compute ------------------------------------------------------------------
# Of values x, statistics s, and a mask where the project has one. q is a quantile of s.


def q(s, level):
    return s.quantiles[LEVELS.index(level)]


def to_range(x, low, divisor):
    return 2 * ((x - low) / divisor) - 1


def lerobot(mode):
    def forward(x, s):
        if mode == "mean_std":
            return (x - s.mean) / (s.std + 1e-8)
        low, high = {
            "min_max": (s.min, s.max),
            "quantiles": (q(s, 0.01), q(s, 0.99)),
            "quantile10": (q(s, 0.1), q(s, 0.9)),
        }[mode]
        return to_range(x, low, np.where(high == low, 1e-8, high - low))

    return forward


def openpi(mode):
    def forward(x, s):
        if mode == "mean_std":
            return (x - s.mean) / (s.std + 1e-6)
        low, high = q(s, 0.01), q(s, 0.99)
        return to_range(x, low, high - low + 1e-6)

    return forward


def gr00t(mode, clip=True):
    def forward(x, s):
        y = np.zeros_like(x)
        if mode == "mean_std":
            some = s.std != 0
            y[:, some] = (x[:, some] - s.mean[some]) / s.std[some]
            y[:, ~some] = x[:, ~some]
        else:
            low, high = (s.min, s.max) if mode == "min_max" else (q(s, 0.01), q(s, 0.99))
            some = ~np.isclose(high, low)
            x, low, high = x[:, some], low[some], high[some]
            y[:, some] = to_range(x, low, high - low)
        return np.clip(y, -1, 1) if clip else y

    return forward


def rlds(mode, zeros, mask):
    """octo; openvla, which also writes zeros into channels that do not vary."""

    def forward(x, s):
        if mode == "mean_std":
            return np.where(mask, (x - s.mean) / (s.std + 1e-8), x)
        low, high = (s.min, s.max) if mode == "min_max" else (q(s, 0.01), q(s, 0.99))
        y = np.where(mask, np.clip(to_range(x, low, high - low + 1e-8), -1, 1), x)
        return np.where(s.min == s.max, 0.0, y) if zeros else y

    return forward


def affine(mode, reach, range_limit, std_limit, ddof=0):
    """diffusion_policy (x * scale + offset) and robomimic ((x - offset) / scale)."""

    def forward(x, s):
        if mode == "min_max":
            span = s.max - s.min
            y = (x - s.min) / np.where(span < range_limit, 1, span / (2 * reach)) - reach
            return np.where(span < range_limit, x - s.min, y)
        std = s.std * np.sqrt(len(x) / (len(x) - ddof))
        return (x - s.mean) / np.where(std < std_limit, 1, std)

    return forward


def robomimic_observations(x, s):
    return (x - s.mean) / (s.std + 1e-3)


def lerobot_steps(x, s, mode, inverse=False):
    """Return the result of LeRobot 0.4.4, step by step; all numbers have the dtype of x."""
    kind = x.dtype.type

    def rounded(numbers):
        return np.asarray(numbers, np.float64).astype(kind)

    with np.errstate(all="ignore"):
        if mode == "mean_std":
            mean, std = rounded(s.mean), rounded(s.std)
            return x * std + mean if inverse else (x - mean) / (std + kind(1e-8))
        levels = {"quantiles": (0.01, 0.99), "quantile10": (0.1, 0.9)}.get(mode)
        low, high = map(rounded, (s.min, s.max) if levels is None else map(s.quantile, levels))
        span = high - low
        span[span == 0] = kind(1e-8)
        if not inverse:
            return kind(2) * (x - low) / span - kind(1)
        if mode == "min_max":
            return (x + kind(1)) / kind(2) * span + low
        return (x + kind(1)) * span / kind(2) + low


def factors(normalization):
    """Return the numbers that values are multiplied by."""
    scale = normalization.scale
    return 1 / scale if normalization.divides else scale


ALL = np.ones(7, bool)
SOME = np.array([1, 0, 1, 0, 1, 1, 0], bool)
PROJECTS = [
    *(("lerobot", m, {}, lerobot(m)) for m in ("mean_std", "min_max", "quantiles", "quantile10")),
    *(("openpi", m, {}, openpi(m)) for m in ("mean_std", "quantiles")),
    *(("gr00t", m, {}, gr00t(m)) for m in ("min_max", "quantiles")),
    *(("gr00t", "mean_std", {"clip": c}, gr00t("mean_std", c)) for c in (True, False)),
    *(("octo", m, {}, rlds(m, False, ALL)) for m in ("mean_std", "quantiles")),
    *(("octo", m, {"mask": SOME}, rlds(m, False, SOME)) for m in ("mean_std", "quantiles")),
    ("openvla", "mean_std", {"mask": SOME}, rlds("mean_std", False, SOME)),
    *(("openvla", m, {}, rlds(m, True, ALL)) for m in ("min_max", "quantiles")),
    *(("openvla", m, {"mask": SOME}, rlds(m, True, SOME)) for m in ("min_max", "quantiles")),
    ("diffusion_policy", "min_max", {}, affine("min_max", 1, 1e-4, 0)),
    ("diffusion_policy", "min_max", {"epsilon": 1e-7}, affine("min_max", 1, 1e-7, 0)),
    ("diffusion_policy", "gaussian", {}, affine("gaussian", 1, 0, 1e-4, ddof=1)),
    ("robomimic", "mean_std", {}, robomimic_observations),
    ("robomimic", "min_max", {}, affine("min_max", 0.999999, 1e-4, 0)),
    ("robomimic", "gaussian", {}, affine("gaussian", 1, 0, 1e-6)),
]
IDS = [f"{style}-{mode}-{'-'.join(options)}" for style, mode, options, _ in PROJECTS]


def devices():
    torch = pytest.importorskip("torch")
    return ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]
