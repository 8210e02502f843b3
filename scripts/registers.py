"""Print registers, shared memory and spills of every kernel, as reported by the compiler.

    python3 scripts/registers.py [--arch 80 90 100 120] [--spilling]

Compiles the kernels for each architecture with the library's own flags, into build/registers. This
takes several minutes each, and needs nvcc but no GPU. Prints a Markdown table with a row for each
kernel template: the minimum and the maximum over its instances. --spilling lists the instances that
spill.
"""

import argparse
import collections
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
ENTRY = re.compile(
    r"Compiling entry function '(?P<name>\w+)'.*?"
    r"(?P<spilled>\d+) bytes spill stores.*?"
    r"Used (?P<registers>\d+) registers(?P<rest>[^\n]*)",
    re.DOTALL,
)


def compile_for(arch):
    """Compile for an architecture; return the report of ptxas."""
    folder = ROOT / f"build/registers/sm_{arch}"
    log = folder / "ptxas.log"
    subprocess.run(
        ["cmake", "-S", ROOT, "-B", folder, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release"]
        + ["-DROBOCACHE_CUDA=ON", "-DROBOCACHE_BUILD_TESTS=OFF"]
        + [f"-DCMAKE_CUDA_ARCHITECTURES={arch}-real", "-DCMAKE_CUDA_FLAGS=-Xptxas=-v"],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    with log.open("w") as out:  # files that are up to date would report nothing
        build = ["cmake", "--build", folder, "--target", "rbc_cuda", "--clean-first"]
        if subprocess.run(build, stdout=out, stderr=subprocess.STDOUT).returncode != 0:
            sys.exit(f"registers.py: the build for sm_{arch} failed, see {log}")
    return log.read_text()


def template_of(name):
    """Return the function's own name; for CUB's kernels only that."""
    name = name.replace("(anonymous namespace)::", "").removeprefix("void ")
    plain = re.match(r"[\w:]+", name).group()
    return ("cub::" if plain.startswith("cub") else "") + plain.rpartition("::")[2]


def kernels_in(report):
    """Return by template the instances: name, registers, bytes of shared memory, bytes spilled."""
    entries = list(ENTRY.finditer(report))
    mangled = "\n".join(entry["name"] for entry in entries)
    names = subprocess.check_output(["c++filt"], input=mangled, text=True).splitlines()
    kernels = collections.defaultdict(list)
    for name, entry in zip(names, entries):
        shared = re.search(r"(\d+) bytes smem", entry["rest"])
        numbers = int(entry["registers"]), int(shared[1]) if shared else 0, int(entry["spilled"])
        kernels[template_of(name)].append((name, *numbers))
    return kernels


def span(numbers):
    low, high = min(numbers), max(numbers)
    return f"{low}" if low == high else f"{low}..{high}"


def spills(instances):
    spilling = [spilled for *_, spilled in instances if spilled]
    return f"{len(spilling)}: {span(spilling)}" if spilling else ""


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--arch", nargs="+", default=["80", "90", "100", "120"])
    parser.add_argument("--spilling", action="store_true")
    arguments = parser.parse_args()
    by_arch = {arch: kernels_in(compile_for(arch)) for arch in arguments.arch}

    header = ["kernel", "instances", *(f"sm_{arch}" for arch in by_arch), "shared memory"]
    header += [f"spilling on sm_{arch}" for arch in by_arch]
    print("| " + " | ".join(header) + " |")
    print("| --- |" + " ---: |" * (len(header) - 1))
    for template in sorted(set().union(*by_arch.values())):
        columns = [kernels.get(template, []) for kernels in by_arch.values()]
        row = [f"`{template}`", str(max(map(len, columns)))]
        row += [span([kernel[1] for kernel in c]) if c else "" for c in columns]
        row += [span([kernel[2] for c in columns for kernel in c])]
        row += [spills(c) for c in columns]
        print("| " + " | ".join(row) + " |")
    if arguments.spilling:
        for arch, kernels in by_arch.items():
            for name, _, _, spilled in (kernel for group in kernels.values() for kernel in group):
                if spilled:
                    print(f"sm_{arch}: {spilled} bytes: {name}")


if __name__ == "__main__":
    main()
