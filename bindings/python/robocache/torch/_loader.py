"""Batches of windows for training with torch: see robocache.torch.WindowLoader."""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Iterator, Mapping, Sequence

import torch

from .._arguments.options import count
from .._episodes.episodes import Episodes
from .._library.errors import blamed, shown
from .._text_table import html_table
from .._windows.spec import WindowSpec
from ._batches import Ahead, Cutter, Direct, WindowBatch, require_episodes_and_spec
from ._frames import BatchImages
from ._registered import budget_of, registered
from ._sampler import Sampler, checked_weights
from ._state import StateChecks, checked_int


class WindowLoader:
    """Loader of shuffled batches of windows, cut on the CPU or on the GPU.

    An epoch has every sample once, over all ranks. Iteration yields the batches of one epoch, or
    the rest of it, as :class:`WindowBatch` objects. If the episodes are on a GPU
    (:meth:`robocache.Episodes.to`), batches are cut there, in one launch per batch. If they are in
    the memory of the CPU, a thread prepares batches ahead of their use; for a GPU, it cuts them
    into pinned memory and copies them during training. There are no worker processes.

    **The memory of a batch is reused** by later batches: use a batch before taking the next one, or
    pass ``fresh=True``. So an epoch allocates nothing after its first batches.

    The order of samples depends only on the seed, the epoch and the samples, not on the device, the
    batch size or the ranks. A loop that ended early is continued by the next loop, or by a loader
    that loads :meth:`state_dict`: the same batches follow, bit for bit, in any process.

    Parameters
    ----------
    episodes
        :class:`robocache.Episodes` to cut from.
    spec
        A :class:`robocache.WindowSpec` of the windows and the anchors.
    batch_size
        Number of samples B per batch and rank.
    seed
        Seed of the order.
    rank, world_size
        Index of this process and number of processes. They share batches of ``world_size`` times
        ``batch_size`` samples.
    device
        Device of the batches: "cpu", "cuda", ... None: the device of the episodes.
    shuffle
        False: samples are in the order of the episodes.
    drop_last
        Omit the last batch of an epoch if it is not full. Otherwise it is divided among all ranks;
        if it has fewer samples than ranks, some ranks get an empty batch.
    weights
        A number per episode, 0 or more. Samples are repeated in proportion to their weight, and
        not every sample occurs. The size of an epoch does not change.
    fresh
        Create new tensors for each batch.
    ahead
        Number of batches that the thread prepares ahead.
    pin
        For a GPU and episodes of a :class:`robocache.Cache`: how many bytes of each entry the GPU
        may read where they are, in the page cache, such as "8GB"; batches are then cut on the GPU,
        without work of the CPU. None: a quarter of the machine's memory, divided by
        ``LOCAL_WORLD_SIZE``. Entries that are larger, or that the system refuses to register, are
        cut by the thread. The frames of cameras have a budget of the same size for all entries
        together.
    train
        False: images have nothing random, as :meth:`robocache.Images.eval` describes.
    fill
        Whether the frames of cameras are stored in the cache of the episodes, if they have one,
        before the first batch. False: frames are decoded whenever they are needed.
    threads
        Number of threads that decode frames that are not stored. None: the cores of the process,
        divided by ``LOCAL_WORLD_SIZE``.
    progress
        Whether to show a progress bar while frames are stored. None: on a terminal.

    Raises
    ------
    ValueError
        There are no samples, or a number is out of range.
    TypeError
        An argument has a wrong type.
    KeyError
        The episodes lack a track of the spec.

    Examples
    --------
    >>> import torch
    >>> import robocache as rbc
    >>> states = torch.arange(12.0)[:, None]
    >>> episodes = rbc.Episodes({"state": rbc.Track(states, [0, 5, 12])})
    >>> spec = rbc.WindowSpec({"past": rbc.Window([-1, 0], track="state")})
    >>> loader = rbc.torch.WindowLoader(episodes, spec, batch_size=5, seed=1)
    >>> [len(batch) for batch in loader]
    [5, 5, 2]
    >>> batch = next(iter(loader))
    >>> batch["past"].shape, batch.valid["past"].shape
    (torch.Size([5, 2, 1]), torch.Size([5, 2]))
    """

    def __init__(
        self,
        episodes: Episodes,
        spec: WindowSpec,
        batch_size: int,
        seed: int = 0,
        rank: int = 0,
        world_size: int = 1,
        *,
        device: torch.device | str | None = None,
        shuffle: bool = True,
        drop_last: bool = False,
        weights: Sequence[float] | torch.Tensor | None = None,
        fresh: bool = False,
        ahead: int = 2,
        pin: int | str | None = None,
        train: bool = True,
        fill: bool = True,
        threads: int | None = None,
        progress: bool | None = None,
    ) -> None:
        require_episodes_and_spec(episodes, spec)
        self._batch_size = count(batch_size, "batch_size")
        self._world_size = count(world_size, "world_size")
        self._rank, self._seed = checked_int(rank, "rank:"), checked_int(seed, "seed:")
        if not 0 <= self._rank < self._world_size:
            raise ValueError(f"rank: is {rank}, expected 0 to {self._world_size - 1}")
        self._shuffle, self._drop_last = shuffle, drop_last
        if not train:
            spec = spec.eval()
        counts = spec.counts(episodes)
        weights = checked_weights(weights, counts)
        if int(counts.sum()) == 0:
            raise ValueError("episodes: no samples; the episodes may be shorter than the windows")
        cutter = Cutter(episodes, spec, self._batch_size)
        try:
            target = cutter.device if device is None else torch.device(device)
        except (RuntimeError, TypeError) as error:
            raise blamed(error, "device") from None
        ahead = count(ahead, "ahead")
        budget = budget_of(pin)
        if cutter.device.type == "cpu" and target.type == "cuda":
            names = dict.fromkeys(map(spec.track, spec.numbers))
            readable = registered(episodes, names, target, budget) if names else None
            if readable is not None:
                cutter = Cutter(readable, spec, self._batch_size)
                target = cutter.device
        images = self._images_of(episodes, spec, target, budget, fill, threads, progress)
        if cutter.device.type == "cpu" or (images is not None and target.type == "cuda"):
            self._batches: Direct | Ahead = Ahead(cutter, target, fresh, ahead, images)
        elif target == cutter.device or (target.type == "cuda" and target.index is None):
            self._batches = Direct(cutter, fresh)
        else:
            raise ValueError(
                f"device: is {shown(device)}, but the episodes are on {cutter.device}; "
                f"pass episodes.to({str(device)!r})"
            )
        self._checks = StateChecks(episodes, spec, int(counts.sum()), bool(shuffle), weights)
        self._sampler = Sampler(
            counts,
            spec.anchors[0],
            weights,
            cutter.device if images is None else torch.device("cpu"),
            repeats=images is not None,
        )
        if len(self) == 0:
            raise ValueError(
                f"batch_size: {self._batch_size} per rank gives no full batch from "
                f"{self._sampler.size} samples; pass drop_last=False"
            )
        self._epoch = self._position = 0
        self._turn = 0  # identifies the loop that is running
        self._running: Generator[WindowBatch, None, None] | None = None

    def _images_of(
        self,
        episodes: Episodes,
        spec: WindowSpec,
        device: torch.device,
        budget: int,
        fill: bool,
        threads: int | None,
        progress: bool | None,
    ) -> BatchImages | None:
        if not spec.cameras:
            return None
        from ..data._frames.window_images import window_images

        if threads is not None:
            threads = count(threads, "threads")
        windows = window_images(episodes, spec, fill=fill, show=progress, threads=threads)
        return BatchImages(windows, device, budget)

    def _facts(self) -> dict[str, object]:
        return {
            "samples": self.num_samples,
            "batch_size": self._batch_size,
            "batches": len(self),
            "epoch": self._epoch,
            "seed": self._seed,
            "shuffle": self._shuffle,
            "rank": f"{self._rank} of {self._world_size}",
        }

    def __repr__(self) -> str:
        facts = ", ".join(f"{name}={value}" for name, value in self._facts().items())
        return f"WindowLoader({facts})"

    def _repr_html_(self) -> str:
        rows = [(name, str(value)) for name, value in self._facts().items()]
        return html_table([("WindowLoader", ""), *rows])

    @property
    def num_samples(self) -> int:
        """Number of samples of an epoch, over all ranks."""
        return self._sampler.size

    @property
    def epoch(self) -> int:
        """Epoch of the next batch."""
        return self._epoch

    def set_epoch(self, epoch: int) -> None:
        """Begin this epoch with the next iteration."""
        number = checked_int(epoch, "epoch:")
        if number < 0:
            raise ValueError(f"epoch: is {number}, expected 0 or more")
        self._epoch, self._position = number, 0
        self._turn += 1

    def state_dict(self) -> dict[str, int]:
        """Return the position of the next batch in a few ints, the same on all ranks.

        They are the position, the seed and ``shuffle``, and digests of the weights, of the spec
        and of the lengths, channels and dtypes of the episodes.
        """
        return self._checks.state(self._seed, self._epoch, self._position)

    def load_state_dict(self, state: Mapping[str, int]) -> None:
        """Continue from the state of a loader with the same episodes, spec, weights and shuffling.

        The seed is taken from the state. Batch size, ``drop_last``, ranks and device may differ:
        the remaining samples are the same. Values of the episodes are not compared.

        Raises
        ------
        ValueError
            A loader with other arguments saved the state, or it lacks a number, or one is out
            of range. This loader is unchanged.
        TypeError
            The state is not a mapping, or holds something other than ints.
        """
        self._seed, self._epoch, self._position = self._checks.position(state)
        self._turn += 1

    def __len__(self) -> int:
        """Return the number of batches per epoch, which is the same on each rank."""
        whole, rest = divmod(self._sampler.size, self._batch_size * self._world_size)
        return whole + (rest > 0 and not self._drop_last)

    def __iter__(self) -> Iterator[WindowBatch]:
        self._turn += 1
        if self._running is not None:  # its thread would write to the same tensors
            self._running.close()
        turn, epoch, position = self._turn, self._epoch, self._position
        last = self._last(position)
        spans = ((begin, size) for begin, size, _ in self._spans(position, last))
        samples = self._sampler.batches(self._seed, epoch, self._shuffle, spans)
        self._running = self._batches.cut(samples, self._seed, epoch)
        with contextlib.closing(self._running) as batches:
            for batch, (_, _, end) in zip(batches, self._spans(position, last)):
                if turn != self._turn:
                    break
                self._position = end
                if end == last:
                    self._epoch, self._position = epoch + 1, 0
                yield batch
        if turn != self._turn:
            raise RuntimeError(
                "this loop over the loader has ended: another one began, or its state was set"
            )
        if position == last:  # a state of smaller batches may leave less than a full batch
            self._epoch, self._position = epoch + 1, 0

    def _last(self, position: int) -> int:
        """Return the position at which the last batch of an epoch ends."""
        together = self._batch_size * self._world_size
        left = self._sampler.size - position
        return self._sampler.size - (left % together if self._drop_last else 0)

    def _spans(self, position: int, last: int) -> Iterator[tuple[int, int, int]]:
        """Yield the begin and size of this rank's batches, and the end of all ranks' batches."""
        while position < last:
            together = min(self._batch_size * self._world_size, last - position)
            share, more = divmod(together, self._world_size)
            begin = position + self._rank * share + min(self._rank, more)
            yield begin, share + (self._rank < more), position + together
            position += together
