"""The windows that a model takes from episodes, as a description without arrays."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

from .._arguments.to_numpy import on_host
from .._episodes.episodes import Episodes
from .._library.errors import REFUSALS, shown
from .._printable import kind_of
from .._statistics.accumulator import QUANTILES
from .._statistics.normalization import Normalization
from .._text_table import text_table
from .._typing import Accumulate, Duration, Indices, Times
from .transform import Transform
from .window import Window, offsets_text, replaced
from .window_stream import WindowStream, stream_of
from .windows import windows as cut

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from .._statistics.result import StatisticsResult


class WindowSpec:
    """The windows of a model's training samples: tracks, offsets and transforms.

    A specification has no arrays. It can be pickled, compared and printed, and is used with
    :class:`Episodes` in :meth:`cut`, :meth:`statistics` and ``robocache.torch.WindowLoader``.

    Parameters
    ----------
    windows
        By name: a :class:`Window`, or only its offsets.
    anchor
        The window whose track contains the anchor rows. None: the first window without images.
    anchors
        The anchor rows of an episode with n rows: from ``anchors[0]`` to ``n - 1 + anchors[1]``, by
        default all rows. Rows below 0 and past n - 1 are allowed. "whole": the rows for which all
        windows are inside the episode, if all tracks have the same rate.
    dtype
        Dtype of all float results, as for :func:`windows`.
    lag
        How long after its time a window is computed, in the unit of the times, as for
        :func:`windows`: for tracks with ``arrivals``.

    Raises
    ------
    ValueError
        There are no windows, or ``anchor`` or the reference of a transform is not a window.
    TypeError
        An argument has a wrong type.

    Examples
    --------
    Two states, and fifty actions relative to the last state:

    >>> import robocache as rbc
    >>> relative = rbc.Transform("subtract", 0, 26, reference=("state", -1))
    >>> spec = rbc.WindowSpec(
    ...     {"state": [-1, 0], "action": rbc.Window(range(50), transforms=[relative])}
    ... )
    >>> print(spec)
    window  track   offsets       form
    state   state   [-1, 0]       hold
    action  action  range(0, 50)  hold, subtract 0:26 of state[-1]
    anchors: every row of 'state'
    """

    def __init__(
        self,
        windows: Mapping[str, Window | Sequence[int]],
        *,
        anchor: str | None = None,
        anchors: tuple[int, int] | Literal["whole"] = (0, 0),
        dtype: Any = None,
        lag: Duration = 0,
    ) -> None:
        self._windows = _checked_windows(windows)
        names = [name for name, window in self._windows.items() if window.images is None]
        if anchor is not None and anchor not in (names or self._windows):
            raise ValueError(
                f"anchor: is {shown(anchor)}, expected one of {_quoted(names or self._windows)}"
            )
        self._anchor = next(iter(names or self._windows)) if anchor is None else anchor
        self._anchors: tuple[int, int] | Literal["whole"] = _checked_anchors(anchors)
        self._dtype = dtype
        self._lag = lag

    @property
    def windows(self) -> Mapping[str, Window]:
        """All windows by name, in the order of the results."""
        return MappingProxyType(self._windows)

    @property
    def anchor(self) -> str:
        """The window whose track contains the anchor rows."""
        return self._anchor

    @property
    def anchors(self) -> tuple[int, int]:
        """The anchor rows of an episode with n rows: ``anchors[0]`` to ``n - 1 + anchors[1]``."""
        if not isinstance(self._anchors, str):
            return self._anchors
        rows = [0]
        for window in self._windows.values():
            if window.method is None:
                rows += window.offsets
        return -min(rows), -max(rows)

    @property
    def dtype(self) -> Any:
        """Dtype of all float results, or None: their own."""
        return self._dtype

    @property
    def lag(self) -> Duration:
        """Time from that of a window to its computation, in the unit of the times."""
        return self._lag

    def track(self, name: str) -> str:
        """Return the name of the track of a window; of a window of images, its camera."""
        window = self._windows[name]
        camera = None if window.images is None else window.images.camera
        return camera or window.track or name

    @property
    def numbers(self) -> list[str]:
        """The windows without images, in their order."""
        return [name for name, window in self._windows.items() if window.images is None]

    @property
    def cameras(self) -> Mapping[str, str]:
        """The camera of each window of images, by window name."""
        return {name: self.track(name) for name, window in self._windows.items() if window.images}

    def eval(self) -> WindowSpec:
        """Return the specification without random steps of images: see :meth:`Images.eval`."""
        changed = {
            name: window if window.images is None else replaced(window, images=window.images.eval())
            for name, window in self._windows.items()
        }
        _, options = self.__getstate__()
        return WindowSpec(changed, **options)

    def _rows_track(self, episodes: Episodes) -> str:
        """Return the track whose rows are the anchors, and the rows of all cameras."""
        name = self.track(self._anchor)
        if name in episodes or self._windows[self._anchor].images is None:
            return name
        return next(iter(episodes.tracks))

    def streams(self, episodes: Episodes) -> list[WindowStream[Any]]:
        """Return the streams for :func:`windows`: one per window without images.

        Raises
        ------
        KeyError
            The episodes lack a track.
        ValueError
            A track does not fit its window. The message begins with the window's name.
        """
        return self._streams(episodes, {})

    def _streams(
        self, episodes: Episodes, changed: dict[str, Any], names: Sequence[str] | None = None
    ) -> list[WindowStream[Any]]:
        """Return the streams of some or all windows, with changed options by window name."""
        made = []
        for name in self.numbers if names is None else names:
            window = self._windows[name]
            options = {
                field.name: getattr(window, field.name)
                for field in dataclasses.fields(window)
                if field.name not in ("offsets", "track", "label", "images")
            }
            if window.label:
                options["arrivals"] = None
            options["transforms"] = [self._numbered(each) for each in window.transforms]
            options.update(changed.get(name, {}))
            track = episodes[self.track(name)]
            try:
                made.append(stream_of(track, window.offsets, options))
            except (ValueError, TypeError) as error:
                raise type(error)(f"windows[{name!r}].{error}") from None
        return made

    def cut(
        self,
        episodes: Episodes,
        which: Indices,  # plain: ok
        anchors: Times,
        *,
        seed: int | None = None,
        epoch: int = 0,
        **options: Any,
    ) -> dict[str, tuple[Any, Any]]:
        """Cut the windows of B samples, as :func:`windows` does, and return them by name.

        Each call opens the cameras of windows of images; ``robocache.torch.WindowLoader`` and
        ``robocache.torch.WindowDataset`` open them once.

        Parameters
        ----------
        episodes
            The episodes to cut from.
        which, anchors
            The episode of each sample, and its row in the anchor's track there.
        seed, epoch
            Of random images, as for a loader. Without a seed nothing is random: see :meth:`eval`.
        options
            ``anchor_times``, ``out``, ``check_times`` and ``backend`` of :func:`windows`; without
            ``anchor_times`` and ``out`` if there are windows of images.

        Returns
        -------
        dict
            By window name: (values [B,O,D'], valid [B,O]). Images [B,O,C,h,w] are in NumPy.
        """
        found: dict[str, tuple[Any, Any]] = {}
        if self.cameras:
            for name in ("anchor_times", "out"):
                if options.get(name):
                    raise ValueError(f"{name}: is not valid for windows of images")
            found = self._cut_images(episodes, which, anchors, seed, epoch)
        if self.numbers:
            pairs = cut(
                self.streams(episodes),
                which,
                anchors,
                anchor_stream=self.anchor_stream,
                dtype=self._dtype,
                lag=self._lag,
                **options,
            )
            found.update(zip(self.numbers, pairs))
        return {name: found[name] for name, window in self._windows.items() if window.output}

    def _cut_images(
        self, episodes: Episodes, indices: Any, anchors: Any, seed: int | None, epoch: int
    ) -> dict[str, tuple[Any, Any]]:
        import numpy as np

        from ..data._frames.window_images import window_images

        spec = self if seed is not None else self.eval()
        indices, anchors = (
            np.asarray(on_host(each, name) if hasattr(each, "__dlpack__") else each, np.int64)
            for each, name in ((indices, "which"), (anchors, "anchors"))
        )
        found = {}
        for window in window_images(episodes, spec, fill=False):
            found[window.name] = window.cut(indices, anchors, seed or 0, epoch)
            window.reader.close()
        return found

    @property
    def anchor_stream(self) -> int:
        """The index of the anchor's window."""
        return list(self.numbers).index(self._anchor)

    def samples(self, episodes: Episodes) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the episode and the anchor of every sample, in order, as NumPy arrays."""
        import numpy as np

        begin = self.anchors[0]
        counts = self.counts(episodes)
        indices = np.repeat(np.arange(len(counts)), counts)
        before = np.cumsum(counts) - counts
        return indices, np.arange(len(indices)) - before[indices] + begin

    def counts(self, episodes: Episodes) -> NDArray[np.int64]:
        """Return the number of samples of each episode, int64 [E] in NumPy; 0 if it is empty."""
        import numpy as np

        _require_episodes(episodes)
        begin, end = self.anchors
        lengths = episodes.lengths(self._rows_track(episodes))
        counts: NDArray[np.int64] = np.where(lengths > 0, lengths + end - begin, 0).clip(min=0)
        return counts

    def statistics(
        self,
        episodes: Episodes,
        *,
        rows: Accumulate | Mapping[str, Accumulate] = "all",
        per_step: bool = False,
        quantiles: Sequence[float] = QUANTILES,
        ddof: int = 0,
    ) -> dict[str, StatisticsResult]:
        """Compute statistics of the windows of all samples, after transforms, before normalization.

        For example, statistics of relative actions, which differ from the statistics of actions.
        They are exact, and are computed without storing windows. Rows past an episode's end count
        as its last row, even where the window replaces them by neutral numbers.

        Parameters
        ----------
        episodes
            The episodes to cut from.
        rows
            The rows of windows that count, for all windows or by name: "all" (openpi), "valid", or
            "whole" for windows that are completely inside their episode (LeRobot, GR00T).
        per_step
            Compute separate statistics for each offset: arrays [O,D'] instead of [D'].
        quantiles, ddof
            As for :func:`statistics`.

        Returns
        -------
        dict
            :class:`StatisticsResult` with NumPy arrays, by window name.
        """
        from .statistics import statistics

        return statistics(self, episodes, rows, per_step, quantiles, ddof)

    def normalized(self, normalizations: Mapping[str, Normalization | None]) -> WindowSpec:
        """Return the specification with other normalizations, by window name."""
        changed = dict(self._windows)
        for name, each in normalizations.items():
            if name not in changed:
                raise ValueError(
                    f"normalizations: has {name!r}, expected one of {_quoted(changed)}"
                )
            changed[name] = replaced(changed[name], normalization=each)
        _, options = self.__getstate__()
        return WindowSpec(changed, **options)

    def _numbered(self, transform: Transform) -> Transform:
        """Return a transform whose reference has the index of a window instead of its name."""
        stream, offset = transform.reference
        name = stream if isinstance(stream, str) else list(self._windows)[stream]
        count = len(self._windows[name].offsets)
        return transform._with_reference(self.numbers.index(name), offset % count)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, WindowSpec):
            return NotImplemented
        return self.__getstate__() == other.__getstate__()

    __hash__ = None  # type: ignore[assignment]

    def __getstate__(self) -> tuple[Any, dict[str, Any]]:
        options: dict[str, Any] = {"anchor": self._anchor, "anchors": self._anchors}
        return self._windows, {**options, "dtype": self._dtype, "lag": self._lag}

    def __setstate__(self, state: tuple[Any, dict[str, Any]]) -> None:
        windows, options = state
        self.__init__(windows, **options)  # type: ignore[misc]

    def __repr__(self) -> str:
        rows = [["window", "track", "offsets", "form"]]
        names = list(self._windows)
        rows += [
            [name, self.track(name), offsets_text(window.offsets), _form(window, names)]
            for name, window in self._windows.items()
        ]
        begin, end = self.anchors
        last = "n" if end == 1 else f"n {'-' if end < 1 else '+'} {abs(end - 1)}"
        anchor_rows = "every row" if (begin, end) == (0, 0) else f"rows {begin} to {last}"
        dtype = "" if self._dtype is None else f"\ndtype: {self._dtype}"
        no_lag = isinstance(self._lag, (int, float)) and self._lag == 0
        lag = "" if no_lag else f"\nlag: {self._lag}"
        table = text_table(rows, right=False)
        return f"{table}\nanchors: {anchor_rows} of {self._anchor!r}{dtype}{lag}"


# ---- checks of arguments ------------------------------------------------------------------------


def _require_episodes(episodes: Any) -> None:
    if not isinstance(episodes, Episodes):
        raise TypeError(f"episodes: is {kind_of(episodes)}, expected robocache.Episodes")


def _checked_windows(windows: Any) -> dict[str, Window]:
    if not isinstance(windows, Mapping):
        raise TypeError(
            f"windows: is {kind_of(windows)}, expected a dict of robocache.Window by name"
        )
    checked = {
        name: each if isinstance(each, Window) else Window(each) for name, each in windows.items()
    }
    if not checked:
        raise ValueError("windows: got 0, expected 1 or more")
    names = list(checked)
    for name, window in checked.items():
        for i, transform in enumerate(window.transforms):
            stream, offset = transform.reference
            within = f"windows[{name!r}].transforms[{i}].reference"
            if isinstance(stream, str) and stream not in checked:
                raise ValueError(f"{within}: is {stream!r}, expected one of {_quoted(names)}")
            if not isinstance(stream, str) and not 0 <= stream < len(names):
                raise ValueError(f"{within}: is {stream}, expected one of {_quoted(names)}")
            referred = stream if isinstance(stream, str) else names[stream]
            if checked[referred].images is not None:
                raise ValueError(f"{within}: is {referred!r}, which has images, expected numbers")
            count = len(checked[referred].offsets)
            if not -count <= offset < count:
                raise ValueError(
                    f"{within}: is offset {offset} of {referred!r}, which has {count} offsets"
                )
    return checked


def _checked_anchors(anchors: Any) -> Any:
    if isinstance(anchors, str) and anchors == "whole":
        return anchors
    try:
        begin, end = anchors
        return int(begin), int(end)
    except REFUSALS:
        raise TypeError(
            f"anchors: is {shown(anchors)}, expected 'whole' or two ints, such as (0, -49)"
        ) from None


# ---- text ---------------------------------------------------------------------------------------


def _quoted(names: Any) -> str:
    return ", ".join(map(repr, names))


def _form(window: Window, names: list[str]) -> str:
    parts: list[str] = [window.outside]
    if window.method is not None:
        parts.insert(0, window.method if isinstance(window.method, str) else "groups")
    for each in window.transforms:
        stream, offset = each.reference
        stream = stream if isinstance(stream, str) else names[stream]
        inverse = "inverse " if each.inverse else ""
        out = "" if each.out_rotation == each.rotation else f" in {each.out_rotation}"
        parts.append(f"{inverse}{each.kind} {each.begin}:{each.end} of {stream}[{offset}]{out}")
    if window.images is not None:
        parts.append(repr(window.images))
    if window.normalization is not None:
        parts.append("normalized")
    if window.causal:
        parts.append("causal")
    if window.label:
        parts.append("label")
    if not window.output:
        parts.append("not output")
    return ", ".join(parts)
