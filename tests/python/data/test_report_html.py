"""The report as an HTML page: its content, its size, and its look in a browser."""

from __future__ import annotations

import os
import re
import shutil
import string
import struct
import subprocess
from html.parser import HTMLParser

import numpy as np
import pytest

import recordings_with_faults as faults
from chromium import CHROMIUM, browse
from robocache import Episodes, Track, data
from robocache.data._report.envelope import Envelope, Samples, split_at
from robocache.data._report.script import SCRIPT

VOID = {"meta", "link", "br", "rect", "path", "use", "circle", "img"}


class Page(HTMLParser):
    """The text of a page; fails if tags do not match or the page loads a resource."""

    def __init__(self, text):
        super().__init__()
        self.open, self.words, self.paths, self.ids, self.links = [], [], [], set(), []
        self.shades = 0
        self.feed(text)
        self.close()
        assert self.open == [] and set(self.links) <= self.ids

    def handle_starttag(self, tag, attributes):
        assert tag not in ("iframe", "object", "embed")
        self.shades += ("class", "hole") in attributes
        for name, value in attributes:
            assert not name.startswith("on")
            if name == "src":
                assert tag == "img" and value.startswith("data:image/jpeg;base64,")
            if name == "id":
                self.ids.add(value)
            if name == "href":
                assert value.startswith(("#", "data:,"))
                self.links += [value[1:]] if value.startswith("#") else []
            if name == "d":
                self.paths.append(value)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, text):
        if self.open[-1:] not in (["script"], ["style"]):
            self.words.append(text)

    @property
    def text(self):
        return " ".join(" ".join(self.words).split())


def report(given, path):
    told = data.report_html(given, path)
    text = path.read_text(encoding="utf-8")
    assert "http://" not in text and "https://" not in text and "@import" not in text
    return told, text, Page(text)


def test_report_of_a_recording(tmp_path):
    streams = [faults.FAULTS["gaps"](), faults.stream('/odd <b>"name"</b> & é', seed=2)]
    told, text, page = report(faults.recording(*streams), tmp_path / "r.html")
    assert "1 gap of more than 25 ms" in page.text and '/odd <b>"name"</b> & é' in page.text
    assert '<b>"name"' not in text
    for facts in ("370 samples", "100 Hz", "10ms period", "1 gap", "310ms longest", "3.99s"):
        assert facts in page.text, facts
    values = streams[0].values.astype("f8")
    for c in range(3):
        low, high = values[:, c].min(), values[:, c].max()
        assert f"{low:.5g} to {high:.5g}" in page.text
        assert f"mean {values[:, c].mean():.5g}, std {values[:, c].std():.5g}" in page.text
    assert told["findings"] and told["streams"]["arm"]["gaps"] == 1
    assert "0.99s 310ms" in page.text  # where the gap is, and how long
    with pytest.raises(FileExistsError):
        data.report_html(faults.recording(), tmp_path / "r.html")
    data.report_html(faults.recording(), tmp_path / "r.html", overwrite=True)
    assert "1 gap" not in (tmp_path / "r.html").read_text()


def test_report_of_a_data_set(tmp_path):
    pytest.importorskip("pyarrow")
    import json

    folder = tmp_path / "set"
    data.save(faults.episodes(), folder, "lerobot")
    _, _, page = report(data.open(folder), tmp_path / "good.html")
    assert "Nothing found." in page.text and page.text.count("They match the data.") >= 2
    assert "5 episodes" in page.text and "40 to 40 frames" in page.text
    file = folder / "meta" / "stats.json"
    stored = json.loads(file.read_text())
    stored["action"]["mean"][0] = 0.75
    stored["action"]["q01"][1] = -9.5
    file.write_text(json.dumps(stored))
    _, _, page = report(data.open(folder), tmp_path / "bad.html")
    exact = faults.episodes()["action"].values.astype("f8")
    assert f"x mean 0.75 {exact[:, 0].mean():.9g}" in page.text
    assert f"y q01 -9.5 {np.quantile(exact[:, 1], 0.01):.9g}" in page.text


def points_of(path):
    """Return the corners of an outline given by relative steps."""
    found = []
    for piece in re.findall(r"M(\d+) (\d+)l([^z]*)z", path):
        x, y = int(piece[0]), int(piece[1])
        found.append((x, y))
        for step in re.findall(r"(-?\d+) ?(-?\d+)", piece[2]):
            x, y = x + int(step[0]), y + int(step[1])
            found.append((x, y))
    return found


def test_a_short_spike_in_a_long_stream_is_drawn(tmp_path):
    values = np.zeros((200_000, 1), "f4")
    values[123_456] = 1
    stream = faults.stream(
        samples=200_000,
        values=values,
        names=("v",),
        clocks={"log": faults.START + np.arange(200_000) * faults.MS},
    )
    _, _, page = report(faults.recording(stream), tmp_path / "r.html")
    (band,) = [path for path in page.paths if "l" in path]
    assert page.shades == 0
    corners = points_of(band)
    top = [x for x, y in corners if y == 5]
    assert top and all(abs(x - 617) <= 4 for x in top)
    assert min(y for _, y in corners) == 5 and max(y for _, y in corners) == 95
    assert len(corners) < 2000


def test_a_band_never_spans_a_gap(tmp_path):
    """Long gaps in a long stream, whose stretches are merged."""
    steps = np.full(60_000, 10 * faults.MS)
    steps[30_000] = 200_000 * faults.MS
    steps[45_000] = 100_000 * faults.MS
    times = faults.START + np.cumsum(steps)
    values = np.sin(np.arange(60_000) / 300)[:, None].astype("f4")
    stream = faults.stream(samples=60_000, values=values, names=("v",), clocks={"log": times})
    _, text, page = report(faults.recording(stream), tmp_path / "r.html")
    (band,) = [path for path in page.paths if "l" in path]
    since = (times - times[0]) / (times[-1] - times[0]) * 1000
    gaps = [(since[29_999], since[30_000]), (since[44_999], since[45_000])]
    pieces = [points_of(piece + "z") for piece in band.split("z")[:-1]]
    for piece in pieces:
        xs = [x for x, _ in piece]
        for begin, end in gaps:
            assert max(xs) <= begin + 1 or min(xs) >= end - 1
    assert {min(x for x, _ in piece) for piece in pieces} >= {0, round(gaps[0][1])}
    assert page.shades == 2 and '<use href="#g0"/>' in text
    assert 'data-at="' in text  # the finding leads to the gap


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_envelopes_do_not_merge_over_long_intervals(size):
    times = np.arange(20_000) * 0.01
    times[7000:] += 50
    times[13_000:] += 3
    envelope = Envelope(64)
    for begin in range(0, len(times), size):
        rows = slice(begin, begin + size)
        envelope.add(times[rows], np.zeros((len(times[rows]), 1)))
    first, last, _, _ = envelope.result()
    assert len(first) < 300 and {times[7000], times[13_000]} <= set(first)
    assert {times[6999], times[12_999]} <= set(last)


def test_a_stretch_is_split_at_a_gap_within_it():
    low, high = np.array([[1.0], [2.0]]), np.array([[3.0], [4.0]])
    kept = np.array([0.0, 10.0]), np.array([9.0, 19.0]), low, high
    first, last, low, high = split_at(kept, [(12.0, 15.0), (9.0, 10.0), (16.0, 18.0)])
    assert first.tolist() == [0, 10, 15, 18] and last.tolist() == [9, 12, 16, 19]
    assert low[:, 0].tolist() == [1, 2, 2, 2] and high[:, 0].tolist() == [3, 4, 4, 4]


def test_samples_are_even():
    samples = Samples(100)
    for begin in range(0, 5000, 3):
        rows = np.arange(begin, min(begin + 3, 5000))
        samples.add(rows, rows[:, None])
    at, values = samples.result()
    assert 50 <= len(at) <= 100 and set(np.diff(at)) == {64} and (values[:, 0] == at).all()


def unusual_set():
    rng = np.random.default_rng(4)
    lengths = [40] * 12
    lengths[3] = 11
    offsets = np.cumsum([0, *lengths])
    t = np.arange(offsets[-1])[:, None]
    state = np.sin(t / 5 + np.arange(2)) + rng.normal(0, 0.01, (offsets[-1], 2))
    state[offsets[5] : offsets[6]] = state[offsets[5]]  # static
    action = state + 0.1
    state[offsets[7] + 9, 1] = 30.0  # outlier and jump
    names = {"observation.state": ("x", "y"), "action": ("x", "y")}
    made = {"observation.state": state, "action": action}
    return Episodes({n: Track(v.astype("f4"), offsets, names=names[n]) for n, v in made.items()})


def test_episodes_that_are_unusual(tmp_path):
    _, text, page = report(unusual_set(), tmp_path / "r.html")
    assert "Unusual episodes: 3 of 12" in page.text
    assert "episode 3 : 11 rows, the median is 40" in page.text
    for kind, episode in (("short", 3), ("static", 5), ("outlier", 7), ("jump", 7)):
        assert re.search(rf"{kind}</span><span><a [^>]*data-episode=\"{episode}\"", text), kind
    assert "observation.state y at row 9: is 30" in page.text
    _, _, page = report(faults.episodes(), tmp_path / "none.html")
    assert "None: no episode is" in page.text


def test_one_episode_with_actions_over_states(tmp_path):
    import json

    given = unusual_set()
    _, text, page = report(given, tmp_path / "r.html")
    assert "Episode 3: 11 rows" in page.text  # the first unusual one
    block = re.search(r'id="episodes">(.*?)</script>', text, re.S)[1]
    content = json.loads(block)
    assert content["episodes"] == list(range(12)) and content["lengths"][3] == 11
    assert content["why"]["7"] == "jump, outlier"
    x, _ = content["plots"]
    low = min(given[n].values[:, 0].min() for n in given.tracks)
    high = max(given[n].values[:, 0].max() for n in given.tracks)
    digits = string.ascii_uppercase + string.ascii_lowercase + string.digits + "-_"
    for s, name in enumerate(("observation.state", "action")):
        code = x[8][s]
        assert code[0] == "l" and len(code) == 1 + 2 * 40
        levels = [digits.index(a) * 64 + digits.index(b) for a, b in zip(code[1::2], code[2::2])]
        begin = int(given[name].episode_offsets[8])
        right = given[name].values[begin : begin + 40, 0]
        np.testing.assert_allclose(low + np.array(levels) / 4095 * (high - low), right, atol=1e-3)
    assert text.count('class="series band action"') == 2
    assert "from above" in page.text  # the path of x and y


def test_before_and_after_an_alignment(tmp_path):
    recording = faults.recording(faults.FAULTS["gaps"](), faults.stream("/b", seed=2))
    data.report_html(recording, tmp_path / "r.html", rate=20, max_gap=0.05)
    text = (tmp_path / "r.html").read_text()
    page = Page(text)
    assert text.count('class="after"') == 6 and "aligned at 20 Hz" in page.text
    after = re.findall(r'class="after" d="([^"]*)"', text)[0]
    assert after.count("M") == 2  # the gap is not filled
    with pytest.raises(ValueError, match="rate: works on recordings"):
        data.report_html(faults.episodes(), tmp_path / "e.html", rate=20)


def test_frames_of_cameras(tmp_path):
    import camera_sets

    folder = camera_sets.with_pictures(tmp_path / "set", camera_sets.frames(200))
    _, text, page = report(data.open(folder), tmp_path / "r.html")
    assert text.count('src="data:image/jpeg') == 8 and "row 39" in page.text


def test_commands_of_findings(tmp_path):
    folder = tmp_path / "a set"
    pytest.importorskip("pyarrow")
    data.save(faults.episodes(), folder, "lerobot")
    file = folder / "meta" / "stats.json"
    file.write_text(file.read_text().replace("0.", "1.", 9))
    _, _, page = report(data.open(folder), tmp_path / "r.html")
    assert f"robocache stats --fix '{folder}'" in page.text
    rows = "".join(f"{t / 100},{t}\n" for t in range(100) if not 40 < t < 60)
    (tmp_path / "arm.csv").write_text("time,x\n" + rows)
    _, _, page = report(data.open(tmp_path / "arm.csv"), tmp_path / "g.html")
    assert "--rate 100 -o aligned.npz --max-gap 0.025" in page.text
    _, _, page = report(faults.recording(faults.FAULTS["gaps"]()), tmp_path / "m.html")
    assert "robocache resample" not in page.text  # data in memory have no path


def test_the_script_is_small_and_loads_nothing():
    assert len(SCRIPT.encode()) < 30_000
    for word in ("fetch", "XMLHttp", "import(", "eval(", "innerHTML", "localStorage", "http"):
        assert word not in SCRIPT


@pytest.mark.parametrize("channels", [3, 20])
def test_envelopes_hold_every_extreme(channels):
    rng = np.random.default_rng(1)
    values = rng.normal(size=(10_007, channels))
    values[17, 1], values[5000] = np.nan, np.inf
    for cuts in ([10_007], [1, 2, 5000, 3, 5001], [100] * 100 + [7]):
        envelope = Envelope(32)
        begin = 0
        for rows in cuts:
            envelope.add(np.arange(begin, begin + rows), values[begin : begin + rows])
            begin += rows
        first, last, low, high = envelope.result()
        assert 16 <= len(first) <= 64 and first[0] == 0 and last[-1] == 10_006
        np.testing.assert_array_equal(first[1:], last[:-1] + 1)
        for a, b, lo, hi in zip(first, last, low, high):
            part = values[a : b + 1]
            part = np.where(np.isfinite(part), part, np.nan)
            np.testing.assert_array_equal(lo, np.nanmin(part, axis=0))
            np.testing.assert_array_equal(hi, np.nanmax(part, axis=0))


def test_500_megabytes_and_thousands_of_channels_stay_below_3_megabytes(tmp_path, monkeypatch):
    """Noise cannot be compressed; only the envelopes are kept."""
    rng = np.random.default_rng(1)
    noise = rng.normal(size=(25_000, 250)).astype("f4")
    names = tuple(f"state.a_rather_long_name_of_a_channel[{c}]" for c in range(250))

    class Endless:
        path, kind, unit = None, "noise", "ns"
        damage = type("Damage", (), {"problems": ()})
        left_out = unread = ()
        streams = {
            f"/robot/sensor/{i}": data.StreamInfo(f"/robot/sensor/{i}", "noise", 25_000, names)
            for i in range(20)
        }

        def look(self):
            pass

        def pieces(self, wanted, shown=None):
            for name in wanted:
                for begin in range(0, 25_000, 2500):
                    log = faults.START + np.arange(begin, begin + 2500) * faults.MS
                    yield data.Piece(name, names, noise[begin : begin + 2500], {"log": log})

    assert noise.nbytes * len(Endless.streams) == 500_000_000
    _, text, page = report(data.Recording(Endless()), tmp_path / "r.html")
    assert 1_000_000 < len(text.encode()) < 3_000_000
    assert "and 90 channels more" in page.text


@pytest.mark.parametrize(
    "name",
    [
        "ros2_mcap_crazyflie_vicon/fly90bag",
        "ros2_db3_gps_nav/bag",
        "ros1_robot_localization/test1.bag",
        "lerobot_v3_so101",
        "lerobot_v21_cr5",
        "comma2k19",
        "hdf5_isaaclab_franka_stack/dataset.hdf5",
        "zarr_pusht/pusht_cchi_v7_replay.zarr",
        "bridge",
    ],
)
def test_real_ones(recordings, tmp_path, name):
    for package in ("rosbags", "pyarrow", "h5py", "zarr"):
        pytest.importorskip(package)
    given = data.open(recordings / name, damaged="keep")
    told, text, page = report(given, tmp_path / "r.html")
    assert len(text) < 1_000_000
    for stream in told["streams"]:
        assert stream in page.text
    for found in told["findings"]:
        assert found["text"].partition("  ")[0][:40] in page.text


# ---- in a browser -------------------------------------------------------------------------------

MEASURE = """<script>addEventListener("load",()=>{const wide=document.documentElement.scrollWidth;
const out=[...document.querySelectorAll("main *")].filter(e=>!e.closest(".wide")&&
e.getBoundingClientRect().right>innerWidth+1).map(e=>e.className||e.tagName);
const small=[...document.querySelectorAll("main *")].filter(e=>e.textContent.trim()&&
parseFloat(getComputedStyle(e).fontSize)<11).length;
document.title="MEASURED "+JSON.stringify({inner:innerWidth,wide,out,small})})</script>"""


@pytest.fixture(scope="module")
def wide_page(tmp_path_factory):
    if CHROMIUM is None:
        pytest.skip("no Chromium (Debian: chromium)")
    folder = tmp_path_factory.mktemp("page")
    long = "/robot/left_arm/joint_trajectory_controller/controller_state/desired_and_more"
    streams = [faults.FAULTS["gaps"](), faults.stream(long), faults.FAULTS["constant"]()]
    streams[2] = data.RecordedStream("still", "k", *vars_of(streams[2]))
    data.report_html(faults.recording(*streams), folder / "report.html")
    return folder / "report.html"


def vars_of(stream):
    return stream.names, stream.values, stream.clocks, stream.unit


@pytest.mark.parametrize("width", [390, 820, 1280])
def test_nothing_is_cut_off_and_all_is_large_enough_to_read(wide_page, tmp_path, width):
    import json

    page = tmp_path / "measured.html"
    page.write_text(wide_page.read_text().replace("</body>", MEASURE + "</body>"))
    # The oldest headless mode has no window below 500: an iframe has any width.
    frame = tmp_path / "frame.html"
    frame.write_text(
        f'<iframe src="measured.html" style="width:{width}px;height:900px;border:0"></iframe>'
        "<script>onload=()=>setTimeout(()=>{document.title="
        'document.querySelector("iframe").contentDocument.title},500)</script>'
    )
    options = ("--allow-file-access-from-files", "--virtual-time-budget=5000", "--dump-dom")
    shown = browse(frame, tmp_path, 1400, 1000, *options)
    found = json.loads(re.search(r"MEASURED (\{.*?\})</title>", shown)[1])
    assert found["inner"] == width
    assert found["wide"] <= width and found["out"] == [] and found["small"] == 0


PLAY = """<script>const wrong=[];addEventListener("error",e=>wrong.push(e.message));
addEventListener("load",()=>setTimeout(()=>{const shape=()=>
document.querySelector(".series").getAttribute("d");const first=shape();
const select=document.querySelector("select");select.value="2";
select.dispatchEvent(new Event("change"));const other=shape();select.value="3";
select.dispatchEvent(new Event("change"));const again=shape();
document.title="PLAYED "+JSON.stringify({wrong,first,other,again,which:
document.getElementById("which").textContent,
buttons:document.querySelectorAll(".bar button").length})
},300))</script>"""


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium (Debian: chromium)")
def test_the_script_draws_the_same_curves(tmp_path):
    """Python draws the first episode that is shown, the script the others and this one again."""
    import json

    data.report_html(unusual_set(), tmp_path / "r.html")
    page = tmp_path / "played.html"
    text = (tmp_path / "r.html").read_text()
    page.write_text(text.replace("<head>", "<head>" + PLAY, 1))
    options = ("--virtual-time-budget=5000", "--dump-dom")
    shown = browse(page, tmp_path, 1000, 900, *options)
    found = json.loads(re.search(r"PLAYED (\{.*?\})</title>", shown)[1])
    assert found["wrong"] == [] and found["buttons"] == 5
    assert found["which"] == "Episode 3: 11 rows"
    assert found["first"] == found["again"] != found["other"]
    (drawn,) = re.findall(r'class="series band" d="([^"]*)"', text)[:1]
    by_python, by_script = (
        [corners[0], *(b for a, b in zip(corners, corners[1:]) if a != b)]
        for corners in (points_of(drawn), points_of(found["again"]))
    )
    assert len(by_python) == len(by_script) >= 21
    assert np.abs(np.array(by_python) - by_script).max() <= 1


def pixels_of(path):
    """Return a PNG with 8 bits per channel as an array [height,width,channels]."""
    matplotlib = pytest.importorskip("matplotlib.image")
    header = path.read_bytes()[:24]
    assert header[:8] == b"\x89PNG\r\n\x1a\n"
    pixels = (matplotlib.imread(path)[..., :3] * 255).round().astype(int)
    assert pixels.shape[1::-1] == struct.unpack(">II", header[16:24])
    return pixels


@pytest.mark.parametrize("dark", [False, True])
def test_a_screenshot(wide_page, tmp_path, dark):
    shot = tmp_path / "shot.png"
    # A headless browser has no colour preference to set, so the page is changed instead.
    text = wide_page.read_text()
    page = tmp_path / "page.html"
    page.write_text(text.replace("prefers-color-scheme:dark", "min-width:1px") if dark else text)
    browse(page, tmp_path, 1280, 1400, f"--screenshot={shot}")
    pixels = pixels_of(shot)
    paper = [16, 19, 22] if dark else [255, 255, 255]
    blue = [108, 176, 255] if dark else [23, 105, 196]
    red = [255, 123, 114] if dark else [196, 48, 43]
    assert 0.05 < (pixels == paper).all(axis=-1).mean() < 0.9
    for colour, least in ((blue, 5000), (red, 200)):  # samples, and the gap among them
        assert (np.abs(pixels - colour).max(axis=-1) < 8).sum() > least
    if os.environ.get("ROBOCACHE_SCREENSHOTS"):
        shutil.copy(shot, os.path.join(os.environ["ROBOCACHE_SCREENSHOTS"], f"report_{dark}.png"))


# ---- for the Rerun viewer -----------------------------------------------------------------------


def test_rerun(tmp_path):
    pytest.importorskip("rerun")
    viewer = shutil.which("rerun")
    if viewer is None:
        pytest.skip("rerun is not on the path")
    recording = faults.recording(faults.FAULTS["gaps"](), faults.stream("/b", seed=2))
    path = tmp_path / "out.rrd"
    data.save_rerun(recording, path, 50, max_gap=0.05)
    subprocess.run([viewer, "rrd", "verify", path], check=True, capture_output=True, timeout=120)
    run = subprocess.run(
        [viewer, "rrd", "stats", path], check=True, capture_output=True, text=True, timeout=120
    )
    for entity in ("/before/arm", "/before/b", "/after/arm", "/after/b"):
        assert f"{entity}: " in run.stdout
    aligned = recording.align(50, max_gap=0.05)
    rows = 370 + 400 + int(aligned["valid"].values.sum())
    (told,) = re.findall(r"num_rows = ([\d\W]+?)\n", run.stdout)
    assert 0 <= int(re.sub(r"\D", "", told)) - rows <= 10  # the others hold names and properties
    with pytest.raises(FileExistsError):
        data.save_rerun(recording, path, 50)
    data.save_rerun(faults.episodes(), tmp_path / "episodes.rrd", 5)
    assert (tmp_path / "episodes.rrd").stat().st_size > 5000


def test_both_sides_begin_together_for_rerun(monkeypatch):
    """Float times with a unit, which align converts to seconds."""
    from robocache.data import _rerun

    sent = {}
    monkeypatch.setattr(_rerun, "_send", lambda rr, s, name, times, *_: sent.update({name: times}))
    times = 5000 + np.arange(9) * 10.0
    arm = data.RecordedStream("arm", "t", ("x",), np.zeros((9, 1)), {"time": times}, "ms")
    recording = data.Recording.from_streams([arm])
    aligned = recording.align(100)
    origin, ticks = _rerun._before(None, None, recording, aligned, None)
    _rerun._tracks(None, None, aligned, "after", lambda _: origin, ticks)
    np.testing.assert_allclose(sent["before/arm"], np.arange(9) / 100)
    np.testing.assert_allclose(sent["after/arm"], np.arange(9) / 100, atol=1e-9)


def test_rerun_that_is_missing_is_named(tmp_path, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "rerun", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'robocache\[rerun\]'"):
        data.save_rerun(faults.recording(), tmp_path / "x.rrd", 50)
