"""Texts of several MB, which are parsed part by part, give what one part would give."""

from __future__ import annotations

import io
import random
import re
import sys

import numpy as np
import pyarrow
import pyarrow.csv
import pytest

from robocache import data
from robocache.data._formats.tables import texts
from robocache.data._formats.tables.lines import arrow_file, with_single_blanks

ROWS = 48_000


def written(path, columns, names="time,a,b"):
    """Write rows of texts below a header."""
    path.write_text(names + "\n" + "".join(",".join(row) + "\n" for row in zip(*columns)))
    assert path.stat().st_size > 1 << 20
    return path


def plain(count=ROWS):
    return [[f"{i / 100:.2f}" for i in range(count)], [f"{i / 7:.9f}" for i in range(count)]]


@pytest.mark.parametrize("place", [10, ROWS - 1])
@pytest.mark.parametrize(
    ("first", "later"),
    [("1", "1.5"), ("", "1.5"), ("", "7"), ("-0", "0.5"), ("0x10", "1.5"), ("1", "x"), ("", "x")],
)
def test_types_that_later_rows_decide(tmp_path, place, first, later):
    """A column has the type that Arrow finds if it parses the whole file at once."""
    columns = [*plain(), [first] * place + [later] * (ROWS - place)]
    path = written(tmp_path / "x.csv", columns)
    options = pyarrow.csv.ReadOptions(block_size=1 << 26, use_threads=False)
    whole = pyarrow.csv.read_csv(path, read_options=options)["b"]
    recording = data.open(path).load()
    if pyarrow.types.is_string(whole.type):
        assert any(each.place == "x: b" for each in recording.left_out)
        return
    expected = whole.to_numpy()
    own = next(s for s in recording.streams.values() if "b" in s.names)
    values = own.values[:, own.names.index("b")]
    expected = expected[np.isfinite(expected)]
    assert np.array_equal(values, expected)
    assert np.array_equal(np.signbit(values), np.signbit(expected))


def test_numbers_are_rounded_correctly_in_every_part(tmp_path):
    numbers = random.Random(1)
    texts = [repr(numbers.uniform(-1, 1) * 10 ** numbers.randrange(-300, 300)) for _ in range(ROWS)]
    path = written(tmp_path / "x.csv", [*plain(), texts])
    values = data.open(path)["x"].values[:, 1]
    assert values.tolist() == list(map(float, texts))


@pytest.mark.parametrize("end", ["\n", "\r\n", "\n\n"])
def test_cells_in_quotes_over_several_lines(tmp_path, end):
    """A cell in quotes that lies across two parts is a single cell."""
    cells = ['"two\nlines, and a comma"' if i % 17 == 0 else f'"text {i}"' for i in range(ROWS)]
    path = tmp_path / "x.csv"
    rows = (",".join(row) + end for row in zip(*plain(), cells))
    path.write_bytes(("time,a,b" + end + "".join(rows)).encode())
    stream = data.open(path)["x"]
    assert stream.times().tolist() == [i / 100 for i in range(ROWS)]
    assert stream.values[:, 0].tolist() == [float(f"{i / 7:.9f}") for i in range(ROWS)]


@pytest.mark.parametrize("count", [20, ROWS])
@pytest.mark.parametrize("cell", ['"', '"1.5', '"x""'])
def test_a_quote_that_is_not_closed(tmp_path, count, cell):
    """Arrow takes the rest of the file as one cell. Only the line with the quote is skipped."""
    columns = [*plain(count), ["1.5"] * count]
    columns[2][count // 2] = cell
    path = tmp_path / "x.csv"
    path.write_text("time,a,b\n" + "".join(",".join(row) + "\n" for row in zip(*columns)))
    place = f"line {count // 2 + 2:,}: has a quote that is not closed"
    with pytest.raises(data.FormatError, match=re.escape(place)):
        data.open(path)
    kept = data.open(path, damaged="keep")
    assert len(kept.problems) == 1
    assert kept["x"].times().tolist() == [i / 100 for i in range(count) if i != count // 2]


@pytest.mark.parametrize("quote", [b'"7.5"', b'"7.5'])
def test_rows_that_are_not_utf8_among_quotes(tmp_path, monkeypatch, quote):
    """Arrow cannot pass such a row to Python: it would print an error."""
    printed: list[object] = []
    monkeypatch.setattr("sys.unraisablehook", printed.append)
    path = tmp_path / "x.csv"
    rows = b"".join(b"%d,1.5,2.5\n" % i for i in range(20))
    path.write_bytes(b"time,a,b\n" + rows + b"\xff,1\n20,1.5," + quote + b"\n")
    with pytest.raises(data.FormatError):
        data.open(path)
    kept = data.open(path, damaged="keep").load()
    assert kept["x"].times().tolist() == list(range(21 if quote.endswith(b'"') else 20))
    assert printed == []


def test_a_line_longer_than_a_part(tmp_path):
    """Its cells are read, too; the names of the columns come from the line above."""
    names = ["time", *(f"c{i}" for i in range(1500))]
    rows = np.round(np.random.default_rng(1).normal(size=(8, len(names))), 3)
    rows[:, 0] = np.arange(8)
    text = io.StringIO()
    np.savetxt(text, rows, "%.3f" + " " * 1000, delimiter=",")
    path = tmp_path / "x.csv"
    path.write_text(",".join(names) + "\n" + text.getvalue())
    assert np.array_equal(data.open(path)["x"].values, rows[:, 1:])


def test_arrow_has_no_object_of_python():
    """Its threads read ahead: one that has such an object when Python ends aborts the process."""
    block = bytes(bytearray(b"time,a\n1,2\n"))
    before = sys.getrefcount(block)
    file = arrow_file(block)
    assert sys.getrefcount(block) == before
    assert file.read() == block
    assert arrow_file(b"").read() == b""


def test_runs_of_blanks():
    """The same as replacing each run."""
    numbers = random.Random(2)
    for _ in range(20_000):
        block = bytes(numbers.choice(b" \t\r\n1 x\x0b") for _ in range(numbers.randrange(14)))
        lines = block.replace(b"\r\n", b"\n").split(b"\n")
        expected = b"\n".join(re.sub(rb"[ \t]+", b" ", line).strip(b" ") for line in lines)
        assert with_single_blanks(block) == expected, block


DATES = [
    ("date", "2023-11-14 12:34:56.789"),
    ("date", "2023/1/14T02:34:56Z"),
    ("date", "20231114_123456.12"),
    ("date", "2023-11-14 12:34:56.123456+05:30"),
    ("time of day", "12:34:56.7"),
    ("time of day", "1:34:56 PM"),
    ("day", "2023/11/14"),
    ("length", "-2 days +01:02:03"),
]


@pytest.mark.parametrize(("form", "text"), DATES)
def test_texts_that_differ_only_in_their_digits(form, text):
    """Each has the value that it has in a column with texts of another length."""
    numbers = random.Random(3)
    rows = [
        "".join(str(numbers.randrange(10)) if c.isdigit() and numbers.random() < 0.3 else c
                for c in text)
        for _ in range(100)
    ]  # fmt: skip
    alike = texts.parsed("x", form, pyarrow.array(rows))
    for row, ns, there in zip(rows, *alike):
        own, valid = texts.parsed("x", form, pyarrow.array([row, row + " "]))
        assert valid[0] == there
        assert not there or own[0] == ns
    assert alike[1].any()
