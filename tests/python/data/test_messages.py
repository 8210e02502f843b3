"""Messages about objects and files that an operation cannot take: what, where, what is expected."""

from __future__ import annotations

import numpy as np
import pytest

import recordings_with_faults as faults
from robocache import data

PCD = (
    "VERSION .7\nFIELDS x y z\nSIZE 4 4 4\nTYPE F F F\nCOUNT 1 1 1\nWIDTH 4\nHEIGHT 1\n"
    "VIEWPOINT 0 0 0 1 0 0 0\nPOINTS 4\nDATA "
)


def test_things_that_are_open_already():
    for opened, kind in [(faults.episodes(), "an Episodes"), (faults.recording(), "a Recording")]:
        with pytest.raises(TypeError) as caught:
            data.open(opened)
        assert str(caught.value) == f"path: is {kind}, which is open already, expected a path"
    with pytest.raises(TypeError, match="^path: is an int, expected a path$"):
        data.open(3)


@pytest.mark.parametrize("call", ["align", "save", "report_html", "check"])
def test_things_that_are_no_data(tmp_path, call):
    calls = {
        "align": lambda given: data.align(given, 5),
        "save": lambda given: data.save(given, tmp_path / "a.npz"),
        "report_html": lambda given: data.report_html(given, tmp_path / "a.html"),
        "check": data.checks.check,
    }
    kinds = [(3, "an int"), (None, "None"), (np.zeros(3), "an ndarray"), ("a.npz", "a str")]
    for given, kind in kinds:
        with pytest.raises(TypeError) as caught:
            calls[call](given)
        assert str(caught.value) == f"data: is {kind}, expected a Recording or Episodes"


@pytest.mark.parametrize("body", ["ascii\n1 2 3\n4 5 6\n", "binary\n" + "0" * 24])
def test_a_cloud_that_is_truncated(tmp_path, body):
    path = tmp_path / "a.pcd"
    path.write_text(PCD + body)
    with pytest.raises(data.FormatError) as caught:
        data.open(path)
    expected = "point 2: file ends here, but the header says POINTS 4: it is truncated"
    assert str(caught.value) == f"{path}: {expected}"


def test_the_path_is_named_once(tmp_path):
    h5py = pytest.importorskip("h5py")
    path = tmp_path / "x.h5"
    with h5py.File(path, "w") as file:
        file.create_group("traj_0")
    with pytest.raises(data.FormatError) as caught:
        data.open(path, damaged="keep")
    assert "no episodes found: traj_0: has none of the arrays" in str(caught.value)
    assert str(caught.value).count(str(path)) == 1
