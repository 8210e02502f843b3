"""The text of ``--help``, from the annotations of the commands.

typer formats help differently in each release. This text is the same with all of them, and the
reference in the documentation is made from the same descriptions.
"""

from __future__ import annotations

import enum
import inspect
import re
import shutil
import textwrap
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from typer.models import ArgumentInfo

GROUP_USAGE = "robocache [OPTIONS] COMMAND ..."
_WIDEST = 100
_LONGEST_NAME = 30
_VALUES = {"int": "INTEGER", "float": "NUMBER", "Path": "PATH"}


@dataclass(frozen=True)
class Parameter:
    """An option or an argument of a command."""

    names: tuple[str, ...]  #: ("--output", "-o"); of an argument: its name in capitals
    value: str  #: the name of its value; "" for a switch
    text: str
    limits: str  #: such as "At least 0."; "" without any
    default: str  #: "" without one
    required: bool
    is_argument: bool

    @property
    def usage(self) -> str:
        if self.is_argument or not self.value:
            return ", ".join(self.names)
        joined = "" if self.value.startswith("[=") else " "
        return ", ".join(self.names) + joined + self.value

    @property
    def description(self) -> str:
        ends = [self.text, self.limits]
        if self.required and not self.is_argument:
            ends += ["Required."]
        if self.default:
            ends += [f"Default: {self.default}."]
        return " ".join(end for end in ends if end)


def paragraphs(docstring: str) -> list[str]:
    return [re.sub(r"\s+", " ", part).strip() for part in re.split(r"\n\s*\n", docstring.strip())]


def parameters(command: Callable[..., Any]) -> list[Parameter]:
    """Describe the arguments and options of a command, in the order of its signature."""
    hints = typing.get_type_hints(command, include_extras=True)
    found = []
    for name, parameter in inspect.signature(command).parameters.items():
        kind, info = typing.get_args(hints[name])[:2]
        found += [_described(name, kind, info, parameter.default)]
    return found


def _described(name: str, kind: Any, info: Any, default: Any) -> Parameter:
    required = default is inspect.Parameter.empty
    kind = _without_none(kind)
    value = info.metavar or _value_of(kind, info)
    text, limits = info.help or "", _limits_of(info)
    if isinstance(info, ArgumentInfo):
        value = info.metavar or name.upper()
        return Parameter((value,), value, text, limits, "", required, True)
    # In annotations typer keeps the first name as the default.
    first = (info.default,) if isinstance(info.default, str) else ()
    names = (*first, *(info.param_decls or ())) or ("--" + name.replace("_", "-"),)
    has_default = not required and info.show_default is not False and default is not None
    has_default = has_default and not isinstance(default, (bool, list, tuple))
    default = f"{default:g}" if isinstance(default, float) else str(default)
    default = default if has_default else ""
    return Parameter(names, value, text, limits, default, required, False)


def _limits_of(info: Any) -> str:
    if info.min is not None and info.max is not None:
        return f"From {info.min} to {info.max}."
    if info.min is not None:
        return f"At least {info.min}."
    return "" if info.max is None else f"At most {info.max}."


def _without_none(kind: Any) -> Any:
    union = typing.get_origin(kind) in (typing.Union, getattr(types, "UnionType", typing.Union))
    if not union:
        return kind
    (kind,) = (entry for entry in typing.get_args(kind) if entry is not type(None))
    return kind


def _value_of(kind: Any, info: Any) -> str:
    if kind is bool:
        return ""
    if typing.get_origin(kind) is list:
        (kind,) = typing.get_args(kind)
    if typing.get_origin(kind) is tuple:
        return " ".join(_value_of(entry, info) for entry in typing.get_args(kind))
    if typing.get_origin(kind) is typing.Literal:
        return "|".join(map(str, typing.get_args(kind)))
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        return "|".join(str(choice.value) for choice in kind)
    return _VALUES.get(getattr(kind, "__name__", ""), "TEXT")


def usage(name: str, described: Iterable[Parameter]) -> str:
    described = list(described)
    words = [f"robocache {name}", *(entry.names[0] for entry in described if entry.is_argument)]
    required = (entry for entry in described if entry.required and not entry.is_argument)
    words += [f"{entry.names[0]} {entry.value}" for entry in required]
    return " ".join([*words, "[OPTIONS]"])


def command_help(name: str, command: Callable[..., Any], example: str) -> str:
    """The help of one command."""
    described = parameters(command)
    parts = [f"Usage: {usage(name, described)}", *map(_wrapped, paragraphs(command.__doc__ or ""))]
    arguments = [(entry.usage, entry.description) for entry in described if entry.is_argument]
    options = [(entry.usage, entry.description) for entry in described if not entry.is_argument]
    if arguments:
        parts += ["Arguments:\n" + _columns(arguments)]
    parts += ["Options:\n" + _columns([*options, ("-h, --help", "Show this message and exit.")])]
    return "\n\n".join([*parts, f"Example: {example}"])


def group_help(text: str, commands: Mapping[str, Callable[..., Any]], options: Any) -> str:
    """The help of ``robocache`` itself."""
    option_rows = [(entry.usage, entry.description) for entry in parameters(options)]
    option_rows += [("--install-completion", "Install completion for this shell.")]
    option_rows += [("--show-completion", "Print the completion script of this shell.")]
    option_rows += [("-h, --help", "Show this message and exit.")]
    command_rows = [(name, paragraphs(entry.__doc__ or "")[0]) for name, entry in commands.items()]
    parts = [f"Usage: {GROUP_USAGE}", _wrapped(text)]
    return "\n\n".join(
        [*parts, "Options:\n" + _columns(option_rows), "Commands:\n" + _columns(command_rows)]
    )


def subgroup_help(name: str, text: str, commands: Mapping[str, Callable[..., Any]]) -> str:
    """The help of a command that has commands of its own."""
    rows = [(each, paragraphs(entry.__doc__ or "")[0]) for each, entry in commands.items()]
    parts = [f"Usage: robocache {name} COMMAND ...", _wrapped(text)]
    options = _columns([("-h, --help", "Show this message and exit.")])
    return "\n\n".join([*parts, f"Options:\n{options}", "Commands:\n" + _columns(rows)])


def _width() -> int:
    return max(40, min(shutil.get_terminal_size((80, 24)).columns, _WIDEST))


def _wrapped(text: str) -> str:
    return textwrap.fill(text, _width(), break_long_words=False, break_on_hyphens=False)


def _columns(rows: list[tuple[str, str]]) -> str:
    """Names with their texts next to them; below where a name is long or the terminal narrow."""
    longest = max(len(name) for name, _ in rows if len(name) <= _LONGEST_NAME)
    indent = longest + 4 if _width() >= longest + 44 else 6
    lines = []
    for name, text in rows:
        start = f"  {name}".ljust(indent)
        if len(name) + 4 > indent:
            lines += [f"  {name}"]
            start = " " * indent
        wrapped = textwrap.wrap(
            text, _width() - indent, break_long_words=False, break_on_hyphens=False
        )
        lines += [
            f"{start}{line}" if n == 0 else " " * indent + line for n, line in enumerate(wrapped)
        ] or [f"  {name}"]
    return "\n".join(lines)
