"""The examples in the docstrings of every module give what they show."""

import doctest
import importlib
import inspect
import pathlib

import pytest

import robocache as rbc

FOLDER = pathlib.Path(rbc.__file__).parent

# What the examples of a module import beyond what the module itself does.
NEEDS = {
    "robocache._operations.data_frames": "pandas",
    "robocache.data": "pyarrow",
}
OPTIONAL = ("h5py", "ray", "rich", "torch", "typer")  # each is needed to import some modules


def modules_with_examples():
    for path in sorted(FOLDER.rglob("*.py")):
        if "\n    >>> " in path.read_text("utf-8"):
            parts = path.relative_to(FOLDER).with_suffix("").parts
            yield ".".join(("robocache", *parts)).replace(".__init__", "")


NAMES = list(modules_with_examples())


def imported(name):
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name.partition(".")[0] not in OPTIONAL:
            raise
        pytest.skip(f"{name} needs {error.name}, which is not installed")


@pytest.mark.parametrize("name", NAMES)
def test_examples(name, tmp_path, monkeypatch):
    module = imported(name)
    if name in NEEDS:
        pytest.importorskip(NEEDS[name])
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))  # some examples write files there
    result = doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert result.failed == 0 and result.attempted > 0


@pytest.mark.parametrize("part", ["robocache", "robocache.data", "robocache.torch"])
def test_every_public_example_is_run(part):
    """Each belongs to a module of the list above, where doctest looks for it."""
    public = imported(part)
    found = 0
    for name in public.__all__:
        value = getattr(public, name)
        if inspect.ismodule(value) or ">>> " not in (inspect.getdoc(value) or ""):
            continue
        assert value.__module__ in NAMES, f"{part}.{name}"
        tests = doctest.DocTestFinder().find(importlib.import_module(value.__module__))
        assert f"{value.__module__}.{value.__qualname__}" in {test.name for test in tests}
        found += 1
    assert found > 0
