"""A C program and a C++ program get the library in every way that CMake offers.

They find an installed library, shared or static, or build it as a part of a project. The library is
compiled twice here, with the settings of the build in ROBOCACHE_BUILD_DIR: ccache has the objects.
"""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CMAKE = shutil.which(os.environ.get("CMAKE", "cmake"))
BUILD = os.environ.get("ROBOCACHE_BUILD_DIR")
VERSION = ".".join(
    re.findall(r"define RBC_VERSION_\w+ (\d+)", (ROOT / "include/robocache/base.h").read_text())
)
EXPECTED = (ROOT / "examples/expected/resample.txt").read_text()
SHARED_SETTINGS = (
    "CMAKE_BUILD_TYPE",
    "CMAKE_C_COMPILER",
    "CMAKE_CXX_COMPILER",
    "CMAKE_CUDA_ARCHITECTURES",
    "CMAKE_CUDA_COMPILER",
    "ROBOCACHE_HIGHWAY_INCLUDE_DIR",
    "ROBOCACHE_XXHASH_INCLUDE_DIR",
)
PROJECT = """
cmake_minimum_required(VERSION 3.25)
project(consumer LANGUAGES {languages})
{library}
"""
PROGRAM = """
add_executable(program_{language} {source})
target_link_libraries(program_{language} PRIVATE robocache::robocache m)
"""

pytestmark = [
    pytest.mark.skipif(CMAKE is None, reason="CMake is not installed"),
    pytest.mark.skipif(BUILD is None, reason="ROBOCACHE_BUILD_DIR names no build folder"),
]


def cmake(*arguments):
    # With a base folder, ccache hashes paths relative to the build: no two folders share objects.
    environment = {name: value for name, value in os.environ.items() if name != "CCACHE_BASEDIR"}
    done = subprocess.run(
        [CMAKE, *map(str, arguments)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=1500,
    )
    if done.returncode != 0:
        raise ValueError(done.stdout + done.stderr)
    return done.stdout + done.stderr


def has_cuda():
    return (Path(BUILD) / "CMakeFiles/rbc_cuda.dir").is_dir()


def settings():
    """Return what the build was configured with, as arguments of CMake."""
    cache = dict(
        re.findall(r"^(\w+):\w+=(.+)$", (Path(BUILD) / "CMakeCache.txt").read_text(), re.M)
    )
    found = ["-G", cache["CMAKE_GENERATOR"]]
    found += [f"-D{name}={cache[name]}" for name in SHARED_SETTINGS if name in cache]
    found.append(f"-DROBOCACHE_CUDA={'ON' if has_cuda() else 'OFF'}")
    if "CCACHE" in cache and not cache["CCACHE"].endswith("NOTFOUND"):
        languages = ("C", "CXX", "CUDA")
        found += [f"-DCMAKE_{name}_COMPILER_LAUNCHER={cache['CCACHE']}" for name in languages]
    return found


def write_project(folder, library, *languages):
    """Write a project with the example of each language, and the lines that get the library."""
    text = PROJECT.format(languages=" ".join(languages), library=library)
    for language, source in (("C", "c/resample.c"), ("CXX", "cpp/resample.cpp")):
        if language in languages:
            text += PROGRAM.format(language=language, source=ROOT / "examples" / source)
    folder.mkdir(exist_ok=True)
    (folder / "CMakeLists.txt").write_text(text)
    return folder


def build_and_run(project, *languages, arguments=()):
    build = project / "build"
    cmake("-S", project, "-B", build, *arguments)
    build_all_and_run(build, *languages)


def build_all_and_run(build, *languages):
    cmake("--build", build, "--parallel", "2")
    for language in languages:
        done = subprocess.run([build / f"program_{language}"], capture_output=True, text=True)
        assert (done.returncode, done.stdout) == (0, EXPECTED), done.stderr


def linked_libraries(program):
    return subprocess.run(["readelf", "-d", program], capture_output=True, text=True).stdout


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """Return where the library of the build is installed."""
    prefix = tmp_path_factory.mktemp("shared") / "prefix"
    for component in ("Runtime", "Development"):
        cmake("--install", BUILD, "--prefix", prefix, "--component", component)
    return prefix


def configure(prefix, call):
    """Configure a project with this call of find_package; its compilers are examined once."""
    folder = prefix.parent / "user"
    write_project(folder, call, "C", "CXX")
    # Without the packages that other calls have found.
    return cmake("-S", folder, "-B", folder / "build", "-U*_DIR", f"-DCMAKE_PREFIX_PATH={prefix}")


@pytest.mark.parametrize("name", ["robocache", "RoboCache", "ROBOCACHE"])
def test_installed_under_every_spelling(shared, name):
    major, minor, _ = VERSION.split(".")
    configure(shared, f"find_package({name} {major}.{minor} REQUIRED COMPONENTS CPU)")
    build = shared.parent / "user/build"
    for program in ("program_C", "program_CXX"):  # not one that another test has linked
        (build / program).unlink(missing_ok=True)
    assert (build / "CMakeCache.txt").read_text().count(f"\n{name}_DIR:PATH={shared}") == 1
    build_all_and_run(build, "C", "CXX")
    assert "librobocache.so.1" in linked_libraries(build / "program_C")


@pytest.mark.parametrize("name", ["robocache", "RoboCache"])
def test_other_versions(shared, name):
    major, minor, _ = map(int, VERSION.split("."))
    configure(shared, f"find_package({name} {VERSION} EXACT REQUIRED)")
    for version in (f"{major}.{minor + 1}", f"{major + 1}"):
        with pytest.raises(ValueError, match=f'compatible with requested version "{version}"'):
            configure(shared, f"find_package({name} {version} REQUIRED)")


@pytest.mark.parametrize("name", ["robocache", "RoboCache"])
def test_unknown_components(shared, name):
    message = "component Vulkan: no such component.\\s+RoboCache has: CPU, CUDA"
    with pytest.raises(ValueError, match=message):
        configure(shared, f"find_package({name} REQUIRED COMPONENTS CPU Vulkan)")
    # Optional components do not stop the project, nor do optional packages.
    optional = f"find_package({name} REQUIRED COMPONENTS CPU OPTIONAL_COMPONENTS Vulkan)\n"
    configure(shared, f"{optional}if({name}_Vulkan_FOUND)\nmessage(FATAL_ERROR found)\nendif()")


def test_the_cuda_component(shared):
    call = "find_package(robocache REQUIRED COMPONENTS CUDA)"
    if has_cuda():
        configure(shared, call)
    else:
        with pytest.raises(ValueError, match="component CUDA: this library was built for the CPU"):
            configure(shared, call)


def test_static_by_add_subdirectory_and_installed(tmp_path):
    project = write_project(tmp_path / "project", f"add_subdirectory({ROOT} robocache)", "C", "CXX")
    build_and_run(project, "C", "CXX", arguments=[*settings(), "-DBUILD_SHARED_LIBS=OFF"])
    assert "librobocache" not in linked_libraries(project / "build/program_C")

    prefix = tmp_path / "prefix"
    cmake("--install", project / "build", "--prefix", prefix)
    names = {path.name for path in prefix.rglob("librobocache*")}
    assert names == {"librobocache.a"}
    shutil.rmtree(project)
    for languages in (("C",), ("C", "CXX")):  # C without a C++ compiler as well
        user = write_project(
            tmp_path / "_".join(languages), "find_package(RoboCache 0.1 REQUIRED)", *languages
        )
        build_and_run(user, *languages, arguments=[f"-DCMAKE_PREFIX_PATH={prefix}"])
    check_pkg_config(prefix, tmp_path / "program")


def check_pkg_config(prefix, program):
    if shutil.which("pkg-config") is None:
        return
    (folder,) = {path.parent for path in prefix.rglob("robocache.pc")}
    flags = subprocess.run(
        ["pkg-config", "--cflags", "--libs", f"robocache = {VERSION}"],
        env={**os.environ, "PKG_CONFIG_PATH": str(folder)},
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    compiler = os.environ.get("CC", "cc")
    source = ROOT / "examples/c/resample.c"
    subprocess.run([compiler, "-std=c11", source, *flags, "-lm", "-o", program], check=True)
    assert subprocess.run([program], capture_output=True, text=True).stdout == EXPECTED


def test_fetch_content(tmp_path):
    library = f"""
include(FetchContent)
FetchContent_Declare(RoboCache SOURCE_DIR {ROOT} OVERRIDE_FIND_PACKAGE)
find_package(RoboCache REQUIRED)
"""
    project = write_project(tmp_path / "project", library, "C", "CXX")
    build_and_run(project, "C", "CXX", arguments=settings())
    assert "librobocache.so.1" in linked_libraries(project / "build/program_C")


def test_a_static_library_for_the_bindings_is_refused(tmp_path):
    arguments = ["-DBUILD_SHARED_LIBS=OFF", "-DROBOCACHE_CUDA=OFF", "-DROBOCACHE_JAVA=ON"]
    message = r"bindings\s+for\s+Python, Java and C#.*need\s+librobocache.so"
    with pytest.raises(ValueError, match=f"(?s){message}"):
        cmake("-S", ROOT, "-B", tmp_path / "build", *arguments)
