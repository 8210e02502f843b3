"""The examples in the docstrings of every module give what they show."""

import doctest
import importlib
import inspect
import pathlib
import re

import pytest

import robocache as rbc

FOLDER = pathlib.Path(rbc.__file__).parent

# Libraries that the examples of a module import, and the module itself does not.
NEEDS = {
    "robocache._operations.data_frames": "pandas",
    "robocache.data": "pyarrow",
}
OPTIONAL = ("h5py", "ray", "rich", "torch", "typer")  # each is needed to import some modules

EXAMPLE = re.compile(r"^\s*>>> ", re.MULTILINE)


def modules_with_examples():
    for path in sorted(FOLDER.rglob("*.py")):
        if EXAMPLE.search(path.read_text("utf-8")):
            parts = path.relative_to(FOLDER).with_suffix("").parts
            yield ".".join(("robocache", *parts)).replace(".__init__", "")


class Finder(doctest.DocTestFinder):
    """Finds what a module defines in that module; its ``__module__`` may be another."""

    def _from_module(self, module, object):
        if inspect.isfunction(object):
            return object.__globals__ is vars(module)
        if inspect.isclass(object):
            return re.search(
                rf"^class {object.__name__}\b", inspect.getsource(module), re.MULTILINE
            )
        return super()._from_module(module, object)


def imported(name):
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name.partition(".")[0] not in OPTIONAL:
            raise
        pytest.skip(f"{name} needs {error.name}, which is not installed")


@pytest.mark.parametrize("name", list(modules_with_examples()))
def test_examples(name, tmp_path, monkeypatch):
    module = imported(name)
    if name in NEEDS:
        pytest.importorskip(NEEDS[name])
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))  # some examples write files there
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    for test in Finder().find(module, name):
        runner.run(test)
    assert runner.failures == 0
    assert runner.tries == len(EXAMPLE.findall(inspect.getsource(module)))  # all are found
