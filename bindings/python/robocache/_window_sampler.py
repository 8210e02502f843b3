"""Which samples each batch of a loader has, over all ranks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import torch

from ._errors import REFUSALS, blamed
from ._window_order import Order

_AT_ONCE = 1 << 16  # samples that are looked up together: enough to hide what a look-up costs


class Sampler:
    """The samples of an epoch, in an order that a seed and the epoch decide.

    Without weights every sample comes once. With weights, of an episode each, there are as many
    samples in an epoch, and those of an episode come as often as its weight is in proportion to the
    mean: in a systematic sample, so each of them the same number of times, or once more.
    """

    def __init__(self, counts: Any, first_anchor: int, weights: Any, device: torch.device) -> None:
        import numpy as np

        self.size = int(counts.sum())
        self._first = first_anchor
        shares = counts.astype(np.float64) if weights is None else counts * weights
        ends = np.cumsum(counts) if weights is None else np.cumsum(shares)
        self._weighted = weights is not None
        self._total = float(shares.sum())
        self._ends = torch.from_numpy(ends).to(device)
        self._begins = torch.from_numpy(ends - (counts if weights is None else shares)).to(device)
        self._counts = torch.from_numpy(counts).to(device)
        self._each = None if weights is None else torch.from_numpy(weights).to(device)
        self._device = device

    def batches(
        self, seed: int, epoch: int, shuffle: bool, batches: Iterable[tuple[int, int]]
    ) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        """(episodes, anchors) of each batch, which is told as its first position and its size."""
        order = Order(self.size, seed, epoch)
        group: list[tuple[int, int]] = []
        together = 0
        for begin, size in batches:
            if together + size > _AT_ONCE and group:
                yield from self._looked_up(order, shuffle, group)
                group, together = [], 0
            group.append((begin, size))
            together += size
        if group:
            yield from self._looked_up(order, shuffle, group)

    def _looked_up(
        self, order: Order, shuffle: bool, group: list[tuple[int, int]]
    ) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        import numpy as np

        numbers = np.concatenate([np.arange(begin, begin + size) for begin, size in group])
        if shuffle:
            numbers = order.at(numbers)
        which, anchors = self._samples(self._moved(numbers), order.phase if shuffle else 0.0)
        sizes = [size for _, size in group]
        return zip(torch.split(which, sizes), torch.split(anchors, sizes))

    def _moved(self, numbers: Any) -> torch.Tensor:
        tensor = torch.from_numpy(numbers)
        if self._device.type == "cpu":
            return tensor
        return tensor.pin_memory().to(self._device, non_blocking=True)

    def _samples(self, numbers: torch.Tensor, phase: float) -> tuple[torch.Tensor, torch.Tensor]:
        """The episode and the anchor of samples, counted through all episodes."""
        if not self._weighted:
            which = torch.searchsorted(self._ends, numbers, right=True)
            return which, numbers - self._begins[which] + self._first
        points = (numbers + phase) * (self._total / self.size)
        which = torch.searchsorted(self._ends, points, right=True)
        which = which.clamp_(max=int(self._ends.numel()) - 1)
        rows = ((points - self._begins[which]) / self._each[which]).long()  # type: ignore[index]
        rows = torch.minimum(rows.clamp_(min=0), self._counts[which] - 1)
        return which, rows + self._first


def checked_weights(weights: Any, counts: Any) -> Any:
    """Weights of episodes in NumPy, none of which is negative, or all 0."""
    import numpy as np

    from ._host import on_host

    if weights is None:
        return None
    try:
        given = on_host(weights, "weights") if hasattr(weights, "__dlpack__") else weights
        array = np.asarray(given, np.float64)
    except REFUSALS as error:
        raise blamed(error, "weights") from None
    if array.shape != counts.shape:
        raise ValueError(
            f"weights: shape is {list(array.shape)}, expected [{len(counts)}], one an episode"
        )
    wrong = ~(np.isfinite(array) & (array >= 0))
    if wrong.any():
        e = int(np.argmax(wrong))
        raise ValueError(f"weights: is {array[e]} for episode {e}, expected 0 or more")
    if not (array * counts).any():
        raise ValueError("weights: are 0 for all episodes that have samples")
    return array
