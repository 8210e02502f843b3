"""CSV files of OptiTrack Motive and of Vicon: several header lines, sections, gaps."""

from __future__ import annotations

import csv

import numpy as np
import pytest

import text_sources
from robocache import data


def test_motive(tmp_path):
    path = text_sources.motive(tmp_path, rows=40)
    with open(path, newline="") as file:
        rows = list(csv.reader(file))[7:]
    cells = np.array([[float(cell or "nan") for cell in row] for row in rows])
    recording = data.open(path).load()
    assert recording.format == "OptiTrack Motive CSV" and recording.unit == "s"
    assert recording.names == ("arm", "arm:1")
    arm, marker = recording["arm"], recording["arm:1"]
    assert np.array_equal(arm.values, cells[:, 2:10]) and np.array_equal(arm.times(), cells[:, 1])
    assert arm.names[:5] == (*(f"rotation.{axis}" for axis in "xyzw"), "position.x [m]")
    assert arm.names[-1] == "mean_marker_error [m]"
    seen = np.isfinite(cells[:, 10])
    assert np.array_equal(marker.values, cells[seen, 10:13])
    assert np.array_equal(marker.times(), cells[seen, 1])
    (group,) = [g for g in arm.kinds.groups if g.kind == "quaternion"]
    assert group.columns == (0, 1, 2, 3)
    assert [each.place for each in recording.left_out] == ["x: Frame", "Unlabeled 7"]
    values = np.asarray(recording.align(100.0).tracks["arm"].values)
    assert np.abs(np.linalg.norm(values[:, :4], axis=1) - 1).max() < 1e-6


def changed(path, old, new, count=-1):
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, count))
    return path


def test_other_versions_of_motive(tmp_path):
    path = text_sources.motive(tmp_path)
    right = data.open(path)["arm"].values
    for label in ("Type", "Name", "ID"):  # version 1.21 has no labels
        changed(path, f",{label},", ",,", 1)
    assert np.array_equal(data.open(path)["arm"].values, right)
    path = text_sources.motive(tmp_path)
    changed(path, ",ID,", ",Parent,-,-,-,-,-,-,-,-,-,-,-,-,-,-\n,ID,")  # version 3
    assert np.array_equal(data.open(path)["arm"].values, right)
    changed(changed(path, "Quaternion", "XYZ"), "X,Y,Z,W,X,Y,Z,,", "X,Y,Z,,X,Y,Z,,")
    recording = data.open(changed(path, "Meters", "Millimeters"))
    assert recording["arm"].names[0] == "euler_xyz.x [deg]"
    assert "position.x [mm]" in recording["arm"].names


def test_a_column_of_time_codes(tmp_path):
    """Version 1.24 may have one, with texts such as 15:26:46:12.02."""
    path = text_sources.motive(tmp_path)
    right = data.open(path)["arm"].values
    lines = path.read_text().splitlines()
    changed_lines = lines[:2]
    for line, extra in zip(lines[2:], ["", "", "", "", "TimeCode", *["15:26:46:12.02"] * 99]):
        cells = line.split(",")
        changed_lines.append(",".join([*cells[:2], extra, *cells[2:]]))
    path.write_text("\n".join(changed_lines) + "\n")
    recording = data.open(path)
    assert np.array_equal(recording["arm"].values, right)
    text = "x: TimeCode: belongs to no rigid body, bone or marker"
    assert text in [str(each) for each in recording.left_out]


def test_no_line_of_ids(tmp_path):
    path = text_sources.motive(tmp_path)
    right = data.open(path)["arm"].values
    changed(path, ",ID,1,1,1,1,1,1,1,1,2,2,2,7,7,7\n", "")
    for label in ("Type", "Name"):
        changed(path, f",{label},", ",,", 1)
    assert np.array_equal(data.open(path)["arm"].values, right)


def test_bodies_of_one_name(tmp_path):
    path = text_sources.motive(tmp_path)
    changed(path, "arm:1,arm:1,arm:1", "arm,arm,arm")
    assert data.open(path).names == ("arm (Rigid Body)", "arm (Marker)")


def test_vicon(tmp_path):
    recording = data.open(text_sources.vicon(tmp_path, rows=20)).load()
    assert recording.format == "Vicon CSV" and recording.unit == "s"
    assert recording.names == ("Force Plate - Force", "drone:drone", "drone:a", "drone:b")
    force = recording["Force Plate - Force"]
    assert np.allclose(force.times(), np.arange(200) / 1000, atol=1e-12)
    assert force.values[:, 0].tolist() == list(range(200))
    assert force.names == ("Fx [N]", "Fy [N]", "Fz [N]")
    _, places, turns = text_sources.turning(20)
    drone = recording["drone:drone"]
    assert np.abs(drone.values - np.column_stack([turns, places])).max() < 1e-6
    assert [c.kind for c in drone.channels] == ["quaternion"] * 4 + ["number"] * 3
    assert recording["drone:b"].times().tolist() == [i / 100 for i in range(0, 20, 4)]


def test_angles_of_vicon_are_a_finding(tmp_path):
    text = "Segments\n200\n,,s:arm,,,,,\nFrame,Sub Frame,RX,RY,RZ,TX,TY,TZ\n"
    text += ",,deg,deg,deg,mm,mm,mm\n"
    path = tmp_path / "a.csv"
    path.write_text(text + "".join(f"{5 + i},0,{i},0,0,1,2,3\n" for i in range(30)))
    recording = data.open(path)
    assert recording["s:arm"].times()[0] == 4 / 200
    assert "rotation_vector" in [finding.kind for finding in data.checks.check(recording)]
    kinds = {"s:arm": {"RX [deg],RY [deg],RZ [deg]": "rotation_vector_deg"}}
    stream = data.open(path, kinds=kinds)["s:arm"]
    assert [c.kind for c in stream.channels[:3]] == ["rotation_vector"] * 3


@pytest.mark.parametrize(
    ("name", "old", "new", "match"),
    [
        ("motive", "Frame,Time", "Fr,Time", "no line begins with Frame"),
        ("motive", "Frame,Time (Seconds),X", "Frame,Time (Seconds),X,X", "cells, expected"),
        ("vicon", "\n100\n", "\nten\n", "section Objects: expected the rate in Hz, got 'ten'"),
        ("vicon", "Frame,Sub Frame,RX", "Fr,Sub Frame,RX", "section Objects: expected the columns"),
        ("vicon", "1,0,0,0,-1.5", "1,0,x,0,-1.5", "no number"),
    ],
)
def test_damaged_headers(tmp_path, name, old, new, match):
    path = changed(text_sources.FORMATS[name](tmp_path), old, new)
    with pytest.raises(data.FormatError, match=match) as caught:
        data.open(path)
    assert caught.value.path == str(path)


def test_a_damaged_section_leaves_the_others(tmp_path):
    path = changed(text_sources.vicon(tmp_path), "\n1000\n", "\nten\n")
    kept = data.open(path, damaged="keep")
    assert kept.names == ("drone:drone", "drone:a", "drone:b") and len(kept.problems) == 1


# ---- layouts of Vicon ----

MARKER = ",,{name},,,\nFrame,Sub Frame,X,Y,Z\n,,mm,mm,mm\n1,0,1,2,3\n2,0,4,5,6\n\n"


def trajectories(folder, above="", name="arm:a"):
    path = folder / "x.csv"
    path.write_text(f"{above}Trajectories\n100\n{MARKER.format(name=name)}")
    return path


@pytest.mark.parametrize("above", ["\n\n", ",,,\r\n\r\n", "\ufeff"])
def test_blank_lines_above_the_first_section(tmp_path, above):
    """Nexus 2.16 writes two."""
    recording = data.open(trajectories(tmp_path, above))
    assert recording.format == "Vicon CSV" and recording.names == ("arm:a",)
    assert recording["arm:a"].values.tolist() == [[1, 2, 3], [4, 5, 6]]


def test_events_are_listed(tmp_path):
    events = "Events\n100\nSubject,Context,Name,Time (s),Description\narm,Left,Strike,1.5,heel\n\n"
    recording = data.open(trajectories(tmp_path, events))
    assert recording["arm:a"].times().tolist() == [0, 0.01]
    assert [str(each) for each in recording.left_out] == ["Events: are texts, which are not read"]


def test_objects_of_tracker(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text(
        "Objects\n100\n,,Global Angle (Quaternion) arm:arm,,,,,,\n"
        "Frame,Sub Frame,RX,RY,RZ,RW,TX,TY,TZ\n,,,,,,mm,mm,mm\n1,0,0,0,0,1,1,2,3\n"
    )
    recording = data.open(path)
    assert recording.names == ("arm:arm",)
    assert [channel.kind for channel in recording["arm:arm"].channels][:4] == ["quaternion"] * 4


def test_names_without_subjects_are_refused(tmp_path):
    """Another tool wrote such lines, and only that tool says what the numbers mean."""
    with pytest.raises(data.FormatError, match=r"row 6: the numbers begin in this row.*'arm'"):
        data.open(trajectories(tmp_path, name="arm"))
    devices = "Devices\n1000\n,,Plate - Force,,\nFrame,Sub Frame,Fx,Fy,Fz\n,,N,N,N\n1,0,1,2,3\n\n"
    with pytest.raises(data.FormatError, match="row 13: the numbers begin in this row"):
        data.open(trajectories(tmp_path, devices, name="arm"))
    (tmp_path / "x.csv").write_text(devices)
    assert data.open(tmp_path / "x.csv").names == ("Plate - Force",)
