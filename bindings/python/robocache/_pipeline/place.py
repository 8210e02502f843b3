"""A value in a pipeline file with its JSON pointer, and the checks that all parts share."""

from __future__ import annotations

import difflib
import json
from collections.abc import Collection, Iterator, Sequence
from typing import Any

from .strict_json import shown, step

UNKNOWN = "?"  # stands for what a format does not say; a file with it is a draft


class Place:
    """One value of the file."""

    def __init__(self, value: Any, pointer: str = "", draft: bool = False) -> None:
        self.value, self.pointer, self.draft = value, pointer, draft

    def fault(self, text: str) -> ValueError:
        return ValueError(f"{self.pointer}: {text}")

    def refused(self, expected: str) -> ValueError:
        if self.value == UNKNOWN and not self.draft:
            return self.fault(
                f'"?"; the format does not say it: replace "?" by what is true, {expected}'
            )
        return self.fault(f"{shown(self.value)}; expected {expected}")

    @property
    def is_unknown(self) -> bool:
        """Whether the value is "?" and may be."""
        return self.draft and self.value == UNKNOWN

    # ---- objects and lists ----------------------------------------------------------------------

    def __getitem__(self, key: str | int) -> Place:
        where = f"/{key}" if isinstance(key, int) else step(key)
        return Place(self.value[key], self.pointer + where, self.draft)

    def __contains__(self, key: str) -> bool:
        return key in self.value

    def members(self, needed: Sequence[str], optional: Collection[str] = ()) -> Place:
        """Require an object with these keys; keys that begin with "x-" are free."""
        if not isinstance(self.value, dict):
            raise self.refused(f"an object with {listed(needed)}")
        known = [*needed, *optional]
        for key in self.value:
            if key not in known and not key.startswith("x-"):
                near = difflib.get_close_matches(key, known, 1)
                meant = f'; did you mean "{near[0]}"?' if near else ""
                where = Place(None, self.pointer + step(key))
                raise where.fault(f"unknown key; expected one of {listed(known)}{meant}")
        for key in needed:
            if key not in self.value:
                where = Place(None, self.pointer + step(key))
                raise where.fault("is missing; every key must be there")
        return self

    def kind(self, choices: Collection[str]) -> str:
        """Return the member "kind", on which the other keys of the object depend."""
        if not isinstance(self.value, dict):
            raise self.refused('an object with "kind"')
        if "kind" not in self.value:
            raise Place(None, f"{self.pointer}/kind").fault("is missing; every key must be there")
        return self["kind"].one_of(choices)

    def named(self, what: str) -> Iterator[tuple[str, Place]]:
        """Return the members of an object whose keys are names."""
        if not isinstance(self.value, dict):
            raise self.refused(f"an object with {what} by name")
        for name in self.value:
            if not name or name.startswith("x-"):
                raise self[name].fault(
                    'is not a name; a name is not empty and does not begin with "x-"'
                )
            yield name, self[name]

    def items(self, what: str, least: int = 0, count: int | None = None) -> list[Place]:
        """Return the elements of a list."""
        if not isinstance(self.value, list):
            raise self.refused(f"a list of {what}")
        size = len(self.value)
        if count is not None and size != count:
            raise self.fault(f"has {size} {what}; expected {count}")
        if size < least:
            raise self.fault(f"has {size} {what}; expected {least} or more")
        return [self[i] for i in range(size)]

    # ---- plain values ---------------------------------------------------------------------------

    def text(self, what: str = "a string that is not empty") -> str:
        if not isinstance(self.value, str) or not self.value:
            raise self.refused(what)
        if self.value == UNKNOWN and not self.draft:
            raise self.refused(what)
        return self.value

    def one_of(self, choices: Collection[str], more: str = "") -> str:
        if self.is_unknown:
            return UNKNOWN
        if not isinstance(self.value, str) or self.value not in choices:
            raise self.refused(f"one of {listed(choices)}{more}")
        return self.value

    def flag(self) -> bool:
        if not isinstance(self.value, bool):
            raise self.refused("true or false")
        return self.value

    def whole(self, least: int, most: int = 2**62) -> int:
        value = self.value
        right = isinstance(value, int) and not isinstance(value, bool)
        if not right or not least <= value <= most:
            bound = f"{least} or more" if most >= 2**30 else f"{least} to {most}"
            raise self.refused(f"an integer, {bound}")
        return int(value)

    def number(
        self, what: str = "a number", least: float | None = None, above: float | None = None
    ) -> float:
        value = self.value
        if not isinstance(value, (int, float)) or isinstance(value, bool):
            raise self.refused(what)
        if value != value or value in (float("inf"), float("-inf")):
            raise self.refused(what)
        if (least is not None and value < least) or (above is not None and value <= above):
            raise self.refused(what)
        return float(value)

    def seconds(self, zero: bool = True) -> float:
        """Require a duration of at most 292 years, which nanoseconds in 64 bits hold."""
        what = "a number of seconds, 0 or more" if zero else "a number of seconds above 0"
        value = self.number(what, 0) if zero else self.number(what, above=0)
        if value > 9.2e9:
            raise self.refused(f"{what}, at most 9.2e9")
        return value

    def or_null(self) -> Place | None:
        return None if self.value is None else self

    def numbers(self, what: str, count: int | None = None) -> list[float]:
        """Require a list of numbers. Its width is that of the channels."""
        items = self.items(what, count=count)
        return [each.number() for each in items]


def listed(names: Collection[str]) -> str:
    return ", ".join(json.dumps(name, ensure_ascii=False) for name in names)
