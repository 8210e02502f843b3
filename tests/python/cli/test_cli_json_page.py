"""docs/api/json.md lists the keys that the commands print."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

pytest.importorskip("typer")
pytest.importorskip("rich")
pytest.importorskip("pyarrow")
np = pytest.importorskip("numpy")

import recordings_with_faults as faults  # noqa: E402
import robocache as rbc  # noqa: E402
from cli_process import robocache  # noqa: E402
from robocache.data._write.pictures import png  # noqa: E402

PAGE = Path(__file__).resolve().parents[3] / "docs" / "api" / "json.md"
NAMED = (
    "streams",
    "windows",
    "samples",
    "contexts",
    "versions",
    "features",
    "shapes",
    "cameras",
    "gaps",
    "farthest",
    "parts",
    "capacities",
)  # objects whose keys are names
ELSEWHERE = ("findings", "unread", "left_out")  # lists that one section describes for all


def documented():
    """The keys of each section of the page: {"inspect": {"path", "streams.NAME.rate", ...}}."""
    found = {}
    for section in PAGE.read_text().split("\n## ")[1:]:
        name, _, text = section.partition("\n")
        keys = found[name] = set()
        for cell in re.findall(r"^\| (`.*?) \|", text, re.M):
            prefix = ""
            for key in re.findall(r"`(.+?)`", cell):
                if key.startswith("."):
                    key = prefix + key
                else:
                    prefix = key.rpartition(".")[0]
                keys.add(key.removesuffix("[]"))
    return found


def keys_of(value, prefix=""):
    for key, each in value.items():
        path = f"{prefix}{key}"
        if key in NAMED and isinstance(each, dict):
            for inner in each.values():
                path_of_name = f"{path}.NAME"
                if isinstance(inner, dict) and key != "contexts":
                    yield from keys_of(inner, path_of_name + ".")
                else:
                    yield path_of_name
        elif isinstance(each, dict):
            yield from keys_of(each, path + ".")
        elif isinstance(each, list) and key in ELSEWHERE:
            yield path
        elif isinstance(each, list) and each and isinstance(each[0], dict):
            yield from keys_of(each[0], path + "[].")
        else:
            yield path


def complete(recording, folder):
    """A pipeline file of a recording without "?"."""
    draft = rbc.Pipeline.init(recording, 20).to_dict()
    for stream in draft["streams"].values():
        for channel in stream["channels"]:
            channel["unit"] = "1" if channel["unit"] == "?" else channel["unit"]
    made = rbc.Pipeline(draft, draft=True)
    made.fit(made.open(recording)).save(folder / "complete.json")
    return folder / "complete.json"


@pytest.fixture(scope="module")
def printed(tmp_path_factory):
    """The object that each command prints."""
    folder = tmp_path_factory.mktemp("json")
    arm, aligned = folder / "arm", folder / "aligned.npz"
    depth, sweep = folder / "depth", folder / "sweep.pcd"
    depth.mkdir()
    np.save(depth / "0.npy", np.full((4, 4), 1000, np.uint16))
    camera = folder / "camera.json"
    camera.write_text('{"fx": 4, "fy": 4, "cx": 2, "cy": 2}')
    header = "VERSION .7\nFIELDS x y z\nSIZE 4 4 4\nTYPE F F F\nCOUNT 1 1 1\nWIDTH 2\nHEIGHT 1\n"
    sweep.write_text(header + "VIEWPOINT 0 0 0 1 0 0 0\nPOINTS 2\nDATA ascii\n0 0 0\n1 1 1\n")
    lerobot = folder / "lerobot"
    pictures = folder / "pictures"
    pictures.mkdir()
    (pictures / "0.png").write_bytes(png(np.zeros((4, 6, 3), np.uint8)))
    faults.episodes(count=1).save(lerobot)
    commands = {
        "demo-data": [arm],
        "inspect": [arm],
        "stats": [arm],
        "resample": [arm, "--rate", "50", "-o", aligned],
        "convert": [arm, "--rate", "50", "-o", folder / "converted.npz"],
        "edit": [lerobot, "-o", folder / "edited", "--split", "all=0"],
        "images": [pictures, "-o", folder / "resized", "--size", "3x2"],
        "windows": [aligned, "--state", "joints", "--action", "joints"],
        "pipeline init": [arm, "-o", folder / "pipeline.json"],
        "pipeline check": lambda: [complete(arm, folder), "--data", arm],
        "pipeline diff": [folder / "pipeline.json", folder / "complete.json"],
        "sync": [arm, "--a", "imu", "--b", "joints"],
        "report": [arm, "--html", folder / "arm.html"],
        "voxelize": [sweep, "--voxel-size", "1", "-o", folder / "voxels.npz"],
        "cloud": [depth, "--intrinsics", camera, "-o", folder / "clouds"],
        "formats": [],
        "info": [],
    }
    found = {}
    for name, arguments in commands.items():
        arguments = arguments() if callable(arguments) else arguments
        run = robocache(*name.split(), *arguments, "--json")
        assert run.returncode == (name in ("pipeline check", "pipeline diff")), run.stderr
        found[name] = json.loads(run.stdout)
    return found


def test_every_command_has_a_section(printed):
    assert set(documented()) == {"Findings", *printed}


def test_every_printed_key_is_on_the_page(printed):
    for name, value in printed.items():
        keys = set(keys_of(value))
        if name == "report":  # what inspect prints
            keys = {key.partition(".")[0] for key in keys}
        page = documented()[name]
        page |= {key.partition("[]")[0] for key in page}
        assert keys - page == set(), name


def test_every_key_on_the_page_is_printed(printed):
    only_some = {
        "inspect": r"episodes|frames|shortest|longest|rate|tasks|kinds|"
        r"streams\.NAME\.(finite|extent|min|max|fields|organized)|left_out|unread|cameras",
        "stats": "findings|compared|ok|written",
        "convert": r"cameras|skipped|episodes\.(episode|copied|tasks|cut|gaps|farthest)",
        "images": r"resize\.preset|sizes\.camera",
        "windows": "device|batch|bench",
        "report": "rerun",
        "pipeline check": "data|replays",
        "pipeline diff": "differences",
        "formats": "failed",
    }
    for name, value in printed.items():
        keys = set(keys_of(value)) | {key.partition(".")[0] for key in keys_of(value)}
        for key in documented()[name] - keys:
            assert re.match(only_some.get(name, "$^"), key.replace("[]", "")), (name, key)


def test_findings_have_the_keys_of_the_page(printed):
    keys = {f"findings[].{key}" for key in printed["inspect"]["findings"][0]}
    assert keys == documented()["Findings"]
