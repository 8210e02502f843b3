"""Reads back from a librobocache.so what it was hardened with: hardening.py LIBRARY [--optimized]

Addresses are bound when it is loaded and cannot be written then, nothing is both writable and
executable, functions watch their stack, and on x86-64 indirect calls land where functions begin.
With --optimized also: calls of the C library that know how large a buffer is say so.
"""

import re
import subprocess
import sys


def read(*arguments: str) -> str:
    command = ["readelf", "-W", *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def first_bytes(library: str, address: int, segments: str) -> bytes:
    for line in segments.splitlines():
        load = re.match(r"\s+LOAD\s+0x(\w+)\s+0x(\w+)\s+0x\w+\s+0x(\w+)", line)
        if not load:
            continue
        offset, begin, size = (int(number, 16) for number in load.groups())
        if begin <= address < begin + size:
            with open(library, "rb") as file:
                file.seek(offset + address - begin)
                return file.read(4)
    raise SystemExit(f"{library}: no segment has {address:#x}")


def problems(library: str, optimized: bool) -> list[str]:
    dynamic = read("-d", library)
    segments = read("-l", library)
    symbols = read("--dyn-syms", library)
    found = []

    def require(condition: object, what: str) -> None:
        if not condition:
            found.append(what)

    require(re.search(r"\(FLAGS_1\).*\bNOW\b|\(FLAGS\).*BIND_NOW", dynamic), "is bound lazily")
    require("GNU_RELRO" in segments, "has no segment that is read-only after relocation")
    require(re.search(r"GNU_STACK.*\sRW\s", segments), "asks for an executable stack")
    require(not re.search(r"LOAD.*\sRWE\s", segments), "has memory to write and to execute")
    require("(TEXTREL)" not in dynamic, "relocates its code")
    require("__stack_chk_fail" in symbols, "has no stack protector")
    if optimized:
        require(re.search(r"\b__\w+_chk\b", symbols), "is not fortified")
    if "X86-64" in read("-h", library):
        functions = re.findall(r"\s(\w{16})\s+\d+ FUNC\s+GLOBAL DEFAULT\s+\d+ (rbc\w+)", symbols)
        require(functions, "exports nothing")
        for address, name in functions:
            begin = first_bytes(library, int(address, 16), segments)
            require(begin == b"\xf3\x0f\x1e\xfa", f"{name} does not begin with endbr64")
    return found


def main() -> int:
    library = sys.argv[1]
    found = problems(library, "--optimized" in sys.argv)
    for problem in found:
        print(f"{library}: {problem}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
