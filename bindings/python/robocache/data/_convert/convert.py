"""``convert``: recordings and data sets become one data set for training."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..._episodes.episodes import Episodes
from ..._files.atomic_write import require_place, written_beside
from ..._printable import printable
from ..._suggestions import did_you_mean
from .._errors import FormatError, LeftOut
from .._kinds.declared import checked
from .._kinds.selectors import ALL, split
from .._progress import progress
from .._recording import Recording
from .._write import formats
from .._write.resize import Resize, ResizeArgument, resize_of
from .cameras import Frame, frames_of, frames_of_files, frames_of_video, place_of
from .prepare import Prepared, Rules, look_at, prepared, prepared_episode
from .sources import Source, Unsuitable, sources_of
from .split import split_of, unused_rows
from .staging import EpisodeWriter, Stage, StagedDataSet, facts_at
from .summary import Conversion, summary_of
from .tracks import wanted_of

_OPEN = ("damaged", "definitions", "follow_links", "max_unpacked", "time", "unit")
_ALIGN = ("methods", "max_gap", "clock", "accept_guesses", "as_numbers")


def convert(
    sources: Any,
    out: str | os.PathLike[str],
    *,
    rate: float | None = None,
    tracks: Mapping[str, Any] | None = None,
    images: Mapping[str, str] | None = None,
    tasks: str | None = None,
    format: str | None = None,
    exclude: Sequence[str] = (),
    action_shift: int = 0,
    episode_from: str | None = None,
    split_gap: float | None = None,
    spans: str | os.PathLike[str] | None = None,
    image_format: str | None = None,
    image_size: ResizeArgument | None = None,
    dtype: str | None = "float32",
    robot: str | None = None,
    skip_failed: bool = False,
    overwrite: bool = False,
    progress: bool | None = None,
    kinds: Mapping[str, Any] | None = None,
    fps: float | None = None,
    **options: Any,
) -> Conversion:
    """Convert recordings, or data sets, to one data set: each recording becomes an episode.

    Streams are aligned as by :func:`align`, and their channels are joined to the tracks that a
    policy reads. Each episode is cut to the span in which all of its streams have samples. Frames
    of cameras are streamed, and one recording is in memory at a time. The output appears completely
    or not at all: episodes that are ready are kept in ``OUT.part``, and the same call continues
    after an interruption.

    Parameters
    ----------
    sources
        A path, a pattern such as "runs/*.mcap", a folder of recordings, a :class:`Recording`,
        :class:`robocache.Episodes`, or a list of these.
    out
        The output. Its suffix gives the format.
    rate
        Rows per second. None: the rate of the data sets, whose rows are then copied.
    tracks
        By track, its parts in their order: "STREAM", "STREAM:CHANNELS" or "LABEL=STREAM:CHANNELS".
        None: a track for each stream.
    images
        The stream of each camera: ``{"front": "/camera/image_raw"}`` makes the track
        "observation.images.front". Each row takes the nearest frame. None: the videos of data sets.
    tasks
        The task of all episodes; the column task of ``spans`` comes before it. None: as recorded.
    format
        "lerobot" (v3.0), "lerobot-v2.1", "robomimic" (.hdf5), "zarr", "rlds", "parquet", "csv" or
        "npz". None: by the suffix of ``out``; "lerobot" without a suffix.
    exclude
        Streams that do not become tracks: names, or patterns such as "/camera/*".
    action_shift
        Actions are taken this many rows later, so 1 makes the next state the action. Without a
        track "action", the states are used.
    episode_from
        A topic that splits each recording: an episode begins at each of its messages; of bool
        messages, an episode is a span in which they are true.
    split_gap
        Split episodes where a stream has no sample for this long, in seconds.
    spans
        A CSV file with the columns begin and end, in seconds from the first sample, and perhaps
        recording and task; or begin_time and end_time, in seconds since 1970.
    image_format
        "video" (AV1), "png" or "jpeg". None: "video" for LeRobot, else pictures without a loss.
    image_size
        The height and the width of all pictures, or an int for both; or as ``resize`` of
        :func:`edit`: a dict with arguments of :func:`robocache.images`, or a preset. None: as
        recorded.
    dtype
        The dtype of all tracks. None: as recorded.
    robot
        The type of the robot, for the metadata.
    skip_failed
        Whether to skip recordings that lack a stream or a common span; the result lists them.
    overwrite
        Whether to replace an existing output.
    progress
        Whether to show a progress bar; None: on a terminal.
    kinds, fps
        ``kinds`` and ``rate`` of :func:`open`; a key of ``kinds`` may be "STREAM:CHANNELS" too.
    options
        ``methods``, ``max_gap``, ``clock``, ``accept_guesses`` and ``as_numbers`` of :func:`align`;
        ``damaged``, ``unit``, ``time``, ``definitions``, ``follow_links`` and ``max_unpacked`` of
        :func:`open`.

    Returns
    -------
    Conversion
        The episodes, what was cut and by which stream, and what the format cannot store.

    Raises
    ------
    FileExistsError
        The output exists or is inside of a source, or ``OUT.part`` was begun with other options or
        sources.
    FormatError
        A source cannot be read.
    ValueError
        A recording lacks a stream, or its streams have no common span.
    """
    job = _Job.checked(locals())
    return job.run()


@dataclass
class _Job:
    sources: list[Source]
    out: str
    format: str
    rules: Rules
    open_options: dict[str, Any]
    kinds: dict[str, Any]
    image_kind: str
    image_size: Resize | None
    robot: str | None
    skip_failed: bool
    overwrite: bool
    shown: bool | None
    plan: dict[str, Any] | None

    @classmethod
    def checked(cls, arguments: dict[str, Any]) -> _Job:
        options = arguments["options"]
        unknown = [key for key in options if key not in (*_OPEN, *_ALIGN)]
        if unknown:
            known = [name for name in (*arguments, *_OPEN, *_ALIGN) if name != "options"]
            raise TypeError(
                f"convert() got an unexpected keyword argument {unknown[0]!r}"
                f"{did_you_mean(unknown[0], known)}"
            )
        out = os.fsdecode(arguments["out"])
        format = formats.format_for(out, arguments["format"])
        rate, shift = arguments["rate"], arguments["action_shift"]
        if rate is not None and not 0 < float(rate) < float("inf"):
            raise ValueError(f"rate: is {rate!r}, expected a number above 0")
        if not isinstance(shift, int) or shift < 0:
            raise ValueError(f"action_shift: is {shift!r}, expected rows, 0 or more")
        sources = sources_of(arguments["sources"], out)
        wanted = wanted_of(arguments["tracks"], arguments["images"], arguments["exclude"])
        formats.require_names(format, [*wanted.tracks, *wanted.images])
        image_kind = formats.image_kind(format, arguments["image_format"])
        size = resize_of(arguments["image_size"], "image_size")
        rules = Rules(
            wanted,
            None if rate is None else float(rate),
            split_of(arguments["episode_from"], arguments["split_gap"], arguments["spans"]),
            shift,
            arguments["dtype"],
            arguments["tasks"],
            {key: options[key] for key in _ALIGN if options.get(key) is not None},
            options.get("unit"),
        )
        open_options = {key: options[key] for key in _OPEN if options.get(key) is not None}
        open_options["progress"] = False
        if arguments["fps"] is not None:
            open_options["rate"] = arguments["fps"]
        kinds = checked(arguments["kinds"])
        facts = [[source.name, source.facts] for source in sources]
        named = {
            "rate": rate,
            "tracks": None if arguments["tracks"] is None else rules.wanted.tracks,
            "images": rules.wanted.images,
            "tasks": arguments["tasks"],
            "format": format,
            "exclude": rules.wanted.exclude,
            "action_shift": shift,
            "split": [rules.split.topic, rules.split.gap, repr(rules.split.rows)],
            "image_format": image_kind,
            "image_size": None if size is None else size.facts,
            "dtype": arguments["dtype"],
            "robot": arguments["robot"],
            "kinds": kinds,
            "options": {key: repr(value) for key, value in sorted(options.items())},
            "fps": arguments["fps"],
        }
        in_memory = any(source.data is not None for source in sources)
        plan = None if in_memory else {"options": named, "sources": facts}
        return cls(
            sources,
            out,
            format,
            rules,
            open_options,
            kinds,
            image_kind,
            size,
            arguments["robot"],
            arguments["skip_failed"],
            arguments["overwrite"],
            arguments["progress"],
            plan,
        )

    def run(self) -> Conversion:
        stage = Stage(self.out)
        finished = stage.assembled(self.out)
        if finished is not None:
            stage.remove()
            return Conversion.from_dict(finished)
        require_place(self.out, self.overwrite)
        with stage.opened(self.plan), stage.kept_if_used():
            sizes = [source.size for source in self.sources]
            with progress("Converting", sum(sizes), self.shown) as advance:
                for number, source in enumerate(self.sources):
                    done = stage.done(number)
                    if done is None or (done["failed"] is not None and not self.skip_failed):
                        self._source(stage, number, source)
                    advance(sizes[number])
            summary = self._summary(stage)
            data = summary.data
            writer = formats.writer_of(self.format)
            with written_beside(self.out, self.overwrite) as part:
                summary.add(writer.write(data, part, formats.Options(self.format, self.robot)))
                stage.assemble(part, summary.to_dict())
            stage.remove()
        return summary

    def _summary(self, stage: Stage) -> Conversion:
        places, skipped, left_out = [], [], []
        for number, source in enumerate(self.sources):
            facts = stage.done(number)
            if facts["failed"] is not None:
                skipped.append((source.name, facts["failed"]))
            left_out += facts["left_out"]
            places += [stage.episode(number, episode) for episode in range(facts["episodes"])]
        if not places:
            text = "; ".join(f"{printable(name)}: {reason}" for name, reason in skipped)
            raise ValueError(f"sources: none of them became an episode: {text}")
        data = StagedDataSet(places, self.sources[0].name)
        gap = self.rules.align.get("max_gap")
        made = summary_of(data, self.out, self.format, skipped, left_out, gap)
        unused = unused_rows(self.rules.split, [source.name for source in self.sources])
        made.notes = (*unused, *made.notes)
        return made

    # ---- one source -----------------------------------------------------------------------------

    def _source(self, stage: Stage, number: int, source: Source) -> None:
        failed: str | None = None
        left_out: list[LeftOut] = []
        count = 0
        try:
            data = source.opened(self.open_options)
            data = data.with_kinds(_by_stream(self.kinds, data)) if self.kinds else data
            if isinstance(data, Recording):
                count, left_out = self._recording(stage, number, source, data)
            else:
                count = self._episodes(stage, number, source, data)
        except (Unsuitable, KeyError, FormatError) as error:
            text = str(error.args[0]) if isinstance(error, KeyError) else str(error)
            name = printable(source.name)
            if not self.skip_failed:
                if isinstance(error, FormatError):
                    raise
                own = text if text.startswith(name) else f"{name}: {text}"
                kind = KeyError if isinstance(error, KeyError) else ValueError
                end = "" if own.endswith("?") else "."
                raise kind(f"{own}{end} skip_failed=True skips such recordings") from error
            failed, count = text, 0
        facts = {"episodes": count, "failed": failed}
        stage.finish_source(number, {**facts, "left_out": [[o.place, o.reason] for o in left_out]})

    def _recording(
        self, stage: Stage, number: int, source: Source, recording: Recording
    ) -> tuple[int, Any]:
        look = look_at(recording, self.rules, source.name)
        done, waiting = 0, []
        failed = ""
        episode = 0
        for span in look.spans:
            try:
                made = prepared(look, span, self.rules, source.name)
            except Unsuitable as error:
                if len(look.spans) == 1:
                    raise
                failed = str(error)  # a short span between two others
                continue
            place = stage.episode(number, episode)
            episode += 1
            if facts_at(place) is None:
                waiting.append((place, made))
            else:
                done += 1
        if episode == 0:
            raise Unsuitable(failed)
        cameras = look.cameras if self.keeps_cameras else {}
        self._stage_recording(recording, cameras, waiting)
        lost = [self._lost(name) for name in look.cameras if name not in cameras]
        return episode, look.left_out + lost

    def _lost(self, camera: str) -> LeftOut:
        return LeftOut(camera, f"pictures of a camera, which {self.format} cannot store")

    @property
    def keeps_cameras(self) -> bool:
        return formats.keeps_cameras(self.format)

    def _stage_recording(
        self, recording: Recording, cameras: Mapping[str, str], waiting: list[tuple[str, Prepared]]
    ) -> None:
        """Write episodes of a recording, with all frames in one pass over the bag."""
        import numpy as np

        writers = [
            EpisodeWriter(place, made, list(cameras), self.image_kind, self.image_size)
            for place, made in waiting
        ]
        ended: set[int] = set()
        try:
            for i, writer in enumerate(writers if not cameras else ()):
                writer.finish()
                ended.add(i)
            if cameras and writers:
                ends = np.cumsum([made.rows for _, made in waiting])
                by_stream: dict[str, list[str]] = {}
                for feature, stream in cameras.items():
                    by_stream.setdefault(stream, []).append(feature)
                chosen = {
                    stream: np.concatenate([made.frames[own[0]] for _, made in waiting])
                    for stream, own in by_stream.items()
                }
                for stream, frame in frames_of(recording, chosen):
                    for e, row, rows in _cut_at(frame, ends):
                        for feature in by_stream[stream]:
                            writers[e].add(feature, frame, row, rows)
                        if writers[e].is_complete():
                            writers[e].finish()
                            ended.add(e)
        except ValueError as error:
            if isinstance(error, FormatError):
                raise
            raise Unsuitable(f"{', '.join(cameras)}: {error}") from error
        finally:
            for i, writer in enumerate(writers):
                if i not in ended:
                    writer.abandon()

    def _episodes(self, stage: Stage, number: int, source: Source, episodes: Episodes) -> int:
        if not self.rules.split.is_whole:
            raise Unsuitable("is a data set, whose episodes are not split; pass recordings")
        for episode in range(len(episodes)):
            place = stage.episode(number, episode)
            if facts_at(place) is not None:
                continue
            made, cameras = prepared_episode(episodes, episode, self.rules, source.name)
            if not self.keeps_cameras:
                made.left_out += map(self._lost, cameras)
                cameras = {}
            own = EpisodeWriter(place, made, list(cameras), self.image_kind, self.image_size)
            try:
                for feature, name in cameras.items():
                    if name in episodes.tracks:
                        track = episodes.select([episode], tracks=[name])[name]
                        self._copy(own, feature, track, made)
                        continue
                    chosen = episodes._about.chosen
                    index = episode if chosen is None else int(chosen[episode])
                    files = episodes._about.pictures[name](index)
                    for frame in frames_of_files(files, made.frames[feature], feature):
                        own.add(feature, frame, frame.row, frame.rows)
                own.finish()
            except BaseException:
                own.abandon()
                raise
        return len(episodes)

    def _copy(self, own: EpisodeWriter, feature: str, track: Any, made: Prepared) -> None:
        """Write the frames of a data set's video: copied if nothing changes, else encoded."""
        from ..._arguments.to_numpy import on_host

        files = track.files
        if files is None or files[0] is None:
            raise Unsuitable(f"{feature}: its video is not known")
        path, begin = place_of(files[0])
        if not os.path.exists(path):
            raise FormatError(path, "", f"is missing; exclude={[feature]} leaves this camera out")
        if made.about.get("copied") and own.copy(feature, path, begin):
            return
        times = on_host(track.times)
        for frame in frames_of_video(files[0], times - times[0], made.frames[feature]):
            own.add(feature, frame, frame.row, frame.rows)


def _cut_at(frame: Frame, ends: Any) -> Iterator[tuple[int, int, int]]:
    """Yield the episodes that a frame belongs to, with its rows in each."""
    row, left = frame.row, frame.rows
    while left > 0:
        e = int(ends.searchsorted(row, "right"))
        begin = int(ends[e - 1]) if e else 0
        rows = min(left, int(ends[e]) - row)
        yield e, row - begin, rows
        row, left = row + rows, left - rows


def _by_stream(kinds: Mapping[str, Mapping[str, str]], data: Any) -> dict[str, dict[str, str]]:
    """Return kinds by stream and channels; a key may be STREAM:CHANNELS."""
    made: dict[str, dict[str, str]] = {}
    for key, declared in kinds.items():
        known = data.names if isinstance(data, Recording) else tuple(data.tracks)
        stream, selector = split(key, known) or (key, ALL)
        for channels, kind in declared.items():
            made.setdefault(stream, {})[selector if channels == ALL else channels] = kind
    return made
