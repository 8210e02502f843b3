"""Every fenced block of the README and of the pages under docs/ runs as it stands.

Python blocks of a page share a namespace. C, C++, Java and C# blocks are programs, compiled against
what the build in ROBOCACHE_BUILD_DIR installs. Shell blocks find the program above them by the name
that they give it. A text block right below a block is the output that it must have.
"""

import collections
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from blocks import PAGES, ROOT, blocks_of

import robocache as rbc

BLOCKS = [block for page in PAGES for block in blocks_of(page)]
PROGRAMS = {"c": "c", "cpp": "cpp", "java": "java", "csharp": "cs"}  # and the ends of their names
LANGUAGES = {"python", "cmake", "sh", "text", *PROGRAMS}

# Commands that a test must not run; all others are.
UNSAFE = {
    "make": "builds the project or tests it",
    "pip": "installs packages",
    "apt-get": "installs packages",
    "cmake --install": "installs the project",
    "sudo": "changes the system",
    "dotnet": "takes the .NET SDK and a network",
}

namespaces = collections.defaultdict(lambda: {"__name__": "__main__"})


def those_in(*languages):
    chosen = [block for block in BLOCKS if block.language in languages]
    return pytest.mark.parametrize("block", chosen, ids=str)


def skip(block, reason):
    pytest.skip(f"{block}: {reason}")


@pytest.fixture(autouse=True)
def _skip_what_says_so(request):
    block = request.node.callspec.params.get("block")
    if block is None:
        return
    if block.comment.startswith("skipped: "):
        skip(block, block.comment[len("skipped: ") :])
    if block.comment == "needs cuda" and rbc.info().cuda_unavailable:
        skip(block, rbc.info().cuda_unavailable)


# ---- tools --------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def build():
    """The folder of the CMake build whose library and packages the programs use."""
    folder = os.environ.get("ROBOCACHE_BUILD_DIR")
    if not folder:
        pytest.skip("ROBOCACHE_BUILD_DIR names no build")
    return Path(folder)


@pytest.fixture(scope="session")
def environment(build, tmp_path_factory):
    """Variables with which pkg-config, CMake and the loader find an installed tree."""
    prefix = tmp_path_factory.mktemp("installed") / "prefix"
    for component in ("Runtime", "Development"):
        command = [tool("cmake"), "--install", build, "--prefix", prefix, "--component", component]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    libraries = next(prefix.rglob("librobocache.so")).parent
    return {
        **os.environ,
        "ROBOCACHE_MIN_FREE_BYTES": "0",
        "PKG_CONFIG_PATH": str(libraries / "pkgconfig"),
        "LD_LIBRARY_PATH": str(libraries),
        "CMAKE_PREFIX_PATH": str(prefix),
    }


def tool(name):
    """The path of a program, which the variable of its name in capitals may give."""
    path = shutil.which(os.environ.get({"c++": "CXX"}.get(name, name.upper()), name))
    if path is None:
        pytest.skip(f"{name} is not installed")
    return path


@pytest.fixture(scope="session")
def jar(build):
    """The Java package as a class path."""
    return one_of(build / "bindings" / "java", "robocache-*[0-9].jar")


@pytest.fixture(scope="session")
def assembly(build):
    """Return the C# package; its native library is in the same folder."""
    return one_of(build / "bindings" / "csharp", "RoboCache.dll")


def beside(folder, *files):
    folder.mkdir(exist_ok=True)
    for file in files:
        (folder / file.name).symlink_to(file)


def one_of(folder, pattern):
    for path in folder.glob(pattern):
        return path
    pytest.skip(f"the build has no {pattern}")


def run(command, folder, environment, output=None):
    """Run a command, which must succeed, and print `output` if that is given."""
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
    if output is not None:
        assert done.stdout == output
    return done.stdout


# ---- tests --------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_languages(page):
    for block in blocks_of(page):
        assert block.language in LANGUAGES or block.language.startswith("{"), block


@those_in("python")
def test_python(block, capsys):
    # Empty lines above, so that a traceback has the line number of the page.
    code = compile("\n" * (block.line - 1) + block.text, str(block.page), "exec")
    try:
        exec(code, namespaces[block.page])
    except ModuleNotFoundError as error:
        if error.name.startswith("robocache"):
            raise
        skip(block, f"{error.name} is not installed")
    if block.output is not None:
        assert capsys.readouterr().out == block.output


@those_in("c", "cpp")
def test_c_and_cpp(block, environment, tmp_path):
    compiler, standard = {"c": ("cc", "c11"), "cpp": ("c++", "c++17")}[block.language]
    source = tmp_path / f"program.{block.language}"
    source.write_text(block.text)
    flags = run([tool("pkg-config"), "--cflags", "--libs", "robocache"], tmp_path, environment)
    options = [f"-std={standard}", "-Wall", "-Wextra", "-Werror", "-o", "program"]
    run([tool(compiler), *options, source, *flags.split()], tmp_path, environment)
    run(["./program"], tmp_path, environment, block.output)


@those_in("java")
def test_java(block, jar, tmp_path):
    (tmp_path / "Program.java").write_text(block.text)
    run([tool("java"), "-cp", jar, "Program.java"], tmp_path, None, block.output)


@those_in("csharp")
def test_csharp(block, assembly, tmp_path):
    (tmp_path / "program.cs").write_text(block.text)
    beside(tmp_path, assembly, assembly.parent / "librobocache_csharp.so")
    command = [tool("mcs"), "-langversion:7.2", "-warnaserror", "-r:RoboCache.dll", "program.cs"]
    run(command, tmp_path, None)
    run([tool("mono"), "program.exe"], tmp_path, None, block.output)


@those_in("sh")
def test_shell(block, tmp_path, request):
    commands = [line.strip() for line in block.text.split("\n")]
    for start, reason in UNSAFE.items():
        if any(re.match(rf"{start}\b", command) for command in commands):
            skip(block, f"{start} {reason}")
    for name in ("pkg-config", "javac", "mcs", "mono"):
        if f"{name} " in block.text:
            tool(name)
    environment = request.getfixturevalue("environment")
    write_programs(block, tmp_path)
    if "java " in block.text:
        beside(tmp_path / "lib", request.getfixturevalue("jar"))
    if "mono " in block.text:
        assembly = request.getfixturevalue("assembly")
        beside(tmp_path, assembly, assembly.parent / "librobocache_csharp.so")
    run(["bash", "-euo", "pipefail", "-c", block.text], tmp_path, environment, block.output)


def write_programs(block, folder):
    """The files that a shell block names: the last program above it of each language."""
    above = [each for each in BLOCKS if each.page == block.page and each.line < block.line]
    last = {each.language: each.text for each in above}
    cmake = last.get("cmake", "")
    (folder / "CMakeLists.txt").write_text(cmake)
    for language, end in PROGRAMS.items():
        for name in re.findall(rf"\b\w+\.{end}\b", block.text + cmake):
            (folder / name).write_text(last[language])
