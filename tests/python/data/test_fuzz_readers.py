"""A short run of fuzz_readers.py, and the faults it has found."""

from __future__ import annotations

import io
import zipfile

import numpy as np
import pytest

import fuzz_mutations
import fuzz_readers
from random_share import random_share
from robocache import data


def test_damaged_files():
    formats = list(fuzz_readers.FORMATS)
    each = random_share(4)
    outcomes = fuzz_readers.run(formats, each * len(formats), 1)
    assert [defect for outcome in outcomes for defect in outcome.defects] == []
    assert sum(outcome.count for outcome in outcomes) == each * len(outcomes)
    assert 0 < sum(outcome.read for outcome in outcomes) < each * len(outcomes)


def test_the_harness_finds_what_it_looks_for(tmp_path, monkeypatch):
    """Unexpected exceptions, crashes, changed files and extra files are detected."""

    def deletes(path, damaged):
        path.unlink()

    def adds(path, damaged):
        path.with_name("x.csv-shm").touch()

    class Ending:
        def __del__(self):
            raise ValueError("in a destructor")

    made = {
        "prints": lambda path, damaged: [Ending()].clear(),
        "raises": lambda path, damaged: [][1],
        "ends": lambda path, damaged: fuzz_readers.os._exit(7),
        "never ends": lambda path, damaged: fuzz_readers.time.sleep(60),
        "deletes": deletes,
        "adds": adds,
    }
    for what, reader in made.items():
        (tmp_path / what).mkdir()
        (tmp_path / "x.csv").write_text("time,a\n1,2\n")
        monkeypatch.setattr(fuzz_readers, "read", reader)
        sample, folder = tmp_path / "x.csv", tmp_path / what
        outcome = fuzz_readers.in_child("csv", sample, folder, range(3), seconds=0.2)
        assert (outcome.count, len(outcome.defects)) == (3, 3), outcome
        assert list(folder.iterdir()) == []


def _is_whole(content):
    """Whether the checksums of an archive fit."""
    try:
        return zipfile.ZipFile(io.BytesIO(content)).testzip() is None
    except Exception:  # zipfile raises many kinds for archives that are damaged
        return False


def test_formats_one_after_the_other(monkeypatch, capsys):
    """Each has its number or its time; one that cannot be written here is skipped."""

    def lacks_a_package(folder):
        raise ModuleNotFoundError("No module named 'x'")

    monkeypatch.setitem(fuzz_readers.FORMATS, "lacking", lacks_a_package)
    names = ["pcd", "lacking", "ply"]
    count = random_share(700)
    outcomes = fuzz_readers.run(names, None, 1, jobs=2, seconds_per_format=600, each=count)
    assert [(of.name, of.count, of.defects) for of in outcomes] == [
        ("pcd", count, []),
        ("ply", count, []),
    ]
    said = capsys.readouterr().out.splitlines()
    assert said[0] == "lacking: skipped: No module named 'x'"
    assert [line.split()[:2] for line in said[1:]] == [["pcd", str(count)], ["ply", str(count)]]
    (timed,) = fuzz_readers.run(["ply"], None, 1, seconds_per_format=0.5)
    assert timed.count > 0 and timed.defects == []


@pytest.mark.parametrize("name", ["tum", "npz-packed"])
def test_mutations_are_the_same_again(tmp_path, name):
    """The numbers of texts and the files in archives change too, the same for the same seed."""
    sample = fuzz_readers.FORMATS[name](tmp_path)
    content = sample.read_bytes()
    made = [
        [fuzz_mutations.mutate(content, np.random.default_rng(seed)) for seed in range(400)]
        for _ in range(2)
    ]
    assert made[0] == made[1] and len(set(made[0])) > 300
    if name == "tum":
        assert any(b"1e400" in each for each in made[0])
    else:
        assert sum(map(_is_whole, made[0])) > 50


@pytest.mark.parametrize(
    ("kind", "file", "before", "after"),
    [
        ("sqlite3", "metadata.yaml", b"topic_metadata", b"topic_metadatA"),
        ("zarr", "meta/zarr.json", b"{", b"{{"),
    ],
)
def test_damage_that_was_another_exception(tmp_path, kind, file, before, after):
    sample = fuzz_readers.FORMATS[kind](tmp_path)
    damaged = sample / file
    content = damaged.read_bytes()
    assert before in content
    damaged.write_bytes(content.replace(before, after, 1))
    with pytest.raises(data.FormatError) as caught:
        fuzz_readers.read(sample, "refuse", fuzz_readers.unit_of(sample))
    assert caught.value.path.startswith(str(sample))


@pytest.mark.parametrize(
    ("name", "seed"),
    [("sqlite3", 3002863), ("sqlite3", 3009170), ("sqlite3-with-log", 3022015)],
)
def test_sqlite_files_that_took_long_or_seemed_to_lack_memory(tmp_path, name, seed):
    (tmp_path / "sample").mkdir()
    sample = fuzz_readers.FORMATS[name](tmp_path / "sample")
    outcome = fuzz_readers.in_child(name, sample, tmp_path, range(seed, seed + 1))
    assert outcome.defects == [] and outcome.count == 1


@pytest.mark.parametrize("seed", [572, 1000534, 1000553, 2000794, 2001252])
def test_parquet_files_that_ended_the_process(tmp_path, seed):
    """Types, codecs and histograms disagree within the footer; pyarrow called terminate()."""
    (tmp_path / "sample").mkdir()
    sample = fuzz_readers.FORMATS["parquet"](tmp_path / "sample")
    outcome = fuzz_readers.in_child("parquet", sample, tmp_path, range(seed, seed + 1))
    assert outcome.defects == [] and outcome.count == 1
