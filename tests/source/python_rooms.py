"""Check that each room of the Python package imports only rooms to its left, without cycles.

    python_rooms.py PACKAGE

A room is a folder of the package. ROOMS lists them from left to right; names in one line do not
import each other. Imports inside functions and under TYPE_CHECKING are free: they cannot make a
cycle while the package is imported. Modules of FREE may be imported from everywhere, and import
only each other.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

FREE = ("_core", "_abi", "_printable", "_public", "_suggestions", "_text_table", "_typing")
ROOMS = (
    ("_files", "_library"),
    ("_arguments",),
    ("_operations", "_statistics", "_cache"),
    ("_timing", "statistics_files"),
    ("_episodes",),
    ("_windows",),
    ("_pipeline",),
    ("", "torch"),  # the public names; robocache.torch
    # inside of robocache.data: shared parts, kinds, the model, checks, formats, actions
    ("data._errors", "data._findings", "data._format_values", "data._progress", "data._time_units"),
    ("data._file_access",),
    ("data._frames",),  # cameras, except those of bags, which need their messages
    ("data._options",),
    ("data._kinds",),
    ("data._source",),
    ("data._recording", "data._episode_methods", "data._point_clouds", "data._concat"),
    ("data._checks", "data._selection", "data._cached"),
    ("data._formats",),
    ("data._write", "data._align_arrivals", "data._cut_notes"),
    ("data.checks", "data._align_rules", "data._align_cameras", "data._save"),
    ("data._align",),
    ("data._convert", "data._edit"),
    ("data._frames.bags",),
    ("data._report", "data._rerun", "data._sync"),
    ("data",),
    ("ray",),
    ("cli",),
    ("__main__",),
)
LEVELS = {room: level for level, rooms in enumerate(ROOMS) for room in rooms}


def room_of(module: str) -> str:
    """Return the longest name in ROOMS that is the module or a folder around it."""
    parts = module.split(".") if module else []
    for count in range(len(parts), 0, -1):
        if (name := ".".join(parts[:count])) in LEVELS:
            return name
    return "" if len(parts) < 2 else parts[0]


def imports(node: ast.AST) -> Iterator[ast.Import | ast.ImportFrom]:
    """Return the imports that run when a module is imported."""
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        yield node
    elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
        for each in node.orelse:
            yield from imports(each)
    elif not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
        for each in ast.iter_child_nodes(node):
            yield from imports(each)


def is_absolute(node: ast.Import | ast.ImportFrom) -> bool:
    """Whether it imports this package by its name."""
    names = [each.name for each in node.names] if isinstance(node, ast.Import) else [node.module]
    return not getattr(node, "level", 0) and any(
        str(name).split(".")[0] == "robocache" for name in names
    )


def cycle(edges: dict[str, set[str]]) -> list[str]:
    """Return modules that import each other in a cycle; empty if there is no cycle."""
    done: set[str] = set()

    def walk(module: str, trail: list[str]) -> list[str]:
        if module in trail:
            return [*trail[trail.index(module) :], module]
        if module in done:
            return []
        for target in sorted(edges.get(module, ())):
            if ring := walk(target, [*trail, module]):
                return ring
        done.add(module)
        return []

    return next((ring for module in sorted(edges) if (ring := walk(module, []))), [])


def problems(package: Path) -> list[str]:
    files = {}
    edges: dict[str, set[str]] = {}
    for path in sorted(package.rglob("*.py")):
        parts = path.relative_to(package).with_suffix("").parts
        files[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    found = [] if files else [f"{package}: has no modules"]
    for module, path in files.items():
        room = room_of(module)
        is_new_folder = path.name == "__init__.py" and module != "" and room == ""
        if is_new_folder or room not in LEVELS:
            found.append(f"{path}: is in no room; name it in ROOMS of {Path(__file__).name}")
            continue
        folder = path.parent.relative_to(package).parts
        for node in imports(ast.parse(path.read_text("utf-8"))):
            place = f"{path}:{node.lineno}"
            if is_absolute(node):
                found.append(f"{place}: imports robocache by name; use a relative import")
            if isinstance(node, ast.Import) or not node.level:
                continue
            base = list(folder[: len(folder) - node.level + 1])
            base += node.module.split(".") if node.module else []
            for alias in node.names:
                name = ".".join([*base, alias.name])
                target = name if name in files else ".".join(base)
                if name in FREE or target in FREE:
                    continue
                if module in FREE:
                    found.append(f"{place}: {module} imports {name}, which is not in FREE")
                    continue
                edges.setdefault(module, set()).add(target)
                if room_of(target) == room:
                    continue
                if LEVELS[room_of(target)] >= LEVELS[room]:
                    found.append(
                        f"{place}: {room or 'robocache'} imports {alias.name} of "
                        f"{room_of(target) or 'robocache'}, which is not to its left. Import it "
                        "inside of the function that uses it, or move one of the two"
                    )
    if ring := cycle(edges):
        found.append(f"modules import each other: {' -> '.join(m or 'robocache' for m in ring)}")
    return found


def main() -> int:
    found = problems(Path(sys.argv[1]))
    print("\n".join(found) or "every room imports only rooms to its left")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
