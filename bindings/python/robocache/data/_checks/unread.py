"""Data of a recording that were not read: as findings, and as reasons in errors."""

from __future__ import annotations

from collections.abc import Mapping
from os.path import splitext
from typing import TYPE_CHECKING

from ..._printable import plural, printable
from .._errors import Unread
from .._findings import Finding
from .._source import is_media

if TYPE_CHECKING:
    from .._recording import Recording
    from ..checks import StreamSurvey

_SHOWN = 6  # reasons in a message
_NAME_THEM = " (--time COLUMN names their column, --fps HZ sets the number of rows per second)"


def check_unread(recording: Recording, seen: Mapping[str, StreamSurvey]) -> list[Finding]:
    """Return findings about unread data: warnings, or notes if no numbers are lost.

    They are errors if nothing was read. ``seen`` are the streams after a pass over the recording.
    """
    unread = recording.unread
    nothing = not any(
        seen_stream.samples
        and seen_stream.clocks
        and (seen_stream.names or is_media(recording.info(name).kind))
        for name, seen_stream in seen.items()
    )
    if not recording.names and recording.ignored and not unread:
        return []  # the caller excluded all topics
    findings = []
    for each in unread:
        if each.messages == 0 and not nothing:
            continue  # an empty stream
        severity = "note" if not each.loses_numbers else "error" if nothing else "warning"
        seen_stream = seen.get(each.place)
        text = _text(each, seen_stream, recording)
        findings.append(Finding(severity, "unread", each.place, "", text))
    if nothing and not any(finding.severity == "error" for finding in findings):
        text = f"nothing was read: {'; '.join(_reasons(recording, seen))}"
        findings.append(Finding("error", "unread", "", "", text))
    return findings


def _text(each: Unread, seen_stream: StreamSurvey | None, recording: Recording) -> str:
    """Return what was not read of a topic or a file, and why."""
    from .._kinds.selectors import of_topic

    if not _is_bag(recording):
        return each.reason
    samples = 0 if seen_stream is None else seen_stream.samples
    kind = f" of {each.type}" if each.type else ""
    if samples and seen_stream is not None and not seen_stream.names:
        return f"{plural(samples, 'sample')}{kind}, but no channels: {each.reason}"
    if seen_stream is None and of_topic(each.place, recording.names):  # its keys are streams
        count = "some" if each.messages is None else f"{each.messages:,}"
        return f"{count} messages{kind} were not read: {each.reason}"
    if not samples or not recording.info(each.place).names:
        count = "nothing" if each.messages is None else f"none of {each.messages:,} messages"
        return f"{count}{kind} was read: {each.reason}"
    total = recording.count_in_file(each.place)
    if each.messages is not None and (total is None or samples + each.messages <= total):
        return f"{each.messages:,} messages{kind} were not read: {each.reason}"
    return f"some numbers were not read: {each.reason}"


def has_something(recording: Recording) -> bool:
    """Whether a stream may have samples with channels and times, judging by the first messages."""
    unread = _places(recording)
    streams = [recording.info(name) for name in recording.names if name not in unread]
    return any(seen_stream.count != 0 and seen_stream.names for seen_stream in streams)


def _places(recording: Recording) -> set[str]:
    """Return the topics that were not fully read, and the streams of such files."""
    names = {name for each in recording.unread for name in (each.place, splitext(each.place)[0])}
    return names | {name for name in recording.names if name.partition(": ")[0] in names}


def nothing_to(what: str, recording: Recording) -> str:
    """Return the message that a recording has nothing to resample, count, ..., with reasons."""
    return f"nothing to {what}: {'; '.join(_reasons(recording, {}))}"


def _reasons(recording: Recording, seen: Mapping[str, StreamSurvey]) -> list[str]:
    """Return the reasons why no stream can be used."""
    found = [f"{printable(each.place)}: {each.reason}" for each in recording.unread]
    unread = _places(recording)
    empty = []
    for name in recording.names:
        if name in unread:
            continue
        info, seen_stream = recording.info(name), seen.get(name)
        count = info.count if seen_stream is None else seen_stream.samples
        names = info.names if seen_stream is None else seen_stream.names
        if count == 0 or (names is None and not count):
            empty.append(printable(name))
        elif not names:
            left = [o.reason for o in recording.left_out if o.place.startswith(f"{name}: ")]
            why = f" ({'; '.join(left[:2])})" if left else ""
            number = "" if count is None else f"{plural(count, 'sample')} but "
            found.append(f"{printable(name)} has {number}no channels{why}")
        else:
            found.append(f"{printable(name)} has no times{_NAME_THEM}")
    if empty:
        what = "message" if _is_bag(recording) else "sample"
        found.append(f"there is no {what} in {' or '.join(_cut(empty))}")
    if not found:
        what = "topics" if _is_bag(recording) else "streams"
        found.append(f"the recording has no {what}")
        found += [f"{other} (omitted)" for other in recording.left_out]
    return _cut(found)


def _cut(texts: list[str]) -> list[str]:
    more = len(texts) - _SHOWN
    return [*texts[:_SHOWN], *([f"{more} more"] if more > 0 else [])]


def _is_bag(recording: Recording) -> bool:
    return "bag" in recording.format or "MCAP" in recording.format
