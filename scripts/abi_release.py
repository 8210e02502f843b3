#!/usr/bin/env python3
"""Freeze the C ABI of a release, and compare the current one with all frozen ones.

abi_release.py freeze VERSION    write tests/abi/released/VERSION (scripts/release.sh calls this)
abi_release.py check --library FILE    exit with 1 if FILE or the headers break a released program

A frozen release has its headers (include), its exported symbols (exports.txt), and facts about its
headers from a C compiler (layouts.txt): the values of constants, the sizes of types, the offsets of
fields, the types of functions. All names come from the headers. Both commands run in the root of
the repository; CC and CXX name the compilers.
"""

from __future__ import annotations

import argparse
import collections
import dataclasses
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

RELEASED = pathlib.Path("tests/abi/released")
LAYOUTS = pathlib.Path("tests/abi/layouts")  # the baseline of each header
HEADERS = pathlib.Path("include")
UMBRELLA = "robocache/robocache.h"
CC = os.environ.get("CC", "cc")
CXX = os.environ.get("CXX", "c++")
API = 'visibility("default")'


class Broken(Exception):
    """A tool failed, or a header has a declaration that this script cannot read."""


def run(*command: object) -> str:
    words = [str(word) for word in command]
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode != 0:
        raise Broken(f"{' '.join(words)}\n{done.stdout}{done.stderr}")
    return done.stdout


# ---- what headers declare ------------------------------------------------------------------------


@dataclasses.dataclass
class Declarations:
    constants: list[str]
    types: list[str]
    structs: dict[str, dict[str, str]]  # {struct: {field: type}}
    functions: dict[str, str]  # {function: type of its pointer}
    exported: set[str]


def text_of(include: pathlib.Path) -> str:
    """Return the preprocessed text of the project's headers, without that of the system's."""
    kept = []
    is_ours = False
    for line in run(CC, "-std=c11", "-E", "-I", include, include / UMBRELLA).splitlines():
        marker = re.match(r'# \d+ "(.*?)"', line)
        if marker:
            is_ours = pathlib.Path(marker[1]).parent.name == "robocache"
        elif is_ours:
            kept.append(line)
    return re.sub(r"\s+", " ", " ".join(kept))


def declarator(text: str) -> tuple[str, str]:
    """Return the name in a declaration such as `int64_t shape[8]`, and the type: `int64_t[8]`."""
    pointer = re.fullmatch(r"(.+\(\*)(\w+)(\).*)", text)  # to a function
    if pointer:
        return pointer[2], pointer[1] + pointer[3]
    plain = re.fullmatch(r"([^,]+?)(\w+)((?:\[[^\]]*\])*)", text)
    if plain:
        return plain[2], plain[1].strip() + plain[3]
    raise Broken(f"cannot read the declaration `{text}`: write one name in each")


def read_headers(include: pathlib.Path) -> Declarations:
    text = text_of(include)
    macros = run(CC, "-std=c11", "-E", "-dM", "-I", include, include / UMBRELLA)
    constants = re.findall(r"^#define (RBC_\w+) \(?-?\d\w*\)?$", macros, re.M)
    types = re.findall(r"typedef [^;{}]*?\(\*(\w+)\)\([^;]*?\);", text)
    types += re.findall(r"typedef [^;{}()]*?(\w+);", text)
    for body, name in re.findall(r"\benum(?: \w+)? \{([^}]*)\}(?: (\w+))?;", text):
        constants += re.findall(r"(RBC_\w+)", body)
        types += [name] if name else []
    structs = {}
    for body, name in re.findall(r"typedef struct \w+ \{([^}]*)\} (\w+);", text):
        structs[name] = dict(
            declarator(field.strip()) for field in body.split(";") if field.strip()
        )
    exported = set()
    functions = {}
    prefixes = r"(__attribute__ ?\(\(visibility\(\"default\"\)\)\) |static inline )"
    pattern = prefixes + r"([\w* ]+?)(rbc\w+)\((.*?)\) ?[;{]"
    for prefix, result, name, parameters in re.findall(pattern, text):
        functions[name] = f"{result.strip()} (*)({parameters})"
        if API in prefix:
            exported.add(name)
    if len(exported) != text.count(API):
        raise Broken(
            f"{include} has {text.count(API)} RBC_API, but {len(exported)} functions were read"
        )
    if text.count("typedef struct") - len(structs) != len(
        re.findall(r"typedef struct \w+ ?\*", text)
    ):
        raise Broken(
            f"{include} has structs that are not written `typedef struct NAME {{...}} NAME;`"
        )
    constants = sorted(name for name in constants if not name.startswith("RBC_VERSION_"))
    return Declarations(constants, sorted(types), structs, functions, exported)


def is_growing(struct: str, structs: dict[str, dict[str, str]]) -> bool:
    """Return whether callers state a struct's size: in itself, or in the owner of an array.

    The owner has the fields `const rbcElement* elements` and `uint32_t element_size`.
    """
    if next(iter(structs[struct])) == "struct_size":
        return True
    return any(
        type_text == f"const {struct}*" and f"{field.removesuffix('s')}_size" in fields
        for fields in structs.values()
        for field, type_text in fields.items()
    )


def layouts_of(include: pathlib.Path) -> list[str]:
    """Return the lines of layouts.txt."""
    found = read_headers(include)
    prints = [f'printf("constant {n} %lld\\n", (long long)({n}));' for n in found.constants]
    prints += [f'printf("type {n} %zu\\n", sizeof({n}));' for n in found.types]
    for struct, fields in found.structs.items():
        grows = "grows" if is_growing(struct, found.structs) else "fixed"
        values = f"sizeof({struct}), _Alignof({struct})"
        prints.append(f'printf("struct {struct} %zu %zu {grows}\\n", {values});')
        for field, type_text in fields.items():
            values = f"offsetof({struct}, {field}), sizeof((({struct}*)0)->{field})"
            prints.append(f'printf("field {struct}.{field} %zu %zu {type_text}\\n", {values});')
    lines = compile_and_run(include, prints).splitlines()
    return lines + [f"function {name} {text}" for name, text in sorted(found.functions.items())]


def compile_and_run(include: pathlib.Path, statements: list[str]) -> str:
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder, "main.c")
        body = "\n".join(statements)
        source.write_text(
            f"#include <stdio.h>\n#include <{UMBRELLA}>\nint main(void) {{\n{body}\nreturn 0;\n}}\n"
        )
        program = pathlib.Path(folder, "main")
        run(CC, "-std=gnu11", "-I", include, source, "-o", program)
        return run(program)


# ---- comparison ----------------------------------------------------------------------------------


def lines_by_name(lines: list[str], kind: str) -> dict[str, list[str]]:
    """Return the lines of a kind: {name: the words after it}. A type, the last word, has spaces."""
    words = {"constant": 1, "type": 1, "struct": 3, "field": 3, "function": 1}[kind]
    split = [line.split(" ", 2) for line in lines if line.startswith(f"{kind} ")]
    return {name: rest.split(" ", words - 1) for _, name, rest in split}


def is_reserved(field: str) -> bool:
    return field.partition(".")[2].startswith("reserved")


def compare_layouts(released: list[str], present: list[str]) -> list[str]:
    """Return what breaks programs that were compiled with the released layouts."""
    found = []
    pairs: dict[str, list[tuple[str, list[str], list[str]]]] = {}
    for kind in ("constant", "type", "struct", "field", "function"):
        old, new = lines_by_name(released, kind), lines_by_name(present, kind)
        pairs[kind] = [(name, old[name], new[name]) for name in old if name in new]
        removed = [name for name in old if name not in new]
        # A reserved field may get a name and a meaning in which 0 is the previous behaviour.
        found += [f"{kind} {name}: was removed" for name in removed if not is_reserved(name)]
    for name, old_words, new_words in pairs["constant"]:
        if new_words != old_words:
            found.append(f"constant {name}: is {new_words[0]}, was {old_words[0]}")
    for name, old_words, new_words in pairs["type"]:
        if new_words != old_words:
            found.append(f"type {name}: has {new_words[0]} bytes, had {old_words[0]}")
    for name, (old_size, old_align, growth), (new_size, new_align, _) in pairs["struct"]:
        # The library copies structs that grow from any address: they may get a wider field.
        if int(new_align) < int(old_align) or (growth == "fixed" and new_align != old_align):
            found.append(f"struct {name}: has alignment {new_align}, had {old_align}")
        if int(new_size) < int(old_size):
            found.append(f"struct {name}: has {new_size} bytes, had {old_size}")
        elif new_size != old_size and growth == "fixed":
            reason = "no caller states its size, so it cannot grow"
            found.append(f"struct {name}: has {new_size} bytes, had {old_size}; {reason}")
    for name, (*old_place, _), (*new_place, _) in pairs["field"]:
        if new_place != old_place:
            place = "at byte {}, {} bytes"
            found.append(
                f"field {name}: is {place.format(*new_place)}, was {place.format(*old_place)}"
            )
    return found + new_fields_in_old_bytes(released, present)


def new_fields_in_old_bytes(released: list[str], present: list[str]) -> list[str]:
    """Return the new fields in bytes of a released struct that were not reserved."""
    found = []
    old_fields = lines_by_name(released, "field")
    sizes = {name: int(size) for name, (size, *_) in lines_by_name(released, "struct").items()}
    spare: dict[str, set[int]] = collections.defaultdict(set)
    for name, (offset, size, _) in old_fields.items():
        if is_reserved(name):
            spare[name.partition(".")[0]].update(range(int(offset), int(offset) + int(size)))
    for name, (offset, size, _) in lines_by_name(present, "field").items():
        struct = name.partition(".")[0]
        places = set(range(int(offset), int(offset) + int(size)))
        end = sizes.get(struct, 0)
        if name not in old_fields and int(offset) < end and not places <= spare[struct]:
            found.append(f"field {name}: is new at byte {offset}, the released struct has {end}")
    return found


def compare_types(released: list[str], present: list[str], include: pathlib.Path) -> list[str]:
    """Let the compiler compare the types of fields and functions. Parameters may be renamed."""
    statements = []
    problems = []
    for kind in ("field", "function"):
        new = lines_by_name(present, kind)
        for name, (*_, old_type) in lines_by_name(released, kind).items():
            if name not in new:
                continue
            struct, _, field = name.partition(".")
            expression = f"(({struct}*)0)->{field}" if field else f"&{name}"
            types = f"__typeof__({expression}), __typeof__({old_type})"
            statements.append(f'puts(__builtin_types_compatible_p({types}) ? "same" : "other");')
            problems.append(f"{kind} {name}: is `{new[name][-1]}`, was `{old_type}`")
    try:
        answers = compile_and_run(include, statements).split()
    except Broken as error:
        return [f"the released types do not compile with the present headers: {error}"]
    return [problem for problem, answer in zip(problems, answers) if answer == "other"]


def exports_of(layouts: pathlib.Path) -> str:
    """Return the text of exports.txt: [version], and below it the functions that have it."""
    functions: dict[str, list[str]] = collections.defaultdict(list)
    for path in sorted(layouts.glob("*.inc")):
        version = None
        for kind, name in re.findall(
            r"^(SYMBOL_VERSION|FUNCTION)\(([\w.]+)", path.read_text(), re.M
        ):
            if kind == "SYMBOL_VERSION":
                version = name
            elif version is None:
                raise Broken(f"{path} has {name} before the first SYMBOL_VERSION")
            else:
                functions[version].append(name)
    return "".join(
        f"[{version}]\n" + "".join(f"{name}\n" for name in sorted(names))
        for version, names in sorted(functions.items())
    )


def symbols_in(text: str) -> set[str]:
    """Return the symbols of exports.txt, each with its version."""
    found = set()
    version = ""
    for line in text.splitlines():
        if line.startswith("["):
            version = line.strip("[]")
        elif line.startswith("rbc"):
            found.add(f"{line}@@{version}")
    return found


def compare_exports(release: pathlib.Path, library: pathlib.Path) -> list[str]:
    exported = set(run("nm", "-D", "--defined-only", library).split())
    missing = symbols_in((release / "exports.txt").read_text()) - exported
    return [f"symbol {name}: {library} does not export it" for name in sorted(missing)]


def build_old_programs(release: pathlib.Path, library: pathlib.Path) -> list[str]:
    """Compile programs with the released headers, link them with this library, and start them."""
    functions = sorted(
        name.partition("@")[0] for name in symbols_in((release / "exports.txt").read_text())
    )
    uses = "".join(f"  (void (*)(void))&{name},\n" for name in functions)
    c_text = (
        f"#include <{UMBRELLA}>\nvoid (*const volatile used[])(void) = {{\n{uses}}};\n"
        "int main(void) { return used[0] == 0; }\n"
    )
    cpp_text = c_text.replace(UMBRELLA, UMBRELLA + "pp")
    found = []
    for compiler, standard, name, text in (
        (CC, "-std=c11", "main.c", c_text),
        (CXX, "-std=c++17", "main.cpp", cpp_text),
    ):
        with tempfile.TemporaryDirectory() as folder:
            source = pathlib.Path(folder, name)
            source.write_text(text)
            program = pathlib.Path(folder, "program")
            link = ["-Wl,-z,now", f"-Wl,-rpath,{library.resolve().parent}"]
            try:
                run(
                    compiler,
                    standard,
                    "-I",
                    release / "include",
                    source,
                    library.resolve(),
                    *link,
                    "-o",
                    program,
                )
                run(program)
            except Broken as error:
                found.append(f"a program with the released headers fails: {error}")
    return found


def abi_version(lines: list[str]) -> str:
    return lines_by_name(lines, "constant")["RBC_ABI_VERSION"][0]


def check(library: pathlib.Path) -> list[str]:
    present = layouts_of(HEADERS)
    found = []
    releases = sorted(path for path in RELEASED.glob("*") if path.is_dir())
    for release in releases:
        frozen = (release / "layouts.txt").read_text().splitlines()
        if abi_version(frozen) != abi_version(present):
            print(f"{release}: has another ABI version and is not compared")
            continue
        problems = compare_layouts(frozen, present)
        problems += compare_types(frozen, present, HEADERS)
        problems += compare_exports(release, library)
        problems += build_old_programs(release, library)
        if layouts_of(release / "include") != frozen:
            problems.append(
                "layouts.txt is not what its headers say: frozen files must not be edited"
            )
        found += [f"{release}: {problem}" for problem in problems]
        print(f"{release}: {len(frozen)} lines, {len(problems)} problems")
    if not releases:
        print(f"SKIPPED: {RELEASED} has no release yet")
    return found


def freeze(version: str) -> None:
    folder = RELEASED / version
    if folder.exists():
        raise Broken(f"{folder} exists: a release is frozen once")
    lines = layouts_of(HEADERS)
    declared = read_headers(HEADERS).exported
    exports = exports_of(LAYOUTS)
    listed = {name.partition("@")[0] for name in symbols_in(exports)}
    if declared != listed:
        raise Broken(f"the headers and {LAYOUTS} differ: {sorted(declared ^ listed)}")
    shutil.copytree(HEADERS, folder / "include")
    (folder / "exports.txt").write_text(exports)
    (folder / "layouts.txt").write_text("\n".join(lines) + "\n")
    print(f"{folder}: {len(listed)} symbols and {len(lines)} lines of layouts are frozen")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("freeze").add_argument("version")
    commands.add_parser("check").add_argument("--library", type=pathlib.Path, required=True)
    arguments = parser.parse_args()
    try:
        if arguments.command == "freeze":
            freeze(arguments.version)
            return 0
        found = check(arguments.library)
    except Broken as error:
        print(f"abi_release.py: {error}", file=sys.stderr)
        return 2
    print(*found, sep="\n", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
