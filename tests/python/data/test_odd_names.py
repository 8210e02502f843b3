"""Names with control characters for a terminal are read, and escaped in output."""

from __future__ import annotations

import html.parser
import json
import os
import re
import shutil
import subprocess
import sys
import unicodedata

import numpy as np
import pytest

pytest.importorskip("typer")
pytest.importorskip("rich")

from typer.testing import CliRunner  # noqa: E402

import fuzz_readers  # noqa: E402
import recordings_with_faults as faults  # noqa: E402
import warm_python  # noqa: E402
from cli_process import on_a_terminal  # noqa: E402
from robocache import data  # noqa: E402
from robocache._files.overwrite import check_replaceable  # noqa: E402
from robocache._printable import printable  # noqa: E402
from robocache.cli._app import app  # noqa: E402
from robocache.data._errors import LeftOut, Problem  # noqa: E402
from robocache.data._findings import Finding  # noqa: E402

RUNNER = CliRunner()

# Bytes that are not UTF-8, a line break, a colour, C1, and marks of Rich.
FOLDER = os.fsdecode(b"\xff\nFORGED\x1b[31m\xc2\x9b2J[red]x[link=file:]")
SHOWN = r"\xff\nFORGED\x1b[31m\x9b2J[red]x[link=file:]"
NAMES = [
    "line\nFORGED: error",
    "steer\x1b[31m\x1b]0;title\x07",
    "c1\x9b2J\x85",
    "back\b\rFORGED\t\x7f",
    "bidi\u202egnp\u2066\u200f\u061c",
    "thin\u200b\u2060\ufeff",
    "lines\u2028FORGED\u2029",
    "[red]rich[/red][link=file:///x]y[/link] :smile:",
    "letters ñ схват 机器人 عربي 😀",
]
LONE = "lone\udcff\ud800"


# ---- the function -------------------------------------------------------------------------------


def test_printable():
    assert printable("a\nb\r\t\x1b[0m\x7f\x85\x9b") == r"a\nb\r\t\x1b[0m\x7f\x85\x9b"
    assert printable("\u202e\u2028\u200b\ufeff\U000e0041") == r"\u202e\u2028\u200b\ufeff\U000e0041"
    assert printable(os.fsdecode(b"\xff\x80")) == r"\xff\x80" and printable("\ud800") == r"\ud800"
    assert printable(NAMES[-1]) == NAMES[-1] and printable("[red] C:\\x 'y'") == "[red] C:\\x 'y'"


def test_printable_escapes_whole_categories():
    """Controls, surrogates and separators, and format characters except visible signs."""
    visible = {*range(0x600, 0x606), 0x6DD, 0x70F, 0x890, 0x891, 0x8E2, 0x110BD, 0x110CD}
    visible |= {*range(0x13430, 0x13440), *range(0x1BCA0, 0x1BCA4), *range(0x1D173, 0x1D17B)}
    for code in range(sys.maxunicode + 1):
        kind = unicodedata.category(chr(code))
        if kind in ("Cc", "Cs", "Zl", "Zp") or (kind == "Cf" and code not in visible):
            assert printable(chr(code)).startswith("\\"), hex(code)
        elif kind[0] in "LMNPS" or kind == "Zs":
            assert printable(chr(code)) == chr(code), hex(code)


def test_messages_of_the_library():
    for name in [*NAMES[:-1], LONE, FOLDER]:
        for text in (
            data.FormatError(name, name, name),
            Problem(name, name, name),
            LeftOut(name, name),
            Finding("error", "gaps", name, name, name),
            data.Recording.from_streams([faults.stream(name)]),
            data.Recording.from_streams([faults.stream(name)]).report(),
        ):
            assert_printable(str(text).replace("\n", " "))
        error = data.FormatError(name, "", "x")
        assert error.path == name
    with pytest.raises(FileNotFoundError) as caught:
        data.open(f"/none/{FOLDER}")
    assert str(caught.value) == f"/none/{SHOWN}: does not exist"


def test_messages_of_writers(tmp_path):
    place = tmp_path / FOLDER
    place.mkdir()
    (place / NAMES[0]).write_text("of others")
    with pytest.raises(FileExistsError) as caught:
        check_replaceable(str(place))
    assert_printable(str(caught.value))
    assert SHOWN in str(caught.value) and r"line\nFORGED" in str(caught.value)
    faults.save(place / "x.npz")
    with pytest.raises(FileExistsError, match=re.escape(SHOWN)):
        faults.recording(faults.stream()).save(place / "x.npz")
    faults.recording(faults.stream()).save(os.fsencode(place / "y.npz"))
    assert data.open(os.fsencode(place / "y.npz")).path == str(place / "y.npz")


def test_a_task_that_parquet_cannot_hold(tmp_path):
    pytest.importorskip("pyarrow")
    import robocache as rbc

    track = rbc.Track(np.arange(6.0)[:, None], [0, 6], times=np.arange(6) / 10)
    episodes = data.Episodes({NAMES[0]: track}, tasks=[LONE])
    with pytest.raises(ValueError, match=r"^tasks: 'lone\\udcff\\ud800' contains half of a"):
        episodes.save(tmp_path / "x", "lerobot")
    assert list(tmp_path.iterdir()) == []
    episodes.save(tmp_path / "x", "npz")
    assert list(data.open(tmp_path / "x").tasks) == [LONE]


def assert_printable(text):
    assert printable(text) == text


# ---- the command line ---------------------------------------------------------------------------

COMMANDS = """
import os, sys
from robocache.cli import main
for line in sys.stdin:
    arguments = [os.fsdecode(bytes.fromhex(part)) for part in line.split()]
    print("<<<", flush=True)
    print("<<<", file=sys.stderr, flush=True)
    code = main(arguments)
    sys.stdout.flush()
    print(f">>> {code}", flush=True)
    print(">>>", file=sys.stderr, flush=True)
"""
ENCODINGS = {
    "utf-8": {"LC_ALL": "C.UTF-8"},
    "ascii": {"PYTHONIOENCODING": "ascii"},
    "C": {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
}


def run(commands, encoding="utf-8"):
    """Run commands in one process; return (exit code, stdout, stderr) of each."""
    environment = {k: v for k, v in os.environ.items() if k not in ("FORCE_COLOR", "NO_COLOR")}
    environment.update(ENCODINGS[encoding], COLUMNS="80")
    lines = [" ".join(os.fsencode(str(part)).hex() for part in command) for command in commands]
    given = "\n".join(lines).encode()
    if encoding == "utf-8":
        _, *streams = warm_python.run(COMMANDS, environment=environment, input=given, seconds=300)
    else:
        process = subprocess.run(
            [sys.executable, "-c", COMMANDS],
            input=given,
            capture_output=True,
            env=environment,
            timeout=300,
        )
        streams = [process.stdout, process.stderr]
    texts = []
    for stream in streams:
        text = stream.decode("utf-8" if encoding == "utf-8" else "ascii")
        assert not re.search(r"Traceback|\wError: ", text), text
        assert_printable(text.replace("\n", ""))
        assert not [line for line in text.split("\n") if line.strip().startswith("FORGED")], text
        texts.append(re.findall(r"<<<\n(.*?)>>> ?(\d*)\n", text, re.DOTALL))
    assert len(texts[0]) == len(texts[1]) == len(commands), streams
    return [(int(code), out, err) for (out, code), (err, _) in zip(*texts)]


def commands_for(path, folder, unit="s"):
    """Every command that reads a recording or a data set, and errors of each kind."""
    options = [] if unit is None else ["--unit", unit]
    return [
        ["inspect", path, *options],
        ["inspect", path, "--json", *options],
        ["stats", path],
        ["stats", path, "--json"],
        ["report", path, "--html", folder / "page.html", *options],
        ["report", path, "--html", folder / "page.html", *options],  # exists
        ["resample", path, "--rate", "20", "-o", folder / "out.npz", *options],
        ["resample", path, "--rate", "20", "-o", folder / "out.npz", "--json", *options],
        ["windows", path, "--steps", "2"],
        ["sync", path, "--a", NAMES[0], "--b", FOLDER, *options],
        ["stats", path, "--stream", NAMES[0]],
        ["inspect", f"{path}.none"],
        ["inspect", path, path],  # too many arguments
        ["inspect", path, f"--{NAMES[1]}"],
    ]


def check(results, path):
    """Check that the source was read, and that JSON is right."""
    inspected, as_json, stats, stats_json, report, exists = results[:6]
    assert inspected[0] == 0, inspected
    assert SHOWN in inspected[1].replace("\n", "")
    told = json.loads(as_json[1])
    assert told["path"] == str(path) and told["streams"]
    assert stats[0] == 0 and json.loads(stats_json[1])["streams"], stats
    assert report[0] == 0 and exists[0] == 1, report
    assert SHOWN in exists[2] and "exists; --overwrite replaces it" in exists[2]
    missing, many, option = results[-3:]
    assert missing[0] == 1 and SHOWN in missing[2], missing
    assert many[0] == 2 and option[0] == 2
    return told


@pytest.fixture(scope="module")
def results_of_formats(tmp_path_factory):
    """A source of each format, in a folder that is not UTF-8, and results by name of command.

    The first format of a family has one of each command that reads; test_names_within runs the
    others, whose words no format changes. One process runs all of them.
    """
    sources, commands, families = {}, [], set()
    for kind, make in fuzz_readers.FORMATS.items():
        made = make(tmp_path_factory.mktemp("made"))  # others do not write to such paths
        folder = tmp_path_factory.mktemp("read") / FOLDER
        folder.mkdir()
        path = folder / made.name
        shutil.move(made, path)
        unit = "s" if made.name in fuzz_readers.PLAIN else None
        chosen = {each[0]: each for each in reversed(commands_for(path, folder, unit))}
        family = kind.partition("-")[0]
        if family in families:
            chosen = {"inspect": chosen["inspect"]}
        families.add(family)
        sources[kind] = path, unit, list(chosen)
        commands += chosen.values()
    results = iter(run(commands))
    return {
        kind: (path, unit, {name: next(results) for name in names})
        for kind, (path, unit, names) in sources.items()
    }


@pytest.mark.parametrize("kind", fuzz_readers.FORMATS)
def test_every_format_in_a_folder_that_is_not_utf_8(results_of_formats, kind):
    path, unit, results = results_of_formats[kind]
    for given in (path, os.fsencode(path)):
        data.open(given, unit=unit)
    assert results["inspect"][0] == 0 and SHOWN in results["inspect"][1].replace("\n", "")
    is_cloud = kind.startswith(("pcd", "ply")) or kind == "sweep"
    if len(results) > 1 and not is_cloud:
        assert results["stats"][0] == results["report"][0] == 0, results
        assert SHOWN in results["report"][1].replace("\n", "")
        parsed(path.parent / "page.html")


def test_clouds(tmp_path):
    """Depth images and point clouds have their own commands."""
    folder = tmp_path / FOLDER
    folder.mkdir()
    path = fuzz_readers.FORMATS["pcd"](folder)
    (folder / "depth").mkdir()
    for name in (NAMES[0], NAMES[1], FOLDER):
        np.save(folder / "depth" / f"{name.replace('/', '')}.npy", np.full((4, 5), 2000, np.uint16))
    (folder / "k.json").write_text("[20, 20, 2, 2]")
    (folder / "odd.json").write_text("{}")
    cloud = ["cloud", folder / "depth", "--intrinsics", folder / "k.json"]
    results = run([
        ["voxelize", path, "--voxel-size", "1", "-o", folder / "v.npz"],
        ["voxelize", path, "--voxel-size", "1", "-o", folder / "w.npz", "--json"],
        [*cloud, "-o", folder / "clouds"],
        [*cloud, "-o", folder / "clouds"],
        [*cloud, "-o", folder / "others", "--json"],
        ["cloud", folder / "depth", "--intrinsics", folder / "odd.json", "-o", folder / "none"],
    ])  # fmt: skip
    assert [code for code, *_ in results] == [0, 0, 0, 1, 0, 1], results
    assert json.loads(results[4][1])["output"] == str(folder / "others")
    assert SHOWN in results[3][2] and SHOWN in results[5][2]


# ---- names within -------------------------------------------------------------------------------


def _recording(folder, names):
    streams = [
        data.RecordedStream(
            name,
            f"type {name}",
            (f"x {name}", f"y {name}"),
            np.random.default_rng(i).normal(size=(60, 2)),
            {"log": np.arange(60) * 20_000_000},
            "ns",
        )
        for i, name in enumerate(names)
    ]
    data.Recording.from_streams(streams).save(folder / "x.npz")
    return folder / "x.npz"


def _episodes(format):
    def make(folder, names):
        import robocache as rbc

        tracks = {
            name: rbc.Track(
                np.random.default_rng(i).normal(size=(60, 2)),
                [0, 25, 60],
                times=(np.arange(60) * 20_000_000).view("timedelta64[ns]"),
                names=[f"x {name}", f"y {name}"],
            )
            for i, name in enumerate(names)
        }
        data.Episodes(tracks, tasks=[names[0], names[1]]).save(folder / "x", format)
        return folder / "x"

    return make


def _csv(folder, names):
    quoted = [f'"{name}"' for name in names]
    rows = "".join(f"{0.02 * i:.2f},{','.join([str(i)] * len(names))}\n" for i in range(60))
    (folder / "x.csv").write_bytes(os.fsencode(f"time,{','.join(quoted)}\n{rows}"))
    return folder / "x.csv"


def _parquet(folder, names):
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = {name: np.arange(60.0) ** 0.5 for name in names}
    pq.write_table(pa.table({"time": np.arange(60) / 50, **columns}), folder / "x.parquet")
    return folder / "x.parquet"


def _npy(folder, names):
    (folder / "x").mkdir()
    for name in names:
        np.save(folder / "x" / f"{name.replace('/', '')}.npy", np.arange(120.0).reshape(60, 2))
    np.save(folder / "x" / "times.npy", np.arange(60) / 50)
    return folder / "x"


def _hdf5(folder, names):
    import h5py

    with h5py.File(folder / "x.hdf5", "w") as file:
        demo = file.create_group("data/demo_0")
        demo.attrs["num_samples"] = 60
        demo["actions"] = np.arange(120.0).reshape(60, 2)
        for name in names:
            demo[f"obs/{name.replace('/', '')}"] = np.arange(120.0).reshape(60, 2)
        file["data"].attrs["total"] = 60
    return folder / "x.hdf5"


INSIDE = {
    "npz": (_recording, [*NAMES, LONE]),
    "npz of episodes": (_episodes("npz"), [*NAMES, LONE]),
    "zarr": (_episodes("zarr"), NAMES),
    "lerobot": (_episodes("lerobot"), NAMES),
    "csv": (_csv, [name for name in NAMES if "\n" not in name and "\r" not in name]),
    "parquet": (_parquet, NAMES),
    "npy": (_npy, NAMES),
    "hdf5": (_hdf5, NAMES),
}
NEEDED = {"zarr": "zarr", "lerobot": "pyarrow", "csv": "pyarrow", "parquet": "pyarrow",
          "hdf5": "h5py"}  # fmt: skip


@pytest.mark.parametrize("kind", INSIDE)
def test_names_within(tmp_path, kind):
    pytest.importorskip(NEEDED.get(kind, "numpy"))
    make, names = INSIDE[kind]
    (tmp_path / "made").mkdir()
    made = make(tmp_path / "made", names)
    folder = tmp_path / FOLDER
    folder.mkdir()
    path = folder / made.name
    shutil.move(made, path)
    unit = "s" if kind in ("csv", "parquet", "npy") else None
    told = check(run(commands_for(path, folder, unit)), path)
    if kind.startswith("npz"):
        assert set(names) <= set(told["streams"])
    page = parsed(folder / "page.html")
    if kind.startswith("npz"):
        for name in names:
            assert printable(name) in page


def test_a_terminal(tmp_path):
    folder = tmp_path / FOLDER
    folder.mkdir()
    path = _recording(folder, [*NAMES, LONE])
    for arguments in (["inspect", path], ["stats", path], ["stats", path, "--stream", "none"]):
        text, _ = on_a_terminal(*arguments, environment={"NO_COLOR": "1"})
        text = re.sub("\x1b\\[[01]m", "", text)  # bold, of headings
        assert_printable(text.replace("\r\n", ""))
        assert "[red]rich[/red][link=file" in text and r"line\nFORGED: error" in text
        assert not [line for line in text.split("\r\n") if line.strip().startswith("FORGED")]


@pytest.mark.parametrize("encoding", ["ascii", "C"])
def test_encodings_that_cannot_show_letters(tmp_path, encoding):
    kinds, commands = ("npz", "npz of episodes"), []
    for kind in kinds:
        make, names = INSIDE[kind]
        folder = tmp_path / kind / FOLDER
        folder.mkdir(parents=True)
        commands.append(commands_for(make(folder, names), folder, None))
    results = run(sum(commands, []), encoding)
    shown = SHOWN if encoding == "ascii" else SHOWN.replace(r"\x9b", r"\xc2\x9b")
    for kind, of_kind in zip(kinds, commands):
        own, results = results[: len(of_kind)], results[len(of_kind) :]
        recording = json.loads(own[1][1])
        assert set(INSIDE[kind][1]) <= set(recording["streams"])
        assert own[0][0] == 0 and shown in own[0][1].replace("\n", "")


def test_warnings_and_damage(tmp_path):
    """Messages about damage and wrong options quote such names too."""
    folder = tmp_path / FOLDER
    folder.mkdir()
    rows = "".join(f"{0.1 * i:.1f},{'x' if i == 7 else i}\n" for i in range(40))
    (folder / "x.csv").write_bytes(os.fsencode(f'time,"{NAMES[0]}{NAMES[1]}"\n{rows}'))
    results = run([
        ["inspect", folder / "x.csv", "--unit", "s"],
        ["stats", folder / "x.csv", "--damaged", "keep"],
        ["stats", folder / "x.csv"],
        ["inspect", folder],
        ["stats", folder / "x.csv", "--damaged", NAMES[1]],
        ["inspect", folder / "x.csv", "--unit", NAMES[1]],
        ["inspect", folder / "x.csv", "--ignore", NAMES[0]],
        [NAMES[0]],
        ["inspect", folder / "x.csv", "--definition", NAMES[2]],
    ])  # fmt: skip
    assert all(code in (0, 1, 2) for code, *_ in results)


# ---- pages --------------------------------------------------------------------------------------


class _Page(html.parser.HTMLParser):
    """The text of a page, whose elements close in order."""

    VOID = ("meta", "link", "br", "rect", "path", "line", "use", "circle")

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.open, self.text = [], []
        self.scripts = [(), (("type", "application/json"), ("id", "episodes"))]

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            self.text.append(value or "")
            assert not name.startswith("on") and "javascript:" not in (value or "")
            if name in ("x", "width", "height", "d"):
                assert not re.search("nan|inf|e[+-]", value, re.I), (tag, name, value)
        assert tag not in ("red", "img")
        if tag == "script":  # the page's own, each once
            assert tuple(attributes) in self.scripts, "a script from a name"
            self.scripts.remove(tuple(attributes))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        if tag not in self.VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        if tag not in self.VOID:
            assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def parsed(path):
    """Return the text of a valid page without characters that reverse or hide text."""
    content = path.read_bytes().decode("utf-8")
    page = _Page()
    page.feed(content)
    page.close()
    assert page.open == []
    text = " ".join(page.text)
    assert_printable(text.replace("\n", " "))
    return text


INF, NAN = float("inf"), float("nan")
TIMES = {
    "the last one infinite": [*range(50), INF],
    "the first one infinite": [-INF, *range(50)],
    "both": [-INF, *range(50), INF],
    "many": [-INF, -INF, *range(50), INF, INF],
    "all infinite": [INF] * 5,
    "NaN": [0.0, NAN, *range(1, 50)],
    "all NaN": [NAN] * 5,
    "huge": [-1.7e308, 0.0, 1.0, 1.7e308],
    "tiny": [0.0, 5e-324, 1e-323],
    "epoch that no date has": [1e300 + i for i in range(4)],
    "one": [INF],
}


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("unit", ["s", "ns"])
@pytest.mark.parametrize("case", TIMES)
def test_a_page_of_times_that_are_no_numbers(tmp_path, case, unit):
    times = np.array(TIMES[case], np.float64)
    values = np.random.default_rng(0).normal(size=(len(times), 2))
    values *= {"huge": 1e307, "tiny": 5e-324}.get(case, 1.0)
    values[0] = INF, NAN
    if case == "huge":
        values[1:3] = [[1.7e308, -1.7e308], [-1.7e308, 1.7e308]]
    streams = [
        data.RecordedStream(NAMES[0], "odd", ("a", NAMES[1]), values, {"log": times}, unit),
        data.RecordedStream(
            "fine", "fine", ("a",), np.zeros((9, 1)), {"log": np.arange(9.0)}, unit
        ),
    ]
    recording = data.Recording.from_streams(streams)
    data.report_html(recording, tmp_path / "r.html")
    assert r"line\nFORGED" in parsed(tmp_path / "r.html")
    recording.save(tmp_path / "r.npz")
    shown = RUNNER.invoke(app, ["inspect", str(tmp_path / "r.npz")])
    as_json = RUNNER.invoke(app, ["inspect", str(tmp_path / "r.npz"), "--json"])
    assert shown.exit_code == as_json.exit_code == 0 and "fine" in shown.stdout
    assert shown.stderr == "" and "Traceback" not in shown.output
    json.loads(as_json.stdout, parse_constant=pytest.fail)


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("case", TIMES)
def test_a_page_of_episodes_whose_times_are_no_numbers(tmp_path, case):
    import robocache as rbc

    times = np.array(TIMES[case], np.float64)
    track = rbc.Track(np.arange(len(times), dtype=float)[:, None], [0, len(times)], times=times)
    data.report_html(data.Episodes({NAMES[4]: track}, tasks=[NAMES[0]]), tmp_path / "r.html")
    assert r"bidi\u202e" in parsed(tmp_path / "r.html")
