"""LeRobot data sets whose paths lead out of their folder, and statistics that cannot be read."""

from __future__ import annotations

import json
import shutil

import pytest

import data_files
import robocache as rbc

pytest.importorskip("pyarrow")

data = rbc.data
VIDEO = "observation.images.top"
OUT = "leads out of the data set, which is not allowed"
LINK = "is a link out of the data set; follow_links=True allows it"


@pytest.fixture(params=["v2.1", "v3.0"])
def folder(request, tmp_path):
    data_files.write_lerobot(tmp_path / "x", version=request.param)
    return tmp_path / "x"


def change_info(folder, change):
    path = folder / "meta/info.json"
    told = json.loads(path.read_text())
    change(told)
    path.write_text(json.dumps(told))


def refused(folder, reason):
    for damaged in ("refuse", "keep"):
        with pytest.raises(data.FormatError) as caught:
            data.open(folder, damaged=damaged)
        assert reason in caught.value.reason
    return caught.value


@pytest.mark.parametrize("name", ["../../etc/x.mp4", "/etc/x.mp4", "a\\..\\..\\x.mp4"])
def test_videos(folder, name):
    change_info(folder, lambda told: told.update(video_path=name))
    assert refused(folder, OUT).place == name


def test_the_key_of_a_video(folder):
    """The key becomes a part of the path, so it can lead out of the folder too."""
    key = "../../../x"

    def change(told):
        told["features"][key] = told["features"].pop(VIDEO)
        told["video_path"] = "videos/{video_key}/{episode_index:d}.mp4"

    change_info(folder, change)
    if json.loads((folder / "meta/info.json").read_text())["codebase_version"] == "v3.0":
        episodes = data.open(folder)  # meta/episodes has no such video
        assert episodes.track_info(key) is not None and episodes[key].files == (None,) * 3
        return
    refused(folder, OUT)


def test_videos_that_are_links(folder, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (folder / "videos").symlink_to(tmp_path / "elsewhere", target_is_directory=True)
    refused(folder, LINK)
    assert data.open(folder, follow_links=True)[VIDEO].values is None
    (folder / "videos").unlink()
    first = data.open(folder)[VIDEO].files[0]
    first = folder / (first if isinstance(first, str) else first[0])
    first.parent.mkdir(parents=True)
    (tmp_path / "x.mp4").touch()
    first.symlink_to(tmp_path / "x.mp4")
    refused(folder, LINK)
    first.unlink()
    first.touch()
    left_out = {each.place: each.reason for each in data.open(folder).left_out}
    assert left_out.get(VIDEO) in (None, "2 of 3 video files are missing")


def test_data_of_an_absolute_path(folder, tmp_path):
    """The path is refused even if a file of that name is in the folder."""
    file = next(folder.glob("data/*/*.parquet"))
    shutil.copy(file, tmp_path / "x.parquet")
    shutil.copy(file, folder / "x.parquet")
    for name in ("/x.parquet", str(tmp_path / "x.parquet"), "../x.parquet"):
        change_info(folder, lambda told, name=name: told.update(data_path=name))
        assert refused(folder, OUT).place == name


@pytest.mark.parametrize(
    "place", ["chunk_index:0900000000d", "chunk_index:900d", "chunk_index:>9", "x"]
)
@pytest.mark.parametrize("key", ["data_path", "video_path"])
def test_places_of_a_path(folder, place, key):
    change_info(folder, lambda told: told.update({key: f"data/{{{place}}}.parquet"}))
    error = refused(folder, f"has the placeholder {{{place}}}, expected for example")
    assert error.place == key


def test_statistics_that_are_a_link(folder, tmp_path):
    (tmp_path / "stats.json").write_text('{"secret": 1}')
    (folder / "meta/stats.json").symlink_to(tmp_path / "stats.json")
    with pytest.raises(data.FormatError, match="is a link out of the data set"):
        data.open(folder).stored_statistics()


@pytest.mark.parametrize("text", ['{"action": {"min": [NaN, 1]}}', "{", '{"action": 3}'])
def test_statistics_that_cannot_be_read(folder, text):
    (folder / "meta/stats.json").write_text(text)
    with pytest.raises(data.FormatError, match="stats.json.*damaged='keep' reads the rest"):
        data.open(folder).stored_statistics()
    kept = data.open(folder, damaged="keep")
    assert kept.stored_statistics() == {}
    (problem,) = kept.problems
    assert problem.path == str(folder / "meta/stats.json")
    survey = data.checks.survey(kept)
    assert [each.kind for each in survey.findings].count("damage") == 1
    assert "action" in survey.statistics
