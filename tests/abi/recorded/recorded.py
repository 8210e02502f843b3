#!/usr/bin/env python3
"""The ABI of a library as libabigail sees it, against those that are recorded in this folder.

    recorded.py check LIBRARY INCLUDE                 fails where a program of a record would break
    recorded.py record LIBRARY INCLUDE RECORD         writes latest.abixml, or another one

LIBRARY has debug information, as builds with tests have: build/release/librobocache.so. INCLUDE is
the folder of its headers. Functions and constants may be added, structs with a struct_size may grow
at their end, and a reserved field may get a name; all else of a record stays. A change that is
meant, to what no release has yet, is recorded anew; what a release had is never recorded again.
"""

from __future__ import annotations

import copy
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from pathlib import Path

RECORDS = Path(__file__).parent
LATEST = RECORDS / "latest.abixml"
DESCRIBE = (
    "abidw --no-corpus-path --no-comp-dir-path --no-elf-needed --no-parameter-names "
    "--no-show-locs --no-architecture --exported-interfaces-only"
).split()
FAILED, CHANGED = 1 | 2, 4 | 8  # bits of abidiff's exit code


def public_structs(include: Path) -> set[str]:
    """Those that a program can look into; of handles it knows the names alone."""
    text = "".join(path.read_text() for path in sorted(include.rglob("*.h")))
    return set(re.findall(r"^(?:typedef )?struct (\w+) \{", text, re.M))


def described(library: Path, include: Path) -> ElementTree.Element:
    """What abidw tells of the exported functions, less all that no program can see.

    The library is of C++, and abidw goes on into the insides of handles, and of what is in these.
    """
    found = subprocess.run([*DESCRIBE, library], capture_output=True, text=True, check=True)
    corpus = ElementTree.fromstring(found.stdout)
    types = {each.get("id"): each for each in corpus.iter() if each.get("id")}
    public = public_structs(include)
    functions = [each for each in corpus.iter("function-decl") if each.get("elf-symbol-id")]
    functions.sort(key=lambda each: each.get("name"))
    reached: dict[str, ElementTree.Element] = {}

    def reach(element: ElementTree.Element) -> None:
        for each in element.iter():
            number = each.get("type-id")
            if number is None:
                continue
            while types[number].tag == "typedef-decl":  # a type may get another name
                number = types[number].attrib["type-id"]
            each.set("type-id", number)
            if number in reached:
                continue
            kind = types[number]
            if kind.tag == "class-decl" and kind.get("name") not in public:
                opaque = {"name": kind.get("name"), "is-struct": "yes", "visibility": "default"}
                kind = ElementTree.Element("class-decl", {**opaque, "id": number})
                kind.set("is-declaration-only", "yes")
            reached[number] = kind
            reach(kind)

    for function in functions:
        reach(function)
    instr = ElementTree.Element("abi-instr", {"address-size": "64", "path": "librobocache"})
    instr.set("language", "LANG_C_plus_plus_14")
    instr.extend([*reached.values(), *functions])
    numbers = {number: f"t{i}" for i, number in enumerate(reached)}
    for each in instr.iter():
        for name in ("id", "type-id"):
            if each.get(name) in numbers:
                each.set(name, numbers[each.get(name)])
            elif name == "id":
                each.attrib.pop(name, None)  # of an array's extent
        each.attrib.pop("visibility", None)  # the default of all
    for part in corpus.findall("abi-instr"):
        corpus.remove(part)
    corpus.append(instr)
    return corpus


def write(corpus: ElementTree.Element, path: Path) -> None:
    ElementTree.indent(corpus, " ")
    path.write_text(ElementTree.tostring(corpus, encoding="unicode") + "\n")


def _take_back_names(then: ElementTree.Element, now: ElementTree.Element) -> None:
    """A reserved field may get a name: programs of the record have 0 there, as before."""
    fields = {each.get("layout-offset-in-bits"): each for each in now.findall("data-member")}
    for member in then.findall("data-member"):
        name = member.find("var-decl").get("name")
        own = fields.get(member.get("layout-offset-in-bits"))
        if own is not None and re.fullmatch(r"reserved\d?", name):
            own.find("var-decl").set("name", name)


def as_known_to(record: ElementTree.Element, corpus: ElementTree.Element) -> ElementTree.Element:
    """Structs that tell their size end where those of the record do, and so do enumerations.

    A suppression of abidiff that lets a struct grow hides all other changes of it as well.
    """
    known = copy.deepcopy(corpus)
    today = {each.get("name"): each for each in known.iter() if each.tag.endswith("-decl")}
    for then in record.iter("enum-decl"):
        now = today.get(then.get("name"))
        names = {each.get("name") for each in then.iter("enumerator")}
        for each in [] if now is None else now.findall("enumerator"):
            if each.get("name") not in names:
                now.remove(each)
    for then in record.iter("class-decl"):
        first = then.find("data-member/var-decl")
        now = today.get(then.get("name"))
        if now is not None:
            _take_back_names(then, now)
        if now is None or first is None or first.get("name") != "struct_size":
            continue
        size = int(then.attrib["size-in-bits"])
        if int(now.attrib["size-in-bits"]) > size:
            now.set("size-in-bits", str(size))
            for member in now.findall("data-member"):
                if int(member.attrib["layout-offset-in-bits"]) >= size:
                    now.remove(member)
    return known


def incompatible(record: Path, corpus: ElementTree.Element) -> str:
    """What abidiff says of the changes that break a program of the record; "" if none does."""
    with tempfile.TemporaryDirectory() as folder:
        today = Path(folder, "today.abixml")
        write(as_known_to(ElementTree.parse(record).getroot(), corpus), today)
        command = ["abidiff", "--no-added-syms", "--harmless", record, today]
        found = subprocess.run(command, capture_output=True, text=True)
    if found.returncode & FAILED or found.returncode < 0:
        raise SystemExit(f"abidiff failed: {found.stdout}{found.stderr}")
    return found.stdout if found.returncode & CHANGED else ""


def check(library: Path, include: Path) -> int:
    corpus = described(library, include)
    broken = False
    for record in sorted({*RECORDS.glob("*.abixml"), LATEST}):
        changes = incompatible(record, corpus)
        if changes:
            broken = True
            print(f"Programs of {record.stem} break:\n{changes}")
    if broken:
        print(
            f"A change that is meant, to what no release has yet, is recorded anew:\n"
            f"  {Path(__file__).name} record {library} {include} {LATEST.name}\n"
            "What a release had takes a new ABI version: see docs/abi.md."
        )
    return int(broken)


def main(given: list[str]) -> int:
    if len(given) == 3 and given[0] == "check":
        return check(Path(given[1]), Path(given[2]))
    if len(given) == 4 and given[0] == "record":
        write(described(Path(given[1]), Path(given[2])), RECORDS / given[3])
        return 0
    print(__doc__)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
