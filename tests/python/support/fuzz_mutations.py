"""Changes of the bytes of a file, for fuzz_readers.py."""

from __future__ import annotations

import contextlib
import io
import re
import zipfile

import numpy as np

_TEXT = 512  # bytes that decide whether a file is a text
_NUMBER = re.compile(rb"[-+]?\d+(?:[.,]\d+)?(?:[eE][-+]?\d+)?")
_ODD = [b"nan", b"inf", b"-inf", b"1e400", b"1e-400", b"-0", b"9223372036854775808", b"-1", b"",
        b"18446744073709551616", b"0", b"-", b"1,5", b"0x10", b"true", b"null", b"1" * 400,
        b"2024-02-30 25:61:61", b"\xff", b'"', b"{}", b"[1,2]", b"1_000", b" "]  # fmt: skip
_LINES = [b"", b"# a comment", b"% a comment", b"\xef\xbb\xbf", b"a", b",,,,", b'"', b"{", b"\x1a",
          b"1 2 3", b" ", b"\t"]  # fmt: skip
_SEPARATORS = b",;\t :|"


def mutate(content: bytes, rng: np.random.Generator) -> bytes:
    """Return the bytes with some of them changed.

    Half of the changes to a text are to its numbers and lines. Half of those to an archive are to
    the content of a file in it, whose checksum is updated.
    """
    start = content[:_TEXT]
    if start.startswith(b"PK\3\4") and rng.integers(2):
        with contextlib.suppress(zipfile.BadZipFile):
            return _of_archive(content, rng)
    if start.isascii() and b"\0" not in start and rng.integers(2):
        return _of_text(content, rng)
    made = bytearray(content)
    for _ in range(int(rng.integers(1, 4))):
        if not made:
            break
        at = int(rng.integers(len(made)))
        many = int(rng.integers(1, 33))
        kind = int(rng.integers(8))
        if kind <= 2:
            made[at] ^= 1 << int(rng.integers(8))
        elif kind == 3:
            made[at] = int(rng.integers(256))
        elif kind == 4:
            del made[at:]
        elif kind == 5:
            del made[at : at + many]
        elif kind == 6:
            filler = (0, 255, 127, 128)[int(rng.integers(4))]
            made[at : at + many] = bytes([filler]) * len(made[at : at + many])
        else:
            made[at:at] = made[at : at + many]
    return bytes(made)


def _of_archive(content: bytes, rng: np.random.Generator) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(made, "w") as new:
        members = old.infolist()
        chosen = int(rng.integers(len(members)))
        for i, member in enumerate(members):
            inner = old.read(member)
            new.writestr(member, mutate(inner, rng) if i == chosen else inner)
    return made.getvalue()


def _of_text(content: bytes, rng: np.random.Generator) -> bytes:
    """Return a text with odd numbers, lines that moved, other ends of lines or separators."""
    for _ in range(int(rng.integers(1, 4))):
        lines = content.splitlines(keepends=True)
        if not lines:
            break
        at, to = (int(each) for each in rng.integers(len(lines), size=2))
        kind = int(rng.integers(10))
        if kind <= 3:
            lines[at] = _with_odd_number(lines[at], rng)
        elif kind == 4:
            del lines[at : at + int(rng.integers(1, 4))]
        elif kind == 5:
            lines.insert(to, lines[at])
        elif kind == 6:
            lines.insert(at, _LINES[int(rng.integers(len(_LINES)))] + b"\n")
        elif kind == 7:
            some = lines[at:] if rng.integers(2) else lines[at : at + 1]
            end = (b"\r\n", b"\r", b"\n\n")[int(rng.integers(3))]
            lines[at : at + len(some)] = [line.rstrip(b"\r\n") + end for line in some]
        elif kind == 8:
            old, new = rng.integers(len(_SEPARATORS), size=2)
            some = lines if rng.integers(2) else lines[at : at + 1]
            changed = [line.replace(*(_SEPARATORS[i : i + 1] for i in (old, new))) for line in some]
            lines = changed if some is lines else [*lines[:at], *changed, *lines[at + 1 :]]
        else:
            lines[at], lines[to] = lines[to], lines[at]
        content = b"".join(lines)
    return content


def _with_odd_number(line: bytes, rng: np.random.Generator) -> bytes:
    numbers = list(_NUMBER.finditer(line))
    if not numbers:
        return line
    chosen = numbers[int(rng.integers(len(numbers)))]
    odd = _ODD[int(rng.integers(len(_ODD)))]
    return line[: chosen.start()] + odd + line[chosen.end() :]
