#!/usr/bin/env python3
"""Check that no class of the library has two definitions: the linker would silently keep one.

Reads the sources, since the compiler sees one file at a time. Names in anonymous namespaces are
separate, and so are specializations and members of other classes.
"""

from __future__ import annotations

import collections
import pathlib
import re
import sys

SUFFIXES = {".h", ".hpp", ".cuh", ".cpp", ".cu"}
# Comments, literals and preprocessor lines contain no definitions.
NOISE = re.compile(
    r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|^[ \t]*#(?:\\\n|[^\n])*',
    re.S | re.M,
)
TOKEN = re.compile(r"[{};]")
CLASS = re.compile(
    r"(?:^|\s)(?:class|struct|union|enum(?:\s+(?:class|struct))?)\s+(?:alignas\s*\([^)]*\)\s*)?"
    r"(?:__attribute__\s*\(\(.*?\)\)\s*)?((?:\w+::)*\w+)\s*(?:final\s*)?(?::[^:].*)?$",
    re.S,
)
NAMESPACE = re.compile(r"(?:^|\s)(?:inline\s+)?namespace\s*([\w:]*)\s*$")


def definitions(text: str):
    """Yield the qualified names of classes defined at namespace scope."""
    scopes: list[str | None] = []  # the namespace's name, "" if anonymous; None: not a namespace
    start = 0
    text = NOISE.sub(" ", text)
    for token in TOKEN.finditer(text):
        before = text[start : token.start()].strip()
        start = token.end()
        if token[0] == "}":
            if scopes:
                scopes.pop()
            continue
        if token[0] == ";":
            continue
        if namespace := NAMESPACE.search(before):
            scopes.append(namespace[1])
            continue
        if None not in scopes and "" not in scopes and (found := CLASS.search(before)):
            yield "::".join([*scopes, found[1]])
        scopes.append(None)


def main(folders: list[str]) -> int:
    files = collections.defaultdict(set)
    for folder in folders:
        for path in sorted(pathlib.Path(folder).rglob("*")):
            if path.suffix in SUFFIXES:
                for name in definitions(path.read_text()):
                    files[name].add(path)
    twice = {name: paths for name, paths in files.items() if len(paths) > 1}
    for name, paths in sorted(twice.items()):
        print(f"{name} is defined in {', '.join(map(str, sorted(paths)))}")
    print(f"{len(files)} classes, {len(twice)} of them defined twice")
    return 1 if twice or len(files) < 50 else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
