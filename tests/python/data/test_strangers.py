"""Messages about unsupported files name their format and what to do about it."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import pickle
import shutil
import tarfile
import zipfile

import numpy as np
import pytest

import data_files
from robocache import data

LFS = b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"0123456789abcdef" * 4
LFS += b"\nsize 4567\n"
HTML = b"\n<!DOCTYPE html>\n<html><head><title>Sign in</title></head></html>"
TEXT = b"time,x\n0,1\n1,2\n"


def tar(mode):
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode=mode) as archive:
        entry = tarfile.TarInfo("x.csv")
        entry.size = len(TEXT)
        archive.addfile(entry, io.BytesIO(TEXT))
    return made.getvalue()


def zipped():
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        archive.writestr("x.csv", TEXT)
    return made.getvalue()


KITTI = b"1 0 0 0 0 1 0 0 0 0 1 0\n" * 5
LINES = b'{"time": 0.5, "x": 1}\n{"time": 0.6, "x": 2}\n'

FILES = [
    ("x.parquet", LFS, "Git LFS pointer.*4,567 bytes.*git lfs pull"),
    ("x.mcap", LFS, "git lfs pull"),
    ("x.h5", LFS, "git lfs pull"),
    ("x.npz", LFS, "git lfs pull"),
    ("x.bag", LFS, "git lfs pull"),
    ("x", LFS, "git lfs pull"),
    ("x.mcap", HTML, "HTML page.*Download the file itself"),
    ("x.parquet", b"<html>404</html>", "HTML page"),
    ("x.csv", b"<?xml version='1.0'?><Error><Code>AccessDenied</Code></Error>", "XML file"),
    ("x.csv", b"", "empty"),
    ("x.mcap", b"", "empty"),
    ("x.csv.gz", gzip.compress(TEXT), "gunzip -k x.csv.gz"),
    ("x.tar.gz", tar("w:gz"), "tar -xzf x.tar.gz"),
    ("x.tgz", tar("w:gz"), "tar -xzf x.tgz"),
    ("x.tar", tar("w"), "tar -xf x.tar"),
    ("x.mcap.xz", lzma.compress(TEXT), "xz -dk x.mcap.xz"),
    ("x.bag.bz2", bz2.compress(TEXT), "bunzip2 -k x.bag.bz2"),
    ("x.csv.zst", b"\x28\xb5\x2f\xfd" + bytes(20), "zstd -d x.csv.zst"),
    ("x.csv.lz4", b"\x04\x22\x4d\x18" + bytes(20), "lz4 -d x.csv.lz4"),
    ("x.zip", zipped(), "unzip x.zip"),
    ("x.7z", b"7z\xbc\xaf\x27\x1c" + bytes(20), "7z x x.7z"),
    ("x.rrd", b"RRF2" + bytes(30), r"Rerun.*'x.rrd'.*write_parquet\('x'\)"),
    ("x.json", json.dumps({"a": 1}, indent=1).encode(), "JSON file"),
    ("x.json", b"[1, 2]", "JSON file"),
    ("x.pkl", pickle.dumps({"a": 1}), "pickle.*code"),
    ("x.mp4", b"\0\0\0\x18ftypmp42" + bytes(30), "video"),
    ("x.avi", b"RIFF\0\0\0\0AVI " + bytes(30), "video .AVI"),
    ("x.wav", b"RIFF\0\0\0\0WAVE" + bytes(30), "sound"),
    ("x.png", b"\x89PNG\r\n\x1a\n" + bytes(30), "picture"),
    ("x.jpg", b"\xff\xd8\xff\xe0" + bytes(30), "picture"),
    ("x.parquet", b"PAR1" + bytes(100), "Parquet file without its footer"),
    ("x", b"\x7fELF\x02" + bytes(30), "program"),
    ("x.csv", "a text\nof words\n".encode("utf-16"), "UTF-16"),
    ("x.mat", b"MATLAB 5.0 MAT-file, made" + bytes(100), "scipy.io.loadmat"),
    ("x.ply", b"ply\nformat ascii 1.0\nend_header\n", "no element vertex"),
    ("x.feather", b"ARROW1\0\0" + bytes(30), "Parquet"),
    ("x.db3-wal", b"\x37\x7f\x06\x82" + bytes(30), "write-ahead log.*.db3"),
    ("metadata.yaml", b"rosbag2_bagfile_information:\n  version: 5\n", "Open its folder"),
    ("x.txt", KITTI, "KITTI poses have no times.*--fps"),
    ("x.dat", b"1 2 3\n4 5 6\n", "without a header"),
    ("x.unknown", b"\x01\x02\x03\x04" * 9, r"unknown format. First bytes: b'\\x01"),
    ("x.words", b"hello world\n", 'unknown format. First line: "hello world"$'),
]


def each(files):
    return pytest.mark.parametrize(
        ("name", "content", "match"), files, ids=[name for name, _, _ in files]
    )


@each(FILES)
def test_file_is_named(tmp_path, name, content, match):
    path = tmp_path / name
    path.write_bytes(content)
    for damaged in ("refuse", "keep"):
        with pytest.raises(data.FormatError, match=match) as caught:
            data.open(path, damaged=damaged)
        assert caught.value.path == str(path)
        assert "damaged='keep'" not in caught.value.reason
    assert path.read_bytes() == content


@each([f for f in FILES if not f[0].endswith((".yaml", "x", ".bin", ".ply"))])
def test_folder_that_holds_one(tmp_path, name, content, match):
    """The message about a folder names the format of the file in it."""
    (tmp_path / "set").mkdir()
    (tmp_path / "set" / name).write_bytes(content)
    with pytest.raises(data.FormatError) as caught:
        data.open(tmp_path / "set")
    assert name in str(caught.value)


# ---- in data sets --------------------------------------------------------------------------------


@pytest.mark.parametrize("instead", [LFS, HTML])
@pytest.mark.parametrize("damaged", ["refuse", "keep"])
def test_pointers_in_bags(tmp_path, instead, damaged):
    store = data_files.typestore()
    bag = data_files.write_ros2(tmp_path / "bag", data_files.messages(store, 5), store)
    (bag / "bag.mcap").write_bytes(instead)
    with pytest.raises(data.FormatError, match="git lfs pull|HTML page"):
        data.open(bag, damaged=damaged)
    (bag / "metadata.yaml").unlink()
    with pytest.raises(data.FormatError, match="git lfs pull|HTML page"):
        data.open(bag, damaged=damaged)


@pytest.mark.parametrize("version", ["v2.1", "v3.0"])
def test_pointers_in_lerobot_sets(tmp_path, version):
    made = tmp_path / "made"
    data_files.write_lerobot(made, version=version)
    files = [path.relative_to(made) for path in made.rglob("*") if path.is_file()]
    for file in files:
        if file.stem == "tasks":  # which loading does not take
            continue
        copy = tmp_path / "copy"
        shutil.copytree(made, copy)
        (copy / file).write_bytes(LFS)
        with pytest.raises(data.FormatError, match="git lfs pull") as caught:
            data.open(copy).load()
        assert file.name in str(caught.value)
        shutil.rmtree(copy)


def test_pointers_among_tables(tmp_path):
    (tmp_path / "a.csv").write_bytes(LFS)
    (tmp_path / "b.parquet").write_bytes(LFS)
    with pytest.raises(data.FormatError, match="a.csv: it is a Git LFS pointer"):
        data.open(tmp_path)


# ---- files of other names ------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["x.bag", "x.txt", "x", "x.mcap.1"])
def test_bags_open_by_their_content(tmp_path, name):
    store = data_files.typestore()
    bag = data_files.write_ros2(tmp_path / "bag", data_files.messages(store, 5), store)
    path = tmp_path / name
    path.write_bytes((bag / "bag.mcap").read_bytes())
    assert len(data.open(path)["/imu"]) == 5


@pytest.mark.parametrize(
    ("path", "match"),
    [
        ("lerobot/pusht", "hf download lerobot/pusht --repo-type dataset --local-dir pusht"),
        ("https://huggingface.co/datasets/a/b/tree/main", "hf download a/b --repo-type dataset"),
        ("huggingface.co/datasets/a/b", "hf download a/b"),
        ("hf://datasets/a/b", "hf download a/b"),
        ("https://example.com/x.mcap", "curl -LO https://example.com/x.mcap"),
        ("s3://bucket/x.mcap", "aws s3 cp s3://bucket/x.mcap"),
        ("gs://bucket/x.mcap", "gcloud storage cp"),
        ("./x.mcap", "does not exist$"),
        ("a/b/c.mcap", "does not exist$"),
        ("x.mcap", "does not exist$"),
    ],
)
def test_paths_that_are_addresses(tmp_path, monkeypatch, path, match):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FileNotFoundError, match=match):
        data.open(path)


def test_formats_that_are_read_have_no_name_as_strangers(tmp_path):
    """A supported file must not be named as unsupported, such as a sweep that begins like a log."""
    np.full(80, 2.0, "<f4").tofile(tmp_path / "x.bin")
    assert len(data.open(tmp_path / "x.bin")) > 0
