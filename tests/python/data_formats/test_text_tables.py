"""Text tables of any layout: encodings, delimiters, comments, decimal marks, no header."""

from __future__ import annotations

import io

import numpy as np
import pandas
import pytest

import text_sources
from robocache import data

pytestmark = pytest.mark.filterwarnings("ignore")
COUNT = 30
TIMES = np.round(1.7e9 + np.arange(COUNT) / 10, 6)


def rows(rng, width):
    """Return texts of random numbers [COUNT][width], the first of them times."""
    values = np.round(rng.normal(size=(COUNT, width - 1)) * 10.0 ** rng.integers(-3, 4), 6)
    return [[f"{t:.6f}", *map(repr, row.tolist())] for t, row in zip(TIMES, values)], values


def names_of(width):
    return ["time_s", *(f"v{i}" for i in range(1, width))]


LAYOUTS = {
    "plain": {},
    "semicolons": {"separator": ";"},
    "tabs": {"separator": "\t"},
    "blanks": {"separator": " "},
    "runs of blanks": {"separator": "  \t "},
    "spaces after commas": {"separator": ", "},
    "decimal commas": {"separator": ";", "decimal": ","},
    "decimal commas and tabs": {"separator": "\t", "decimal": ","},
    "decimal commas and blanks": {"separator": " ", "decimal": ","},
    "comment above": {"above": "# made by a logger, version 3\n"},
    "lines above": {"above": "Logger: 3\nRate,100\n\n"},
    "comment that names": {"mark": "# ", "separator": " "},
    "comment that names, commas": {"mark": "#"},
    "units": {"units": "s"},
    "units below lines": {"units": "s", "above": "Logger 3\n"},
    "utf-16": {"encoding": "utf-16"},
    "utf-16 without mark": {"encoding": "utf-16-le"},
    "utf-16, big end first": {"encoding": "utf-16-be", "separator": ";"},
    "latin-1": {"encoding": "latin-1", "extra": "\u00b0"},
    "utf-8 with mark": {"encoding": "utf-8-sig", "separator": " "},
    "quotes": {"quote": '"'},
    "windows": {"end": "\r\n", "separator": " "},
    "no header": {"header": False},
    "no header, blanks": {"header": False, "separator": "   "},
    "no header, a mark": {"header": False, "encoding": "utf-8-sig"},
    "no header, semicolons": {"header": False, "separator": ";", "decimal": ","},
    "no header, comment": {"header": False, "above": "# some values of a logger\n"},
}


def written(path, cells, width, **given):
    separator, quote = given.get("separator", ","), given.get("quote", "")
    end, extra = given.get("end", "\n"), given.get("extra", "")
    head = []
    if given.get("header", True):
        names = names_of(width)
        head = [[*names[:-1], names[-1] + extra]]
    if "units" in given:
        head.append([given["units"], *["m"] * (width - 1)])
    text = given.get("above", "") + given.get("mark", "")
    for row in [*head, *cells]:
        parts = [quote + part.replace(".", given.get("decimal", ".")) + quote for part in row]
        text += separator.join(parts) + end
    path.write_bytes(text.encode(given.get("encoding", "utf-8")))
    return path


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("width", [3, 7])
def test_layouts(tmp_path, layout, width):
    rng = np.random.default_rng([width, len(layout)])
    cells, values = rows(rng, width)
    path = written(tmp_path / "a.csv", cells, width, **LAYOUTS[layout])
    stream = data.open(path)["a"]
    assert np.array_equal(stream.values, values)
    assert np.array_equal(stream.times(), TIMES)
    if LAYOUTS[layout].get("header", True):
        assert [name.rstrip("\u00b0") for name in stream.names] == names_of(width)[1:]
    else:
        assert stream.names == tuple(f"c{i}" for i in range(1, width))
        assert "without a header" in data.open(path).info("a").times


@pytest.mark.parametrize("layout", ["semicolons", "decimal commas", "comment above", "utf-16"])
def test_as_pandas(tmp_path, layout):
    given = LAYOUTS[layout]
    cells, _ = rows(np.random.default_rng(5), 4)
    path = written(tmp_path / "a.csv", cells, 4, **given)
    frame = pandas.read_csv(
        io.StringIO(path.read_bytes().decode(given.get("encoding", "utf-8"))),
        sep=given.get("separator", ","),
        decimal=given.get("decimal", "."),
        comment="#",
        float_precision="round_trip",
    )
    stream = data.open(path)["a"]
    assert np.array_equal(stream.values, frame.to_numpy()[:, 1:])
    assert list(stream.names) == list(frame.columns[1:])


def test_lines_above_are_listed(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("Logger: 3\nRate: 100\ntime_s,x\n0,1\n1,2\n")
    (left_out,) = data.open(path).left_out
    assert str(left_out) == 'a: 2 lines above the header are not read: "Logger: 3"'


def test_commas_that_separate_thousands(tmp_path):
    path = tmp_path / "a.tsv"
    path.write_text("time_s\tx\ty\n" + "".join(f"{i}\t{i},000\t2\n" for i in range(1, 9)))
    recording = data.open(path)
    assert recording["a"].names == ("y",)  # x may be thousands, or have decimals
    assert [each.place for each in recording.left_out] == ["a: x"]


# ---- no header ----------------------------------------------------------------------------------


def headerless(path, columns, separator=" "):
    cells = zip(*columns)
    path.write_text("".join(separator.join(map(str, row)) + "\n" for row in cells))
    return path


COUNTED = range(COUNT)
SEED = np.random.default_rng(3)
NOISE = SEED.normal(size=COUNT).tolist()
ASCENDING = np.cumsum(SEED.uniform(0.001, 9, COUNT)).round(6)


@pytest.mark.parametrize(
    ("columns", "place", "unit"),
    [
        ([TIMES.tolist(), NOISE], 0, "s"),
        ([NOISE, TIMES.tolist()], 1, "s"),
        ([COUNTED, [1_700_000_000_000 + 10 * i for i in COUNTED], NOISE], 1, "ms"),
        ([[1_700_000_000_000_000_000 + 10**7 * i for i in COUNTED], NOISE], 0, "ns"),
        ([[i / 100 for i in COUNTED], NOISE], 0, "s"),
        ([[512.25 + i / 100 for i in COUNTED], NOISE], 0, "s"),
        ([(ASCENDING - ASCENDING[0]).tolist(), NOISE], 0, "s"),
    ],
)
def test_times_without_a_header(tmp_path, columns, place, unit):
    recording = data.open(headerless(tmp_path / "a.txt", columns))
    stream = recording["a"]
    factor = {"s": 1, "ms": 1, "ns": 1}[unit]
    assert recording.unit == unit
    assert np.array_equal(stream.times(), np.array(list(columns[place])) * factor)
    assert stream.names == tuple(f"c{i}" for i in range(len(columns)) if i != place)


@pytest.mark.parametrize(
    "columns",
    [
        [NOISE, NOISE],
        [COUNTED, NOISE],  # numbers of rows
        [[float(i) for i in COUNTED], NOISE],
        [[1] * COUNT, [i / 10 for i in COUNTED]],  # only the first column is tried
        [(5000 + ASCENDING).tolist(), NOISE],  # neither near 0, nor in equal steps
        [TIMES[::-1].tolist(), NOISE],
    ],
)
def test_no_sure_times_without_a_header(tmp_path, columns):
    path = headerless(tmp_path / "a.txt", columns)
    first = str(next(iter(columns[0])))
    with pytest.raises(data.FormatError, match="none of its columns c0 to c1") as caught:
        data.open(path)
    assert first in caught.value.reason and "--time c0" in caught.value.reason
    assert data.open(path, time="c0:ms")["a"].names == ("c1",)
    assert data.open(path, rate=10)["a"].names == ("c0", "c1")
    assert data.open(path, rate=10)["a"].times()[-1] == (COUNT - 1) / 10
    headerless(tmp_path / "b.csv", [TIMES.tolist(), NOISE], ",")
    recording = data.open(tmp_path)
    (unread,) = recording.unread
    assert unread.place == "a.txt" and first in unread.reason
    assert recording["b"].names == ("c1",)


@pytest.mark.parametrize(
    "text",
    [
        "1 0 0\n0 1 0\n0 0 1\n",  # a matrix
        "P0: 1 0 0\nP1: 0 1 0\n",
        "a text about 3 things\nand 4 more of them\n",
        "# only a comment\n",
        "x\ny\nz\n",
    ],
)
def test_texts_that_are_no_tables(tmp_path, text):
    (tmp_path / "a.dat").write_text(text)
    with pytest.raises(data.FormatError, match="unknown format"):
        data.open(tmp_path / "a.dat")
    np.save(tmp_path / "b.npy", np.zeros((4, 2)))
    assert data.open(tmp_path).format == "arrays"


def test_comments_among_the_rows(tmp_path):
    path = tmp_path / "a.txt"
    lines = [f"{t} {i}" for i, t in enumerate(TIMES.tolist())]
    lines[7:7] = ["# paused", "#"]
    path.write_text("\n".join(lines))
    assert data.open(path)["a"].values[:, 0].tolist() == list(range(COUNT))


def test_rows_of_another_width(tmp_path):
    path = tmp_path / "a.txt"
    lines = [f"{t} {i}" for i, t in enumerate(TIMES.tolist())]
    lines[9] = lines[9] + " 7"
    path.write_text("\n".join(lines))
    for change in (lines, [*lines[:9], *lines[10:-1], lines[-1].split()[0]]):
        path.write_text("\n".join(change))
        with pytest.raises(data.FormatError, match=r"has [13] cells?, expected 2.*damaged='keep'"):
            data.open(path)
        kept = data.open(path, damaged="keep")
        assert len(kept["a"]) == len(change) - 1 and len(kept.problems) == 1


def test_a_long_text(tmp_path):
    """The rows go on after the part that decides on the layout, and after each block."""
    count = 60_000
    times = np.round(1.7e9 + np.arange(count) / 100, 2)
    for encoding in ("utf-8", "utf-16"):
        text = "".join(f"{t:.2f}   {i}  {i / 4}\n" for i, t in enumerate(times))
        (tmp_path / "a.txt").write_bytes(text.encode(encoding))
        stream = data.open(tmp_path / "a.txt")["a"]
        assert np.array_equal(stream.times(), times)
        assert np.array_equal(stream.values[:, 0], np.arange(count))
        assert np.array_equal(stream.values[:, 1], np.arange(count) / 4)


def test_a_folder_of_texts(tmp_path):
    recording = data.open(text_sources.other_texts(tmp_path)).load()
    times = recording["headerless"].times()
    assert len(recording.names) == 7
    for name in recording.names:
        assert np.array_equal(recording[name].times(), times)
        assert recording[name].values[:, 0].tolist() == recording["blanks"].values[:, 0].tolist()


@pytest.mark.parametrize("place", [20_000, 2_000_000])
def test_bytes_that_are_no_text(tmp_path, place):
    """The first lines decide on the encoding; these bytes are behind them."""
    path = tmp_path / "a.txt"
    content = bytearray(b"".join(b"%.1f %d\n" % (i / 10, i) for i in range(200_000)))
    content[content.index(b".5 ", place) + 3] = 0xB1
    path.write_bytes(content)
    at = content.index(0xB1)
    with pytest.raises(data.FormatError, match=f"byte {at:,}: is not UTF-8"):
        data.open(path)
    kept = data.open(path, damaged="keep")
    assert kept.problems and len(kept.left_out) == 1  # the column is no longer of numbers
