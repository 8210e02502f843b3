"""tests/abi/layouts has a row for everything that the headers declare, in the file of the header.

tests/abi/layout_test.cpp compares the rows with the headers; a missing row would not be compared.
"""

import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
HEADERS = ROOT / "include"
sys.path.insert(0, str(ROOT / "scripts"))

import abi_release  # noqa: E402

ROW = re.compile(r"^(VALUE|SIZE|GROWS|FIELD|DEFAULT|FUNCTION)\((\w+)(?:, (\w+))?", re.M)


def rows():
    """Return {file: {kind of row: [name]}}; a field is named struct.field."""
    found = {}
    for path in sorted((ROOT / "tests/abi/layouts").glob("*.inc")):
        kinds = found.setdefault(path.stem, {})
        for kind, name, second in ROW.findall(path.read_text()):
            full = f"{name}.{second}" if kind == "FIELD" else name
            kinds.setdefault(kind, []).append(full)
            if kind == "GROWS":
                number = re.search(rf"GROWS\({name}, \d+, (\w+), ", path.read_text())
                kinds.setdefault("VALUE", []).append(number[1])
    return found


def named(*wanted):
    return [name for kinds in rows().values() for kind in wanted for name in kinds.get(kind, ())]


@pytest.fixture(scope="module")
def declared():
    return abi_release.read_headers(HEADERS)


def test_every_declaration_has_one_row(declared):
    constants = set(declared.constants) - {"RBC_ABI_VERSION"}  # a static_assert of layout_test.cpp
    fields = {f"{name}.{field}" for name, of in declared.structs.items() for field in of}
    assert sorted(named("VALUE")) == sorted(constants)
    assert sorted(named("FIELD")) == sorted(fields)
    assert sorted(named("FUNCTION")) == sorted(declared.exported)
    sizes = named("SIZE", "GROWS")
    assert len(sizes) == len(set(sizes))
    assert set(declared.structs) <= set(sizes)


def test_structs_that_begin_with_their_size_may_grow(declared):
    sized = [name for name, of in declared.structs.items() if next(iter(of)) == "struct_size"]
    assert sorted(named("GROWS")) == sorted(sized)


@pytest.mark.parametrize("name", sorted(rows()))
def test_rows_are_in_the_file_of_their_header(name):
    text = (HEADERS / "robocache" / f"{name}.h").read_text()
    for kind, names in rows()[name].items():
        for each in names:
            if not each.startswith("RBC_STRUCT_"):  # base.h numbers the structs of all headers
                pattern = r"\b" + each.rpartition(".")[2] + r"\b"
                assert re.search(pattern, text), f"{kind}({each}): not declared in {name}.h"
