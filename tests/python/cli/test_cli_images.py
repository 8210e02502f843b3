"""``robocache images``: pictures and cameras in another size, its words and its exit codes."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import struct
import zlib

import numpy as np
import pytest

pytest.importorskip("typer")
pytest.importorskip("rich")
pytest.importorskip("av", reason="PyAV is not installed")
pytest.importorskip("pyarrow")

from typer.testing import CliRunner  # noqa: E402

import camera_sets as sets  # noqa: E402
import recordings_with_faults as faults  # noqa: E402
import robocache as rbc  # noqa: E402
from robocache import data  # noqa: E402
from robocache.cli._app import app  # noqa: E402
from robocache.data._frames.picture_decoder import PictureDecoder  # noqa: E402
from robocache.data._write.pictures import PNG, jpeg, png  # noqa: E402

RUNNER = CliRunner()
FRAMES = sets.frames(4, 24, 32)


@pytest.fixture
def folder(tmp_path):
    """A folder of four pictures, one of them in a folder, which no test may change."""
    source = tmp_path / "source"
    (source / "more").mkdir(parents=True)
    for name, frame in zip(("a", "b", "more/c"), FRAMES):
        (source / f"{name}.png").write_bytes(png(frame))
    (source / "d.JPG").write_bytes(jpeg(FRAMES[3]))
    (source / "notes.txt").write_text("x")
    before = files_in(source)
    yield source
    assert files_in(source) == before


def files_in(path):
    return {
        str(each.relative_to(path)): hashlib.sha256(each.read_bytes()).hexdigest()
        for each in sorted(path.rglob("*"))
        if each.is_file()
    }


def run(*arguments, code=0, command="images"):
    result = RUNNER.invoke(app, [command, *map(str, arguments)])
    assert result.exit_code == code, result.output
    return result.output


def decoded(path):
    return PictureDecoder("RGB").rgb(path.read_bytes())


def resized(frame, size, **options):
    return rbc.images(frame[None], size, dtype="uint8", layout="hwc", **options)[0]


# ---- pictures -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "options"),
    [
        ((), {}),
        (("--rule", "opencv", "--filter", "area"), {"rule": "opencv", "filter": "area"}),
        (("--fit", "pad"), {"fit": "pad"}),
        (("--rule", "torchvision", "--filter", "bicubic", "--fit", "cover"),
         {"rule": "torchvision", "filter": "bicubic", "fit": "cover"}),
    ],
)  # fmt: skip
def test_a_folder_of_pictures(folder, tmp_path, words, options):
    text = run(folder, "-o", tmp_path / "out", "--size", "16x10", *words)
    assert "4 pictures  32 x 24  16 x 10" in text and "4 frames, by the rule" in text
    assert "notes.txt: not a PNG or JPEG" in text
    made = files_in(tmp_path / "out")
    assert list(made) == ["a.png", "b.png", "d.png", "more/c.png", "robocache_pictures.json"]
    for name, frame in zip(("a", "b", "more/c"), FRAMES):
        answer = decoded(tmp_path / "out" / f"{name}.png")
        np.testing.assert_array_equal(answer, resized(frame, (10, 16), **options))
    answer = decoded(tmp_path / "out" / "d.png")
    expected = resized(decoded(folder / "d.JPG"), (10, 16), **options)
    np.testing.assert_array_equal(answer, expected)


def test_a_preset_and_json(folder, tmp_path):
    made = json.loads(run(folder, "-o", tmp_path / "out", "--preset", "octo_wrist", "--json"))
    assert made["resize"] == {"preset": "octo_wrist", "size": [128, 128]}
    assert made["sizes"] == [{"from": [24, 32], "to": [128, 128], "frames": 4}]
    assert made["format"] == "pictures" and made["frames"] == 4 and made["sheet"] is None
    expected = rbc.image_preset("octo_wrist")(FRAMES[:1], dtype="uint8", layout="hwc")[0]
    np.testing.assert_array_equal(decoded(tmp_path / "out" / "a.png"), expected)


def test_one_picture_and_jpeg(folder, tmp_path):
    run(folder / "a.png", "-o", tmp_path / "one.png", "--size", "8x6")
    np.testing.assert_array_equal(decoded(tmp_path / "one.png"), resized(FRAMES[0], (6, 8)))
    run(folder / "a.png", "-o", tmp_path / "one.jpg", "--size", "8x6")
    assert decoded(tmp_path / "one.jpg").shape == (6, 8, 3)
    run(folder, "-o", tmp_path / "out", "--size", "8x6", "--format", "jpeg")
    assert sorted(os.listdir(tmp_path / "out"))[:2] == ["a.jpg", "b.jpg"]
    text = run(folder / "a.png", "-o", tmp_path / "one", "--size", "8x6", code=1)
    assert "expected .png or .jpg" in text


def test_only_its_own_pictures_are_replaced(folder, tmp_path):
    run(folder, "-o", tmp_path / "out", "--size", "8x6")
    text = run(folder, "-o", tmp_path / "out", "--size", "4x4", code=1)
    assert "exists" in text and "--overwrite" in text
    run(folder, "-o", tmp_path / "out", "--size", "4x4", "--overwrite")
    assert decoded(tmp_path / "out" / "a.png").shape == (4, 4, 3)
    (tmp_path / "out" / "mine.txt").write_text("kept")
    text = run(folder, "-o", tmp_path / "out", "--size", "8x8", "--overwrite", code=1)
    assert "contains mine.txt" in text
    other = tmp_path / "other"
    other.mkdir()
    (other / "x.png").write_bytes(png(FRAMES[0]))
    run(folder, "-o", other, "--size", "8x8", "--overwrite", code=1)
    assert os.listdir(other) == ["x.png"]


def test_a_damaged_picture_leaves_no_output(folder, tmp_path):
    (folder / "more" / "z.png").write_bytes(png(FRAMES[0])[:60])
    text = run(folder, "-o", tmp_path / "out", "--size", "8x6", code=1)
    assert "z.png" in text and "damaged" in text
    assert sorted(os.listdir(tmp_path)) == ["source"]
    (folder / "more" / "z.png").unlink()


def test_depth_and_alpha(tmp_path):
    def picture(bits, color, content):
        head = struct.pack(">IIBBBBB", 2, 2, bits, color, 0, 0, 0)
        parts = [(b"IHDR", head), (b"IDAT", zlib.compress(content)), (b"IEND", b"")]
        chunks = [
            struct.pack(">I", len(c)) + k + c + struct.pack(">I", zlib.crc32(k + c))
            for k, c in parts
        ]
        return PNG + b"".join(chunks)

    (tmp_path / "depth").mkdir()
    (tmp_path / "depth" / "0.png").write_bytes(picture(16, 0, bytes(10)))
    text = run(tmp_path / "depth", "-o", tmp_path / "out", "--size", "1x1", code=1)
    assert "0.png: has 16 bits" in text and "robocache cloud" in " ".join(text.split())
    (tmp_path / "alpha").mkdir()
    (tmp_path / "alpha" / "0.png").write_bytes(picture(8, 6, (b"\0" + b"\7\7\7\0" * 2) * 2))
    text = run(tmp_path / "alpha", "-o", tmp_path / "out", "--size", "1x1")
    assert "the alpha of 1 pictures" in " ".join(text.split())


def test_two_pictures_with_one_name(folder, tmp_path):
    (folder / "a.jpg").write_bytes(jpeg(FRAMES[0]))
    text = run(folder, "-o", tmp_path / "out", "--size", "8x6", code=1)
    assert "would both be a.png" in " ".join(text.split())
    (folder / "a.jpg").unlink()


# ---- sheets -------------------------------------------------------------------------------------


def test_a_sheet_as_a_page(folder, tmp_path):
    sheet = tmp_path / "sheet.html"
    text = run(folder, "--size", "16x12", "--sheet", sheet, "--samples", "2")
    assert "wrote" in text and sorted(os.listdir(tmp_path)) == ["sheet.html", "source"]
    page = sheet.read_text()
    assert "a.png" in page and "before: 32 x 24 pixels" in page and "after: 16 x 12" in page
    found = re.findall(r"data:image/png;base64,([^\"]+)", page)
    frames = [PictureDecoder("RGB").rgb(base64.b64decode(each)) for each in found]
    assert len(frames) == 4
    np.testing.assert_array_equal(frames[0], FRAMES[0])
    np.testing.assert_array_equal(frames[1], resized(FRAMES[0], (12, 16)))


def test_a_sheet_as_a_picture(folder, tmp_path):
    sheet = tmp_path / "sheet.png"
    run(folder, "-o", tmp_path / "out", "--size", "16x12", "--sheet", sheet, "--samples", "1")
    page = decoded(sheet)
    np.testing.assert_array_equal(page[8:32, 8:40], FRAMES[0])
    np.testing.assert_array_equal(page[8:20, 48:64], resized(FRAMES[0], (12, 16)))
    run(folder, "--size", "16x12", "--sheet", sheet, code=1)
    run(folder, "--size", "16x12", "--sheet", sheet, "--overwrite")


# ---- data sets ----------------------------------------------------------------------------------


def test_cameras_of_a_data_set(tmp_path):
    pixels = sets.frames(80)
    sets.with_video(tmp_path / "source", pixels, count=2)
    sheet = tmp_path / "sheet.html"
    out = tmp_path / "out"
    words = ("--size", "16x12", "--camera", "top", "--lossless", "--sheet", sheet, "--json")
    made = json.loads(run(tmp_path / "source", "-o", out, *words))
    assert made["format"] == "lerobot" and made["frames"] == 80
    assert made["sizes"] == [{"camera": sets.NAME, "from": [24, 32], "to": [12, 16]}]
    assert sets.NAME in made["notes"][0]
    from robocache.data._write import video

    (file,) = [path for path in out.rglob("*.mp4") if path.name == "file-000.mp4"]
    frames = np.stack([frame for _, frame in video.frames(str(file))])
    expected = np.stack([resized(frame, (12, 16)) for frame in pixels[: len(frames)]])
    np.testing.assert_array_equal(frames, expected)
    assert run(out, "--check", command="inspect")
    assert f"{sets.NAME}, episode 1, row 20" in sheet.read_text()


def test_cameras_of_a_replay_buffer(tmp_path):
    zarr = pytest.importorskip("zarr")
    import data_files

    frames = sets.frames(11)
    state = np.arange(22.0).reshape(11, 2)
    data_files.write_replay_buffer(tmp_path / "buffer", state=state, front=frames)
    words = ("--size", "16x12", "--fps", "10", "--sheet", tmp_path / "sheet.png", "--json")
    made = json.loads(run(tmp_path / "buffer", "-o", tmp_path / "out.zarr", *words))
    assert made["format"] == "zarr" and made["frames"] == 11
    assert made["sizes"] == [{"camera": "front", "from": [24, 32], "to": [12, 16]}]
    group = zarr.open_group(str(tmp_path / "out.zarr"), mode="r")
    expected = rbc.images(frames, (12, 16), dtype="uint8", layout="hwc")
    np.testing.assert_array_equal(np.asarray(group["data/front"]), expected)
    page = decoded(tmp_path / "sheet.png")
    np.testing.assert_array_equal(page[8:32, 8:40], frames[2])  # the middle of 4 rows
    text = run(tmp_path / "buffer", "-o", tmp_path / "set", "--size", "9x8", "--fps", "10", code=1)
    assert "videos need even numbers" in " ".join(text.split())
    text = run(tmp_path / "buffer", "-o", tmp_path / "set", "--size", "8x8", "--lossless",
               "--fps", "10", code=1)  # fmt: skip
    assert "--lossless works from LeRobot" in " ".join(text.split())


def test_edit_and_convert_resize_too(tmp_path):
    pixels = sets.frames(80)
    sets.with_pictures(tmp_path / "source", pixels, count=2)
    words = ("--resize", "top=16x12", "--rule", "opencv", "--filter", "area")
    run(tmp_path / "source", "-o", tmp_path / "out", *words, command="edit")
    info = json.loads((tmp_path / "out/meta/info.json").read_text())
    assert info["features"][sets.NAME]["shape"] == [12, 16, 3]
    words = ("--image-size", "octo_wrist")
    run(tmp_path / "source", "-o", tmp_path / "set.zarr", *words, command="convert")
    made = json.loads(
        run(tmp_path / "source", "-o", tmp_path / "b.zarr", "--size", "16x12", "--json")
    )
    assert made["format"] == "zarr" and made["sizes"][0]["to"] == [12, 16]


# ---- refusals -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        (("-o", "OUT"), 2, "give --size or --preset"),
        (("-o", "OUT", "--size", "8x8", "--preset", "openpi"), 2, "give --size or --preset"),
        (("--size", "8x8"), 2, "give --output, --sheet, or both"),
        (("-o", "OUT", "--size", "8"), 2, "expected WIDTHxHEIGHT"),
        (("-o", "OUT", "--size", "8x0"), 2, "is 0, expected 1 or more"),
        (("-o", "OUT", "--preset", "openp"), 2, "Did you mean openpi?"),
        (("-o", "OUT", "--preset", "8x8"), 2, "is a size; pass it as --size"),
        (("-o", "OUT", "--preset", "octo", "--rule", "exact"), 2, "which has its own --rule"),
        (("-o", "OUT", "--size", "8x8", "--rule", "pil"), 2, "choose pillow, pillow_12"),
        (("-o", "OUT", "--size", "8x8", "--filter", "area"), 2, "expected BOX, BILINEAR"),
        (("-o", "OUT", "--size", "8x8", "--format", "gif"), 2, "choose png or jpeg"),
        (("--size", "8x8", "--sheet", "OUT.pdf"), 2, "expected .html or .png"),
        (("-o", "OUT", "--size", "8x8", "--camera", "top"), 1, "--camera works on data sets"),
        (("-o", "OUT", "--size", "8x8", "--lossless"), 1, "--lossless works on data sets"),
        (("-o", "OUT.png", "--size", "8x8", "--sheet", "OUT.png"), 1, "is the output too"),
        (("-o", "SOURCE/in", "--size", "8x8"), 1, "is inside"),
        (("--sheet", "SOURCE/s.html", "--size", "8x8"), 1, "is inside"),
        (("-o", "OUT/no/x", "--size", "8x8"), 1, "does not exist; make it first"),
        (("-o", "SOURCE", "--size", "8x8", "--overwrite"), 1, "is the input"),
        (("-o", "OUT", "--preset", "robomimic"), 1, "have 24 x 32 pixels, expected at least"),
    ],
)
def test_refusals(folder, tmp_path, words, code, text):
    places = {"OUT": str(tmp_path / "out"), "SOURCE": str(folder)}
    for name, place in places.items():
        words = [word.replace(name, place) for word in words]
    out = run(folder, *words, code=code)
    plain = re.sub(r"[│╭╮╰╯─\s]+", "", out)
    assert re.sub(r"\s+", "", text) in plain, out
    assert sorted(os.listdir(tmp_path)) == ["source"]


def test_sources_that_are_no_pictures(tmp_path):
    (tmp_path / "empty").mkdir()
    text = run(tmp_path / "empty", "-o", tmp_path / "out", "--size", "8x8", code=1)
    assert "has no PNG or JPEG picture" in text
    text = run(tmp_path / "none", "-o", tmp_path / "out", "--size", "8x8", code=1)
    assert "none: does not exist" in " ".join(text.split())
    data.save(faults.episodes(count=1), tmp_path / "set", "lerobot")
    text = run(tmp_path / "set", "-o", tmp_path / "out", "--size", "8x8", code=1)
    assert "the data set has no camera that can be read" in " ".join(text.split())
    sets.with_video(tmp_path / "video", sets.frames(40), count=1)
    text = run(tmp_path / "video", "-o", tmp_path / "out", "--size", "9x8", code=1)
    assert "videos need even numbers" in " ".join(text.split())
    text = run(
        tmp_path / "video", "-o", tmp_path / "out", "--size", "8x8", "--camera", "tap", code=1
    )
    assert "no such camera 'tap'" in " ".join(text.split())
    text = run(
        tmp_path / "video", "-o", tmp_path / "out", "--size", "8x8", "--format", "png", code=1
    )
    assert "--format works on pictures" in " ".join(text.split())
