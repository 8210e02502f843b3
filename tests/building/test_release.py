"""scripts/release.sh freezes the ABI at a tag; scripts/abi_release.py then finds what breaks it.

Each test changes the headers of a small clone that has a tag. A library of empty functions with the
names and versions of tests/abi/layouts replaces the real one.
"""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FILES = (
    ".gitignore",
    "include",
    "scripts/release.sh",
    "scripts/abi_release.py",
    "tests/abi/layouts",
    "CHANGELOG.md",
)
HEADER = (ROOT / "include/robocache/base.h").read_text()
VERSION = ".".join(re.findall(r"define RBC_VERSION_\w+ (\d+)", HEADER))


def run(*command, cwd, status=0):
    done = subprocess.run(
        [str(word) for word in command],
        cwd=cwd,
        env={**os.environ, "GIT_AUTHOR_NAME": "test", "GIT_AUTHOR_EMAIL": "test@example.com"}
        | {"GIT_COMMITTER_NAME": "test", "GIT_COMMITTER_EMAIL": "test@example.com"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout + done.stderr


def functions_in(text):
    return re.findall(r"^FUNCTION\((rbc\w+)", text, re.M)


class Clone:
    """A checkout with the files that a release needs, committed."""

    def __init__(self, folder):
        self.folder = folder

    @classmethod
    def make(cls, folder):
        folder.mkdir()
        for name in FILES:
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
            copy(ROOT / name, target)
        run("git", "init", "--quiet", cwd=folder)
        run("git", "add", ".", cwd=folder)
        run("git", "commit", "--quiet", "--message", "start", cwd=folder)
        return cls(folder)

    def copy(self, folder):
        shutil.copytree(self.folder, folder)
        return Clone(folder)

    def release(self, *arguments, status=0):
        return run("scripts/release.sh", *arguments, cwd=self.folder, status=status)

    def check(self, status=0):
        library = self.build_library()
        command = ("python3", "scripts/abi_release.py", "check", "--library", library)
        return run(*command, cwd=self.folder, status=status)

    def build_library(self):
        """Build a library of empty functions with the exports of the baseline."""
        nodes = {}
        for path in sorted((self.folder / "tests/abi/layouts").glob("*.inc")):
            for block in path.read_text().split("SYMBOL_VERSION(")[1:]:
                nodes.setdefault(block.partition(")")[0], []).extend(functions_in(block))
        script, source, before = "", "", ""
        for node, names in sorted(nodes.items()):
            source += "".join(f"void {name}(void) {{}}\n" for name in names)
            hidden = "" if before else "local: *;"
            script += f"{node} {{ global: {'; '.join(names)}; {hidden} }} {before};\n"
            before = node
        folder = self.folder / "build"
        folder.mkdir(exist_ok=True)
        (folder / "stub.c").write_text(source)
        (folder / "stub.map").write_text(script)
        library = folder / "librobocache.so"
        options = ("-shared", "-fPIC", f"-Wl,--version-script={folder}/stub.map")
        run("cc", *options, folder / "stub.c", "-o", library, cwd=folder)
        return library

    def edit(self, path, pattern, replacement):
        """Replace the one match of a pattern."""
        file = self.folder / path
        text, count = re.subn(pattern, replacement, file.read_text(), count=1, flags=re.M | re.S)
        assert count == 1, f"{path} has no {pattern}"
        file.write_text(text)


@pytest.fixture(scope="module")
def tagged(tmp_path_factory):
    clone = Clone.make(tmp_path_factory.mktemp("release") / "clone")
    assert "SKIPPED" in clone.check()  # nothing is frozen yet
    clone.release(VERSION, "--unsigned")
    return clone


@pytest.fixture
def clone(tagged, tmp_path):
    return tagged.copy(tmp_path / "clone")


def header_with(pattern, after=""):
    """Return the first header that has a match, of those that sort behind a name, and the match."""
    for path in sorted((ROOT / "include/robocache").glob("*.h")):
        name = f"include/robocache/{path.name}"
        found = re.search(pattern, path.read_text(), re.M | re.S)
        if found and name > after:
            return name, found
    raise ValueError(f"no header has {pattern}")


# A struct that may grow: its name, and the text before its end.
GROWING = r"typedef struct (rbc\w+) \{\n  uint32_t struct_size;[^}]*?(\n\} \1;)"
# A struct that may not grow.
FIXED = r"typedef struct (rbc\w+) \{\n  (?!uint32_t struct_size)[^}]*?(\n\} \1;)"
# A struct with a double: the text before that, and both names.
DOUBLE = r"(typedef struct (rbc\w+) \{[^}]*?\n  )double (\w+);"


def insert_before_end(clone, pattern, field):
    path, found = header_with(pattern)
    clone.edit(path, re.escape(found[2]), f"\n  {field};{found[2]}")
    return found[1]


# ---- release.sh ----------------------------------------------------------------------------------


def test_the_tag_has_the_frozen_files(tagged):
    folder = f"tests/abi/released/{VERSION}"
    names = run(
        "git", "ls-tree", "-r", "--name-only", f"v{VERSION}", folder, cwd=tagged.folder
    ).split()
    headers = [
        f"{folder}/include/robocache/{path.name}" for path in (ROOT / "include/robocache").iterdir()
    ]
    assert set(names) == {f"{folder}/exports.txt", f"{folder}/layouts.txt", *headers}
    layouts = (tagged.folder / folder / "layouts.txt").read_text()
    exports = functions_in((ROOT / "tests/abi/layouts/clouds.inc").read_text())
    assert exports and all(f"\nfunction {name} " in layouts for name in exports)
    assert "constant RBC_STATUS_SUCCESS 0\n" in layouts
    assert run("git", "status", "--porcelain", "--", "tests", cwd=tagged.folder) == ""


def test_a_release_is_refused(tagged, clone):
    assert "is not a version" in clone.release("1.0", status=1)
    assert f"has version {VERSION}, expected 9.9.9" in clone.release("9.9.9", status=1)
    (clone.folder / "new").touch()
    assert "differ from the last commit" in clone.release(VERSION, status=1)
    (clone.folder / "new").unlink()
    assert f"the tag v{VERSION} exists" in clone.release(VERSION, status=1)
    run("git", "tag", "--delete", f"v{VERSION}", cwd=clone.folder)
    assert "a release is frozen once" in clone.release(VERSION, status=2)


# ---- allowed changes -----------------------------------------------------------------------------


def test_allowed_changes(clone):
    insert_before_end(clone, GROWING, "uint64_t an_extra_field")
    clone.edit(
        "include/robocache/base.h",
        "(RBC_API rbcStatus_t)",
        r"#define RBC_EXTRA 7\nRBC_API void rbcExtra(void);\n\1",
    )
    path = clone.folder / "tests/abi/layouts/base.inc"
    added = "SYMBOL_VERSION(ROBOCACHE_1_0.2);\nFUNCTION(rbcExtra, void (*)());\n"
    path.write_text(path.read_text() + added)
    clone.edit(
        "include/robocache/base.h", r"(rbcStatusName\(rbcStatus_t) \w+\)", r"\1 another_name)"
    )
    assert "0 problems" in clone.check()


def test_another_abi_version(clone):
    clone.edit("include/robocache/base.h", r"(RBC_ABI_VERSION) 1", r"\1 2")
    insert_before_end(clone, FIXED, "int64_t an_extra_field")
    assert "is not compared" in clone.check()


def test_structs_whose_size_callers_state(clone):
    """Either a struct states its size, or the owner of an array of them does."""
    structs = (
        "typedef struct rbcElement {\n  int64_t begin;\n} rbcElement;\n"
        "typedef struct rbcOwner {\n  uint32_t struct_size;\n  uint32_t element_size;\n"
        "  const rbcElement* elements;\n} rbcOwner;\n"
        "typedef struct rbcNarrow {\n  uint32_t struct_size;\n  uint32_t flags;\n} rbcNarrow;\n"
    )
    base = "include/robocache/base.h"
    clone.edit(base, "(RBC_API rbcStatus_t)", rf"{structs}\1")
    run("git", "tag", "--delete", f"v{VERSION}", cwd=clone.folder)
    shutil.rmtree(clone.folder / f"tests/abi/released/{VERSION}")
    run("git", "commit", "--quiet", "--all", "--message", "start again", cwd=clone.folder)
    clone.release(VERSION, "--unsigned")
    clone.edit(base, "  int64_t begin;", r"\g<0>\n  int64_t end;")
    clone.edit(
        base, "  uint32_t flags;\n} rbcNarrow", r"  uint32_t flags;\n  double x;\n} rbcNarrow"
    )
    assert "0 problems" in clone.check()


# ---- incompatible changes ------------------------------------------------------------------------


def test_changed_structs(clone):
    # Another type for one double, and another name for the next one.
    path, found = header_with(DOUBLE)
    clone.edit(path, re.escape(found[0]), f"{found[1]}int64_t {found[3]};")
    changed = f"{found[2]}.{found[3]}"
    path, found = header_with(DOUBLE, after=path)
    clone.edit(path, re.escape(found[0]), f"{found[1]}double an_extra_field;")
    removed = f"{found[2]}.{found[3]}"
    path, found = header_with(GROWING, after=path)
    begin = f"typedef struct {found[1]} {{\n  uint32_t struct_size;"
    clone.edit(path, re.escape(begin), f"{begin}\n  int64_t an_extra_field;")
    fixed = insert_before_end(clone, FIXED, "int64_t an_extra_field")

    output = clone.check(status=1)
    assert f"field {changed}: is `int64_t`, was `double`" in output
    assert f"field {removed}: was removed" in output
    assert f"field {found[1]}.an_extra_field: is new at byte 8, the released struct has" in output
    assert re.search(rf"field {found[1]}\.\w+: is at byte \d+, \d bytes, was at byte \d+", output)
    assert re.search(rf"struct {fixed}: .*no caller states its size", output)


def test_changed_constants_and_functions(clone):
    base = "include/robocache/base.h"
    clone.edit(base, r"(RBC_STATUS_INTERNAL =) (\d+)", r"\1 99")
    path, found = header_with(r"^#define (RBC_(?!VERSION|ABI)\w+) 1\b")
    clone.edit(path, rf"(#define {found[1]}) 1\b", r"\1 5")
    clone.edit(base, r"(rbcStatusName)\(rbcStatus_t status\)", r"\1(int64_t status)")
    output = clone.check(status=1)
    assert "constant RBC_STATUS_INTERNAL: is 99, was 10" in output
    assert f"constant {found[1]}: is 5, was 1" in output
    assert "function rbcStatusName: is `const char* (*)(int64_t status)`, was" in output


def test_a_removed_function(clone):
    name = functions_in((ROOT / "tests/abi/layouts/clouds.inc").read_text())[0]
    clone.edit("tests/abi/layouts/clouds.inc", rf"^FUNCTION\({name},.*?;\n", "")
    output = clone.check(status=1)
    assert f"symbol {name}@@ROBOCACHE_1:" in output
    assert "a program with the released headers fails" in output
    path, _ = header_with(rf"\b{name}\(")
    clone.edit(path, rf"RBC_API [\w* ]+{name}\([^;]*;", "")
    assert f"function {name}: was removed" in clone.check(status=1)


def test_frozen_files_are_not_edited(clone):
    clone.edit(
        f"tests/abi/released/{VERSION}/layouts.txt",
        r"constant RBC_STATUS_INTERNAL 10",
        "constant RBC_STATUS_INTERNAL 11",
    )
    assert "frozen files must not be edited" in clone.check(status=1)


def test_a_declaration_that_cannot_be_read(clone):
    insert_before_end(clone, GROWING, "double one, two")
    assert "cannot read the declaration `double one, two`" in clone.check(status=2)
