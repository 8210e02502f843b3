"""Windows as a map-style data set of torch: see robocache.torch.WindowDataset."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import torch
from torch.utils import data as torch_data

from .._arguments.options import count
from .._episodes.episodes import Episodes, make_episodes
from .._library.errors import REFUSALS, shown
from .._windows.spec import WindowSpec
from ._batches import Cutter, Forms, require_episodes_and_spec
from ._frames import BatchImages, BatchMemory, Outputs
from ._sampler import Samples
from ._state import checked_int, digest_of_episodes

_EPISODE, _ANCHOR, _IS_VALID = "episode", "anchor", "_is_valid"


class WindowDataset(torch_data.Dataset[dict[str, torch.Tensor]]):
    """Windows of episodes for torch's ``DataLoader``, and for trainers that are built on it.

    ``len(dataset)`` is the number of samples, and ``dataset[i]`` is sample i of
    :meth:`robocache.WindowSpec.samples`, a dict of tensors in the memory of the CPU:

    - by window name, its values [O,D'], or images [O,C,h,w] of float32;
    - by window name and ``_is_valid``, bool [O]: the opposite of LeRobot's ``is_pad``;
    - "episode" and "anchor": the episode and the row, int64.

    :class:`WindowLoader` gives the same values for a sample, a seed and an epoch, bit for bit. The
    batch size, the sampler and the workers, forked or spawned, change nothing. If a sampler repeats
    a sample in an epoch, its crop and colours are the same each time; in WindowLoader they differ.

    A DataLoader makes a batch by one call, which reads each frame once. With
    ``collate_fn=dataset.collate`` the batch is not copied, also not from a worker.

    Workers share the frames and numbers of a :class:`robocache.Cache`; without one, each worker
    decodes frames and a spawned worker reads the numbers again. Pickles have paths and no pixels,
    and no numbers of episodes that were read from files. Files and decoders are opened in the
    process that reads them. :class:`WindowLoader` needs no workers, and resumes exactly.

    Parameters
    ----------
    episodes
        :class:`robocache.Episodes` in the memory of the CPU.
    spec
        A :class:`robocache.WindowSpec` of the windows and the anchors.
    seed
        Seed of random crops, flips and colours.
    train
        False: images have nothing random, as :meth:`robocache.Images.eval` describes.
    fill
        Whether the frames of cameras are stored in the cache of the episodes, if they have one,
        when the data set is created.
    threads
        Number of threads of each process that decode frames that are not stored. None: the cores
        of the process, divided by ``LOCAL_WORLD_SIZE``.
    progress
        Whether to show a progress bar while frames are stored. None: on a terminal.

    Raises
    ------
    ValueError
        There are no samples, the episodes are on a GPU, or two results would have one name.
    TypeError
        An argument has a wrong type.
    KeyError
        The episodes lack a track or a camera of the spec.

    Examples
    --------
    >>> import torch
    >>> import robocache as rbc
    >>> states = torch.arange(12.0)[:, None]
    >>> episodes = rbc.Episodes({"state": rbc.Track(states, [0, 5, 12])})
    >>> dataset = rbc.torch.WindowDataset(episodes, rbc.WindowSpec({"state": [-1, 0]}))
    >>> len(dataset), dataset[5]["state"].flatten().tolist(), dataset[5]["state_is_valid"].tolist()
    (12, [5.0, 5.0], [False, True])
    >>> loader = torch.utils.data.DataLoader(dataset, 4, collate_fn=dataset.collate)
    >>> [tuple(batch["state"].shape) for batch in loader]
    [(4, 2, 1), (4, 2, 1), (4, 2, 1)]
    """

    def __init__(
        self,
        episodes: Episodes,
        spec: WindowSpec,
        *,
        seed: int = 0,
        train: bool = True,
        fill: bool = True,
        threads: int | None = 1,
        progress: bool | None = None,
    ) -> None:
        require_episodes_and_spec(episodes, spec)
        _require_names(spec)
        self._episodes, self._fill, self._progress = episodes, fill, progress
        self._spec = spec if train else spec.eval()
        self._seed = checked_int(seed, "seed:")
        self._threads = None if threads is None else count(threads, "threads")
        self._ends = spec.counts(episodes).cumsum()
        if len(self) == 0:
            raise ValueError("episodes: no samples; the episodes may be shorter than the windows")
        self._epoch = torch.zeros((), dtype=torch.int64)
        _share(self._epoch)
        self._opened: tuple[Cutter, BatchImages | None] | None = None
        self._opened = self._open()
        self._digest = digest_of_episodes(episodes, spec)

    def _open(self) -> tuple[Cutter, BatchImages | None]:
        """Return what makes batches in this process."""
        if self._opened is not None:
            return self._opened
        episodes, spec = self._episodes, self._spec
        cutter = Cutter(episodes, spec, 1)
        if cutter.device.type != "cpu":
            raise ValueError(
                f"episodes: are on {cutter.device}, expected the memory of the CPU; use "
                "robocache.torch.WindowLoader, which cuts windows on the GPU"
            )
        if not spec.cameras:
            return cutter, None
        from ..data._frames.window_images import window_images

        options: dict[str, Any] = {"fill": self._fill, "threads": self._threads}
        windows = window_images(episodes, spec, show=self._progress, **options)
        return cutter, BatchImages(windows, cutter.device, 0)

    @property
    def epoch(self) -> int:
        """The epoch, which changes random crops, flips and colours."""
        return int(self._epoch)

    def set_epoch(self, epoch: int) -> None:
        """Set the epoch, also in workers that are running: call it before each epoch's loop.

        The number is in shared memory. Copies that torch did not send, such as in processes of Ray,
        have separate numbers.
        """
        number = checked_int(epoch, "epoch:")
        if number < 0:
            raise ValueError(f"epoch: is {number}, expected 0 or more")
        self._epoch.fill_(number)

    def __len__(self) -> int:
        return int(self._ends[-1]) if len(self._ends) else 0

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        sample: dict[str, torch.Tensor] = self.__getitems__([index])[0]
        return sample

    def __getitems__(self, indices: Sequence[int]) -> list[dict[str, torch.Tensor]]:
        """Return samples, made together: torch's DataLoader calls this for each batch."""
        samples = self._samples(indices)
        if self._opened is None:
            self._opened = self._open()
            if digest_of_episodes(self._episodes, self._spec) != self._digest:
                raise ValueError(
                    f"episodes: {self._episodes.source} has other lengths, channels or dtypes than "
                    "when this WindowDataset was created; create it again"
                )
        cutter, images = self._opened
        size = len(samples.episodes)
        outputs = _outputs({**cutter.forms, **({} if images is None else images.forms())}, size)
        if images is not None and size:
            images.write(samples, self._seed, self.epoch, BatchMemory(), outputs)
        cutter.cut(samples, outputs)
        batch = {}
        for name in self._spec.windows:
            if name in outputs:
                batch[name], batch[f"{name}{_IS_VALID}"] = outputs[name]
        return _Made({**batch, _EPISODE: samples.episodes, _ANCHOR: samples.anchors})

    def _samples(self, indices: Sequence[int]) -> Samples:
        import numpy as np

        size = len(self)
        numbers = np.empty(len(indices), np.int64)
        for i, index in enumerate(indices):
            try:
                number = operator.index(index)
            except REFUSALS:
                raise TypeError(f"index: is {shown(index)}, expected an int") from None
            if not -size <= number < size:
                raise IndexError(f"index: is {number}, but there are {size} samples")
            numbers[i] = number % size
        episodes = np.searchsorted(self._ends, numbers, "right")
        before = self._ends[episodes - 1] * (episodes > 0)
        anchors = numbers - before + self._spec.anchors[0]
        tensors = _empty((len(numbers),), torch.int64), _empty((len(numbers),), torch.int64)
        for tensor, values in zip(tensors, (episodes, anchors)):
            tensor.copy_(torch.from_numpy(values))
        return Samples(*tensors)

    @staticmethod
    def collate(samples: Sequence[dict[str, torch.Tensor]]) -> dict[str, torch.Tensor]:
        """Return a batch of samples, ``collate_fn`` of a DataLoader.

        The samples that a DataLoader gets are parts of a batch: it is returned, without a copy.
        Other samples are stacked.
        """
        if isinstance(samples, _Made) and samples.is_unchanged:
            return samples.batch
        stacked: dict[str, torch.Tensor] = torch_data.default_collate(list(samples))
        return stacked

    def __getstate__(self) -> dict[str, Any]:
        episodes = _unread(self._episodes, self._spec)
        return {**self.__dict__, "_episodes": episodes, "_opened": None, "_progress": False}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        _share(self._epoch)  # for workers of this process

    def __repr__(self) -> str:
        return f"WindowDataset(samples={len(self)}, epoch={self.epoch}, seed={self._seed})"


class _Made(list[dict[str, torch.Tensor]]):
    """Samples that are parts of a batch."""

    def __init__(self, batch: dict[str, torch.Tensor]) -> None:
        self.batch = batch
        self._parts = list(zip(*(tensor.unbind(0) for tensor in batch.values())))
        super().__init__(dict(zip(batch, parts)) for parts in self._parts)

    @property
    def is_unchanged(self) -> bool:
        """Whether the samples are the parts of the batch, in order."""
        return len(self) == len(self._parts) and all(
            list(sample) == list(self.batch) and all(map(operator.is_, sample.values(), parts))
            for sample, parts in zip(self, self._parts)
        )


def _share(tensor: Any) -> None:
    """Move a tensor to memory that is shared with workers, if it is not there."""
    tensor.share_memory_()  # without types in torch


def _require_names(spec: WindowSpec) -> None:
    """Refuse windows that have the name of another result."""
    windows = {name for name, window in spec.windows.items() if window.output}
    others = {_EPISODE, _ANCHOR, *(f"{name}{_IS_VALID}" for name in windows)}
    for name in spec.windows:
        if name in windows & others:
            raise ValueError(
                f"windows[{name!r}]: is also the name of another part of a sample; "
                "give the window another name, and the track as its track="
            )


def _outputs(forms: Forms, size: int) -> Outputs:
    return {
        name: (_empty((size, *shape), kind), _empty((size, shape[0]), torch.bool))
        for name, (shape, kind) in forms.items()
    }


def _empty(shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    """Return an uninitialized tensor; in a worker of a DataLoader, in memory that it can send."""
    if torch_data.get_worker_info() is None:
        return torch.empty(shape, dtype=dtype)
    like: Any = torch.empty(0, dtype=dtype)
    storages: Any = torch.UntypedStorage
    storage = storages._new_shared(math.prod(shape) * like.element_size(), device="cpu")
    tensor: torch.Tensor = like.set_(storage, 0, shape)
    return tensor


def _unread(episodes: Episodes, spec: WindowSpec) -> Episodes:
    """Return the tracks that a spec needs, without the numbers of episodes that have files."""
    names = dict.fromkeys([*map(spec.track, spec.numbers), spec._rows_track(episodes)])
    lazy = episodes._lazy
    if lazy is None:
        return episodes.select(tracks=list(names))
    options: Any = {"tasks": None, "source": episodes.source, "about": episodes._about}
    return make_episodes(lazy.only(list(names)), **options)
