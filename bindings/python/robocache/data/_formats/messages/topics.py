"""The streams of a topic: one for all its messages, or one per key.

A topic is split by child frames of transforms and by sets of joints, if it has several. It is split
by frame only if a frame comes back after another one; a frame that changes for good is a finding.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Callable, Protocol, Union, cast

from ..._errors import Unread, messages_not_read
from ..._findings import Finding
from ..._kinds.kinds import Said
from ..bags.unread import count_reason, reasons_of, unread_of
from .columns import Columns, Decoder
from .decoders import AnyDecoder, Maker
from .joints import JointDecoder, label
from .keys import MOST_KEYS, NO_TEXT, NOT_FOLLOWED, TOO_MANY, Finder, recipe_of
from .pieces import Rows, present
from .transforms import ElementDecoder, ElementFinder

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_MOST_CHANGES = 4  # changes in a finding


@dataclass(frozen=True)
class Hooks:
    """Functions of the bag that a topic calls."""

    spend: Callable[[int], None]  # with the number of fields that were followed separately
    unique: Callable[[str], str]  # makes the name of a stream unique
    changed: Callable[[], None]  # when the streams have changed


class StreamDecoder(Protocol):
    """Decode the messages of one stream."""

    @property
    def names(self) -> tuple[str, ...] | None: ...
    @property
    def said(self) -> tuple[Said, ...]: ...
    def begin(self) -> None: ...
    def feed(self, rows: Any) -> list[Columns]: ...
    def flush(self) -> list[Columns]: ...
    def left_out(self) -> list[tuple[str, str]]: ...


@dataclass(eq=False)
class Part:
    """A stream of a topic."""

    decoder: StreamDecoder
    name: str = ""
    count: int | None = None  # of samples, once the messages are plural
    static: bool = False


@dataclass
class _Stretch:
    """The span in which a frame was seen."""

    count: int
    first: int  # log time, ns
    last: int


@dataclass
class Frames:
    """The frames of one thing, in one pass."""

    seen: dict[int, _Stretch] = field(default_factory=dict)
    last: int | None = None  # the last frame, in the order of the file
    returned: bool = False  # whether a frame came back after another one

    def add(self, frames: Any, times: NDArray[np.int64]) -> None:
        """Add messages, at least one, with their frames, or with one frame for all."""
        import numpy as np

        one = isinstance(frames, int)
        there = [frames] if one else present(frames)
        if len(there) > 1:
            changes = np.flatnonzero(np.diff(frames))
            self.returned |= len(changes) + 1 > len(there)
        for frame in there:
            own = times if len(there) == 1 else times[frames == frame]
            first, last = int(own.min()), int(own.max())
            known = self.seen.get(frame)
            if known is None:
                self.seen[frame] = _Stretch(len(own), first, last)
                continue
            self.returned |= self.last != frame or (not one and int(frames[0]) != frame)
            known.count += len(own)
            known.first, known.last = min(known.first, first), max(known.last, last)
        self.last = frames if one else int(frames[-1])

    @property
    def in_order(self) -> list[tuple[int, _Stretch]]:
        """The frames sorted by the time at which they begin."""
        return sorted(self.seen.items(), key=lambda item: (item[1].first, item[1].last))

    @property
    def come_back(self) -> bool:
        """Whether a frame comes back after another one, in the order of log times."""
        latest: int | None = None
        for _, stretch in self.in_order:
            if latest is not None and (
                stretch.first < latest or (stretch.first == latest and self.returned)
            ):
                return True
            latest = stretch.last if latest is None else max(latest, stretch.last)
        return False


@dataclass
class _Thing:
    """The subject of messages: the whole topic, a child frame, or a set of joints."""

    number: int
    frames: Frames = field(default_factory=Frames)
    parts: dict[int, Part] = field(default_factory=dict)  # by frame
    whole: Part | None = None  # stream of all frames in ``merged``
    merged: set[int] = field(default_factory=set)


class PlainTopic:
    """A topic without keys: a single stream."""

    keyed = False
    undecided = False
    of_elements = False  # whether a message may be several samples

    def __init__(self, name: str, decoder: AnyDecoder) -> None:
        self.part = Part(decoder, name)
        self.decoder = decoder
        self.may_be_packed = decoder.may_be_packed

    @property
    def parts(self) -> list[Part]:
        return [self.part]

    @property
    def settled(self) -> bool:
        """Whether the streams and their channels are known without more messages."""
        return self.decoder.names is not None

    def begin(self, looking: bool) -> None:
        self.decoder.begin()

    def feed(self, rows: Rows) -> list[tuple[Part, Columns]]:
        return [(self.part, columns) for columns in self.decoder.feed(rows)]

    def flush(self, complete: bool) -> list[tuple[Part, Columns]]:
        return [(self.part, columns) for columns in self.decoder.flush()]

    def left_out(self) -> Iterator[tuple[Part, str, str]]:
        for path, reason in self.decoder.left_out():
            yield self.part, path, reason

    def findings(self) -> list[Finding]:
        return list(_mixed(self.part, self.decoder, ()))

    def fail(self, reason: str, sizes: Any) -> None:
        self.decoder.fail(reason, sizes)

    def unread(self, count: int | None) -> list[Unread]:
        return list(unread_of(self.part.name, self.decoder, count))


class KeyedTopic:
    """A topic whose messages have keys.

    Examine its messages first: ``begin(looking=True)``, ``feed``, ``flush``. This decides on the
    streams. Keys that appear only later get separate streams.
    """

    keyed = True
    settled = False  # later messages may have other keys

    def __init__(
        self,
        name: str,
        finder: Finder,
        made: Callable[[], Decoder],
        hooks: Hooks,
        latched: bool,
    ) -> None:
        self.name, self.finder, self.made = name, finder, made
        self.unique, self.changed = hooks.unique, hooks.changed
        self.may_be_packed = not finder.ros1
        self.failed: dict[str, int] = {}  # messages that cannot be unpacked, by reason
        self.failed_bytes = 0
        self.elements = None
        recipe = finder.recipe
        self.typename = (first := made()).typename
        if recipe.elements is not None:
            self.elements = ElementFinder(finder, self.typename)
        self.static = self.elements is not None and (latched or name.endswith("tf_static"))
        self.spare: Decoder | None = first  # for messages whose key cannot be found
        self.things: dict[int, _Thing] = {}
        self.main: Part | None = None  # stream of messages whose keys cannot be found
        self.decided = False
        self.looking = False
        self.skipped = 0  # messages in this pass beyond the limit of keys
        self.unread_count = 0
        self.changes: list[Finding] = []

    # ---- streams --------------------------------------------------------------------------------

    @property
    def parts(self) -> list[Part]:
        return self._all_parts() or [self._main()]

    def _all_parts(self) -> list[Part]:
        found: list[Part] = []
        for thing in self.things.values():
            found += [thing.whole] if thing.whole is not None else []
            found += thing.parts.values()
        if self.main is not None and self.main not in found:
            found.append(self.main)
        return found

    def _main(self) -> Part:
        """Return the stream of messages whose keys cannot be found: the first one."""
        if self.main is None:
            first = next(iter(self.things.values()), None)
            if first is not None and first.whole is not None:
                self.main = first.whole
            elif first is not None and first.parts:
                self.main = next(iter(first.parts.values()))
            else:
                self.main = self._part(None, None)
                self.main.name = self.name
        return self.main

    def _part(self, thing: _Thing | None, frame: int | None) -> Part:
        self.changed()
        decoder: StreamDecoder
        if self.elements is not None:
            texts = self._texts(thing, frame)
            decoder = ElementDecoder(self.elements, texts)
        else:
            own, self.spare = self.spare or self.made(), None
            decoder = JointDecoder(own, self.finder) if self.finder.recipe.joints else own
        return Part(decoder, static=self.static)

    def _texts(self, thing: _Thing | None, frame: int | None) -> dict[str, str]:
        if thing is None:
            return {}
        found: dict[str, str] = {}
        if frame is not None:
            found.update(zip(self.finder.recipe.frames, self.finder.frame_texts(frame)))
        if self.finder.recipe.thing is not None:
            found[self.finder.recipe.thing] = self.finder.things.text(thing.number)
        return found

    def _label(self, thing: _Thing, frame: int) -> str:
        """Return the name of a key."""
        frames = [_named(text) for text in self.finder.frame_texts(frame)]
        if self.finder.recipe.joints:
            order = self.finder.thing_of.index(thing.number)
            joints = label(self.finder.joints[order]).replace("/", "|")
            split = thing.whole is None or frame not in thing.merged
            return "/".join([joints, *frames]) if split else joints
        if self.finder.recipe.thing is not None:
            frames.append(_named(self.finder.things.text(thing.number)))
        return "/".join(frames)

    @property
    def of_elements(self) -> bool:
        """Whether a message may be several samples."""
        return self.elements is not None

    @property
    def undecided(self) -> bool:
        """Whether a frame has changed, and later messages decide whether it comes back."""
        of_things = [thing.frames for thing in self.things.values()]
        return any(len(frames.seen) > 1 and not frames.come_back for frames in of_things)

    # ---- messages -------------------------------------------------------------------------------

    def begin(self, looking: bool) -> None:
        self.looking = looking
        self.skipped = self.failed_bytes = 0
        self.failed.clear()
        if self.elements is not None:
            self.elements.failed.clear()
        for thing in self.things.values():
            thing.frames = Frames()
        for part in self._all_parts():
            part.decoder.begin()

    def feed(self, rows: Rows) -> list[tuple[Part, Columns]]:
        """Take messages; return columns, perhaps of earlier messages, or none yet."""
        keyed = self.finder.keyed(rows) if self.elements is None else self.elements.keyed(rows)
        times = keyed.content.times
        found: list[tuple[Part, Any]] = []
        if keyed.groups is not None:
            for number, frame, rows_of in keyed.groups:
                found += self._of_thing(
                    number, frame, times[rows_of], keyed.content.select(rows_of)
                )
            return [(part, each) for part, own in found for each in part.decoder.feed(own)]
        if len(keyed.things) == 0:
            return []
        there = present(keyed.things)
        for number in there:
            indices = None if len(there) == 1 else keyed.things == number
            frames = keyed.frames if indices is None else keyed.frames[indices]
            part_times = times if indices is None else times[indices]
            content = keyed.content if indices is None else keyed.content.select(indices)
            if number == TOO_MANY or number == NOT_FOLLOWED:
                found += self._without_key(number, content)
                continue
            bad = frames < 0
            if bad.any():
                found += self._without_key(TOO_MANY, content.select(bad))
                frames, part_times, content = frames[~bad], part_times[~bad], content.select(~bad)
            if len(frames):
                found += self._of_thing(number, frames, part_times, content)
        return [(part, each) for part, own in found for each in part.decoder.feed(own)]

    def _without_key(self, number: int, content: Any) -> list[tuple[Part, Any]]:
        if number == NOT_FOLLOWED:
            return [(self._main(), content)]
        self.skipped += len(content)
        return []

    def _of_thing(
        self, number: int, frames: Any, times: Any, content: Any
    ) -> Iterator[tuple[Part, Any]]:
        thing = self.things.get(number)
        there = [frames] if isinstance(frames, int) else present(frames)
        if thing is None:
            thing = self.things[number] = self._thing(number, there[0])
        thing.frames.add(frames, times)
        if self.looking:
            # In the end, either the stream of all frames or one stream per frame is kept.
            if thing.whole is not None and thing.whole.decoder.names is None:
                yield thing.whole, content
            merged = []
        else:
            merged = [frame for frame in there if frame in thing.merged]
            if thing.whole is not None and len(merged) == len(there):
                yield thing.whole, content
                return
            if thing.whole is not None and merged:
                yield thing.whole, content.select(_among(frames, merged))
        for frame in there:
            if frame in merged:
                continue
            part = thing.parts.get(frame)
            if part is None:
                part = thing.parts[frame] = self._part(thing, frame)
                if not self.looking:
                    part.name = self.unique(f"{self.name}/{self._label(thing, frame)}")
            if not self.looking or part.decoder.names is None:
                yield part, content if len(there) == 1 else content.select(frames == frame)

    def _thing(self, number: int, frame: int) -> _Thing:
        """Add a thing. A late one also gets a stream of all its frames."""
        thing = _Thing(number)
        if not self.looking and not self.things and self.main is not None:
            thing.whole = self.main
        else:
            thing.whole = self._part(thing, frame)
        if not self.looking:
            thing.merged = {frame}
            if thing.whole is not self.main:
                alone = not self.things
                name = f"{self.name}/{self._label(thing, frame)}"
                thing.whole.name = self.name if alone else self.unique(name)
        return thing

    def flush(self, complete: bool) -> list[tuple[Part, Columns]]:
        """Return messages that were held back. ``complete``: all messages were seen."""
        made = []
        for part in self._all_parts():
            made += [(part, columns) for columns in part.decoder.flush()]
        if self.looking and not self.decided:
            self._decide()
        if complete:
            self.unread_count = self.skipped
            self.changes = [finding for t in self.things.values() for finding in self._changes(t)]
            for thing in self.things.values():
                seen = thing.frames.seen
                if thing.whole is not None:
                    thing.whole.count = sum(seen[f].count for f in thing.merged if f in seen)
                for frame, part in thing.parts.items():
                    part.count = seen[frame].count if frame in seen else 0
        return made

    def _decide(self) -> None:
        """Decide on the streams, by the messages that were examined."""
        self.decided = True
        self.changed()
        self.main = self.main if not self.things else None
        for thing in self.things.values():
            if thing.frames.come_back:
                thing.whole = None
            else:
                thing.merged, thing.parts = set(thing.frames.seen), {}
                if len(thing.merged) > 1 and thing.whole is not None:
                    if isinstance(thing.whole.decoder, ElementDecoder):
                        thing.whole.decoder.texts.pop(self.finder.recipe.frames[0], None)
        by_time = sorted(
            self.things.items(), key=lambda members: members[1].frames.in_order[0][1].first
        )
        self.things = dict(by_time)
        parts = self.parts
        if len(parts) == 1:
            parts[0].name = self.name
            return
        for thing in self.things.values():
            if thing.whole is not None:
                first = thing.frames.in_order[0][0]
                thing.whole.name = self.unique(f"{self.name}/{self._label(thing, first)}")
            for frame, part in thing.parts.items():
                part.name = self.unique(f"{self.name}/{self._label(thing, frame)}")

    def _changes(self, thing: _Thing) -> Iterator[Finding]:
        """Yield findings about frames that change within one stream."""
        stretches = [each for each in thing.frames.in_order if each[0] in thing.merged]
        if len(stretches) < 2 or thing.whole is None:
            return
        names = ["/".join(self.finder.frame_texts(frame)) for frame, _ in stretches]
        changes, at = [], 0
        for before, after, (_, stretch) in zip(names, names[1:], stretches):
            at += stretch.count
            changes.append(f"from {before!r} to {after!r} at sample {at}")
        more = len(changes) - _MOST_CHANGES
        text = ", ".join(changes[:_MOST_CHANGES]) + (f", and {more} more times" if more > 0 else "")
        place = f"sample {stretches[0][1].count}"
        what = " and ".join(path.rpartition(".")[2] for path in self.finder.recipe.frames)
        yield Finding("warning", "frame_changed", thing.whole.name, place, f"{what} changes {text}")

    def left_out(self) -> Iterator[tuple[Part, str, str]]:
        for part in self.parts:
            for path, reason in part.decoder.left_out():
                yield part, path, reason
        for reason, count in self._failed().items():
            yield self.parts[0], "", messages_not_read(count, reason)

    def findings(self) -> list[Finding]:
        found = list(self.changes)
        for part in self.parts:
            found += _mixed(part, _inner(part), self.finder.recipe.frames)
        return found

    def fail(self, reason: str, sizes: Any) -> None:
        """Count messages that cannot be unpacked, by reason."""
        count_reason(self.failed, reason, len(sizes))
        self.failed_bytes += int(sizes.sum())

    def _failed(self) -> dict[str, int]:
        """Return messages that failed before they reached a stream, by reason."""
        failed = dict(self.failed)
        for reason, number in self.elements.failed.items() if self.elements is not None else ():
            failed[reason] = failed.get(reason, 0) + number
        return failed

    def unread(self, count: int | None) -> list[Unread]:
        """Return what was not read so far; ``count``: number of messages of the topic."""
        found: list[Unread] = []
        for part in self.parts:
            own = _inner(part)
            if isinstance(own, Decoder):
                known = part.count if len(self.parts) > 1 else count
                found += unread_of(part.name, own, known)
        failed = self._failed()
        if failed:
            number = sum(failed.values())
            size = self.failed_bytes if failed == self.failed else None
            found.append(Unread(self.name, self.typename, number, size, reasons_of(failed)))
        return found + self._too_many()

    def _too_many(self) -> list[Unread]:
        if not self.unread_count:
            return []
        kind = "sets of joints" if self.finder.recipe.joints else "frames"
        what = "transforms" if self.elements is not None else "messages"
        reason = (
            f"they have more than {MOST_KEYS:,} {kind}, and the {what} with other {kind} are "
            "skipped. Is a number or a file's name in frame_id?"
        )
        return [Unread(self.name, self.typename, self.unread_count, None, reason)]


def _inner(part: Part) -> Any:
    """Return the decoder of the messages of a part, without the sorting of joints."""
    return part.decoder.decoder if isinstance(part.decoder, JointDecoder) else part.decoder


def _mixed(part: Part, decoder: Any, keys: Collection[str]) -> Iterator[Finding]:
    """Yield findings about frames in messages, except their keys, that change."""
    for path, texts in decoder.strings.items() if isinstance(decoder, Decoder) else ():
        own = path.rpartition(".")[2] in ("frame_id", "child_frame_id") and path not in keys
        if own and decoder.names and (texts is None or len(texts) > 1):
            shown = "" if texts is None else ": " + ", ".join(map(repr, sorted(texts)))
            text = f"{path} varies{shown}. Samples of several frames are in one stream"
            yield Finding("warning", "frame_changed", part.name, path, text)


def _among(frames: Any, some: list[int]) -> Any:
    import numpy as np

    return np.isin(frames, some)


def _named(text: str) -> str:
    """Return a frame for the name of a stream, without a leading slash."""
    return text.lstrip("/") or NO_TEXT


AnyTopic = Union[PlainTopic, KeyedTopic]


def topic_of(
    name: str,
    made: Maker,
    hooks: Hooks,
    latched: bool = False,
) -> AnyTopic:
    """Return the streams of a topic. ``latched``: new subscribers get the last message."""
    first = made()
    recipe = recipe_of(made.types, first.typename) if isinstance(first, Decoder) else None
    if recipe is None or not isinstance(first, Decoder):
        return PlainTopic(name, first)
    finder = Finder(recipe, made.types, first.ros1, hooks.spend)
    make = cast("Callable[[], Decoder]", made)
    return KeyedTopic(name, finder, make, hooks, latched)
