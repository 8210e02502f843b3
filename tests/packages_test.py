"""Checks what `make packages` left in dist/. Usage: packages_test.py [unittest's arguments]"""

import fnmatch
import hashlib
import io
import json
import os
import pathlib
import platform
import re
import subprocess
import sys
import tarfile
import tempfile
import unittest
import venv
import zipfile

from elftools.elf.dynamic import DynamicSection
from elftools.elf.elffile import ELFFile

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "scripts"))
import verify_packages  # noqa: E402
import verify_statements  # noqa: E402

DIST = ROOT / "dist"
VERSION = ".".join(
    re.findall(r"define RBC_VERSION_\w+ (\d+)", (ROOT / "include/robocache/base.h").read_text())
)
MACHINE = platform.machine()
TREE = f"robocache-{VERSION}-linux-{MACHINE}"
# The machines of the packages: this one, and possibly 64-bit ARM by cross compilation.
MACHINES = sorted(
    re.search(r"-linux-(\w+)\.tar\.gz$", name)[1]
    for name in os.listdir(DIST)
    if "-linux-" in name and name.endswith(".tar.gz")
)
RUNTIMES = {"x86_64": "linux-x64", "aarch64": "linux-arm64"}
LIBRARY = re.compile(r"librobocache\.so(\.\d+)*$")
SYSTEM_LIBRARIES = {"libc.so.6", "libm.so.6", "libgcc_s.so.1"}
SYSTEM_LIBRARIES |= {"ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}
ELF_MACHINES = {"x86_64": "EM_X86_64", "aarch64": "EM_AARCH64"}
NEWEST_GLIBC = 34  # 2.34: Ubuntu 22.04, Debian 12, RHEL 9; Debian 12's tools allow nothing older


def package(pattern):
    """Return the only file in dist/ of that name; skip the test if a binding was not built."""
    found = fnmatch.filter(os.listdir(DIST), pattern)
    if not found:
        raise unittest.SkipTest(f"SKIPPED: no {pattern} in dist/")
    (name,) = found
    return DIST / name


def contents(path):
    """Return the files of a package: {name: bytes}."""
    if path.suffix == ".gz":
        with tarfile.open(path) as archive:
            return {m.name: archive.extractfile(m).read() for m in archive if m.isfile()}
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            names = [name for name in archive.namelist() if not name.endswith("/")]
            assert len(names) == len(set(names)), f"{path.name} has a file twice"
            return {name: archive.read(name) for name in names}
    return {path.name: path.read_bytes()}


def all_files():
    """Yield (package and file, bytes) of all files in dist/."""
    for path in sorted(DIST.iterdir()):
        for name, data in contents(path).items():
            yield f"{path.name}: {name}", data


def machine_of(data):
    """Return the machine of a library; None for a link to a library."""
    code = ELFFile(io.BytesIO(data)).header.e_machine if data.startswith(b"\x7fELF") else None
    return next((name for name, elf in ELF_MACHINES.items() if elf == code), None)


def run(*command, **options):
    return subprocess.run(
        [str(part) for part in command],
        check=True,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        **options,
    ).stdout


class AllPackages(unittest.TestCase):
    def test_sums(self):
        lines = (DIST / "SHA256SUMS").read_text().splitlines()
        sums = {name: digest for digest, name in (line.split("  ") for line in lines)}
        files = {path.name: path.read_bytes() for path in DIST.iterdir()}
        del files["SHA256SUMS"]
        self.assertEqual(
            sums, {name: hashlib.sha256(data).hexdigest() for name, data in files.items()}
        )

    def test_carry_the_same_library(self):
        bundles = [path for path in DIST.iterdir() if path.suffix in (".jar", ".nupkg")]
        binary_jars = [path for path in bundles if not re.search("sources|javadoc", path.name)]
        for machine in MACHINES:
            with self.subTest(machine):
                found = {
                    name: hashlib.sha256(data).hexdigest()
                    for name, data in all_files()
                    if LIBRARY.search(name) and machine_of(data) == machine
                }
                # One more in the wheel, and one in the tree.
                self.assertEqual(len(found), len(binary_jars) + 2, found)
                self.assertEqual(len(set(found.values())), 1, found)

    def test_libraries_are_stripped_and_need_the_system_only(self):
        for name, data in all_files():
            if not data.startswith(b"\x7fELF"):
                continue
            with self.subTest(name):
                elf = ELFFile(io.BytesIO(data))
                self.assertIsNone(elf.get_section_by_name(".symtab"))
                (dynamic,) = (s for s in elf.iter_sections() if isinstance(s, DynamicSection))
                tags = [(tag.entry.d_tag, tag) for tag in dynamic.iter_tags()]
                needed = {tag.needed for kind, tag in tags if kind == "DT_NEEDED"}
                paths = [tag.runpath for kind, tag in tags if kind == "DT_RUNPATH"]
                self.assertFalse([kind for kind, _ in tags if kind == "DT_RPATH"])
                if LIBRARY.search(name):
                    self.assertEqual(paths, [])
                    self.assertLessEqual(needed, SYSTEM_LIBRARIES)
                else:
                    self.assertEqual(paths, ["$ORIGIN"])
                    self.assertLessEqual(needed, SYSTEM_LIBRARIES | {"librobocache.so.1"})

    def test_binaries_are_hardened(self):
        for path in sorted(DIST.iterdir()):
            for name, data in verify_packages.binaries_of(path.name, path.read_bytes()).items():
                with self.subTest(f"{path.name}: {name}"):
                    self.assertEqual(verify_packages.check_hardening(data), [])

    def test_tell_nothing_of_the_machine(self):
        marks = {str(ROOT), f"{pathlib.Path.home()}/", sys.prefix}
        config = run(sys.executable, "-m", "pip", "config", "list")
        marks |= set(re.findall(r"https?://(?:[^/@\s]*@)?([^/:\s'\"]+)", config))  # package indices
        for name, data in all_files():
            told = [mark for mark in marks if mark.encode() in data]
            self.assertFalse(told, name)
            self.assertFalse(data.startswith(b"\x7fELF") and b"tmpxft_" in data, name)


class Wheel(unittest.TestCase):
    def setUp(self):
        self.path = package(f"*_{MACHINE}.whl")

    def test_files(self):
        sources = ROOT / "bindings/python/robocache"
        files = [path for path in sources.rglob("*") if path.suffix in {".py", ".pyi", ".typed"}]
        modules = {str(path.relative_to(sources)) for path in files}
        info = {"METADATA", "RECORD", "WHEEL", "entry_points.txt"}
        info |= {"licenses/LICENSE", "licenses/NOTICE"}
        self.assertEqual(
            set(contents(self.path)),
            {f"robocache/{name}" for name in modules}
            | {f"robocache/{name}" for name in ("_abi.py", "_core.abi3.so", "librobocache.so.1")}
            | {f"robocache-{VERSION}.dist-info/{name}" for name in info},
        )

    def test_tag(self):
        tag = rf"manylinux_2_(\d+)_{platform.machine()}"
        match = re.fullmatch(
            rf"robocache-{re.escape(VERSION)}-cp39-abi3-({tag})\.whl", self.path.name
        )
        self.assertTrue(match, self.path.name)
        self.assertLessEqual(int(match[2]), NEWEST_GLIBC)
        shown = " ".join(run(sys.executable, "-m", "auditwheel", "show", self.path).split())
        self.assertIn(f'following platform tag: "{match[1]}"', shown)

    def test_imports_in_an_empty_environment(self):
        import numpy  # of the environment that runs this; none is installed into the empty one

        resample = (
            "import numpy as np, robocache as rbc; "
            "print(rbc.resample(np.array([[0.], [2.]]), np.array([0., 1.]), np.array([.25])))"
        )
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            python = folder / "venv/bin/python"
            venv.create(folder / "venv", with_pip=False)
            run(
                sys.executable,
                "-m",
                "pip",
                "--python",
                python,
                "install",
                "-q",
                "--no-index",
                "--disable-pip-version-check",
                "--no-deps",
                self.path,
            )
            # Nothing to compile with, and no CUDA toolkit, is within reach.
            bare = {"env": {"PATH": str(folder)}, "cwd": folder}
            self.assertEqual(
                run(python, "-c", "import robocache; print(robocache.__version__)", **bare).strip(),
                VERSION,
            )
            self.assertIn(VERSION, run(python, "-m", "robocache", "info", **bare))
            packages = folder / "packages"
            packages.mkdir()
            for path in pathlib.Path(numpy.__file__).parents[1].glob("numpy*"):
                (packages / path.name).symlink_to(path)
            bare["env"]["PYTHONPATH"] = str(packages)
            self.assertEqual(run(python, "-c", resample, **bare).strip(), "[[0.5]]")


@unittest.skipUnless("aarch64" in MACHINES and MACHINE != "aarch64", "SKIPPED: no packages for ARM")
class CrossCompiled(unittest.TestCase):
    """The packages for 64-bit ARM made on another machine, tested in QEMU's user mode."""

    def test_all_of_it_is_for_that_machine(self):
        wheel = contents(package("*_aarch64.whl"))
        tree = contents(DIST / f"robocache-{VERSION}-linux-aarch64.tar.gz")
        libraries = [data for data in [*wheel.values(), *tree.values()] if data[:4] == b"\x7fELF"]
        self.assertEqual(len(libraries), 3)
        self.assertEqual({machine_of(data) for data in libraries}, {"aarch64"})

    def python(self, program):
        """Return the output of a program with the wheel, in that Python, without a driver."""
        root = ROOT / "build/aarch64/python"
        with tempfile.TemporaryDirectory() as folder:
            with zipfile.ZipFile(package("*_aarch64.whl")) as wheel:
                wheel.extractall(folder)
            python = ("qemu-aarch64-static", "-L", root, root / "usr/bin/python3")
            path = {"PYTHONPATH": f"{folder}:{root / 'site'}"}
            return run(*python, "-c", program, env={**os.environ, **path})

    def test_without_a_driver_the_cpu_computes(self):
        told = self.python(
            "import numpy as np, robocache as rbc; info = rbc.Context().info; "
            "print(rbc.__version__, info.backend, info.simd, info.cuda_unavailable); "
            "print(rbc.resample(np.array([[0.], [2.]]), np.array([0., 1.]), np.array([.25])))"
        )
        self.assertRegex(told, rf"^{re.escape(VERSION)} cpu neon {self.why()}")
        self.assertIn("[[0.5]]", told)

    def test_cuda_that_is_asked_for_is_an_error_that_says_why(self):
        told = self.python(
            "import robocache as rbc\n"
            "try: rbc.Context('cuda')\n"
            "except Exception as error: print(type(error).__name__, error)"
        )
        self.assertRegex(told, rf"^\w+ {self.why()}")

    @staticmethod
    def why():
        library = io.BytesIO(contents(package("*_aarch64.whl"))["robocache/librobocache.so.1"])
        if ELFFile(library).get_section_by_name(".nv_fatbin") is None:
            return "CUDA: this build of the library has no CUDA backend"
        return "CUDA: no usable driver: "


class SourceDistribution(unittest.TestCase):
    def test_files(self):
        names = {name.partition("/")[2] for name in contents(DIST / f"robocache-{VERSION}.tar.gz")}
        folders = ("include", "src", "kernels", "bindings", "cmake", "examples", "tests", "scripts")
        sources = {
            path.relative_to(ROOT).as_posix()
            for folder in folders
            for path in (ROOT / folder).rglob("*")
            if path.is_file() and not re.search(r"/(__pycache__|\.\w+_cache)/", str(path))
        }
        self.assertEqual({name for name in names if name.split("/")[0] in folders}, sources)
        top = (
            "CMakeLists.txt",
            "LICENSE",
            "Makefile",
            "NOTICE",
            "PKG-INFO",
            "README.md",
            "pyproject.toml",
        )
        self.assertLessEqual(set(top), names)


class Tree(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        with tarfile.open(DIST / f"{TREE}.tar.gz") as archive:
            archive.extractall(cls.folder.name)
        cls.prefix = pathlib.Path(cls.folder.name) / TREE

    def test_files(self):
        headers = {f"include/robocache/{p.name}" for p in (ROOT / "include/robocache").iterdir()}
        config = ("-config", "-config-version", "Targets", "Targets-release")
        found = {
            p.relative_to(self.prefix).as_posix() for p in self.prefix.rglob("*") if not p.is_dir()
        }
        self.assertEqual(
            found,
            headers
            | {f"lib/librobocache.so{end}" for end in ("", ".1", f".{VERSION}")}
            | {f"lib/cmake/robocache/robocache{part}.cmake" for part in config}
            | {"lib/pkgconfig/robocache.pc"}
            | {f"share/doc/robocache/{name}" for name in ("LICENSE", "NOTICE")},
        )
        lib = self.prefix / "lib"
        self.assertEqual(os.readlink(lib / "librobocache.so"), "librobocache.so.1")
        self.assertEqual(os.readlink(lib / "librobocache.so.1"), f"librobocache.so.{VERSION}")

    def test_owners_and_times_are_not_those_of_the_build(self):
        with tarfile.open(DIST / f"{TREE}.tar.gz") as archive:
            members = list(archive)
        self.assertEqual(members, sorted(members, key=lambda member: member.name.split("/")))
        self.assertEqual({(m.uid, m.gid, m.uname, m.gname) for m in members}, {(0, 0, "", "")})
        self.assertEqual(len({m.mtime for m in members}), 1)

    def test_pkg_config(self):
        lib = self.prefix / "lib"
        options = {"env": {**os.environ, "PKG_CONFIG_PATH": str(lib / "pkgconfig")}}
        run("pkg-config", "--validate", "robocache", **options)
        self.assertEqual(run("pkg-config", "--modversion", "robocache", **options).strip(), VERSION)
        flags = run("pkg-config", "--cflags", "--libs", "robocache", **options).split()
        program = pathlib.Path(self.folder.name) / "resample"
        run("cc", "-std=c11", ROOT / "examples/c/resample.c", *flags, "-lm", "-o", program)
        self.assertEqual(
            run(program, env={"LD_LIBRARY_PATH": str(lib)}),
            (ROOT / "examples/expected/resample.txt").read_text(),
        )

    def test_find_package_takes_the_same_minor_version(self):
        major, minor, _ = VERSION.split(".")
        wanted = {
            "": True,
            f"{major}.{minor}": True,
            f"{VERSION} EXACT": True,
            f"{major}.{int(minor) + 1}": False,
            f"{int(major) + 1}": False,
        }
        calls = "\n".join(
            f"unset(robocache_DIR CACHE)\nfind_package(robocache {version} QUIET)\n"
            f'message("found [{version}]: ${{robocache_FOUND}}")'
            for version in wanted
        )
        source = pathlib.Path(self.folder.name) / "project"
        source.mkdir()
        (source / "CMakeLists.txt").write_text(
            f"cmake_minimum_required(VERSION 3.25)\nproject(user LANGUAGES C)\n{calls}\n"
        )
        output = run(
            "cmake", "-S", source, "-B", source / "build", f"-DCMAKE_PREFIX_PATH={self.prefix}"
        )
        found = dict(re.findall(r"^found \[(.*)\]: (\d)$", output, re.MULTILINE))
        self.assertEqual(found, {version: str(int(taken)) for version, taken in wanted.items()})


class Jar(unittest.TestCase):
    def test_files(self):
        names = set(contents(package(f"robocache-{VERSION}.jar")))
        kinds = (
            r"META-INF/MANIFEST\.MF",
            r"META-INF/(LICENSE|NOTICE)",
            r"META-INF/maven/.*/pom\.(xml|properties)",
            r"io/robocache/(\w+/)*[\w$]+\.class",
            r".*/lib\w+\.so(\.1)?",
        )
        self.assertFalse([name for name in names if not any(re.fullmatch(k, name) for k in kinds)])
        for machine in MACHINES:  # where NativeLoader looks
            for library in ("librobocache.so.1", "librobocache_java.so"):
                self.assertIn(f"io/robocache/native/linux-{machine}/{library}", names)


class NuGet(unittest.TestCase):
    def test_files(self):
        natives = [f"runtimes/{RUNTIMES[machine]}/native" for machine in MACHINES]
        self.assertEqual(
            set(contents(package(f"RoboCache.{VERSION}.nupkg"))),
            {
                "[Content_Types].xml",
                "_rels/.rels",
                "RoboCache.nuspec",
                "LICENSE",
                "NOTICE",
                "lib/netstandard2.0/RoboCache.dll",
                "lib/netstandard2.0/RoboCache.xml",
                *(f"{native}/librobocache.so.1" for native in natives),
                *(f"{native}/librobocache_csharp.so" for native in natives),
            },
        )


class BillOfMaterials(unittest.TestCase):
    def test_names_what_the_library_contains(self):
        for machine in MACHINES:
            with self.subTest(machine):
                self.check(machine, "" if machine == MACHINE else f"-{machine}")

    def check(self, machine, suffix):
        bill = json.loads((DIST / f"robocache-{VERSION}{suffix}.cdx.json").read_text())
        self.assertEqual((bill["bomFormat"], bill["specVersion"]), ("CycloneDX", "1.5"))
        tree = f"robocache-{VERSION}-linux-{machine}"
        library = contents(DIST / f"{tree}.tar.gz")[f"{tree}/lib/librobocache.so.{VERSION}"]
        root = bill["metadata"]["component"]
        self.assertEqual((root["name"], root["version"]), ("robocache", VERSION))
        self.assertEqual(root["hashes"][0]["content"], hashlib.sha256(library).hexdigest())
        names = {"highway", "xxhash", "libstdc++"}
        if ELFFile(io.BytesIO(library)).get_section_by_name(".nv_fatbin"):
            names |= {"cccl", "cudart"}
        self.assertEqual({part["name"] for part in bill["components"]}, names)
        for part in bill["components"]:
            with self.subTest(part["name"]):
                self.assertRegex(part["version"], r"^\d+\.\d+")
                self.assertTrue(all(part["licenses"][0].values()))

    def test_shows_the_same_as_spdx(self):
        self.assertEqual(verify_statements.check_bills(DIST)[0], [])


class Provenance(unittest.TestCase):
    def test_names_every_file(self):
        found = verify_statements.check_provenance(DIST)
        # Only a release has to be of a clean checkout: `make verify-packages`.
        self.assertEqual([line for line in found if "from changed files" not in line], [])


if __name__ == "__main__":
    unittest.main(verbosity=2)
