"""The table of names by which the column of times is found, and how names state units."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Pattern:
    """A row of the table: names of time columns, and what is known about such a column."""

    names: str  # examples, as in the documentation
    regex: str  # for the result of plain_name; "": other rules find the column
    integers: str | None = None  # unit of integers, if the name states none
    floats: str | None = None  # the same for floats
    needs: str = ""  # condition on the values for choosing the column

    def fits(self, plain: str) -> bool:
        return re.fullmatch(self.regex, plain) is not None


ASCENDING = "ascending"
FROM_ZERO = "ascending from near 0"
EPOCH = "ascending, since 1970"
PAIR = "whole seconds and the remaining fraction"
DATES = "dates, in this column only"

_WORDS = (
    "log|header|receive|received|recv|ros|rosbag|bag|unix|epoch|posix|utc|gps|gnss|gpst|local|"
    "system|sys|device|sensor|host|pc|record|recording|recorded|capture|captured|publish|pub|sim|"
    "simulation|elapsed|since|from|start|boot|begin|beginning|relative|rel|absolute|abs|"
    "measurement|measured|acquisition|logging|server|message|msg|field|sample|date|1970"
)
_TIME = "timestamps?|times?|stamps?|datetimes?|ts"  # one word
_TIMES = f"time_stamps?|{_TIME}"
_UNIT_WORDS = "nanoseconds|nanosecs?|nanos|nsecs?|microseconds|microsecs?|micros|usecs?"
_UNIT_WORDS += "|milliseconds|millisecs?|millis|msecs?|seconds|secs?"

# The first row that fits is used; docs/concepts/times.md has the same table.
PATTERNS = (
    Pattern("`%time` (rostopic echo)", rf"%({_TIMES})", "ns", "s"),
    Pattern(
        "`time`, `times`, `timestamp`, `stamp`, `ts`, `__time`, `#timestamp [ns]`, `Time (s)`, "
        "`TimeUS`, `time_usec`, `datetime`, `log_time`, `header.stamp`, `receive_time`",
        rf"(log_|header_|receive_)?({_TIMES})",
    ),
    Pattern(
        "`sec` + `nanosec`, `.header.stamp.secs` + `.nsecs`, `tv_sec` + `tv_usec`, "
        "a struct (sec, nanosec)",
        "",
        needs=PAIR,
    ),
    Pattern("`t_ns`, `T [s]`: `t` or `T` with a unit", r"t_with_unit"),
    Pattern("`rosbagTimestamp`", r"(ros)?_?bag_?timestamp", "ns", "s"),
    Pattern(
        "`field.header.stamp` (rostopic echo), `imu/header.stamp`", r"(.*_)?header_stamp", "ns", "s"
    ),
    Pattern("`timestamp_sample` (PX4)", r"timestamp_sample", "us", None, ASCENDING),
    Pattern(
        "`unix_timestamp`, `unix_time`, `epoch`, `epoch_ms`, `posix_time`",
        rf"(unix|posix|epoch)(_({_TIMES}))?|({_TIMES})_(unix|posix|epoch)|({_TIMES})_since_1970",
        None,
        "s",
        EPOCH,
    ),
    Pattern("`GPST`, `UTC`", r"gpst|utc|date_utc|utc_date", needs=ASCENDING),
    Pattern(
        "`gps_time`, `sensor_timestamp`, `time_boot_ms`, `elapsed_time` and others: "
        "a word for time and one for its source",
        rf"(({_WORDS}|{_TIME})_)*({_TIME})(_({_WORDS}))*",
        needs=ASCENDING,
    ),
    Pattern(
        "`seconds_elapsed`, `elapsed_seconds`, `elapsed`",
        rf"(({_UNIT_WORDS})_)?elapsed|({_UNIT_WORDS})_since_({_WORDS})(_({_WORDS}))*",
        None,
        "s",
        ASCENDING,
    ),
    Pattern("`seconds`, `sec`, `millis`, `micros`, `nanoseconds`", _UNIT_WORDS, needs=ASCENDING),
    Pattern("`t`", r"t", needs=""),
    Pattern("`T`", r"T", needs=FROM_ZERO),
    Pattern(
        "any other name that ends in time, timestamp or stamp: `imu_time`, `state.timestamp`",
        r".*_(time|timestamp|time_stamp|stamp)",
        needs=ASCENDING,
    ),
    Pattern("a column of dates of any name", r"", needs=DATES),
    Pattern("the index of pandas: `__index_level_0__`", "", needs=ASCENDING),
    Pattern("a first column without a name, such as a pandas index", "", needs=ASCENDING),
    Pattern(
        "a table without a header: the first column in the years 2000 to 2100 since 1970, else "
        "the first column if it is of floats and begins near 0 or has equal steps",
        "",
        needs=ASCENDING,
    ),
)

_UNITS = {
    "ns": "ns nsec nsecs nanosec nanosecs nanosecond nanoseconds nanos",
    "us": "us usec usecs microsec microsecs microsecond microseconds micros µs μs",
    "ms": "ms msec msecs millisec millisecs millisecond milliseconds millis",
    "s": "s sec secs second seconds",
}
UNIT_OF = {word: unit for unit, words in _UNITS.items() for word in words.split()}

_BRACKET = re.compile(r"[\[(<{]\s*([^\W\d_]+)\s*[\])>}]\s*$")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_GLUED = re.compile(
    r"(.*_)?(time|timestamp|stamp|epoch)(ns|us|ms|nsec|usec|msec|sec|nanos|micros|millis)"
)
_SECONDS = re.compile(r"(.*?)(secs?|seconds?)", re.IGNORECASE)
_FRACTIONS = (
    (re.compile(r"(.*?)(nsecs?|nanosecs?|nanoseconds?|nanos)", re.IGNORECASE), 10**9),
    (re.compile(r"(.*?)(usecs?|microsecs?|microseconds?|micros)", re.IGNORECASE), 10**6),
)


def bare(name: str) -> str:
    """Return a column's name without quotes and spaces around it."""
    return name.strip().strip("\ufeff").strip().strip("\"'").strip()


def plain_name(name: str) -> tuple[str, str | None]:
    """Return a name in lower case with ``_`` between words, and the unit in it.

    ``T`` stays upper case, since it is mostly a temperature, and ``%`` at the begin is kept.
    """
    text = bare(name)
    percent = text.startswith("%")
    text = text.lstrip("#%/. ")
    unit = None
    found = _BRACKET.search(text)
    if found and found[1].lower() in UNIT_OF:
        unit = UNIT_OF[found[1].lower()]
        text = text[: found.start()]
    words = [w for w in re.split(r"[^0-9A-Za-zµμ]+", _CAMEL.sub("_", text)) if w]
    if unit is None and len(words) > 1 and words[-1].lower() in UNIT_OF:
        unit = UNIT_OF[words.pop().lower()]
        if len(words) > 1 and words[-1].lower() == "in":
            words.pop()
    plain = "_".join(words)
    if plain != "T":
        plain = plain.lower()
    glued = _GLUED.fullmatch(plain) if unit is None else None
    if glued:
        plain, unit = f"{glued[1] or ''}{glued[2]}", UNIT_OF[glued[3]]
    if unit is None:  # the name is a unit, or begins with one
        unit = UNIT_OF.get(plain.partition("_")[0]) if len(plain) > 1 else None
    elif plain.lower() == "t":
        plain = "t_with_unit"
    return ("%" if percent else "") + plain, unit


def row_of(name: str) -> tuple[int, str | None] | None:
    """Return the row of the table that fits a column's name, and the unit in the name."""
    plain, unit = plain_name(name)
    for text in dict.fromkeys((plain, plain.removeprefix("%"))):
        for row, pattern in enumerate(PATTERNS):
            if pattern.regex and pattern.fits(text):
                return row, unit
    return None


def row_named(begin: str) -> int:
    """Return the index of a row of the table, by the begin of its names."""
    return next(i for i, p in enumerate(PATTERNS) if p.names.startswith(begin))


def pairs_of(names: list[str]) -> list[tuple[str, str, int]]:
    """Return pairs of columns, seconds and fractions, and the ticks per second of the latter."""
    known = {bare(name): name for name in names}
    rests: dict[tuple[str, int], str] = {}  # by the text before the unit, and the ticks
    for text, name in known.items():
        for regex, ticks in _FRACTIONS:
            rest = regex.fullmatch(text)
            if rest is not None:
                rests.setdefault((rest[1], ticks), name)
    found = []
    for text, name in known.items():
        seconds = _SECONDS.fullmatch(text)
        for _, ticks in _FRACTIONS:
            if seconds is not None and (seconds[1], ticks) in rests:
                found.append((name, rests[seconds[1], ticks], ticks))
                break
    return found
