"""Check the hardening of ELF files.

    hardening.py [--optimized] [--packaged] FILE...

Every binary that RoboCache ships is position-independent, binds its addresses when it is loaded and
then cannot write them, has no memory that is both writable and executable, protects the stack,
begins each exported function with a landing pad for indirect calls (on x86-64 and 64-bit ARM),
works with shadow stacks (on x86-64), and exports only the intended symbols.

--optimized: calls of the C library that know the size of a buffer check it.
--packaged: libraries are looked for in the folder of the binary or in the system's folders.
"""

from __future__ import annotations

import re
import subprocess
import sys

EXPORTED = re.compile(
    r"rbc[A-Z]\w*"  # the library
    r"|PyInit__core"
    r"|JNI_OnLoad|Java_io_robocache_\w+"
    r"|CSharp_\w+|SWIGRegister\w+_Rbc|RoboCacheSetStatusCallback"
)
# The first bytes of functions that may be called through a pointer, by machine: endbr64; bti c, bti
# jc, paciasp and pacibsp.
LANDING_PADS = {
    "X86-64": {"f30f1efa"},
    "AArch64": {"5f2403d5", "df2403d5", "3f2303d5", "7f2303d5"},
}
# A fortified program calls __printf_chk and its relatives. Calls of memcpy and similar functions
# remain if the compiler can prove that the data fits.
PRINTS = re.compile(r"v?[fs]?n?printf|v?dprintf|v?asprintf")


def read(*arguments: str) -> str:
    command = ["readelf", "-W", *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def is_elf(content: bytes) -> bool:
    return content.startswith(b"\x7fELF")


def first_bytes(content: bytes, address: int, segments: str) -> str:
    for line in segments.splitlines():
        load = re.match(r"\s+LOAD\s+0x(\w+)\s+0x(\w+)\s+0x\w+\s+0x(\w+)", line)
        if not load:
            continue
        offset, begin, size = (int(number, 16) for number in load.groups())
        if begin <= address < begin + size:
            place = offset + address - begin
            return content[place : place + 4].hex()
    return ""


def problems(path: str, optimized: bool, packaged: bool) -> list[str]:
    with open(path, "rb") as file:
        content = file.read()
    if not is_elf(content):
        return ["is not an ELF file"]
    header = read("-h", path)
    dynamic = read("-d", path)
    segments = read("-l", path)
    symbols = read("--dyn-syms", path)
    found = []

    def require(condition: object, what: str) -> None:
        if not condition:
            found.append(what)

    require(re.search(r"Type:\s+DYN", header), "is not position-independent")
    require("(TEXTREL)" not in dynamic, "relocates its code")
    require(re.search(r"\(FLAGS_1\).*\bNOW\b|\(FLAGS\).*BIND_NOW", dynamic), "is bound lazily")
    require("GNU_RELRO" in segments, "has no segment that is read-only after relocation")
    require(re.search(r"GNU_STACK.*\sRW\s", segments), "asks for an executable stack")
    require(not re.search(r"LOAD.*\sRWE\s", segments), "has memory to write and to execute")

    imported = set()
    exported = []  # address, kind and name
    for line in symbols.splitlines():  # "Num: Value Size Type Bind Vis Ndx Name@VERSION"
        entry = line.split()
        if len(entry) < 8 or entry[4] == "LOCAL":
            continue
        name = entry[7].partition("@")[0]
        if entry[6] == "UND":
            imported.add(name)
        elif entry[6].isdigit():
            exported.append((entry[1], entry[3], name))
    require("__stack_chk_fail" in imported, "has no stack protector")
    if optimized and any(PRINTS.fullmatch(name) for name in imported):
        require(any(re.fullmatch(r"__\w+_chk", name) for name in imported), "is not fortified")
    require(exported, "exports nothing")
    for _, _, name in exported:
        require(EXPORTED.fullmatch(name), f"exports {name}")
    (machine,) = re.findall(r"Machine:.*?(X86-64|AArch64|$)", header, re.MULTILINE)[:1]
    if machine in LANDING_PADS:
        for address, kind, name in exported:
            first = first_bytes(content, int(address, 16), segments)
            if kind == "FUNC":
                require(first in LANDING_PADS[machine], f"{name} does not begin with a landing pad")
    if machine == "X86-64":
        require("SHSTK" in read("-n", path), "is not marked as good for shadow stacks")
    if packaged:
        folders = re.findall(r"\((?:RPATH|RUNPATH)\).*\[(.*)\]", dynamic)
        require(set(folders) <= {"$ORIGIN"}, f"looks for libraries in {', '.join(folders)}")
    return found


def main() -> int:
    arguments = sys.argv[1:]
    options = {argument for argument in arguments if argument.startswith("--")}
    paths = [argument for argument in arguments if not argument.startswith("--")]
    unknown = options - {"--optimized", "--packaged"}
    if unknown or not paths:
        print(__doc__, file=sys.stderr)
        return 2
    failures = 0
    for path in paths:
        for problem in problems(path, "--optimized" in options, "--packaged" in options):
            print(f"{path}: {problem}")
            failures += 1
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
