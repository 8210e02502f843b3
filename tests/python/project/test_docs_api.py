"""The Python reference has a page for every public name."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import robocache as rbc

PAGES = Path(__file__).resolve().parents[3] / "docs" / "api" / "python"
MODULES = ("robocache", "robocache.data", "robocache.torch", "robocache.ray")
ELSEWHERE = {
    "robocache.__version__",
    "robocache.statistics_files",  # its functions have pages
    "robocache.data.checks",  # its functions have pages
    "robocache.data.Channel",  # the class of robocache
    "robocache.data.Episodes",  # the class of robocache
}


def documented():
    found = set()
    for page in PAGES.glob("*.md"):
        for module, names in re.findall(
            r"\.\. currentmodule:: (\S+)\n\.\. autosummary::\n(?:   :.*\n)+\n((?:   \w+\n)+)",
            page.read_text(),
        ):
            found |= {f"{module}.{name}" for name in names.split()}
    return found


@pytest.mark.parametrize("name", MODULES)
def test_every_public_name_has_a_page(name):
    if name != "robocache":
        pytest.importorskip({"robocache.torch": "torch"}.get(name, "numpy"))
        module = getattr(rbc, name.partition(".")[2])
    else:
        module = rbc
    public = {f"{name}.{each}" for each in module.__all__} - ELSEWHERE
    assert public <= documented()


def test_every_page_is_of_a_name_that_exists():
    pytest.importorskip("torch")
    for full in documented():
        at = rbc
        for part in full.split(".")[1:]:
            at = getattr(at, part)
