"""The README's Python snippets run as they stand."""

import pathlib
import re

import pytest

README = pathlib.Path(__file__).parents[2] / "README.md"
SNIPPETS = re.findall(r"^```python\n(.*?)^```$", README.read_text(), re.MULTILINE | re.DOTALL)


def test_there_are_snippets():
    assert SNIPPETS


@pytest.mark.parametrize("snippet", SNIPPETS)
def test_snippet(snippet):
    exec(compile(snippet, str(README), "exec"), {})
