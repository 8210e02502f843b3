"""Messages in protobuf, with descriptors in the file."""

from __future__ import annotations

from typing import Any

from ..._errors import needed, raise_shortage, require_memory
from .protobuf_wire import BYTES, Malformed, fields
from .trees import DEEPEST, MOST_FIELDS, MOST_LISTED, CannotRead, Tree, nanoseconds, stamp_paths

_LARGEST_SET = 4 << 20  # bytes of descriptors
_MOST_FILES = 4096
_MEMORY = 128 << 20  # bytes that one message may take
_EXAMINED = 1 << 20  # nested messages that are counted one by one
_PER_FIELD, _PER_MESSAGE = 16, 64  # bytes of memory
# By FieldDescriptor.cpp_type.
_DTYPES = {1: "int32", 2: "int64", 3: "uint32", 4: "uint64", 5: "float64", 6: "float32"}
_DTYPES |= {7: "bool", 8: "int32"}
_STRING, _MESSAGE = 9, 10
_BYTES_TYPE, _GROUP_TYPE = 12, 10  # of FieldDescriptor.type
_TIME, _DURATION = "google.protobuf.Timestamp", "google.protobuf.Duration"


class ProtobufReader:
    """Find the fields of messages of one type (``trees.Reader``).

    Raises
    ------
    ValueError
        The descriptors are damaged, or lack the type.
    """

    def __init__(self, typename: str, descriptors: bytes) -> None:
        if len(descriptors) > _LARGEST_SET:
            raise ValueError(
                f"their descriptors have {len(descriptors):,} bytes, expected at most "
                f"{_LARGEST_SET:,}"
            )
        try:
            sets = needed("google.protobuf.descriptor_pb2", "mcap", "a topic in protobuf")
            pools = needed("google.protobuf.descriptor_pool", "mcap", "a topic in protobuf")
            factory = needed("google.protobuf.message_factory", "mcap", "a topic in protobuf")
        except ModuleNotFoundError as error:
            raise ValueError(
                "they are in protobuf, and the package protobuf is not installed: "
                "pip install 'robocache[mcap]'"
            ) from error
        fault = ""
        try:
            found = sets.FileDescriptorSet.FromString(descriptors)
            pool = pools.DescriptorPool()
            for file in _in_order(list(found.file)):
                pool.Add(file)
            self.descriptor = pool.FindMessageTypeByName(typename)
            self.made = factory.GetMessageClass(self.descriptor)
        except Exception as error:  # the package has its own errors, and errors of C++
            fault = str(error).partition("\n")[0][:200] or type(error).__name__
            if "out of memory" in str(error):  # the package also says so for damaged descriptors
                require_memory("descriptors of protobuf")
                fault = "they are damaged"
            else:
                raise_shortage("descriptors of protobuf")
        if fault:  # raised here, so that a lack of memory is not in the context
            raise ValueError(f"their descriptors cannot be used, or lack {typename}: {fault}")
        self.descriptors = descriptors
        self.largest = _largest(self.descriptor)
        self.dtypes: dict[str, str] = {}
        self.turns: dict[str, str] = {}

    def tree(self, content: bytes) -> Tree:
        self._require_small(content)
        try:
            message = self.made.FromString(content)
        except Exception as error:
            raise_shortage("a message in protobuf")
            line = str(error).partition("\n")[0][:200]
            raise CannotRead(f"are not of this type, or damaged ({line})") from None
        tree = Tree()
        stamped = self._take_stamp(tree, message)
        self._message(tree, "", message, 0, stamped)
        return tree

    def _require_small(self, content: bytes) -> None:
        """Refuse a message that needs much more memory than its size; two bytes can nest one."""
        if (len(content) // 2) * self.largest <= _MEMORY:
            return
        most = min(_EXAMINED, _MEMORY // self.largest)
        try:
            _Counter(most).messages(memoryview(content), self.descriptor, 0)
        except Malformed as error:
            raise CannotRead(f"are not of this type, or damaged (one {error})") from None

    def _take_stamp(self, tree: Tree, message: Any) -> tuple[str, ...]:
        for path in stamp_paths():
            inner = message
            for i, name in enumerate(path):
                descriptor = inner.DESCRIPTOR.fields_by_name.get(name)
                single = (
                    descriptor is not None
                    and descriptor.cpp_type == _MESSAGE
                    and not _is_repeated(descriptor)
                )
                if not single or not inner.HasField(name):
                    break
                inner = getattr(inner, name)
                if i + 1 < len(path):
                    continue
                names = [each.name for each in inner.DESCRIPTOR.fields]
                if inner.DESCRIPTOR.full_name == _TIME or names in (
                    ["sec", "nsec"],
                    ["sec", "nanosec"],
                    ["seconds", "nanos"],
                    ["secs", "nsecs"],
                ):
                    tree.stamp = nanoseconds(*(getattr(inner, each) for each in names))
                    if tree.stamp is not None:
                        return path
        return ()

    def _message(
        self, tree: Tree, path: str, message: Any, depth: int, stamp: tuple[str, ...]
    ) -> None:
        for descriptor in message.DESCRIPTOR.fields:
            inner = f"{path}.{descriptor.name}" if path else descriptor.name
            left = stamp[1:] if stamp and stamp[0] == descriptor.name else ()
            if stamp == (descriptor.name,):
                continue
            tree.spend(inner)
            if _is_repeated(descriptor):
                self._array(tree, inner, descriptor, getattr(message, descriptor.name), depth)
            elif descriptor.cpp_type == _MESSAGE:
                if message.HasField(descriptor.name):
                    self._nested(tree, inner, getattr(message, descriptor.name), depth, left)
            elif not descriptor.has_presence or message.HasField(descriptor.name):
                self._scalar(tree, inner, descriptor, getattr(message, descriptor.name))

    def _nested(
        self, tree: Tree, path: str, message: Any, depth: int, stamp: tuple[str, ...] = ()
    ) -> None:
        descriptor = message.DESCRIPTOR
        if (
            descriptor.name == "Quaternion"
            and path not in self.turns
            and len(self.turns) < MOST_LISTED
        ):
            self.turns[path] = descriptor.full_name
        if depth >= DEEPEST:
            tree.others[path] = f"is nested deeper than {DEEPEST} messages"
        else:
            self._message(tree, path, message, depth + 1, stamp)

    def _scalar(self, tree: Tree, path: str, descriptor: Any, value: Any) -> None:
        if descriptor.cpp_type != _STRING:
            if path not in self.dtypes and len(self.dtypes) < MOST_FIELDS:
                self.dtypes[path] = _DTYPES[descriptor.cpp_type]
            tree.add(path, value)
        elif isinstance(value, bytes):
            tree.others[path] = "bytes, which are not numbers"
        else:
            tree.texts[path] = value

    def _array(self, tree: Tree, path: str, descriptor: Any, values: Any, depth: int) -> None:
        if descriptor.message_type is not None and descriptor.message_type.GetOptions().map_entry:
            tree.others[path] = "a map, which is not read"
            return
        if len(values) > MOST_LISTED:
            tree.others[path] = f"array of {len(values):,} elements"
            return
        tree.lengths[path] = len(values)
        for i, value in enumerate(values):
            inner = f"{path}[{i}]"
            tree.spend(inner)
            if descriptor.cpp_type == _MESSAGE:
                self._nested(tree, inner, value, depth)
            else:
                self._scalar(tree, inner, descriptor, value)

    def dtype(self, path: str) -> str | None:
        return self.dtypes.get(path)

    def __reduce__(self) -> tuple[type[ProtobufReader], tuple[str, bytes]]:
        return type(self), (self.descriptor.full_name, self.descriptors)


def _is_repeated(descriptor: Any) -> bool:
    try:
        return bool(descriptor.is_repeated)
    except AttributeError:  # before protobuf 6
        return bool(descriptor.label == descriptor.LABEL_REPEATED)


def _in_order(files: list[Any]) -> list[Any]:
    """Sort files after the files that they import."""
    if len(files) > _MOST_FILES:
        raise ValueError(f"{len(files):,} files, expected at most {_MOST_FILES:,}")
    left = {file.name: file for file in files}
    made: list[Any] = []
    while left:
        ready = [f for f in left.values() if not any(name in left for name in f.dependency)]
        if not ready:
            raise ValueError("files import each other in a cycle")
        made += ready
        for file in ready:
            del left[file.name]
    return made


def _largest(descriptor: Any) -> int:
    """Return the memory of the largest message that a message may contain."""
    largest, seen, waiting = 0, set(), [descriptor]
    while waiting:
        descriptor_of_part = waiting.pop()
        if descriptor_of_part.full_name in seen:
            continue
        seen.add(descriptor_of_part.full_name)
        largest = max(largest, _PER_MESSAGE + _PER_FIELD * len(descriptor_of_part.fields))
        waiting += [
            each.message_type for each in descriptor_of_part.fields if each.message_type is not None
        ]
    return largest


class _Counter:
    """Count the messages nested in a message by its bytes, without unpacking it."""

    def __init__(self, most: int) -> None:
        self.found, self.most = 0, most
        self.inner: dict[str, dict[int, Any]] = {}  # types of fields that are messages

    def messages(self, content: memoryview, descriptor: Any, depth: int) -> None:
        self.found += 1
        if self.found > self.most or depth > DEEPEST:
            raise CannotRead("contain too many messages each to be unpacked")
        inner = self.inner.get(descriptor.full_name)
        if inner is None:
            inner = self.inner[descriptor.full_name] = {
                each.number: each.message_type
                for each in descriptor.fields
                if each.message_type is not None
            }
        for number, kind, part in fields(content):
            if kind == BYTES and number in inner:
                self.messages(part, inner[number], depth + 1)
