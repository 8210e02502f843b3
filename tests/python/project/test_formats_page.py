"""docs/formats.md has what the descriptions of the formats say.

ROBOCACHE_WRITE_DOCS=1 writes the page.
"""

from __future__ import annotations

import os
import re
import textwrap
from pathlib import Path

import pytest

import robocache as rbc
from robocache.data._formats import registry

PAGE = Path(__file__).resolve().parents[3] / "docs" / "formats.md"
WRITER = "tests/python/project/test_formats_page.py"
RUN_BY = "<!-- skipped: reads a file; tests/python/data/test_formats.py runs it -->"
WIDTH = 128


def escaped(text):
    return re.sub(r"([*<|\[\]])", r"\\\1", text)


def packages_of(described):
    return ", ".join(f"`{name}`" for name in described.package.split(", ") if name)


def files_of(described):
    """Names of files as code, other words unchanged."""
    files = described.files.split(", ")
    return ", ".join(f"`{each}`" if re.fullmatch(r"[\w.*/-]+", each) else each for each in files)


def table():
    lines = ["| Name | Format | Files | Packages |", "|---|---|---|---|"]
    for each in registry.descriptions():
        cells = (f"`{each.name}`", escaped(each.title), files_of(each), packages_of(each))
        lines.append(f"| {' | '.join(cells)} |".replace("|  |", "| |"))
    return "\n".join(lines) + "\n"


def section(described):
    needs = "Needs no other package than NumPy."
    if described.package:
        extra = f": `pip install 'robocache[{described.extra}]'`" if described.extra else ""
        needs = f"Needs {packages_of(described)}{extra}."
    paragraphs = [f"### {described.title}", f"Files: {files_of(described)}. {needs}"]
    paragraphs += [escaped(described.reads)]
    if described.refuses:
        paragraphs += [f"**Not read.** {escaped(described.refuses)}"]
    paragraphs = [
        textwrap.fill(each, WIDTH, break_long_words=False, break_on_hyphens=False)
        for each in paragraphs
    ]
    return "\n\n".join([*paragraphs, f"{RUN_BY}\n```python\n{described.example}\n```"]) + "\n"


BLOCKS = {
    "table": table,
    "sections": lambda: "\n".join(map(section, registry.descriptions())),
}


@pytest.mark.parametrize("name", BLOCKS)
def test_the_page_is_up_to_date(name):
    begin, end = f"<!-- begin {name}: written by {WRITER} -->\n", f"<!-- end {name} -->\n"
    page = PAGE.read_text()
    before, found, rest = page.partition(begin)
    block, also_found, after = rest.partition(end)
    assert found and also_found, f"{PAGE} lacks the marks of {name}"
    expected = f"\n{BLOCKS[name]()}\n" if name == "sections" else BLOCKS[name]()
    if os.environ.get("ROBOCACHE_WRITE_DOCS"):
        PAGE.write_text(before + begin + expected + end + after)
        return
    assert block == expected, f"{PAGE} is out of date: run this test with ROBOCACHE_WRITE_DOCS=1"


def test_every_description_is_complete():
    found = registry.descriptions()
    names = [each.name for each in found]
    assert len(names) == len(set(names)) and len({each.title for each in found}) == len(found)
    for each in found:
        assert isinstance(each, rbc.data.Format)
        assert re.fullmatch(r"[a-z][a-z0-9_-]*", each.name), each.name
        for text in (each.reads, *filter(None, [each.refuses])):
            assert text.endswith(".") and text[:1].isupper(), (each.name, text)
        assert each.title and each.files and "\n" not in each.files, each.name
        assert not each.extra or each.package, f"{each.name}: an extra without a package"
        if each.package:
            assert each.extra in extras(), f"{each.name}: no extra {each.extra!r}"


def extras():
    pyproject = (PAGE.parents[1] / "pyproject.toml").read_text()
    section = pyproject.partition("[project.optional-dependencies]\n")[2].partition("\n[")[0]
    return dict(re.findall(r"(?m)^(\w+) = (\[.*\])$", section))


def test_the_extra_of_a_format_installs_its_packages():
    known = extras()
    for each in registry.descriptions():
        for package in filter(None, each.package.split(", ")):
            assert f'"{package}' in known[each.extra], (each.name, package)


def test_the_example_package_is_on_the_page():
    for file in re.findall(r"literalinclude} (\S+)", PAGE.read_text()):
        assert (PAGE.parent / file).is_file(), file
