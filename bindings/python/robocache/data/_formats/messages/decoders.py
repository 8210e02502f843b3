"""Decoders of the messages of a topic, by encoding: CDR, ROS 1, JSON, protobuf."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Callable, Protocol

from ..._kinds.kinds import Said
from ..bags.unread import serialization_reason
from .columns import Columns, Decoder, Rows
from .ros_types import Types, fingerprint


class AnyDecoder(Protocol):
    """Decode one topic in pieces."""

    typename: str
    names: tuple[str, ...] | None  # of the channels, once known
    said: tuple[Said, ...]  # kinds of channels that the file states
    failed: dict[str, int]  # messages that cannot be read, by reason
    failed_bytes: int
    may_be_packed: bool  # whether messages that begin like zstd are compressed

    def losses(self) -> list[str]:
        """Return sentences about the numbers of the messages that are not channels."""

    @property
    def only_texts(self) -> bool:
        """Whether the messages have texts and no numbers."""

    def begin(self) -> None:
        """Prepare for a pass through the messages; decisions are kept."""

    def feed(self, rows: Rows) -> list[Columns]:
        """Take messages; return columns, perhaps of earlier messages, or none yet."""

    def flush(self) -> list[Columns]:
        """Return messages that were held back."""

    def fail(self, reason: str, sizes: Any) -> None:
        """Count messages that cannot be read, by reason."""

    def left_out(self) -> list[tuple[str, str]]:
        """Return fields that are not channels, and messages that were not read, with reasons."""


@dataclass(frozen=True)
class Maker:
    """Makes decoders of the messages of one type."""

    make: Callable[[], AnyDecoder]
    fingerprint: Callable[[], str]  # equal for definitions that differ only in comments
    types: Mapping[str, Any]  # of ROS messages

    def __call__(self) -> AnyDecoder:
        return self.make()


class Makers:
    """The types of a bag's messages."""

    def __init__(
        self,
        definitions: Mapping[str, str] | None,
        distribution: str | None,
        spend: Callable[[int], None],
    ) -> None:
        self.distribution, self.spend = distribution, spend
        # Parse the caller's definitions in any case, so that an error in them is reported.
        self._types = Types(definitions) if definitions else None

    def maker(self, typename: str, serialization: str, kind: str, definition: str | bytes) -> Maker:
        """Return a maker for messages of one type, with its definition in the bag or the caller's.

        Raises
        ------
        ValueError
            Such messages cannot be read; the text is a sentence that says why.
        """
        if serialization == "json":
            return self._json(typename, kind, definition)
        if serialization == "protobuf":
            return self._protobuf(typename, kind, definition)
        if serialization not in ("cdr", "ros1"):
            raise ValueError(serialization_reason(serialization))
        if not typename:
            raise ValueError("the bag does not state the type of these messages")
        if isinstance(definition, bytes):
            raise ValueError(f"their definition is in {kind!r}, which is not read for ROS messages")
        if self._types is None:
            self._types = Types()
        types = self._types.lookup(typename, kind, definition, self.distribution)

        make = partial(Decoder, typename, types, serialization, self.spend)
        return Maker(make, partial(fingerprint, typename, types), types)

    def _json(self, typename: str, kind: str, definition: str | bytes) -> Maker:
        from .json import JsonReader
        from .trees import TreeDecoder

        text = definition if isinstance(definition, str) and kind == "jsonschema" else ""
        name = typename or "JSON"
        reader = JsonReader(text)
        return Maker(partial(TreeDecoder, name, reader, self.spend), partial(str, text), {})

    def _protobuf(self, typename: str, kind: str, definition: str | bytes) -> Maker:
        from .protobuf import ProtobufReader
        from .trees import TreeDecoder

        if kind != "protobuf" or not isinstance(definition, bytes):
            what = f"is in {kind!r}" if kind else "is missing"
            raise ValueError(f"their definition {what}, expected descriptors of protobuf")
        reader = ProtobufReader(typename, definition)
        make = partial(TreeDecoder, typename, reader, self.spend)
        return Maker(make, partial(repr, definition), {})
