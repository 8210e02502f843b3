"""A pipeline on the robot: samples arrive, and the policy's inputs are computed from them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from .._episodes.episodes import Episodes
from .._episodes.track import Track
from .._operations.live import Live, LiveCounters, LiveStream
from .._printable import kind_of
from .._windows.spec import WindowSpec
from .._windows.windows import windows as cut
from .cameras import Camera
from .rows import split
from .sources import LONGEST_DELAY, TICKS, StreamPlan, ticks_of
from .strict_json import step

if TYPE_CHECKING:
    from .messages import TopicReader
    from .plan import Plan


class Observation(Mapping[str, Any]):
    """The inputs of a policy at one time: an array [1,T,D] for each window."""

    def __init__(
        self,
        windows: Mapping[str, tuple[Any, Any]],
        ages: Mapping[str, float],
        time: Any,
        rows: Mapping[str, Any],
        raw: Callable[[], dict[str, Any]],
        images: Mapping[str, tuple[Any, float]] | None = None,
    ) -> None:
        for each, what in ((windows, "windows"), (ages, "ages"), (rows, "rows")):
            if not isinstance(each, Mapping):
                raise TypeError(f"{what}: is {kind_of(each)}, expected a dict")
        self._values = {name: values for name, (values, _) in windows.items()}
        self.valid = {name: valid for name, (_, valid) in windows.items()}
        self.ages = dict(ages)
        self.time = time
        self.rows = dict(rows)
        self.images = {name: image for name, (image, _) in (images or {}).items()}
        self.image_ages = {name: age for name, (_, age) in (images or {}).items()}
        self._raw = raw

    @functools.cached_property
    def raw(self) -> dict[str, Any]:
        """The windows without normalization; relative actions refer to them."""
        return self._raw()

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        shapes = ", ".join(f"{name!r}: {list(each.shape)}" for name, each in self.items())
        return f"Observation({{{shapes}}}, time={self.time})"


class LivePipeline:
    """A :class:`Pipeline` on the robot, from :meth:`Pipeline.live`.

    One thread per stream and one per camera may push, and one thread may observe.
    """

    def __init__(
        self,
        plan: Plan,
        fingerprint: str,
        definitions: Mapping[str, str] | None = None,
        distribution: str | None = None,
        capacities: Mapping[str, int] | None = None,
    ) -> None:
        from .plan import Plan

        if not isinstance(plan, Plan):
            raise TypeError(f"plan: is {kind_of(plan)}; Pipeline.live makes a LivePipeline")
        if not plan.observed and not plan.images:
            raise ValueError("/windows: all windows have future rows; the robot can see none")
        self._plan, self._fingerprint = plan, fingerprint
        self._definitions, self._distribution = definitions, distribution
        self._require_references()
        self._streams = plan.seen
        self._number = {name: number for number, name in enumerate(self._streams)}
        if self._streams:
            self._spec = plan.spec(only=plan.observed)
            self._raw_spec = plan.spec(only=plan.observed, normalized=False)
        self._windows: dict[int, _NewestWindows] = {}  # by number of rows
        self._raw_windows: dict[int, _NewestWindows] = {}
        self._cameras = {name: Camera(image) for name, image in plan.images.items()}
        self._live: Any = None  # without streams
        if self._streams:
            self._live = Live(
                [
                    LiveStream(
                        stream.width,
                        capacity=(capacities or {}).get(name, stream.capacity),
                        late_bound=stream.late_bound,
                        dtype=plan.dtype,
                        fill_value=stream.fill,
                        clock_offset=-stream.latency,
                        **stream.rules,
                    )
                    for name, stream in self._streams.items()
                ],
                time_dtype="int64",
            )
        self._topics: dict[str, list[StreamPlan]] = {}
        for stream in plan.streams.values():
            if stream.topic is not None:
                self._topics.setdefault(stream.topic, []).append(stream)
        self._readers: dict[tuple[str, str], TopicReader] = {}
        self._begin: int | None = None
        self._first: dict[str, int | None] = dict.fromkeys(self._streams)  # ns, of a sample
        self._lost = dict.fromkeys(self._streams, 0)

    def _require_references(self) -> None:
        windows = self._plan.document["windows"]
        for name in self._plan.observed:
            for number, transform in enumerate(windows[name]["transforms"]):
                referred = transform["reference"]["window"]
                if referred not in self._plan.observed:
                    raise ValueError(
                        f"/windows{step(name)}/transforms/{number}/reference/window: {referred!r} "
                        "has future rows, which the robot cannot see"
                    )

    # ---- identity -------------------------------------------------------------------------------

    @property
    def fingerprint(self) -> str:
        """The fingerprint of the pipeline."""
        return self._fingerprint

    def require(self, fingerprint: str) -> None:
        """Refuse a checkpoint of another pipeline.

        Raises
        ------
        ValueError
            The fingerprint is another one. The message says whether the inputs or the numbers
            differ.
        """
        require_same(self._fingerprint, fingerprint)

    @property
    def topics(self) -> tuple[str, ...]:
        """The topics to subscribe to, for :meth:`push_message`."""
        streams = [stream.topic for stream in self._streams.values()]
        cameras = [camera.plan.topic for camera in self._cameras.values()]
        return tuple(dict.fromkeys(topic for topic in (*streams, *cameras) if topic is not None))

    # ---- samples --------------------------------------------------------------------------------

    def push(self, stream: str, times: Any, values: Any, arrivals: Any = None) -> None:
        """Add samples of a stream, in the order in which they arrive.

        Parameters
        ----------
        stream : str
            The name of the stream. Samples of a stream that only labels use are ignored.
        times : number, or array [n]
            Stamps, in the unit of the pipeline's clock: float seconds, or int nanoseconds.
        values : array [n,D], or [D] for one sample
            The channels in the order of the file, in the units of the source: ``scale`` and
            ``offset`` are applied here. Samples with NaN or infinite numbers are skipped.
        arrivals : number, or array [n], optional
            When each sample arrived, on the clock of ``observe``. None: now, by the clock of this
            computer.

        Raises
        ------
        ValueError
            There is no such stream, shapes do not match, or the stamps are not on this computer's
            clock and ``arrivals`` is None; nothing is added.
        """
        import numpy as np

        plan = self._stream(stream)
        if plan is None:
            return
        stamps = np.atleast_1d(self._ticks(times, "times"))
        raw = np.asarray(values)
        if raw.ndim == 1 and len(stamps) == 1:
            raw = raw[None]
        if raw.shape != (len(stamps), plan.width):
            raise ValueError(
                f"values: shape is {list(raw.shape)}, expected [{len(stamps)}, {plan.width}]: one "
                f"row per time, with {', '.join(plan.names)}"
            )
        numbers, good = plan.numbers(raw)
        arrived = self._arrivals(arrivals, stamps)
        self._push(stream, stamps, numbers, good, arrived)

    def _push(self, name: str, stamps: Any, numbers: Any, good: Any, arrived: Any) -> None:
        if not good.all():
            self._lost[name] += int((~good).sum())
            stamps, numbers = stamps[good], numbers[good]
            arrived = None if arrived is None else arrived[good]
        if len(stamps):
            first = int(stamps.min()) - self._streams[name].latency
            known = self._first[name]
            self._first[name] = first if known is None else min(first, known)
            self._live.push(self._number[name], stamps, numbers, arrived)

    def _stream(self, name: str) -> StreamPlan | None:
        if name in self._streams:
            return self._streams[name]
        if name in self._plan.streams:
            return None
        known = ", ".join(map(repr, self._streams))
        raise ValueError(f"stream: is {name!r}, expected one of {known}")

    def _ticks(self, times: Any, where: str) -> Any:
        unit = self._plan.document["clock"]["unit"]
        import numpy as np

        array = np.asarray(times)
        if unit == "ns" and array.dtype.kind not in "iumM":
            raise TypeError(
                f"{where}: dtype is {array.dtype}, expected integers: the unit of the clock is ns"
            )
        if unit == "s" and array.dtype.kind in "iu":
            array = array.astype(np.float64)
        return ticks_of(array, unit, where)

    def _arrivals(self, arrivals: Any, stamps: Any) -> Any:
        import numpy as np

        if not self._plan.has_arrivals:
            return None
        if arrivals is not None:
            own = np.atleast_1d(self._ticks(arrivals, "arrivals"))
            if own.shape != stamps.shape:
                raise ValueError(
                    f"arrivals: has {own.size} numbers, expected {len(stamps)}, one per time"
                )
            return own
        import time

        now = time.time_ns()
        if len(stamps) and abs(now - int(stamps[-1])) > LONGEST_DELAY * TICKS:
            raise ValueError(
                "arrivals: is None, but the stamps are not on the clock of this computer; pass the "
                "time at which the samples arrived, on the clock of observe()"
            )
        return np.full(len(stamps), now, np.int64)

    def push_message(self, topic: str, data: bytes, received: Any, encoding: str = "cdr") -> int:
        """Decode a message, add its samples, and return how many there were.

        It is decoded as in a bag. A stream with ``"select": "name"`` looks up each channel by its
        name in every message. A frame of a camera counts as one sample; JPEG and PNG need PyAV.

        Parameters
        ----------
        topic
            The topic of the message.
        data
            The serialized message.
        received
            When it arrived, on the clock of ``observe``.
        encoding
            "cdr" (ROS 2) or "ros1".

        Raises
        ------
        ValueError
            No stream or image has this topic, the message cannot be decoded, it lacks a channel, or
            a frame does not have the size in the file; nothing is added.
        """
        import numpy as np

        arrived = int(np.atleast_1d(self._ticks(received, "received"))[0])
        cameras = [camera for camera in self._cameras.values() if camera.plan.topic == topic]
        frames = [camera.read(data, encoding) for camera in cameras]
        samples: Any = ()
        if not cameras or topic in self._topics:
            samples = self._reader(topic, encoding).read(data, arrived)
        for camera, frame in zip(cameras, frames):
            camera.put(frame, arrived)
        for plan, stamp, numbers, good in samples:
            if plan.name in self._streams:
                arrivals = np.array([arrived]) if self._plan.has_arrivals else None
                self._push(plan.name, np.array([stamp]), numbers, good, arrivals)
        return len(samples) + len(cameras)

    def push_image(self, image: str, frame: Any, received: Any) -> None:
        """Add a frame of a camera. The last 8 frames are kept, in the order of their arrival.

        Parameters
        ----------
        image
            The name of the image in the file.
        frame : array [H,W,C] of uint8
            RGB if C is 3, with the size and channels of the file. It is copied.
        received
            When it arrived, on the clock of ``observe``.

        Raises
        ------
        ValueError
            There is no such image, or the frame has another shape; nothing is added.
        """
        import numpy as np

        camera = self._cameras[self._plan.image(image).name]
        arrived = int(np.atleast_1d(self._ticks(received, "received"))[0])
        camera.put(np.array(frame) if isinstance(frame, np.ndarray) else frame, arrived)

    def _reader(self, topic: str, encoding: str) -> TopicReader:
        key = topic, encoding
        reader = self._readers.get(key)
        if reader is None:
            from .messages import TopicReader

            own = self._topics.get(topic)
            if own is None:
                known = ", ".join(map(repr, dict.fromkeys((*self._topics, *self.topics)))) or "none"
                raise ValueError(f"topic: is {topic!r}, expected one of the pipeline's: {known}")
            reader = TopicReader(topic, own, encoding, self._definitions, self._distribution)
            self._readers[key] = reader
        return reader

    # ---- rows -----------------------------------------------------------------------------------

    def observe(self, now: Any) -> Observation:
        """Return the policy's inputs: windows that end with the row of ``now`` - lag.

        An episode begins when every stream has a sample, or at the time passed to :meth:`begin`.
        Windows have no rows before it, as in training.

        Parameters
        ----------
        now
            The current time, in the unit of the pipeline's clock.

        Returns
        -------
        Observation
            ``obs["state"]`` [1,T,D] normalized; ``obs.valid["state"]`` [1,T]; ``obs.ages``, the age
            in seconds of the newest sample of each stream, infinite without one; ``obs.time``, the
            time of the newest row. ``obs.images["front"]`` [1,C,h,w] is the image of the frame that
            had arrived last, and ``obs.image_ages`` the seconds since then; None and infinity
            without a frame.
        """
        import numpy as np

        query = int(np.atleast_1d(self._ticks(now, "now"))[0]) - self._plan.lag
        return self._observe(query)

    def _observe(self, query: int) -> Observation:
        import numpy as np

        period = self._plan.period
        begin = self._begin
        if begin is None and self._first and None not in self._first.values():
            begin = max(first for first in self._first.values() if first is not None)
        count = 0 if begin is None else min(self._plan.reach, max(0, (query - begin) // period))
        images = {
            name: camera.newest(query + self._plan.lag) for name, camera in self._cameras.items()
        }
        if not self._streams:
            return Observation({}, {}, self._time(query), {}, dict, images)
        queries = query - period * np.arange(count, -1, -1, dtype=np.int64)
        tick = self._live.fuse(queries, lag=self._plan.lag, dtype=self._plan.dtype)
        rows = split(self._streams, tick.values, tick.valid)
        windows = self._newest(self._spec, self._windows, count + 1).cut(rows)
        ages = {
            name: float("inf") if age >= 2**62 else age / TICKS
            for name, age in zip(self._streams, tick.ages.tolist())
        }
        raw = functools.partial(self._raw, rows, count + 1)
        return Observation(windows, ages, self._time(query), rows, raw, images)

    def _raw(self, rows: Mapping[str, Any], count: int) -> dict[str, Any]:
        windows = self._newest(self._raw_spec, self._raw_windows, count).cut(rows)
        return {name: values for name, (values, _) in windows.items()}

    def _newest(
        self, spec: WindowSpec, known: dict[int, _NewestWindows], count: int
    ) -> _NewestWindows:
        if count not in known:
            known[count] = _NewestWindows(spec, self._streams, count, self._plan.dtype)
        return known[count]

    def _time(self, ticks: int) -> Any:
        return ticks / TICKS if self._plan.document["clock"]["unit"] == "s" else ticks

    def begin(self, now: Any) -> None:
        """Begin an episode with the row of ``now`` - lag; samples are kept."""
        import numpy as np

        self._begin = int(np.atleast_1d(self._ticks(now, "now"))[0]) - self._plan.lag

    def reset(self) -> None:
        """End the episode, and remove all samples and frames. Call it while no thread pushes."""
        self._begin = None
        for camera in self._cameras.values():
            camera.clear()
        self._first = dict.fromkeys(self._streams)
        for number in self._number.values():
            self._live.reset(number)

    def counters(self, stream: str) -> LiveCounters:
        """Return the counts of a stream's samples, as :meth:`Live.counters`."""
        if stream not in self._number:
            known = ", ".join(map(repr, self._number))
            raise ValueError(f"stream: is {stream!r}, expected one of {known}")
        counters: LiveCounters = self._live.counters(self._number[stream])
        return counters

    def skipped(self, stream: str) -> int:
        """Return how many samples had NaN or infinite numbers, and were skipped."""
        self.counters(stream)
        return self._lost[stream]

    def __repr__(self) -> str:
        names = ", ".join(map(repr, self._plan.observed))
        parts = [f"windows {names}; {self._live!r}"] if self._streams else []
        if self._cameras:
            parts.append(f"images {', '.join(map(repr, self._cameras))}")
        return f"LivePipeline({'; '.join(parts)})"


class _NewestWindows:
    """Cuts the windows whose anchor is the last of ``count`` rows, by the same call as training.

    The arrays and the descriptions of the windows are made once; each call writes the rows into
    them.
    """

    def __init__(
        self, spec: WindowSpec, streams: Mapping[str, StreamPlan], count: int, dtype: str
    ) -> None:
        import numpy as np

        self._rows = {
            name: np.zeros((count, stream.width), dtype) for name, stream in streams.items()
        }
        self._valid = {name: np.zeros(count, bool) for name in streams}
        offsets = np.array([0, count], np.int64)
        episodes = Episodes({name: Track(rows, offsets) for name, rows in self._rows.items()})
        changed: dict[str, Any] = {
            name: {"missing": None, "sample_mask": self._valid[spec.track(name)]}
            for name in spec.windows
        }
        self._streams = spec._streams(episodes, changed)
        self._names, self._dtype, self._anchor = list(spec.windows), dtype, spec.anchor_stream
        self._episode, self._last = np.zeros(1, np.int64), np.array([count - 1], np.int64)

    def cut(self, rows: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
        """Return the windows: values [1,T,D] and valid [1,T]. A row with NaN is not valid."""
        import numpy as np

        for name, own in rows.items():
            self._rows[name][:] = own
            self._valid[name][:] = ~np.isnan(own).any(axis=1)
        pairs = cut(
            self._streams,
            self._episode,
            self._last,
            anchor_stream=self._anchor,
            dtype=self._dtype,
        )
        return dict(zip(self._names, pairs))


def require_same(ours: str, theirs: Any) -> None:
    """Raise if two fingerprints differ, and say in which part."""
    if ours == theirs:
        return
    if not isinstance(theirs, str) or len(theirs.split("-")) != 2:
        raise ValueError(f"fingerprint: is {theirs!r}, expected 64 digits, a dash and 64 digits")
    parts = zip(("inputs", "numbers"), ours.split("-"), theirs.split("-"))
    apart = " and the ".join(name for name, mine, other in parts if mine != other)
    raise ValueError(
        f"fingerprint: the {apart} of this pipeline differ from those of the checkpoint: "
        f"{ours} here, {theirs} there. Load the file in the folder of the checkpoint, or find the "
        "difference with Pipeline.diff"
    )
