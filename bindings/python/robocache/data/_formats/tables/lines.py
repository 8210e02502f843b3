"""The rows of a text as a file that Arrow reads: UTF-8, without comments, one blank per gap."""

from __future__ import annotations

import codecs
import io
from typing import BinaryIO

_BLOCK = 1 << 20  # bytes that are read and changed at once
_MARK = b"\xef\xbb\xbf"  # of UTF-8, at the begin of a file


class Lines(io.RawIOBase):
    """The lines of an open file from line ``first`` on.

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
        super().__init__()
        self._file, self._first = file, first
        self._blanks, self._mark = blanks, comments.encode()
        plain = encoding == "utf-8"
        self._decoder = None if plain else codecs.getincrementaldecoder(encoding)("replace")
        self.fault: int | None = None  # the first byte that is not of the encoding
        self._place = 0  # bytes of the file
        self._rest = b""  # the begin of a line
        self._ready: list[bytes] = []
        self._count = 0  # bytes that are ready
        self._left = count
        self._is_begin = True
        self._is_done = False

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        while not self._is_done and (size < 0 or self._count < size):
            block = self._next()
            self._ready.append(block)
            self._count += len(block)
        whole = self._ready[0] if len(self._ready) == 1 else b"".join(self._ready)
        if size < 0 or size >= len(whole):
            self._ready, self._count = [], 0
            return whole
        self._ready, self._count = [whole[size:]], len(whole) - size
        return whole[:size]

    def _next(self) -> bytes:
        """Return more whole lines, changed; the rest of the file at its end."""
        count = _BLOCK if self._left is None else min(_BLOCK, self._left)
        block = self._file.read(count) if count else b""
        block = block or b""
        if self._left is not None:
            self._left -= len(block)
        self._is_done = not block
        if self._is_begin and self._decoder is None:
            block = block.removeprefix(_MARK)
        self._is_begin = False
        self._place += len(block)
        if self._decoder is not None:
            text = self._decoder.decode(block, self._is_done)
            if self.fault is None and "\ufffd" in text:
                self.fault = self._place - len(block)
            block = text.encode("utf-8", "replace")
        block = self._rest + block
        cut = len(block) if self._is_done else block.rfind(b"\n") + 1
        self._rest = block[cut:]
        block = block[:cut]
        return self._changed(block if self._decoder is not None else self._in_utf8(block))

    def _in_utf8(self, block: bytes) -> bytes:
        """Replace bytes that are not UTF-8, since Arrow cannot show such rows."""
        if block.isascii():
            return block
        try:
            block.decode("utf-8")
        except UnicodeDecodeError as error:
            if self.fault is None:
                self.fault = self._place - len(self._rest) - len(block) + error.start
            return block.decode("utf-8", "replace").encode("utf-8")
        return block

    def _changed(self, block: bytes) -> bytes:
        while self._first and block:
            _, newline, after = block.partition(b"\n")
            self._first -= 1
            block = after if newline else b""
        if self._blanks:
            block = _with_single_blanks(block)
        mark = self._mark
        if mark and (block.startswith(mark) or b"\n" + mark in block):
            lines = block.splitlines(keepends=True)
            block = b"".join(line for line in lines if not line.startswith(mark))
        return block


def _with_single_blanks(block: bytes) -> bytes:
    """Replace each run of spaces and tabs by a space, and remove those at the ends of lines."""
    block = block.replace(b"\t", b" ").replace(b"\r\n", b"\n")
    while b"  " in block:
        block = block.replace(b"  ", b" ")
    return block.replace(b" \n", b"\n").replace(b"\n ", b"\n").removeprefix(b" ").removesuffix(b" ")
