#!/usr/bin/env python3
"""Read the C headers and write their declarations for SWIG: see robocache.i.

    declarations.py HEADERS OUT

writes OUT/declarations.i, one line for each handle, struct and operation; OUT/members.h, which
describes to the Python extension the pointers in structs of parameters; and the comments as Java
and C# documentation, by documentation.py. The headers keep to forms that regular expressions can
read; other forms are an error.
"""

import re
import sys
from pathlib import Path

import documentation

_WORDS = re.compile(r"/\*.*?\*/", re.DOTALL)
_STRUCT = re.compile(r"typedef struct (\w+) \{\n(.*?)\n\} \1;", re.DOTALL)
_MEMBER = re.compile(r"\s*((?:const )?\w+\*?) (\w+)(?:\[\w+\])?;")
_FUNCTION = re.compile(r"RBC_API rbcStatus_t (rbc\w+)\(([^)]*)\);")
_ARRAY = re.compile(r"const (rbc\w+)\* (\w+), int32_t num_\2\b")
_EACH = re.compile(r", int32_t num_\w+\b.*, const (rbc\w+Outputs)\* (\w+)\b")
_HANDLE = re.compile(r"typedef struct (rbc\w+)\* \1_t;")
_UNSIGNED = re.compile(r"#define (RBC_\w+) (0x[0-9a-f]+|\d+)u\b")
_ENDINGS = ("Destroy", "Close", "Release", "Discard")  # of functions that end a handle
_TENSORS = {"const rbcTensor*": "MEMBER_TENSOR", "const rbcOutput*": "MEMBER_OUTPUT"}


class Headers:
    """The declarations of the headers, in their order."""

    def __init__(self, folder):
        umbrella = (folder / "robocache.h").read_text()
        self.names = _after_what_they_include(folder, re.findall(r'#include "(\w+\.h)"', umbrella))
        self.texts = {name: (folder / name).read_text() for name in self.names}
        text = _WORDS.sub("", "".join(self.texts.values()))
        text = re.sub(r"[ \t]+\n", "\n", text)
        self.handles = _HANDLE.findall(text)
        self.unsigned = _UNSIGNED.findall(text)
        self.functions = {
            name: re.sub(r"\s+", " ", arguments) for name, arguments in _FUNCTION.findall(text)
        }
        self.structs = {
            name: [(kind, member) for kind, member in _MEMBER.findall(body)]
            for name, body in _STRUCT.findall(text)
        }
        _require("functions", len(self.functions), text.count("RBC_API rbcStatus_t"))
        _require("structs", len(self.structs), len(re.findall(r"^typedef struct .*\{", text, re.M)))
        for name, body in _STRUCT.findall(text):
            if name in self.sized():
                _require(f"members of {name}", len(self.structs[name]), body.count(";"))

    def sized(self):
        """Return the structs that have an initializer."""
        return [name for name, own in self.structs.items() if ("uint32_t", "struct_size") in own]

    def plain(self):
        """Return the structs without a struct_size that sized structs contain or point to."""
        held = [base for name in self.sized() for _, _, base, _ in self.members(name)]
        return [name for name in dict.fromkeys(held) if name not in (*self.sized(), "rbcTensor")]

    def arrays(self):
        """Return (struct, argument) of the arguments that are arrays with a length."""
        return self._found(_ARRAY)

    def each(self):
        """Return (struct, argument) of arrays without a length: as long as another array."""
        return self._found(_EACH)

    def _found(self, pattern):
        found = [pattern.findall(arguments) for arguments in self.functions.values()]
        return list(dict.fromkeys(each for arrays in found for each in arrays))

    def operations(self):
        return [name for name in self.functions if f"{name}WorkspaceSize" in self.functions]

    def members(self, struct):
        """Yield (C kind, name, type, name of its length) of structs and pointers in a struct."""
        own = self.structs[struct]
        names = {member for _, member in own}
        for kind, member in own:
            base = kind.removeprefix("const ").removesuffix("*")
            if kind in _TENSORS:
                yield _TENSORS[kind], member, "rbcTensor", None
            elif base in self.structs and f"num_{member}" in names:
                yield "MEMBER_ARRAY", member, base, f"num_{member}"
            elif base in self.structs and kind == base and base != "rbcAllocator":
                yield "MEMBER_VALUE", member, base, None
            elif base in self.structs and kind.endswith("*"):
                yield "MEMBER_STRUCT", member, base, None


def _require(what, read, declared):
    if read != declared:
        raise SystemExit(f"declarations.py can read {read} of {declared} {what}")


def _after_what_they_include(folder, names):
    """Return the headers so that each comes after the headers that it includes."""
    ordered = []

    def add(name):
        for included in re.findall(r'#include "(\w+\.h)"', (folder / name).read_text()):
            add(included)
        if name not in ordered:
            ordered.append(name)

    for name in names:
        add(name)
    return ordered


def interface(headers):
    """declarations.i"""
    lines = ["/* Written by declarations.py. */"]
    for name in headers.handles:
        destroy = [
            function
            for function, arguments in headers.functions.items()
            if function.endswith(_ENDINGS) and re.fullmatch(rf"{name}_t \w+", arguments)
        ]
        lines.append(f"RBC_HANDLE({name}, {destroy[0]})")
    lines += [f"RBC_UNSIGNED({name}, {value})" for name, value in headers.unsigned]
    lines += [f"RBC_PLAIN({name})" for name in headers.plain()]
    for name in headers.sized():
        lines.append(f"RBC_STRUCT({name})")
        members = list(headers.members(name))
        for _, member, _, count in members:
            lines.append(f"RBC_MEMBER({name}, {member})")
            if count is not None:
                lines.append(f"RBC_MEMBER({name}, {count})")
        if members:
            lines.append(f"RBC_STRUCT_ARGUMENT({name})")
    for name, argument in headers.arrays():
        lines.append(f"RBC_ARRAY_ARGUMENT({name}, {name.removeprefix('rbc')}, {argument})")
    for name, argument in headers.each():
        lines.append(f"RBC_EACH_ARGUMENT({name}, {name.removeprefix('rbc')}, {argument})")
    lines += [f"RBC_OPERATION({name})" for name in headers.operations()]
    lines += [f'%include "documented_{name}"' for name in headers.names]
    return "\n".join(lines) + "\n"


def members(headers):
    """members.h"""
    lines = ["/* Written by declarations.py. */"]
    depth = {}
    for name in _innermost_first(headers):
        rows, tensors, room = [], 0, ["0"]
        for kind, member, base, count in headers.members(name):
            size, type_, count = f"sizeof({base})", "NULL", f"offsetof({name}, {count or member})"
            if kind == "MEMBER_STRUCT":
                type_ = f"&{base}_TYPE"
                tensors += depth[base]
                room += [f"sizeof({base})", f"{base}_ROOM"]
            elif kind in _TENSORS.values():
                tensors += 1
            offset = f"offsetof({name}, {member})"
            rows.append(f'    {{"{member}", {kind}, {offset}, {size}, {count}, {type_}}},')
        if not rows:
            continue
        depth[name] = tensors
        lines += [
            f"enum {{ {name}_TENSORS = {tensors}, {name}_ROOM = {' + '.join(room)} }};",
            f"static const Member {name}_MEMBERS[] = {{",
            *rows,
            "};",
            f"static const StructType {name}_TYPE = {{",
            f"    &SWIGTYPE_p_{name}, sizeof({name}), {name}_MEMBERS, {len(rows)}, {tensors},",
            f"    {name}_ROOM}};",
        ]
    return "\n".join(lines) + "\n"


def _innermost_first(headers):
    ordered = []

    def add(name):
        for kind, _, base, _ in headers.members(name):
            if kind == "MEMBER_STRUCT":
                add(base)
        if name not in ordered:
            ordered.append(name)

    for name in headers.sized():
        add(name)
    return ordered


def main(folder, out):
    headers = Headers(Path(folder))
    out = Path(out)
    out.mkdir(parents=True, exist_ok=True)
    (out / "declarations.i").write_text(interface(headers))
    (out / "members.h").write_text(members(headers))
    for name, text in headers.texts.items():
        (out / f"documented_{name}").write_text(documentation.enumerations(text))
    comments = documentation.Comments("".join(headers.texts.values()))
    (out / "documentation_java.i").write_text(documentation.java(comments))
    (out / "documentation_csharp.i").write_text(documentation.csharp(comments))
    (out / "Operations.cs").write_text(documentation.operations(comments, headers))


if __name__ == "__main__":
    main(*sys.argv[1:])
