"""OUT.part: episodes that are ready, so that an interrupted conversion continues.

It holds ``plan.json`` (options and sources), ``lock``, and a folder per source with a folder per
episode. A folder that has its final name is complete.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from ..._files.workplace import sync_folder, sync_tree
from ..._printable import printable
from .._errors import FormatError, LeftOut
from .._frames.picture_decoder import PictureDecoder
from .._write import pictures, video
from .._write.dataset import Feature, even_times
from .._write.resize import Resize
from .cameras import Frame
from .prepare import Prepared

_PLAN, _LOCK, _DONE, _FACTS = "plan.json", "lock", "source.json", "facts.json"
_ASSEMBLED, _PART = "assembled.json", ".part"
_SAMPLED, _MOST_SAMPLED, _POWER = 100, 10_000, 0.75  # frames of an episode, as in LeRobot
_LARGE, _SMALLER = 300, 150  # pixels: larger pictures are thinned, as in LeRobot


class Stage:
    """The folder of a conversion that is under way."""

    def __init__(self, out: str) -> None:
        self.path = f"{out.rstrip(os.sep)}{_PART}"

    @contextmanager
    def opened(self, plan: Mapping[str, Any] | None) -> Iterator[None]:
        """Lock the folder, and check that it was begun with the same plan.

        ``plan`` None: sources in memory cannot be compared, so it begins anew.

        Raises
        ------
        FileExistsError
            It was begun with other options or sources, or another process is writing it.
        """
        self._make()
        lock = os.open(os.path.join(self.path, _LOCK), os.O_RDWR | os.O_CREAT, 0o666)
        try:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise FileExistsError(
                    f"{printable(self.path)}: another process is writing it; wait for its end"
                ) from None
            self._require_same(plan)
            yield
        finally:
            os.close(lock)

    def _make(self) -> None:
        """Make the folder. An error names the output, which is what the caller passed."""
        try:
            os.mkdir(self.path)
        except FileExistsError:
            if not os.path.isdir(self.path):
                self._require_own(None)
        except OSError as error:
            error.filename = self.path[: -len(_PART)]
            raise

    def _require_same(self, plan: Mapping[str, Any] | None) -> None:
        place = os.path.join(self.path, _PLAN)
        known = _json(place)
        if plan is None or known is None:
            self._require_own(known)
            for name in sorted(os.listdir(self.path), key=lambda name: name == _PLAN):  # it last
                if name != _LOCK:
                    _remove(os.path.join(self.path, name))
            _write_json(place, {"robocache": "conversion", **(plan or {"options": None})})
            return
        given = json.loads(json.dumps(plan))
        for key in ("options", "sources"):
            if known.get(key) != given[key]:
                raise FileExistsError(
                    f"{printable(self.path)}: was begun {_difference(known.get(key), given[key])}. "
                    "Run the same command to continue, or delete it to begin anew"
                )

    def _require_own(self, known: Any) -> None:
        """Refuse to empty a folder, or to replace a file, that no conversion has made."""
        own = (_LOCK, f"{_PLAN}.new")  # all that a conversion has before its plan
        is_folder = os.path.isdir(self.path)
        others = [n for n in os.listdir(self.path) if n not in own] if is_folder else [self.path]
        if others and (known is None or known.get("robocache") != "conversion"):
            raise FileExistsError(
                f"{printable(self.path)}: is in the way, and was not made by a conversion; move it"
            )

    @contextmanager
    def kept_if_used(self) -> Iterator[None]:
        """Remove the folder after an error before the first episode: options may be wrong."""
        try:
            yield
        except Exception:
            if not any(self._episodes()):
                self.remove()
            raise

    def _episodes(self) -> Iterator[str]:
        """Yield the episodes that are complete."""
        for source in os.listdir(self.path):
            path = os.path.join(self.path, source)
            for name in os.listdir(path) if source.isdigit() else ():
                if name.isdigit():
                    yield os.path.join(path, name)

    # ---- sources --------------------------------------------------------------------------------

    def source(self, number: int) -> str:
        path = os.path.join(self.path, f"{number:05d}")
        os.makedirs(path, exist_ok=True)
        return path

    def done(self, number: int) -> Any:
        """Return the facts of a source that is complete, or None."""
        return _json(os.path.join(self.source(number), _DONE))

    def finish_source(self, number: int, facts: Mapping[str, Any]) -> None:
        _write_json(os.path.join(self.source(number), _DONE), facts)

    def episode(self, source: int, number: int) -> str:
        return os.path.join(self.source(source), f"{number:05d}")

    # ---- the end --------------------------------------------------------------------------------

    def assembled(self, out: str) -> Any:
        """Return the result if the output was renamed to its place just before an interruption."""
        known = _json(os.path.join(self.path, _ASSEMBLED))
        try:
            state = os.lstat(out)
        except OSError:
            return None
        if known is None or known["place"] != [state.st_dev, state.st_ino]:
            return None
        return known["result"]

    def assemble(self, new: str, result: Mapping[str, Any]) -> None:
        """Note which file or folder will be the output, and the result."""
        state = os.lstat(new)
        facts = {"place": [state.st_dev, state.st_ino], "result": result}
        _write_json(os.path.join(self.path, _ASSEMBLED), facts)

    def remove(self) -> None:
        """Remove the folder; last what says that the output is complete."""
        for name in os.listdir(self.path) if os.path.isdir(self.path) else ():
            if name not in (_ASSEMBLED, _LOCK):
                _remove(os.path.join(self.path, name))
        _remove(self.path)


def _difference(known: Any, plan: Any) -> str:
    """Return a part of a sentence with the first difference of two plans."""
    if isinstance(known, dict) and isinstance(plan, dict):
        for key in plan:
            if known.get(key) != plan[key]:
                return f"with {key}={_short(known.get(key))}, and now it is {_short(plan[key])}"
    if isinstance(known, list) and isinstance(plan, list):
        for old, new in zip(known, plan):
            if old != new:
                same = old[0] == new[0]
                what = "which has changed since" if same else f"and now it is {_short(new[0])}"
                return f"with the source {_short(old[0])}, {what}"
        return f"with {len(known)} sources, and now there are {len(plan)}"
    return "by another release"


def _short(value: Any) -> str:
    text = printable(str(value))
    return text if len(text) < 80 else f"{text[:77]}..."


# ---- episodes -----------------------------------------------------------------------------------


class EpisodeWriter:
    """Writes one episode into a temporary folder, which gets its name at the end."""

    def __init__(
        self, path: str, made: Prepared, cameras: Sequence[str], kind: str, size: Any
    ) -> None:
        import numpy as np

        self.path, self.made = path, made
        self.new = f"{path}.new"
        _remove(self.new)
        os.makedirs(self.new)
        for i, values in enumerate(made.values.values()):
            np.save(os.path.join(self.new, f"f{i}.npy"), values, allow_pickle=False)
        self.sinks = {
            name: _Sink(os.path.join(self.new, f"c{i}"), made.rows, made.rate, kind, size)
            for i, name in enumerate(cameras)
        }

    def add(self, camera: str, frame: Frame, row: int, rows: int) -> None:
        """Add a frame for ``rows`` rows from ``row`` on."""
        self.sinks[camera].add(frame, row, rows)

    def copy(self, camera: str, source: str, begin: float) -> bool:
        """Copy the frames of a camera from a video, if that is possible."""
        return self.sinks[camera].copy(source, begin)

    def is_complete(self) -> bool:
        return all(sink.row == self.made.rows for sink in self.sinks.values())

    def finish(self) -> None:
        made = self.made
        for sink in self.sinks.values():
            sink.close()
        features = [
            {
                "name": name,
                "dtype": values.dtype.name,
                "channels": None if made.names[name] is None else list(made.names[name] or ()),
                "shape": [int(values.shape[1])],
            }
            for name, values in made.values.items()
        ]
        facts = {
            "rows": made.rows,
            "rate": made.rate,
            "task": list(made.task),
            "features": features,
            "cameras": [{"name": n, **sink.facts()} for n, sink in self.sinks.items()],
            "about": made.about,
            "left_out": [[each.place, each.reason] for each in made.left_out],
            "notes": made.notes,
        }
        _write_json(os.path.join(self.new, _FACTS), facts)
        sync_tree(self.new)
        os.rename(self.new, self.path)
        sync_folder(os.path.dirname(self.path))

    def abandon(self) -> None:
        for sink in self.sinks.values():
            sink.abandon()
        _remove(self.new)


class _Sink:
    """The frames of a camera in an episode: a video, or pictures one after the other."""

    def __init__(self, path: str, rows: int, rate: float, kind: str, resize: Resize | None) -> None:
        import numpy as np

        self.path, self.rows, self.kind, self.resize = path, rows, kind, resize
        self.row = 0
        self.shape: tuple[int, ...] | None = None
        self.writer = video.Writer(f"{path}.mp4", rate) if kind == "video" else None
        self.file = None if self.writer else open(f"{path}.pictures", "xb")
        self.places: list[tuple[int, int]] = []  # begin and end of the picture of each row
        self.levels = np.zeros((3, 256), np.int64)
        self.sampled = _sampled(rows)
        self.counted = 0

    def add(self, frame: Frame, row: int, rows: int) -> None:
        if row != self.row:
            raise RuntimeError(f"{self.path}: row {row} came, expected row {self.row}")
        needs = self.writer is not None or any(r in self.sampled for r in range(row, row + rows))
        image = None
        stored = None if self.resize is not None else self._stored(frame)
        if needs or stored is None:
            image = frame.image if self.resize is None else self.resize(frame.image)
            self._require(image.shape)
        if self.writer is not None:
            for _ in range(rows):
                self.writer.add(image)
        elif self.file is not None:
            data = stored if stored is not None else pictures.encoded(image, self.kind or "png")
            self._require((*pictures.size_of(data), 3))
            begin = self.file.tell()
            self.file.write(data)
            self.places += [(begin, begin + len(data))] * rows
        for each in range(row, row + rows):
            if each in self.sampled:
                self._count(image)
        self.row += rows

    def _stored(self, frame: Frame) -> bytes | None:
        """Return the file of a frame if it is stored without a change."""
        if self.writer is not None or frame.file is None:
            return None
        own = pictures.kind_of(frame.file)
        return frame.file if own is not None and self.kind in ("", own) else None

    def _require(self, shape: tuple[int, ...]) -> None:
        if self.shape is None:
            self.shape = shape
        if shape != self.shape:
            raise ValueError(video.changed(self.shape, shape))

    def _count(self, image: Any) -> None:
        import numpy as np

        height, width = image.shape[:2]
        if max(height, width) >= _LARGE:
            step = max(height, width) // _SMALLER
            image = image[::step, ::step]
        for channel in range(3):
            counts = np.bincount(image[..., channel].reshape(-1), minlength=256)
            self.levels[channel] += counts
        self.counted += 1

    def copy(self, source: str, begin: float) -> bool:
        if self.writer is None or self.resize is not None:
            return False
        if not video.copy_part(source, self.writer.path, begin, self.rows):
            return False
        for row, (_, image) in enumerate(video.frames(self.writer.path)):
            self._require(image.shape)
            if row in self.sampled:
                self._count(image)
        self.row = self.rows
        return True

    def close(self) -> None:
        import numpy as np

        if self.writer is not None:
            self.writer.close()
        if self.file is not None:
            self.file.close()
            np.save(f"{self.path}.places.npy", np.array(self.places, np.int64).reshape(-1, 2))
        np.save(f"{self.path}.levels.npy", self.levels)

    def abandon(self) -> None:
        if self.writer is not None:
            self.writer.abandon()
        if self.file is not None:
            self.file.close()

    def facts(self) -> dict[str, Any]:
        return {"shape": list(self.shape or ()), "sampled": self.counted, "kind": self.kind}


def _sampled(rows: int) -> set[int]:
    """Return the rows whose pictures are counted in the statistics."""
    import numpy as np

    count = max(min(rows, _SAMPLED), min(int(rows**_POWER), _MOST_SAMPLED))
    return set(np.round(np.linspace(0, rows - 1, count)).astype(int).tolist())


# ---- the staged data set ------------------------------------------------------------------------


class StagedDataSet:
    """All episodes of a stage (``_write.dataset.DataSet``)."""

    def __init__(self, places: Sequence[str], source: str) -> None:
        self.places, self.source = list(places), source
        self.facts = [_json(os.path.join(place, _FACTS)) for place in self.places]
        first = self.facts[0]
        self.rate: float | None = first["rate"]
        self.lengths = [facts["rows"] for facts in self.facts]
        self.tasks = [tuple(facts["task"]) for facts in self.facts]
        self.features: dict[str, Feature] = {}
        for entry in first["features"]:
            channels = None if entry["channels"] is None else tuple(entry["channels"])
            feature = Feature(entry["name"], entry["dtype"], tuple(entry["shape"]), channels)
            self.features[entry["name"]] = feature
        for entry in first["cameras"]:
            feature = Feature(entry["name"], "uint8", tuple(entry["shape"]), is_camera=True)
            self.features[entry["name"]] = feature
        for facts in self.facts[1:]:
            self._require_same(first, facts)
        self.cameras = {entry["name"]: i for i, entry in enumerate(first["cameras"])}

    def _require_same(self, first: Any, facts: Any) -> None:
        where = f"{printable(facts['about']['source'])}: "
        other = printable(first["about"]["source"])
        if facts["rate"] != first["rate"]:
            raise ValueError(
                f"{where}has {facts['rate']:g} rows a second, others {first['rate']:g}; pass rate="
            )
        for key in ("features", "cameras"):
            own = {entry["name"]: entry for entry in facts[key]}
            known = {entry["name"]: entry for entry in first[key]}
            for name in known.keys() ^ own.keys():
                has = "lacks the" if name in known else "has the"
                raise ValueError(
                    f"{where}{has} feature {name!r}, unlike {other}; name the tracks that all have "
                    "with tracks=, or leave its stream out with exclude="
                )
            for name, entry in known.items():
                for fact in ("shape", "channels", "dtype"):
                    if own[name].get(fact) != entry.get(fact):
                        raise ValueError(
                            f"{where}{name} has the {fact} {_short(own[name].get(fact))}, but "
                            f"{_short(entry.get(fact))} in {other}"
                        )

    def rows(self, episode: int) -> dict[str, Any]:
        import numpy as np

        place, facts = self.places[episode], self.facts[episode]
        return {
            entry["name"]: np.load(os.path.join(place, f"f{i}.npy"), allow_pickle=False)
            for i, entry in enumerate(facts["features"])
        }

    def times(self, episode: int) -> Any:
        return even_times(float(self.rate or 1), self.lengths[episode])

    def about(self, episode: int) -> Mapping[str, Any]:
        about: Mapping[str, Any] = self.facts[episode]["about"]
        return about

    def _camera(self, episode: int, camera: str, end: str) -> str:
        return os.path.join(self.places[episode], f"c{self._index(episode, camera)}.{end}")

    def _index(self, episode: int, camera: str) -> int:
        names = [entry["name"] for entry in self.facts[episode]["cameras"]]
        return names.index(camera)

    def video(self, episode: int, camera: str) -> str | None:
        path = self._camera(episode, camera, "mp4")
        return path if os.path.exists(path) else None

    def pictures(self, episode: int, camera: str) -> Iterator[bytes]:
        import numpy as np

        places = np.load(self._camera(episode, camera, "places.npy"), allow_pickle=False)
        with open(self._camera(episode, camera, "pictures"), "rb") as file:
            held, data = (-1, -1), b""
            for begin, end in places.tolist():
                if (begin, end) != held:
                    file.seek(begin)
                    held, data = (begin, end), file.read(end - begin)
                yield data

    def frames(self, episode: int, camera: str) -> Iterator[Any]:
        path = self.video(episode, camera)
        if path is not None:
            yield from (image for _, image in video.frames(path))
            return
        decoder = PictureDecoder("RGB")
        for data in self.pictures(episode, camera):
            yield decoder.rgb(data)

    def levels(self, episode: int, camera: str) -> Any:
        import numpy as np

        return np.load(self._camera(episode, camera, "levels.npy"), allow_pickle=False)

    def sampled(self, episode: int) -> int:
        return max((entry["sampled"] for entry in self.facts[episode]["cameras"]), default=0)

    def left_out(self) -> list[LeftOut]:
        found = [LeftOut(*each) for facts in self.facts for each in facts["left_out"]]
        return list(dict.fromkeys(found))


# ---- files --------------------------------------------------------------------------------------


def facts_at(place: str) -> Any:
    """Return the facts of a complete episode, or None."""
    return _json(os.path.join(place, _FACTS)) if os.path.isdir(place) else None


def _json(path: str) -> Any:
    try:
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except ValueError:
        raise FormatError(path, "", "is damaged; delete its folder to begin anew") from None


def _write_json(path: str, content: Any) -> None:
    """Write a file that is complete once it has its name."""
    with open(f"{path}.new", "w", encoding="utf-8") as file:
        json.dump(content, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(f"{path}.new", path)


def _remove(path: str) -> None:
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path)
    elif os.path.lexists(path):
        os.unlink(path)
