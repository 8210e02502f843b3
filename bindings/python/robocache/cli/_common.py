"""Code shared by the commands: opening data, common options, and the reporting of errors."""

import functools
import importlib.util
import math
import os
import sys
import warnings
from collections.abc import Collection, Mapping, Set
from pathlib import Path
from typing import Annotated, Any, Callable, Optional

import typer

from .. import data as _data
from .. import info
from .._printable import printable
from .._suggestions import nearest
from ..data._file_access import opened, special_kind
from ..data._kinds.declared import checked
from ..data._kinds.selectors import chosen_in, of_topic, parsed
from ..data._selection import selected
from ._messages import in_cli_words

_MOST_TEXT = 4 << 20  # bytes
_MOST_SHOWN = 12  # names in a message
debug = False  # whether errors come with their tracebacks

DataPath = Annotated[
    Path, typer.Argument(help="A recording or a data set: a file or a folder.", show_default=False)
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]
Unit = Annotated[
    Optional[str],
    typer.Option(
        "--unit",  # Typer 0.27 would name it --UNIT, as its metavar
        help="Unit of integer times, if the data do not say: ns, us, ms, s.",
        metavar="UNIT",
    ),
]
Fps = Annotated[
    Optional[float],
    typer.Option(help="Rows per second, for data sets without times.", metavar="HZ"),
]
Time = Annotated[
    Optional[str],
    typer.Option(
        "--time",
        help="The column of times in tables, or the array of times among .npy files; optionally "
        "with its unit.",
        metavar="COLUMN[:UNIT]",
    ),
]
Definitions = Annotated[
    Optional[list[str]],
    typer.Option(
        "--definition",
        help="The definition of a ROS message that the bag lacks: pkg/msg/Type=file.msg. "
        "Repeatable.",
        metavar="TYPE=FILE",
    ),
]
FollowLinks = Annotated[
    bool, typer.Option("--follow-links", help="Follow symbolic links out of the data set.")
]
MaxUnpacked = Annotated[
    Optional[int],
    typer.Option(
        help="Bytes that compressed data may unpack to; default: 200 times the size of the source.",
        metavar="BYTES",
        min=0,
    ),
]
Clock = Annotated[
    Optional[str],
    typer.Option(
        help="header or log; default: header stamps if they are usable, else log times.",
        metavar="NAME",
    ),
]
Streams = Annotated[
    Optional[list[str]],
    typer.Option(
        "--stream",
        "-s",
        help="Only these streams or tracks, or some of their channels. Repeatable.",
        metavar="STREAM[:CHANNELS]",
    ),
]
IgnoreTopics = Annotated[
    Optional[list[str]],
    typer.Option(
        "--ignore-topic",
        help="Ignore this topic, or all topics of this message type. Repeatable.",
        metavar="TOPIC",
    ),
]
Kind = Annotated[
    Optional[list[str]],
    typer.Option(
        help="What channels hold: quaternion, rotation_vector, euler, angle_deg, number, ... "
        "CHANNELS is a name, FIRST-LAST, several names with commas, or a prefix. Repeatable.",
        metavar="STREAM:CHANNELS=KIND",
    ),
]
AcceptGuesses = Annotated[
    bool,
    typer.Option(
        "--accept-guesses", help="Treat four channels that look like a quaternion as one."
    ),
]
AsNumbers = Annotated[
    bool,
    typer.Option(
        "--as-numbers", help="Treat four channels that look like a quaternion as numbers."
    ),
]

Output = Annotated[
    Path,
    typer.Option("--output", "-o", help="Where to write.", show_default=False),
]
Overwrite = Annotated[
    bool, typer.Option("--overwrite", help="Replace an existing output when writing succeeds.")
]
Damaged = Annotated[str, typer.Option(help="refuse: stop at damage; keep: read what can be read.")]
Device = Annotated[
    str, typer.Option(help="cpu, cuda, cuda:N; auto: a GPU if torch or CuPy is installed.")
]


class Failure(Exception):
    """An error of the command line itself; only its message is printed."""


def open_data(
    path: Path,
    *,
    damaged: str = "refuse",
    unit: Optional[str] = None,
    fps: Optional[float] = None,
    definitions: Optional[list[str]] = None,
    follow_links: bool = False,
    max_unpacked: Optional[int] = None,
    time: Optional[str] = None,
    ignore_topics: Optional[list[str]] = None,
    **cached: Any,
) -> Any:
    """Open a path with :func:`robocache.data.open` and the options of the command line."""
    if unit not in (None, "ns", "us", "ms", "s"):
        raise typer.BadParameter(f"{unit!r}: choose ns, us, ms or s", param_hint="--unit")
    if fps is not None and not 0 < fps < math.inf:
        raise typer.BadParameter(f"{fps:g}: expected a finite number above 0", param_hint="--fps")
    texts = definitions_of(definitions)
    check_kind(path)
    source = _data.open(
        path,
        damaged=damaged,
        unit=unit,
        rate=fps,
        definitions=texts,
        follow_links=follow_links,
        max_unpacked=max_unpacked,
        time=time,
        **cached,
    )
    return without(source, ignore_topics) if ignore_topics else source


def definitions_of(definitions: Optional[list[str]]) -> dict[str, str]:
    """Read the files of --definition TYPE=FILE."""
    texts = {}
    for definition in definitions or ():
        name, equals, file = definition.partition("=")
        if not equals:
            raise typer.BadParameter(
                f"{definition!r}: expected TYPE=FILE", param_hint="--definition"
            )
        texts[name] = text_of(Path(file))
    return texts


def without(source: Any, topics: list[str], option: str = "--ignore-topic") -> Any:
    """Remove the topics of an option; warn about names that match nothing."""
    if isinstance(source, _data.Recording):
        known = {*source.names, *(source.info(name).kind for name in source)}
        for unread in source.unread:
            known |= {unread.place, unread.type}
        known |= {place for each in source.left_out for place in (each.place, _topic(each.place))}
        made: Any = source.without(topics)
        unknown = [t for t in topics if t not in known and not of_topic(t, source.names)]
    elif isinstance(source, _data.Episodes):
        known = set(source.tracks)
        made = source.select(tracks=[name for name in source.tracks if name not in topics])
        unknown = [topic for topic in topics if topic not in known]
    else:
        raise Failure(f"{option} works on recordings and episodes; this is a point cloud")
    for topic in unknown:
        shown = no_such(f"{option} {topic}", "topic or type", topic, sorted(known - {""}), "")
        print(f"robocache: warning: {printable(shown)}", file=sys.stderr)
    return made


def _topic(place: str) -> str:
    return place.partition(": ")[0]


def warn_unread(source: Any, used: Set[str]) -> None:
    """Warn about data that were not read, except tables in ``used`` (statistics need no times)."""
    for each in source.unread if isinstance(source, _data.Recording) else ():
        if each.loses_numbers and os.path.splitext(each.place)[0] not in used - {each.place}:
            text = in_cli_words(f"not read: {each.place}: {each.reason}")
            print(f"robocache: warning: {printable(text)}", file=sys.stderr)


def no_such(option: str, what: str, name: str, known: Collection[str], whose: str) -> str:
    """Return the message that a name is unknown, with a suggestion and some known names."""
    known = list(known)
    near = [f"/{name}"] if of_topic(f"/{name}", known) else []
    like = near[0] if near else nearest(name, known)
    asked = f" Did you mean {like}?" if like else ""
    shown = ", ".join(known[:_MOST_SHOWN]) or "none"
    more = f" and {len(known) - _MOST_SHOWN} more" if len(known) > _MOST_SHOWN else ""
    return f"{option}: no such {what}.{asked}" + (f" {whose}: {shown}{more}" if whose else "")


def with_kinds(source: Any, kinds: Optional[list[str]]) -> Any:
    """Apply the channel kinds that --kind declares."""
    if not kinds:
        return source
    if not hasattr(source, "with_kinds"):
        raise Failure("--kind works on recordings and episodes; this is a point cloud")
    known = source.names if isinstance(source, _data.Recording) else tuple(source.tracks)
    declared: dict[str, dict[str, str]] = {}
    for text in kinds:
        stream, channels, kind = parsed(text, known, "--kind")
        declared.setdefault(stream, {})[channels] = kind
    return source.with_kinds(checked(declared))


def pairs(
    texts: Optional[list[str]], option: str, expected: str, *, at_last: bool = False
) -> dict[str, str]:
    """Split the values LEFT=RIGHT of an option, at the first or at the last equals sign."""
    found: dict[str, str] = {}
    for text in texts or ():
        left, equals, right = text.rpartition("=") if at_last else text.partition("=")
        if not equals or not left or not right:
            raise typer.BadParameter(f"{text!r}: expected {expected}", param_hint=option)
        add_once(found, left, right, option)
    return found


def add_once(found: dict[str, str], name: str, value: str, option: str) -> None:
    """Add a value of an option for a name; each name may be given once."""
    if name in found:
        raise typer.BadParameter(f"{name} is given twice", param_hint=option)
    found[name] = value


def guesses(accept_guesses: bool, as_numbers: bool) -> dict[str, bool]:
    """Return the options of ``align`` for channels that may be quaternions."""
    if accept_guesses and as_numbers:
        raise typer.BadParameter("use either --accept-guesses or --as-numbers, not both")
    return {"accept_guesses": accept_guesses, "as_numbers": as_numbers}


def check_kind(path: Path) -> None:
    """Raise if a path is a device, pipe or socket, since reading may never end."""
    special = special_kind(str(path)) if path.exists() else None
    if special is not None:
        raise Failure(f"{path}: is {special}, expected a file or a folder")


def text_of(path: Path) -> str:
    """Read a small text file that an option names: a camera, a pose or a definition."""
    check_kind(path)
    with opened(str(path)) as file:
        content = file.read(_MOST_TEXT + 1)
    if len(content) > _MOST_TEXT:
        text = f"file is larger than {_MOST_TEXT >> 20} MiB, expected a camera, a pose"
        raise _data.FormatError(str(path), "", text + " or a definition")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise _data.FormatError(str(path), "", f"not UTF-8 text: {error}") from None


def check_clock(clock: Optional[str]) -> None:
    """Check the value of --clock."""
    if clock not in (None, "header", "log"):
        raise typer.BadParameter(
            f"{clock!r}: choose header or log (tables have one clock; --clock is for bags)",
            param_hint="--clock",
        )


def require_clock(source: Any, clock: Optional[str]) -> None:
    """Refuse --clock for a recording whose streams have one clock only."""
    if clock is None or not isinstance(source, _data.Recording):
        return
    one = source.format in ("tables", "arrays")
    if source.format == "streams in memory":
        one = not any(clock in stream.clocks for stream in source.streams.values())
    if one:
        raise Failure(
            f"--clock {clock} works on bags, which have header stamps and log times. "
            f"This recording ({source.format}) has one clock"
        )


def require_recording(source: Any, options: Mapping[str, Any]) -> None:
    """Refuse options that apply only to recordings."""
    for option, value in options.items():
        if value is not None:
            raise Failure(f"{option} works only on recordings; this is {source.format}")


def warn_problems(*source: Any) -> None:
    """Warn about damage that --damaged keep skipped."""
    for problem in dict.fromkeys(str(p) for each in source for p in getattr(each, "problems", ())):
        print(f"robocache: warning: {printable(problem)}", file=sys.stderr)


def chosen(
    texts: Optional[list[str]], known: Collection[str], whose: str, option: str = "--stream"
) -> dict[str, list[str]]:
    """Return the requested streams, each with its selectors of channels; all if none is named.

    Topics become the streams of their keys.
    """
    found: dict[str, list[str]] = {}
    for text in texts or ():
        own = chosen_in(text, known)
        if own is None:
            raise Failure(no_such(f"{option} {text}", "stream", text, known, whose))
        for name in own[0]:
            found.setdefault(name, []).append(own[1])
    return found or {name: ["*"] for name in known}


def narrowed(source: Any, texts: Optional[list[str]], option: str = "--stream") -> Any:
    """Return a recording or episodes with the requested streams and channels."""
    if not texts:
        return source
    if isinstance(source, _data.Recording):
        wanted = chosen(texts, source.names, "This recording has", option)
    else:
        wanted = chosen(texts, tuple(source.tracks), "This data set has", option)
    return selected(source, wanted, option)


def device_of(asked: str) -> str:
    """Return the device for arrays; the results are the same on each."""
    if asked != "auto":
        return asked
    libraries = ("torch", "cupy")
    usable = any(name.startswith("cuda") for name in info().contexts)
    return "cuda" if usable and any(map(importlib.util.find_spec, libraries)) else "cpu"


def reported(command: Callable[..., None]) -> Callable[..., None]:
    """Wrap a command so that errors print one line: exit code 1, or 130 for Ctrl-C."""

    @functools.wraps(command)
    def wrapper(*args: Any, **options: Any) -> None:
        warnings.showwarning = _show_warning
        try:
            command(*args, **options)
        except KeyboardInterrupt:
            print("robocache: interrupted", file=sys.stderr)
            raise typer.Exit(130) from None
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(1) from None
        except Exception as error:
            if debug or hasattr(error, "exit_code"):  # Typer's own: usage errors, exit
                raise
            text = _with_option(one_line(error, options), options)
            path = printable(options.get("path", ""))
            if not isinstance(error, _CLEAR) and path not in text:  # the library names no file
                text = f"{path}: {text}"
            print(f"robocache: error: {printable(text)}", file=sys.stderr)
            raise typer.Exit(1) from None

    return wrapper


def _with_option(text: str, options: Mapping[str, Any]) -> str:
    """Replace an argument's name at the beginning of a message by its option."""
    name, colon, rest = text.partition(": ")
    if not colon or name not in options or name in ("path", *_NAMED_OTHERWISE):
        return text
    return f"--{name.replace('_', '-')}: {rest}"


_NAMED_OTHERWISE = ("bounds", "mode", "as_json")

# Errors whose messages already say what is wrong, and where.
_CLEAR = (Failure, ValueError, KeyError, TypeError, ImportError, OSError, MemoryError)


def one_line(error: BaseException, known: Optional[Mapping[str, Any]] = None) -> str:
    """Return the message of an error without line breaks."""
    if isinstance(error, OSError) and error.strerror is not None:
        place = "" if error.filename is None else f"{printable(os.fsdecode(error.filename))}: "
        return f"{place}{error.strerror}"
    text = str(error.args[0]) if isinstance(error, KeyError) and error.args else str(error)
    if isinstance(error, MemoryError):
        text = f"out of memory{': ' + text if text else ''}"
    elif not isinstance(error, _CLEAR):
        text = f"{type(error).__name__}: {text}"
    if isinstance(error, Failure):  # one line, but names in it may contain line breaks
        return in_cli_words(text, known)
    for value in (known or {}).values():  # file names keep their spaces and line breaks
        if isinstance(value, (str, Path)) and str(value).strip():
            text = text.replace(str(value), printable(value))
    return " ".join(in_cli_words(text, known).split()) or type(error).__name__


def _show_warning(message: Any, *_: Any, **__: Any) -> None:
    text = " ".join(in_cli_words(str(message)).split())
    print(f"robocache: warning: {printable(text)}", file=sys.stderr)
