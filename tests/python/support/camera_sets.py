"""LeRobot data sets with cameras: pictures in the rows, or videos."""

from __future__ import annotations

import io
import json

import numpy as np
import pytest

import recordings_with_faults as faults
from robocache import data

NAME = "observation.images.top"
INFO = "meta/info.json"


def frames(count, height=24, width=32, seed=3):
    """Return frames uint8 [count,H,W,3] with another brightness each, and some noise."""
    rng = np.random.default_rng(seed)
    base = np.linspace(20, 200, count)[:, None, None, None] + np.array([0, 15, 30])
    noise = rng.integers(0, 20, (count, height, width, 3))
    return (base + noise).astype(np.uint8)


def without_camera(folder, version="v3.0", **options):
    """Save a data set without a camera, in a version of LeRobot."""
    data.save(faults.episodes(**options), folder, "lerobot")
    if version != "v3.0":
        _as_v2(folder, version)
    return folder


def with_pictures(folder, pixels, **options):
    """Save a data set whose rows have PNG files."""
    image = pytest.importorskip("PIL.Image")
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    without_camera(folder, **options)
    path = folder / "data/chunk-000/file-000.parquet"
    cells = []
    for frame in pixels:
        out = io.BytesIO()
        image.fromarray(frame).save(out, "PNG")
        cells.append({"bytes": out.getvalue(), "path": None})
    table = parquet.read_table(path)
    kind = pyarrow.struct([("bytes", pyarrow.binary()), ("path", pyarrow.string())])
    parquet.write_table(table.append_column(NAME, pyarrow.array(cells, kind)), path)
    _describe(folder, "image", pixels)
    return folder


def with_video(folder, pixels, **options):
    """Save a data set with one lossless video of all episodes."""
    av = pytest.importorskip("av")
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    without_camera(folder, **options)
    path = folder / "videos" / NAME / "chunk-000/file-000.mp4"
    path.parent.mkdir(parents=True)
    with av.open(str(path), "w") as out:
        stream = out.add_stream("libx264rgb", rate=10, options={"crf": "0"})
        stream.width, stream.height, stream.pix_fmt = pixels.shape[2], pixels.shape[1], "rgb24"
        for frame in pixels:
            out.mux(stream.encode(av.VideoFrame.from_ndarray(frame, format="rgb24")))
        out.mux(stream.encode())
    episodes = folder / "meta/episodes/chunk-000/file-000.parquet"
    table = parquet.read_table(episodes)
    begins = table["dataset_from_index"].to_numpy() / 10
    ends = table["dataset_to_index"].to_numpy() / 10
    for name, values in (
        ("chunk_index", np.zeros(len(begins), np.int64)),
        ("file_index", np.zeros(len(begins), np.int64)),
        ("from_timestamp", begins),
        ("to_timestamp", ends),
    ):
        table = table.append_column(f"videos/{NAME}/{name}", pyarrow.array(values))
    parquet.write_table(table, episodes)
    _describe(folder, "video", pixels)
    return folder


def _describe(folder, kind, pixels):
    info = json.loads((folder / INFO).read_text())
    shape = list(pixels.shape[1:])
    info["features"][NAME] = {"dtype": kind, "shape": shape, "names": None}
    if kind == "video":
        place = "videos/{video_key}/chunk-{chunk_index:03d}/file-{file_index:03d}.mp4"
        info["video_path"] = place
    (folder / INFO).write_text(json.dumps(info))


def _as_v2(folder, version):
    """Change the files of v3.0 to those of v2.1 or v2.0."""
    parquet = pytest.importorskip("pyarrow.parquet")
    from robocache import statistics_files

    info = json.loads((folder / INFO).read_text())
    info["codebase_version"] = version
    info["data_path"] = "data/chunk-{episode_chunk:03d}/episode_{episode_index:06d}.parquet"
    (folder / INFO).write_text(json.dumps(info))
    file = folder / "data/chunk-000/file-000.parquet"
    rows = parquet.read_table(file)
    numbers = rows["episode_index"].to_numpy()
    stored = statistics_files.read_lerobot_episodes(folder)
    file.unlink()
    lines = []
    for e in sorted(stored):
        part = rows.filter(numbers == e)
        parquet.write_table(part, folder / f"data/chunk-000/episode_{e:06d}.parquet")
        lines.append({"episode_index": e, "tasks": ["stack"], "length": len(part)})
    _write_lines(folder / "meta/episodes.jsonl", lines)
    _write_lines(folder / "meta/tasks.jsonl", [{"task_index": 0, "task": "stack"}])
    for path in (folder / "meta/episodes").rglob("*.parquet"):
        path.unlink()
    if version == "v2.1":
        statistics_files.write_lerobot_episodes(folder, stored)
        (folder / "meta/stats.json").unlink()


def _write_lines(path, entries):
    path.write_text("".join(json.dumps(each) + "\n" for each in entries))
