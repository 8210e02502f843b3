"""The pipeline file: one description of a policy's inputs and outputs."""

from __future__ import annotations

import copy
import functools
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .._printable import kind_of, printable
from .schema import check
from .strict_json import MOST_BYTES, parsed, written
from .typed_values import Difference, differences, fingerprint

if TYPE_CHECKING:
    from .._episodes.episodes import Episodes
    from .._library.context import Context
    from .._operations.image_draws import ImageDraws
    from .._windows.spec import WindowSpec
    from .plan import Plan
    from .session import LivePipeline, Observation

FILE = "robocache_pipeline.json"


class Pipeline:
    """One description of a policy's inputs and outputs, for training and for the robot.

    It says where each channel comes from, its unit, the rate and the delay of the rows, how gaps
    are treated, the windows of the policy, their normalization with its numbers, and the names and
    limits of the commands. :doc:`/concepts/pipeline` describes the file.

    A pipeline is immutable; ``==`` compares typed values, without ``provenance`` and ``x-*``.

    Parameters
    ----------
    document
        The content of the file, as dicts, lists, strings and numbers.
    draft
        Accept "?" for what is not known yet, such as units and statistics.

    Raises
    ------
    ValueError
        The content is not a pipeline. The message begins with the JSON pointer of the wrong value.

    Examples
    --------
    >>> import numpy as np
    >>> import robocache as rbc
    >>> times = np.arange(50) * 0.1
    >>> arm = rbc.Track(np.sin(times)[:, None], [0, 50], times=times, names=["elbow"])
    >>> draft = rbc.Pipeline.init(rbc.Episodes({"arm": arm}), rate=10)
    >>> draft.unknown
    ('/streams/arm/channels/0/unit', '/normalization/arm/statistics')
    >>> document = draft.to_dict()
    >>> document["streams"]["arm"]["channels"][0]["unit"] = "rad"
    >>> draft = rbc.Pipeline(document, draft=True)
    >>> episodes = draft.open(rbc.Episodes({"arm": arm}))
    >>> pipeline = draft.fit(episodes)
    >>> pipeline.unknown, pipeline.windows().cut(episodes, [0], [3])["arm"][0].shape
    ((), (1, 1, 1))
    """

    def __init__(self, document: Mapping[str, Any], *, draft: bool = False) -> None:
        # Through text, so that numbers are as from a file, and nothing is shared.
        text = _dumped(document)
        self._document = parsed(text, "document")
        check(self._document, draft)

    # ---- files ----------------------------------------------------------------------------------

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, draft: bool = False) -> Pipeline:
        """Read a pipeline file, or ``robocache_pipeline.json`` in a folder.

        Parameters
        ----------
        path
            The file, or the folder of a checkpoint.
        draft
            Accept "?" for what is not known yet.

        Raises
        ------
        ValueError
            The file is not strict JSON or not a pipeline, it was made by a newer version, or
            statistics are missing or have another width. The message begins with the JSON pointer.
        NotImplementedError
            The file asks for a filter, which this version does not run; with the JSON pointer.
        OSError
            The file cannot be read.
        """
        name = os.fspath(path)
        name = os.path.join(name, FILE) if os.path.isdir(name) else name
        with open(name, "rb") as file:
            content = file.read(MOST_BYTES + 1)
        if len(content) > MOST_BYTES:
            raise ValueError(f"{printable(name)}: is larger than {MOST_BYTES >> 20} MiB")
        return cls._read(content, printable(name), draft)

    @classmethod
    def _read(cls, content: bytes, where: str, draft: bool = False) -> Pipeline:
        try:
            text = content.decode("utf-8")
        except UnicodeDecodeError as error:
            raise ValueError(f"{where}: is not UTF-8 text: {error}") from None
        made = cls.__new__(cls)
        made._document = parsed(text, where)
        check(made._document, draft)
        return made

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the file, or ``robocache_pipeline.json`` in a folder, atomically.

        Numbers are written with as many digits as are needed to read the same float64.
        """
        from .._statistics.json_files import replace

        name = os.fspath(path)
        replace(os.path.join(name, FILE) if os.path.isdir(name) else name, written(self._document))

    def to_dict(self) -> dict[str, Any]:
        """Return a copy of the content."""
        return copy.deepcopy(self._document)

    # ---- identity -------------------------------------------------------------------------------

    @functools.cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the typed values: of the inputs, a dash, of the numbers (the statistics).

        Two pipelines have the same fingerprint exactly if they are equal. White space, the order of
        keys, the spelling of numbers, ``provenance`` and keys with "x-" in front do not count.
        """
        return fingerprint(self._document)

    def require(self, fingerprint: str) -> None:
        """Raise ValueError if a checkpoint has the fingerprint of another pipeline."""
        from .session import require_same

        require_same(self.fingerprint, fingerprint)

    def diff(self, other: Pipeline) -> tuple[Difference, ...]:
        """Return the differences, each with its JSON pointer and both values."""
        if not isinstance(other, Pipeline):
            raise TypeError(f"other: is {kind_of(other)}, expected a robocache.Pipeline")
        return tuple(differences(self._document, other._document))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Pipeline):
            return NotImplemented
        return self.fingerprint == other.fingerprint

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def __reduce__(self) -> tuple[Any, ...]:
        return _remade, (self._document, bool(self.unknown))

    @property
    def unknown(self) -> tuple[str, ...]:
        """The JSON pointers of all "?"; a file with one is a draft, which ``load`` refuses."""
        return tuple(_unknown(self._document, ""))

    # ---- training -------------------------------------------------------------------------------

    @classmethod
    def init(cls, data: Any, rate: float) -> Pipeline:
        """Describe data: all streams, names and units, one window per stream.

        What the format does not say is "?", such as the unit of a joint, which may be rad or m.
        ``provenance`` lists the channels that are omitted.

        Parameters
        ----------
        data
            A path, a :class:`robocache.data.Recording`, or :class:`Episodes`.
        rate
            Rows per second.
        """
        from .initial import described

        return cls(described(_opened(data), rate), draft=True)

    @functools.cached_property
    def _plan(self) -> Plan:
        from .plan import Plan

        return Plan(self._document)

    def open(self, data: Any) -> Episodes:
        """Return the rows of a recording or a data set: one track per stream, one row per tick.

        A row that is not valid is NaN. The streams of windows that the robot sees are aligned with
        what had arrived (``availability`` "arrival"); others are labels, and see their whole
        episode.

        Parameters
        ----------
        data
            A path, a :class:`robocache.data.Recording`, or :class:`Episodes`.

        Raises
        ------
        ValueError
            A stream or a channel is missing, or streams have no time in common; or times of
            arrival are missing, or on another clock. The message begins with a JSON pointer.
        """
        from .rows import rows_of

        return rows_of(self._plan, _opened(data))

    def windows(self) -> WindowSpec:
        """Return the windows of training samples, with normalization.

        Windows have numbers; :meth:`images` makes the images.
        """
        self._require_complete()
        return self._plan.spec()

    def images(
        self,
        name: str,
        frames: Any,
        *,
        draws: ImageDraws[Any] | None = None,
        out: Any = None,
        backend: str | Context | None = None,
    ) -> Any:
        """Make images from frames, by the operations of the file, in one call of :func:`images`.

        ``observe`` makes the images of the robot's frames by the same call.

        Parameters
        ----------
        name
            The name of the image in the file.
        frames : array [n,H,W,C] of uint8, or a list of such arrays
            RGB if C is 3. H, W and C must be equal to the file's.
        draws
            Random crops, flips and colours from :func:`image_draws`, for training. Each of them
            replaces the fixed operation that the file may have. None: the fixed operations, which
            the robot uses.
        out, backend
            As for :func:`images`.

        Returns
        -------
        array [n,C,h,w], or [n,h,w,C] with the layout "hwc"
            In the library of ``frames``, on its device.

        Raises
        ------
        ValueError
            There is no such image, or frames have another size or number of channels; or crops that
            are not resized do not have the size of the images.
        """
        if _unknown(self._document["images"], "/images"):
            self._require_complete()
        return self._plan.image(name).apply(frames, draws, out, backend)

    def frames(self, data: Any, name: str) -> Iterator[tuple[range, Any]]:
        """Yield the frames of a bag that the robot has in the rows of :meth:`open`.

        A row has the frame that arrived last, up to the time of the row + ``lag``, by the log times
        of the bag. Rows before the first frame have none.

        Parameters
        ----------
        data
            A path, or a :class:`robocache.data.Recording`.
        name
            The name of the image in the file.

        Yields
        ------
        tuple of range and array [H,W,C] of uint8
            Neighbouring rows, and their frame, which :meth:`images` takes.

        Raises
        ------
        ValueError
            There is no such image, its topic is not in the bag or has no frames, or a frame cannot
            be read.
        """
        from .cameras import frames_of_bag

        image = self._plan.image(name)
        yield from frames_of_bag(self._plan, image, _opened(data))

    def fit(self, episodes: Episodes) -> Pipeline:
        """Return the pipeline with the statistics of these episodes, which are from :meth:`open`.

        Windows whose normalization is "none" keep that word.
        """
        from .statistics import document_of

        document = self.to_dict()
        entries = {
            name: entry for name, entry in document["normalization"].items() if entry != "none"
        }
        if entries:
            spec = self._plan.spec(normalized=False)
            rows = {name: entries.get(name, {"rows": "all"})["rows"] for name in spec.windows}
            for name, result in spec.statistics(episodes, rows=rows).items():
                if name in entries:
                    entries[name]["statistics"] = document_of(result)
        return Pipeline(document, draft=True)

    # ---- other projects -------------------------------------------------------------------------

    def import_from(self, kind: str, path: str | os.PathLike[str]) -> Pipeline:
        """Return the pipeline with the modes and statistics in the files of another project.

        ``provenance`` lists what these files do not say.

        Parameters
        ----------
        kind
            "lerobot": ``policy_preprocessor.json`` and ``policy_postprocessor.json`` with their
            safetensors; "openpi": ``norm_stats.json``; "gr00t": ``modality.json`` and
            ``stats.json``.
        path
            The folder with these files.

        Raises
        ------
        ValueError
            A window has no statistics there, or another width.
        """
        from .peers import imported

        document, notes = imported(kind, self._document, os.fspath(path))
        provenance = document.get("provenance")
        provenance = dict(provenance) if isinstance(provenance, dict) else {}
        document["provenance"] = {**provenance, "imported": {"kind": kind, "notes": notes}}
        return Pipeline(document, draft=True)

    def export_to(self, kind: str, folder: str | os.PathLike[str]) -> tuple[str, ...]:
        """Write the files of another project, and return what they cannot hold.

        Parameters
        ----------
        kind
            As for :meth:`import_from`.
        folder
            Where to write; files of the same names are replaced.

        Returns
        -------
        tuple of str
            Each begins with the JSON pointer of what is lost.
        """
        from .peers import exported

        return tuple(exported(kind, self._document, os.fspath(folder)))

    # ---- robot ----------------------------------------------------------------------------------

    def live(
        self, *, definitions: Mapping[str, str] | None = None, distribution: str | None = None
    ) -> LivePipeline:
        """Return the pipeline for the robot, without samples yet.

        Parameters
        ----------
        definitions
            For ``push_message``: the text of the .msg file by type, for types that ROS 2 lacks.
        distribution
            The distribution of ROS 2 whose definitions are used, such as "humble".
        """
        from .session import LivePipeline

        self._require_complete()
        return LivePipeline(self._plan, self.fingerprint, definitions, distribution)

    def denormalize(self, window: str, values: Any, observation: Observation | None = None) -> Any:
        """Return normalized values of a window in the pipeline's units.

        Parameters
        ----------
        window
            The name of the window, such as "action".
        values
            Arrays [...,D] of NumPy or torch.
        observation
            What the policy has seen; needed for windows with transforms, which become absolute.
        """
        from .actions import denormalized

        self._require_complete()
        return denormalized(self._plan, window, values, observation)

    def command(self, values: Any) -> Any:
        """Return commands by the robot's names, within the limits, in the units of the source.

        Parameters
        ----------
        values
            One step [D], or the steps [T,D] or [1,T,D], as from :meth:`denormalize`.

        Returns
        -------
        dict, or a list of T dicts

        Raises
        ------
        ValueError
            A number is NaN or infinite, or the shape is wrong.
        """
        from .actions import commanded

        return commanded(self._plan, values)

    def _require_complete(self) -> None:
        if self.unknown:
            check(self._document)

    def __repr__(self) -> str:
        streams, windows = self._document["streams"], self._document["windows"]
        clock = self._document["clock"]
        more = f", {len(self.unknown)} unknown" if self.unknown else ""
        return (
            f"Pipeline({len(streams)} streams, {len(windows)} windows, {clock['rate']} Hz, "
            f"{clock['availability']}{more})"
        )


def _remade(document: Mapping[str, Any], draft: bool) -> Pipeline:
    return Pipeline(document, draft=draft)


def _dumped(document: Any) -> str:
    import json

    def plain(value: Any) -> Any:
        if hasattr(value, "tolist"):
            return value.tolist()
        raise TypeError(f"document: has {kind_of(value)}, expected values of JSON")

    if not isinstance(document, Mapping):
        raise TypeError(f"document: is {kind_of(document)}, expected a dict")
    return json.dumps(dict(document), default=plain)


def _unknown(value: Any, pointer: str) -> Sequence[str]:
    from .place import UNKNOWN
    from .strict_json import step
    from .typed_values import is_free

    if value == UNKNOWN:
        return [pointer]
    found: list[str] = []
    if isinstance(value, dict):
        for key, each in value.items():
            if not is_free(key, pointer == ""):
                found += _unknown(each, pointer + step(key))
    elif isinstance(value, list):
        for i, each in enumerate(value):
            found += _unknown(each, f"{pointer}/{i}")
    return found


def _opened(data: Any) -> Any:
    if isinstance(data, (str, bytes, os.PathLike)):
        from ..data import open as opened

        return opened(data)
    return data
