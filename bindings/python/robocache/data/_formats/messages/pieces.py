"""Messages in a piece of a file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True)
class Rows:
    """Messages of one topic in a piece of a file."""

    data: NDArray[np.uint8]  # the piece
    starts: NDArray[np.int64]  # offset of each message
    sizes: NDArray[np.int64]
    times: NDArray[np.int64]  # log times, ns
    marks: NDArray[np.int64] | None = None  # a number per message, set by its reader

    def __len__(self) -> int:
        return len(self.starts)

    def select(self, chosen: Any) -> Rows:
        marks = None if self.marks is None else self.marks[chosen]
        return Rows(self.data, self.starts[chosen], self.sizes[chosen], self.times[chosen], marks)

    def compact(self) -> Rows:
        """Return the messages without the rest of the piece, which may be large."""
        import numpy as np

        content = b"".join(self.message(i) for i in range(len(self)))
        starts = np.cumsum(self.sizes) - self.sizes
        return Rows(np.frombuffer(content, np.uint8), starts, self.sizes, self.times, self.marks)

    def message(self, i: int) -> bytes:
        begin = int(self.starts[i])
        return self.data[begin : begin + int(self.sizes[i])].tobytes()

    def field(self, offset: int, dtype: Any) -> Any:
        """Return the number ``offset`` bytes into each message, aligned or not."""
        return self.view(dtype)[self.starts + offset]

    def records(self, dtype: Any, size: int) -> Any:
        """Return messages of one size as a structured array."""
        return self.view(f"V{size}")[self.starts].view(dtype)

    def view(self, dtype: Any) -> Any:
        """Return a view with the number at each byte of the piece, aligned or not."""
        import numpy as np

        size = np.dtype(dtype).itemsize
        count = max(0, len(self.data) - size + 1)
        return np.ndarray(count, dtype, self.data, strides=(1,))


def present(numbers: Any) -> list[int]:
    """Return the distinct numbers, without sorting many of them."""
    import numpy as np

    if not len(numbers):
        return []
    first = int(numbers[0])
    if (numbers == first).all():
        return [first]
    if 0 <= int(numbers.min()) and int(numbers.max()) < 1 << 16:
        found: list[int] = np.flatnonzero(np.bincount(numbers)).tolist()
        return found
    found = np.unique(numbers).tolist()
    return found
