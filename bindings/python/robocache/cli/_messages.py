"""Messages of the library, with options of the command line instead of Python arguments."""

from __future__ import annotations

import re
from collections.abc import Container

_OPTIONS = {
    "available='arrival'": "--available arrival",
    "available='stamp'": "--available stamp",
    "add it to labels": "pass it with --label",
    "causal=True": "--available arrival",
    "more than late_bound newer": "more than --late-bound newer",
    "definitions={name: text of the .msg file}": "--definition TYPE=FILE",
    "open the data set with rate=, frames per second": "pass --fps, rows per second",
    "data.open(..., rate=)": "--fps",
    "open it with rate=10": "--fps 10",
    "episode_from: ": "--episode-from: ",
    "choose other streams with select()": "choose other streams with -s",
    "name it with images= to keep them": "--image keeps them",
    "name it with tracks=": "name it with --state, --action or --extra",
    "name the tracks that all have with tracks=": "name the tracks that all have with --state, "
    "--action or --extra",
    "leave its stream out with exclude=": "leave its stream out with --exclude",
}
_CLOCK_OFFSET = re.compile(r"clock_offset=\{'([^']*)': \.\.\.\}")
_TRACK = re.compile(r"\btracks\['([^']+)'\]")
_CAMERA = re.compile(r"\bimages\['(?:observation\.images\.)?([^']+)'\]")
_RESIZED = re.compile(r"\bresize\['([^']+)'\]")
_REMOVED = re.compile(r"\bremove=\['([^']+)'\]")
_EXCLUDED = re.compile(r"\bexclude=\['([^']+)'\]")
_RESAMPLED = re.compile(r"convert with rate=([\d.]+), or align\([\d.]+\)")
_FLAGS = {"observation.state": "--state", "action": "--action"}
_NAMES = (
    *(
        "clock",
        "damaged",
        "dtype",
        "follow_links",
        "format",
        "image_format",
        "image_size",
        "lossless",
        "max_gap",
    ),
    *("max_unpacked", "overwrite", "skip_failed", "span", "spans", "split_gap", "unit"),
)
_ARGUMENT = re.compile(rf"\b({'|'.join(_NAMES)})=(?:'(\w+)'|(\d+)|True\b|(?=[\s,;]|$))")


def in_cli_words(text: str, known: Container[str] | None = None) -> str:
    """Replace Python arguments in a message by options, if the command has them (``known``)."""

    def option(found: re.Match[str]) -> str:
        name, word, digits = found.groups()
        value = word or digits
        if known is not None and name not in known:
            return f"{found[0]} in Python"
        return f"--{name.replace('_', '-')}" + (f" {value}" if value else "")

    text = _TRACK.sub(lambda found: _FLAGS.get(found[1], f"--extra {found[1]}"), text)
    text = _CAMERA.sub(r"--image \1", text)
    text = _RESIZED.sub(r"--resize \1", text)
    text = _REMOVED.sub(r"--remove \1", text)
    text = _EXCLUDED.sub(r"--exclude \1", text)
    text = _RESAMPLED.sub(r"robocache convert --rate \1", text)
    for python, words in _OPTIONS.items():
        text = text.replace(python, words)
    text = _CLOCK_OFFSET.sub(r"--clock-offset \1=SECONDS", text)
    return _ARGUMENT.sub(option, text)
