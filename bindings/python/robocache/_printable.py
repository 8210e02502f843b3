"""Texts in output: names that cannot control a terminal, and counts with their nouns."""

from __future__ import annotations

import re

# Controls (C0, DEL, C1), separators of lines and paragraphs, marks of direction, characters without
# width, tags, and surrogates: halves of a pair, or bytes of a file name that is not UTF-8.
UNSAFE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)
_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def printable(text: object) -> str:
    r"""Return a text with its control characters and invisible characters escaped, in one line.

    Escapes are ``\n``, ``\r``, ``\t``, ``\xNN``, ``\uNNNN`` and ``\UNNNNNNNN``. Letters of all
    languages are unchanged. A byte of a file name that is not UTF-8 becomes ``\xNN``.
    """
    return UNSAFE.sub(_escaped, str(text))


def _escaped(found: re.Match[str]) -> str:
    character = found[0]
    code = ord(character)
    if 0xDC80 <= code <= 0xDCFF:  # os.fsdecode returns these for bytes that are not UTF-8
        code -= 0xDC00
    if character in _SHORT:
        return _SHORT[character]
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def plural(count: int, name: str) -> str:
    """Return a count with its noun.

    >>> plural(1, "stream"), plural(2, "stream")
    ('1 stream', '2 streams')
    """
    return f"{count} {name}" if count == 1 else f"{count} {name}s"


def kind_of(value: object) -> str:
    """Return the type of a value for messages: ``None``, ``a list`` or ``an ndarray``."""
    return kind_name(type(value))


def kind_name(kind: type) -> str:
    """Return a type with its article, as :func:`kind_of` does."""
    if kind is type(None):
        return "None"
    name = kind.__name__
    return f"{'an' if name == 'ndarray' or name[0] in 'AEIOaeio' else 'a'} {name}"
