"""Ways to align a batch: on the device, of a raw batch; or in the workers of a data loader.

All give [B,T,D] and a mask [B,T,N]: linear, held beyond a stream's ends, 0 where a gap is too long.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from comparison.with_scipy import interp1d, interp_channels

import robocache as rbc

from .episodes import Episodes, Sensor, streams_of

Aligned = tuple[torch.Tensor, torch.Tensor]


def with_robocache(episodes: Episodes, batch: Any, dtype: torch.dtype) -> Aligned:
    streams = [
        rbc.Stream(
            values, times, lengths=lengths, max_gap=sensor.max_gap, clock_offset=sensor.clock_offset
        )
        for sensor, (values, times, lengths) in zip(episodes.sensors, streams_of(episodes, batch))
    ]
    return rbc.fuse(streams, batch[0], dtype=dtype, return_valid=True)


def with_windows(episodes: Episodes, batch: Any, dtype: torch.dtype) -> Aligned:
    """Align episodes on the device: a window of each, starting at the begin of its clock."""
    streams, episode_indices, begins = batch
    shape = (len(episode_indices), episodes.clocks[0].size)
    out = torch.empty((*shape, episodes.channels), dtype=dtype, device=episode_indices.device)
    mask = torch.empty((*shape, len(streams)), dtype=torch.bool, device=episode_indices.device)
    parts = out.split([sensor.channels for sensor in episodes.sensors], 2)
    pairs = list(zip(parts, mask.unbind(2)))
    rbc.windows(streams, episode_indices, begins, anchor_times=True, out=pairs)
    return out, mask


def torch_streams(
    sensors: list[Sensor], streams: list[Any], clock: torch.Tensor, dtype: torch.dtype
) -> Aligned:
    """Interpolate streams that were split before: torch.compile compiles this as one function.

    torch 2.11 compiles a searchsorted in a view as one in the begin of the view's memory: for
    streams that it split itself it would use the times of the first one.
    """
    aligned = [
        _torch_stream(sensor, *stream, clock, dtype) for sensor, stream in zip(sensors, streams)
    ]
    parts, masks = zip(*aligned)
    return torch.cat(parts, 2), torch.stack(masks, 2)


def with_torch(
    episodes: Episodes, batch: Any, dtype: torch.dtype, streams: Any = torch_streams
) -> Aligned:
    """`streams` may be a compiled torch_streams."""
    return streams(episodes.sensors, streams_of(episodes, batch), batch[0], dtype)


def _torch_stream(
    sensor: Sensor, values: Any, times: Any, lengths: Any, clock: Any, dtype: torch.dtype
) -> Aligned:
    if sensor.clock_offset:
        times = times + sensor.clock_offset
    last = (lengths - 1).unsqueeze(1)
    right = torch.searchsorted(times, clock, right=True)
    left = (right - 1).clamp_(min=0)
    right = torch.minimum(right, last)
    before, after = times.gather(1, left), times.gather(1, right)
    gap = after - before
    # Beyond an end both rows are equal. No torch.where: it copies its 0 to the GPU, and waits.
    weight = ((clock - before) / gap.clamp(min=torch.finfo(gap.dtype).tiny)).clamp_(0, 1)

    batch, samples, channels = values.shape
    rows = values.view(batch * samples, channels)
    base = torch.arange(0, batch * samples, samples, device=values.device).unsqueeze(1)
    v0 = rows.index_select(0, (left + base).view(-1)).view(*left.shape, channels)
    v1 = rows.index_select(0, (right + base).view(-1)).view(*left.shape, channels)
    out = torch.lerp(v0, v1, weight.to(v0.dtype).unsqueeze(-1))

    inside = (clock >= times[:, :1]) & (clock <= times.gather(1, last))
    if sensor.max_gap is not None:
        lost = (gap > sensor.max_gap) & (clock != before) & inside
        out = out.masked_fill_(lost.unsqueeze(-1), 0)
        inside = inside & ~lost
    return out.to(dtype), inside


# ---- in a worker of a data loader ----------------------------------------------------------------

Interpolate = Callable[[Any, Any, Any], Any]
IN_WORKERS: dict[str, Interpolate] = {
    "np.interp in workers": interp_channels,
    "scipy interp1d in workers": interp1d,
}


class AlignedBatch:
    """A collate function: values in `dtype`, and the mask."""

    def __init__(self, interpolate: Interpolate, dtype: torch.dtype) -> None:
        self.interpolate = interpolate
        self.dtype = dtype

    def __call__(self, episodes: Episodes, chosen: Any) -> Aligned:
        ticks = episodes.clocks[0].size
        out = np.empty((len(chosen), ticks, episodes.channels), np.float32)
        mask = np.empty((len(chosen), ticks, len(episodes.sensors)), bool)
        for b, e in enumerate(chosen):
            begin = 0
            for n, sensor in enumerate(episodes.sensors):
                part = out[b, :, begin : begin + sensor.channels]
                mask[b, :, n] = self._stream(
                    sensor, *episodes.recordings[e][n], episodes.clocks[e], part
                )
                begin += sensor.channels
        return torch.from_numpy(out).to(self.dtype), torch.from_numpy(mask)

    def _stream(self, sensor: Sensor, times: Any, values: Any, clock: Any, out: Any) -> Any:
        if sensor.clock_offset:
            times = times + sensor.clock_offset
        out[:] = self.interpolate(clock, times, values)
        inside = (clock >= times[0]) & (clock <= times[-1])
        if sensor.max_gap is None:
            return inside
        right = np.searchsorted(times, clock, side="right")
        before = times[np.maximum(right - 1, 0)]
        after = times[np.minimum(right, times.size - 1)]
        lost = (after - before > sensor.max_gap) & (clock != before) & inside
        out[lost] = 0
        return inside & ~lost
