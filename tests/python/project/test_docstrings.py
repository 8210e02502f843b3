"""The docstrings of what is public: the sections that help() should show, and every parameter."""

import inspect

import pytest

import robocache as rbc
from docstrings import parameters_of

TAKE_NOTHING = ("image_presets", "info", "release_idle_memory")
OPERATIONS = [
    name
    for name in rbc.__all__
    if inspect.isfunction(getattr(rbc, name)) and name not in TAKE_NOTHING
]
CLASSES = ["Context", "Episodes", "Stream", "Track", "Transform"]
CLASSES += ["Window", "WindowSpec", "WindowStream"]


@pytest.mark.parametrize("name", OPERATIONS + CLASSES)
def test_every_parameter_and_section(name):
    value = getattr(rbc, name)
    documented = inspect.getdoc(value)
    for title in ("Parameters", "Raises", "Examples", *(["Returns"] * (name in OPERATIONS))):
        assert f"\n{title}\n{'-' * len(title)}\n" in documented
    assert set(parameters_of(value)) == set(inspect.signature(value).parameters)


def test_the_parameters_of_torch_resample():
    pytest.importorskip("torch")
    plain = set(inspect.signature(rbc.resample).parameters) - {"out"}
    assert set(parameters_of(rbc.torch.resample)) == plain


def test_all_that_is_public_is_documented():
    for name in rbc.__all__:
        value = getattr(rbc, name)
        if name == "__version__":
            continue
        assert value.__doc__ and not value.__doc__.startswith(f"{name}("), name
        if inspect.isclass(value):
            for method, function in vars(value).items():
                if inspect.isfunction(function) and not method.startswith("_"):
                    assert function.__doc__, f"{name}.{method}"
