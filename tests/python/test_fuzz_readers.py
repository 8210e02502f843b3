"""A small dose of fuzz_readers.py, and what it has found."""

from __future__ import annotations

import pytest

import fuzz_readers
from robocache import data


def test_damaged_files():
    formats = list(fuzz_readers.FORMATS)
    assert fuzz_readers.run(formats, 6 * len(formats), 1) == []


def test_the_harness_finds_what_it_looks_for(tmp_path, monkeypatch):
    """An exception of another kind, memory without end, and the end of the process."""
    made = {
        "raises": lambda path, damaged: [][1],
        "ends": lambda path, damaged: fuzz_readers.os._exit(7),
    }
    for what, reader in made.items():
        (tmp_path / what).mkdir()
        (tmp_path / "x.csv").write_text("time,a\n1,2\n")
        monkeypatch.setattr(fuzz_readers, "read", reader)
        found = fuzz_readers.in_child("csv", tmp_path / "x.csv", tmp_path / what, range(3))
        assert len(found) == 3, found


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
        fuzz_readers.read(sample, "refuse")
    assert caught.value.path.startswith(str(sample))
