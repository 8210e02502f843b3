"""Every binary of the package is hardened, and the check finds binaries that are not."""

import io
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import zipfile

import pytest

import robocache

ROOT = pathlib.Path(__file__).parents[3]
sys.path[:0] = [str(ROOT / "tests/source"), str(ROOT / "scripts")]
import hardening  # noqa: E402
import verify_packages  # noqa: E402

GOOD = ["-O2", "-fPIC", "-shared", "-fstack-protector-strong", "-D_FORTIFY_SOURCE=2"]
GOOD += ["-fvisibility=hidden", "-Wl,-z,relro,-z,now,-z,noexecstack"]
if os.uname().machine == "x86_64":
    GOOD += ["-fcf-protection=full", "-Wl,-z,shstk"]
    MARKED = [(["-fcf-protection=none"], "rbcThing does not begin with a landing pad")]
else:
    GOOD += ["-mbranch-protection=standard"]
    MARKED = [(["-mbranch-protection=none"], "rbcThing does not begin with a landing pad")]

SOURCE = """
#include <stdio.h>
__attribute__((visibility("default"))) int rbcThing(const char* text, int number) {
  char room[32];
  return snprintf(room, sizeof room, text, number) + room[number];
}
#ifdef MORE
__attribute__((visibility("default"))) int helper(void) { return 1; }
#endif
"""


@pytest.fixture(scope="module")
def build(tmp_path_factory):
    """Compiles the source with more flags; the file."""
    compiler = os.environ.get("CC") or shutil.which("cc")
    if compiler is None or shutil.which("readelf") is None:
        pytest.skip("SKIPPED: no C compiler or no readelf")
    folder = tmp_path_factory.mktemp("hardening")
    (folder / "thing.c").write_text(SOURCE)

    def build_library(*flags):
        path = folder / f"thing{len(list(folder.iterdir()))}.so"
        command = [*compiler.split(), *GOOD, *flags, "-w", folder / "thing.c", "-o", path]
        subprocess.run(command, check=True)
        return path

    return build_library


def test_binaries_of_this_package():
    folder = pathlib.Path(robocache.__file__).parent
    binaries = [path for path in folder.rglob("*") if path.is_file()]
    binaries = [path for path in binaries if path.open("rb").read(4) == b"\x7fELF"]
    assert {path.name for path in binaries} >= {"_core.abi3.so", "librobocache.so.1"}
    problems = {path.name: hardening.problems(str(path), True, False) for path in binaries}
    assert problems == {name: [] for name in problems}


def test_a_good_one(build):
    assert hardening.problems(str(build()), True, True) == []


@pytest.mark.parametrize(
    "flags,problem",
    [
        (["-fno-stack-protector"], "has no stack protector"),
        (["-U_FORTIFY_SOURCE"], "is not fortified"),
        (["-Wl,-z,norelro"], "has no segment that is read-only after relocation"),
        (["-Wl,-z,lazy"], "is bound lazily"),
        (["-Wl,-z,execstack"], "asks for an executable stack"),
        (["-DMORE"], "exports helper"),
        (["-Wl,-rpath,/home/user/build"], "looks for libraries in /home/user/build"),
        (["-Wl,-rpath,$ORIGIN:/opt"], "looks for libraries in $ORIGIN:/opt"),
        *MARKED,
    ],
)
def test_each_fault_is_found(build, flags, problem):
    assert hardening.problems(str(build(*flags)), True, True) == [problem]


def test_a_program_at_a_fixed_address(build, tmp_path):
    path = tmp_path / "program"
    source = tmp_path / "program.c"
    source.write_text(SOURCE + "int main(int n, char** v) { return rbcThing(v[0], n); }")
    compiler = os.environ.get("CC", "cc").split()
    flags = [flag for flag in GOOD if flag not in ("-fPIC", "-shared")]
    subprocess.run([*compiler, *flags, "-no-pie", "-w", source, "-o", path], check=True)
    assert "is not position-independent" in hardening.problems(str(path), True, True)


def test_files_that_are_not_binaries(tmp_path):
    path = tmp_path / "thing.so"
    path.write_bytes(b"INPUT(thing)")
    assert hardening.problems(str(path), False, False) == ["is not an ELF file"]
    script = ROOT / "tests/source/hardening.py"
    assert subprocess.run([sys.executable, script, path], stdout=subprocess.PIPE).returncode == 1
    assert subprocess.run([sys.executable, script], stderr=subprocess.PIPE).returncode == 2


def zipped(files):
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return content.getvalue()


def tarred(files):
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w:gz") as archive:
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return content.getvalue()


@pytest.mark.parametrize("name", ["a.whl", "a.jar", "a.nupkg", "a-linux-x86_64.tar.gz", "a.bin"])
def test_binaries_are_found_by_content(build, name):
    binary = build("-fno-stack-protector").read_bytes()
    pack = tarred if name.endswith(".gz") else zipped
    inner = zipped({"native/data": binary})
    content = pack({"lib/x.dat": binary, "deep.jar": inner, "x.so": b"text", "README": b"PK"})
    found = verify_packages.binaries_of(name, content)
    assert set(found) == {"lib/x.dat", "deep.jar: native/data"}
    for data in found.values():
        assert verify_packages.check_hardening(data) == ["has no stack protector"]


def test_packages_with_binaries_that_are_not_hardened(build, tmp_path):
    good, bad = build().read_bytes(), build("-Wl,-z,norelro").read_bytes()
    packages = {
        "thing-1.0.jar": zipped({"native/good.so": good, "native/odd": bad}),
        "thing-1.0-linux-x86_64.tar.gz": tarred({"lib/good.so": good}),
        "thing-1.0.tar.gz": tarred({"src/thing.c": b"", "left/over": good}),
    }
    for name, content in packages.items():
        (tmp_path / name).write_bytes(content)
    sums = [f"{verify_packages.sha256(data)}  {name}" for name, data in packages.items()]
    (tmp_path / "SHA256SUMS").write_text("\n".join(sums) + "\n")
    found = verify_packages.verify(tmp_path)
    assert [line for line in found if "native" in line or "lib/" in line] == [
        "thing-1.0.jar: native/odd: has no segment that is read-only after relocation"
    ]
    assert "thing-1.0.tar.gz: left/over is a binary in a source distribution" in found
