"""The rows of a text as Arrow parses them: UTF-8, without comments, one blank per gap."""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from typing import Any, BinaryIO

from ..._errors import needed

_BLOCK = 1 << 20  # bytes that are read and changed at once
_MARK = b"\xef\xbb\xbf"  # of UTF-8, at the begin of a file


def whole_lines(file: BinaryIO) -> Iterator[bytes]:
    """Yield an open file in blocks of whole lines; the last one may have no end."""
    parts: list[bytes] = []  # the begin of a line
    while block := file.read(_BLOCK):
        cut = block.rfind(b"\n") + 1
        if cut:
            yield b"".join([*parts, block[:cut]])
            parts = []
        parts.append(block[cut:])
    if any(parts):
        yield b"".join(parts)


class Lines:
    """The lines of an open file from line ``first`` on, as blocks of whole lines.

    Lines that begin with ``comments`` are dropped, unless it is empty. With ``blanks``, spaces and
    tabs around cells become one space between them. At most ``count`` bytes are read.
    """

    def __init__(
        self,
        file: BinaryIO,
        encoding: str = "utf-8",
        first: int = 0,
        blanks: bool = False,
        comments: str = "",
        count: int | None = None,
    ) -> None:
        self._file, self._first = file, first
        self._blanks, self._mark = blanks, comments.encode()
        plain = encoding == "utf-8"
        self._decoder = None if plain else codecs.getincrementaldecoder(encoding)("replace")
        self.fault: int | None = None  # the first byte that is not of the encoding
        self._place = 0  # bytes of the file
        self._rest: list[bytes] = []  # the begin of a line
        self._left = count

    def __iter__(self) -> Iterator[bytes]:
        is_done = False
        while not is_done:
            count = _BLOCK if self._left is None else min(_BLOCK, self._left)
            block = (self._file.read(count) if count else b"") or b""
            is_done = not block
            if self._left is not None:
                self._left -= len(block)
            block = self._whole(block, is_done)
            if block:
                block = self._changed(block if self._decoder is not None else self._in_utf8(block))
            if block:
                yield block

    def _whole(self, block: bytes, is_done: bool) -> bytes:
        """Return the lines that end in a block, in UTF-8; keep the begin of the next one."""
        if self._place == 0 and self._decoder is None:
            block = block.removeprefix(_MARK)
        self._place += len(block)
        if self._decoder is not None:
            text = self._decoder.decode(block, is_done)
            if self.fault is None and "\ufffd" in text:
                self.fault = self._place - len(block)
            block = text.encode("utf-8", "replace")
        cut = len(block) if is_done else block.rfind(b"\n") + 1
        self._rest.append(block[:cut])
        whole = b""
        if cut or is_done:
            whole = b"".join(self._rest)
            self._rest = []
        self._rest.append(block[cut:])
        return whole

    def _in_utf8(self, block: bytes) -> bytes:
        """Replace bytes that are not UTF-8, since Arrow cannot show such rows."""
        if block.isascii():
            return block
        try:
            block.decode("utf-8")
        except UnicodeDecodeError as error:
            if self.fault is None:
                self.fault = self._place - sum(map(len, self._rest)) - len(block) + error.start
            return block.decode("utf-8", "replace").encode("utf-8")
        return block

    def _changed(self, block: bytes) -> bytes:
        while self._first and block:
            _, newline, after = block.partition(b"\n")
            self._first -= 1
            block = after if newline else b""
        if self._blanks:
            block = with_single_blanks(block)
        mark = self._mark
        if mark and (block.startswith(mark) or b"\n" + mark in block):
            lines = block.splitlines(keepends=True)
            block = b"".join(line for line in lines if not line.startswith(mark))
        return block


def arrow_file(block: bytes) -> Any:
    """Return bytes, in Arrow's memory, as a file that Arrow reads.

    Arrow reads ahead in a thread. If the thread has an object of Python when the interpreter ends,
    the process is aborted.
    """
    import numpy as np

    arrow = needed("pyarrow", "tables", "a text")
    buffer = arrow.allocate_buffer(len(block))
    if block:
        np.frombuffer(buffer, np.uint8)[:] = np.frombuffer(block, np.uint8)
    return arrow.BufferReader(buffer)


def with_single_blanks(block: bytes) -> bytes:
    """Replace each run of spaces and tabs by a space, and remove those at the ends of lines."""
    import numpy as np

    block = block.replace(b"\t", b" ").replace(b"\r\n", b"\n")
    octets: Any = np.frombuffer(block, np.uint8)
    if len(octets) == 0:
        return block
    low = (octets <= ord(" ")).view(np.uint8)  # most files have neither runs nor blanks at the ends
    if (low[1:] & low[:-1]).any() or low[0] or block.endswith(b" "):
        blank = octets == ord(" ")
        dropped = np.empty(len(octets), bool)
        np.logical_and(blank[:-1], blank[1:] | (octets[1:] == ord("\n")), out=dropped[:-1])
        dropped[-1] = blank[-1]
        block = np.compress(~dropped, octets).tobytes()
        block = block.replace(b"\n ", b"\n").removeprefix(b" ")
    return block
