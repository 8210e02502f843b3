"""Messages in JSON, with a schema or without one."""

from __future__ import annotations

import json
from typing import Any

from .trees import DEEPEST, MOST_FIELDS, MOST_LISTED, CannotRead, Tree, stamp_of, stamp_paths

_DTYPES = {"number": "float64", "integer": "int64", "boolean": "bool"}
_SPECIAL = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}
_LONGEST_SCHEMA = 4 << 20  # characters
_BRACKETS = (b",", b"[", b"{")


class JsonReader:
    """Find the fields of messages in JSON (``trees.Reader``).

    ``schema`` is a JSON schema, or "". Only its types are used, since JSON does not distinguish 0
    from 0.0.
    """

    def __init__(self, schema: str = "") -> None:
        self.schema: Any = {}
        if len(schema) <= _LONGEST_SCHEMA:
            try:
                self.schema = json.loads(schema or "{}")
            except (ValueError, RecursionError):
                pass  # the messages themselves suffice
        self.dtypes: dict[str, str | None] = {}
        self.turns: dict[str, str] = {}

    def tree(self, content: bytes) -> Tree:
        # Each object and array uses memory: a text of some megabytes may need gigabytes.
        if sum(map(content.count, _BRACKETS)) > MOST_FIELDS:
            raise CannotRead(f"have more than {MOST_FIELDS:,} fields each")
        try:
            value = json.loads(content)
        except RecursionError:
            raise CannotRead("are nested too deeply") from None
        except ValueError as error:
            raise CannotRead(f"are not JSON ({_without_place(str(error))})") from None
        tree = Tree()
        if isinstance(value, dict):
            self._take_stamp(tree, value)
            self._object(tree, "", value, 0)
        else:
            self._take(tree, "value", value, 0)
        return tree

    def _take_stamp(self, tree: Tree, value: dict[str, Any]) -> None:
        for *outer, last in stamp_paths():
            inner: Any = value
            for key in outer:
                inner = inner.get(key) if isinstance(inner, dict) else None
            if isinstance(inner, dict) and last in inner:
                tree.stamp = stamp_of(inner[last])
                if tree.stamp is not None:
                    del inner[last]
                    return

    def _object(self, tree: Tree, path: str, value: dict[str, Any], depth: int) -> None:
        for key, inner in value.items():
            self._take(tree, f"{path}.{key}" if path else key, inner, depth)

    def _take(self, tree: Tree, path: str, value: Any, depth: int) -> None:
        tree.spend(path)
        kind = type(value)
        if kind is float or kind is int or kind is bool:
            tree.add(path, value)
        elif kind is str:
            special = _SPECIAL.get(value)
            if special is not None and self.dtype(path) == "float64":
                tree.add(path, special)
            else:
                tree.texts[path] = value
        elif value is None:
            return  # treated as missing
        elif depth >= DEEPEST:
            tree.others[path] = f"is nested deeper than {DEEPEST} objects"
        elif kind is dict:
            self._object(tree, path, value, depth + 1)
        elif len(value) > MOST_LISTED:
            tree.others[path] = f"array of {len(value):,} elements"
        else:
            tree.lengths[path] = len(value)
            for i, inner in enumerate(value):
                self._take(tree, f"{path}[{i}]", inner, depth + 1)

    def dtype(self, path: str) -> str | None:
        if path not in self.dtypes:
            if len(self.dtypes) > MOST_FIELDS:
                self.dtypes.clear()
            self.dtypes[path] = self._dtype(path)
        return self.dtypes[path]

    def _dtype(self, path: str) -> str | None:
        schema = self.schema
        for part in path.split("."):
            name, *indices = part.split("[")
            schema = self._resolved(schema)
            properties = schema.get("properties")
            schema = properties.get(name) if isinstance(properties, dict) else None
            for _ in indices:
                schema = self._resolved(schema).get("items")
        kind = self._resolved(schema).get("type")
        if isinstance(kind, list):  # such as ["number", "null"]
            kind = next((one for one in kind if one != "null"), None)
        return _DTYPES.get(kind) if isinstance(kind, str) else None

    def _resolved(self, schema: Any) -> dict[str, Any]:
        """Return a schema, or the one in the same text that it refers to."""
        for _ in range(DEEPEST):
            if not isinstance(schema, dict):
                return {}
            target = schema.get("$ref")
            if not isinstance(target, str) or not target.startswith("#/"):
                return schema
            schema = self.schema
            for key in target[2:].split("/"):
                schema = schema.get(key) if isinstance(schema, dict) else None
        return {}


def _without_place(text: str) -> str:
    return text.partition(": line ")[0]
