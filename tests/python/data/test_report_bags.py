"""The report about bags: frames of cameras, topics of ROS itself, and keys in a browser."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from typer.testing import CliRunner

import policy_bags
import recordings_with_faults as faults
from chromium import CHROMIUM, browse
from robocache import data
from robocache.cli._app import app

pytest.importorskip("rosbags")
EVENTS = {
    "/events/write_split": "rosbag2_interfaces/msg/WriteSplitEvent",
    "/events/read_split": "rosbag2_interfaces/msg/ReadSplitEvent",
    "/events/rosbag2_messages_lost": "rosbag2_interfaces/msg/MessagesLost",
}


@pytest.fixture(scope="module")
def bag(tmp_path_factory):
    """A bag with what every robot publishes: logs, parameters and events of the recorder."""
    from rosbags.typesys import Stores, get_typestore

    types = get_typestore(Stores.ROS2_HUMBLE).types
    now = types["builtin_interfaces/msg/Time"](1_700_000_000, 0)
    log = types["rcl_interfaces/msg/Log"](now, 20, "node", "text", "file", "function", 1)
    changed = types["rcl_interfaces/msg/ParameterEvent"](now, "/node", [], [], [])
    more = [
        (0.1, "/rosout", "rcl_interfaces/msg/Log", log),
        (0.2, "/parameter_events", "rcl_interfaces/msg/ParameterEvent", changed),
    ]
    path = tmp_path_factory.mktemp("bag") / "robot"
    return policy_bags.write_bag(path, seconds=12.0, fps=5, gap=(3, 9), more=more)


@pytest.fixture(scope="module")
def page(bag, tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "report.html"
    data.report_html(data.open(bag), path, rate=20, max_gap=0.5)
    return path


def test_frames_of_cameras_lead_to_their_times(page):
    pytest.importorskip("av")
    pytest.importorskip("PIL")
    text = page.read_text()
    strips = re.findall(r'alt="(/[a-z_/]+) at ([\d.]+) s"', text)
    for camera in ("/front/image_raw", "/wrist/compressed"):
        times = [float(t) for name, t in strips if name == camera]
        assert len(times) == 8 and times[0] == 0 and times == sorted(times)
        assert not any(3 < t < 9 for t in times)
    assert len(re.findall(r'<a href="#s\d+" data-at="[\d.]+,[\d.]+">', text)) >= 16


def test_a_picture_that_cannot_be_decoded_is_named(bag, tmp_path, monkeypatch):
    from robocache.data._convert import cameras

    def broken(*_):
        raise data.FormatError("bag", "message 0", "is not a picture")

    monkeypatch.setattr(cameras, "_decoded", broken)
    data.report_html(data.open(bag), tmp_path / "r.html")
    text = (tmp_path / "r.html").read_text()
    assert text.count("Some frames are not shown: bag: message 0: is not a picture") == 2


@pytest.mark.parametrize(
    "command",
    [
        ["inspect"],
        ["stats"],
        ["report", "--html", "out.html"],
        ["resample", "--rate", "10", "-o", "out.npz"],
        ["sync", "--a", "/joint_states:position[elbow]", "--b", "/commands:position[elbow]"],
    ],
)
def test_topics_of_ros_are_ignored(bag, tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    name, *options = command
    result = CliRunner().invoke(app, [name, str(bag), *options, "--json"])
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    findings = found.get("findings") or found.get("report", {}).get("findings", [])
    streams = [each["stream"] for each in findings if each["severity"] != "note"]
    assert not {"/rosout", "/parameter_events"} & set(streams)


def test_events_of_the_recorder_are_topics_of_ros():
    from robocache.data._formats.bags.unread import is_ros_topic

    for topic, typename in EVENTS.items():
        assert is_ros_topic(topic, typename)
    assert is_ros_topic("/events/of_a_later_release", "rosbag2_interfaces/msg/Other")
    assert not is_ros_topic("/events/door", "std_msgs/msg/Bool")
    assert not is_ros_topic("/robot/events/write_split", "rosbag2_interfaces/msg/WriteSplitEvent")


def test_commands_use_the_period_and_remedies_are_code(page):
    text = page.read_text()
    assert "--rate 100 " in text and "--rate 5" not in text  # gaps lower the mean rate
    assert "<code>--max-gap</code>" in text
    assert not re.search(r"`[^`\n]*`", text.partition("<script>")[0])


def test_numbers_that_are_nearly_equal_differ(tmp_path):
    names = ("latitude", "x", "y")
    values = np.stack([29.6470 + np.arange(50) * 1e-7, np.ones(50), np.ones(50)], axis=1)
    values[0] = 29.6470, 1, 1
    stream = faults.stream("gps")
    clocks = {name: times[:50] for name, times in stream.clocks.items()}
    gps = data.RecordedStream("gps", "k", names, values, clocks, stream.unit)
    data.report_html(faults.recording(gps), tmp_path / "r.html")
    text = (tmp_path / "r.html").read_text()
    assert "<b>29.647</b> to <b>29.647005</b>" in text
    assert "Paths" not in text  # nothing moves along x and y


# A page under virtual time draws no frames, and reports no elements that can be seen.
PLAY = """<script>const wrong=[];window.requestAnimationFrame=f=>setTimeout(f,0);
window.IntersectionObserver=class{constructor(f){this.f=f}
observe(target){setTimeout(()=>this.f([{isIntersecting:true,target}]),0)}};
for(const n of ["log","info","warn","error"])console[n]=(...a)=>wrong.push(n+": "+a.join(" "));
addEventListener("error",e=>wrong.push(e.message));
addEventListener("securitypolicyviolation",e=>wrong.push("network: "+e.blockedURI));
addEventListener("load",()=>setTimeout(()=>{
const box=()=>document.querySelector("svg.plot[data-g]").getAttribute("viewBox");
const words=()=>document.querySelector(".bar output").textContent;
const press=(key,more)=>document.body.dispatchEvent(new KeyboardEvent("keydown",
{key,bubbles:true,...more}));
const seen={};const step=(name,key,more)=>new Promise(r=>{press(key,more);
setTimeout(()=>{seen[name]=[box(),words()];r()},100)});
(async()=>{document.querySelector("svg.plot[data-g]").scrollIntoView();
await new Promise(r=>setTimeout(r,200));
await step("plus","+");await step("later","ArrowRight",{shiftKey:true});
await step("cursor","ArrowRight");await step("minus","-");await step("all","0");
const link=document.querySelector('figure a[data-at]');link.click();
await new Promise(r=>setTimeout(r,200));seen.link=[box(),words()];
const buttons=[...document.querySelectorAll(".bar button")];
document.title="PLAYED "+JSON.stringify({wrong,seen,
named:buttons.every(b=>b.getAttribute("aria-label")&&b.tabIndex===0)})})()},300))</script>"""
FORBID = (
    '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; img-src data:; '
    "style-src 'unsafe-inline'; script-src 'unsafe-inline'\">"
)


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium (Debian: chromium)")
def test_keys_and_links_without_network_or_messages(page, tmp_path):
    pytest.importorskip("av")
    pytest.importorskip("PIL")
    played = tmp_path / "played.html"
    played.write_text(page.read_text().replace("<head>", f"<head>{FORBID}{PLAY}", 1))
    options = ("--virtual-time-budget=8000", "--dump-dom")
    shown = browse(played, tmp_path, 1280, 900, *options)
    found = json.loads(re.search(r"PLAYED (\{.*?\})</title>", shown)[1].replace("&quot;", '"'))
    assert found["wrong"] == [] and found["named"]
    seen = found["seen"]
    assert seen["plus"][0] == "250 0 500 100" and seen["later"][0] == "375 0 500 100"
    assert re.fullmatch(r"\d+\.\d+ s.*", seen["cursor"][1])
    assert seen["minus"][0] == seen["all"][0] == "0 0 1000 100"
    assert seen["all"][1] == "0.0 s to 12.0 s"
    assert seen["link"][1] == "0.000 s"  # the first frame, with the digits of a short range
