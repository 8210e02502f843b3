"""Zarr stores whose metadata name codecs that could run code are not unpacked."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pytest

import robocache as rbc
from zarr_stores import ROWS, Trap, v2_array, v2_store, v3_array, write, zipped

pytest.importorskip("zarr")

data = rbc.data
PICKLE = {"id": "pickle", "protocol": 5}
V2_TRAP = {"dtype": "|O", "filters": [{"id": "vlen-utf8"}, PICKLE]}


def v3_store(folder, codecs):
    ends = np.array([5, 10])
    little = [{"name": "bytes", "configuration": {"endian": "little"}}]
    group = {"zarr_format": 3, "node_type": "group", "attributes": {}}
    return write(folder, {
        "zarr.json": group, "data/zarr.json": group, "meta/zarr.json": group,
        "data/action/zarr.json": v3_array(ROWS, little), "data/action/c/0/0": ROWS.tobytes(),
        "meta/episode_ends/zarr.json": v3_array(ends, codecs),
        "meta/episode_ends/c/0": ends.tobytes(),
    })  # fmt: skip


def refused(path, codec="pickle"):
    for damaged in ("refuse", "keep"):
        with pytest.raises(data.FormatError, match=f"packs its array with '?{codec}") as caught:
            data.open(path, damaged=damaged)
    return caught.value


@pytest.mark.parametrize("changed", [V2_TRAP, {"compressor": PICKLE}])
@pytest.mark.parametrize("kind", ["folder", "zip"])
def test_pickle(tmp_path, changed, kind):
    path = v2_store(tmp_path / "x", tmp_path / "sprung", **changed)
    if kind == "zip":
        path = zipped(path, tmp_path / "x.zip")
    error = refused(path)
    assert error.place == "meta/episode_ends/.zarray" and "as numbers" in str(error)
    assert not (tmp_path / "sprung").exists()


def test_pickle_in_what_save_wrote(tmp_path):
    """Its arrays are found by a description, unlike the arrays of a replay buffer."""
    data.Episodes({"a": rbc.Track(ROWS, [0, 5, 10])}).save(tmp_path / "x", "zarr")
    head = tmp_path / "x/data/a/.zarray"
    head.write_text(json.dumps({**json.loads(head.read_text()), **V2_TRAP, "compressor": None}))
    (tmp_path / "x/data/a/0.0").write_bytes(pickle.dumps(Trap(tmp_path / "sprung")))
    assert refused(tmp_path / "x").place == "data/a/.zarray"
    assert not (tmp_path / "sprung").exists()


@pytest.mark.parametrize("codec", ["pickle", "numcodecs.pickle", "their.own"])
@pytest.mark.parametrize("nested", [False, True])
def test_version_3(tmp_path, codec, nested):
    codecs = [{"name": "bytes", "configuration": {"endian": "little"}}, {"name": codec}]
    if nested:
        shards = {"chunk_shape": [2], "codecs": codecs, "index_codecs": codecs[:1]}
        codecs = [{"name": "sharding_indexed", "configuration": shards}]
    error = refused(v3_store(tmp_path / "x", codecs), codec.replace("numcodecs.", ""))
    assert error.place == "meta/episode_ends/zarr.json"


def test_metadata_that_a_group_repeats(tmp_path):
    """Zarr uses these instead of the array's own metadata."""
    path = v2_store(tmp_path / "x", tmp_path / "sprung")
    files = {str(f.relative_to(path)): json.loads(f.read_text()) for f in path.rglob(".z*")}
    files["meta/episode_ends/.zarray"].update(V2_TRAP)
    write(path, {".zmetadata": {"zarr_consolidated_format": 1, "metadata": files}})
    assert refused(path).place == ".zmetadata"
    assert not (tmp_path / "sprung").exists()

    array = {**v2_array(ROWS), **V2_TRAP}
    path = v2_store(tmp_path / "group")
    write(
        path, {".zgroup": {"zarr_format": 2, "consolidated_metadata": {"metadata": {"a": array}}}}
    )
    assert refused(path).place == ".zgroup"

    path = v3_store(tmp_path / "y", [{"name": "bytes"}])
    repeated = {"meta/episode_ends": v3_array(np.array([5, 10]), [{"name": "numcodecs.pickle"}])}
    inner = {"kind": "inline", "must_understand": False, "metadata": repeated}
    group = json.loads((path / "zarr.json").read_text())
    write(path, {"zarr.json": {**group, "consolidated_metadata": inner}})
    assert refused(path).place == "zarr.json"


def test_codecs_that_are_not_known(tmp_path):
    error = refused(v2_store(tmp_path / "x", compressor={"id": "theirs"}), "theirs")
    assert "save the array again with zstd or blosc" in str(error)
    assert "packs its array with 7" in str(refused(v2_store(tmp_path / "y", filters=[7]), "7"))
    assert "pickle" in str(refused(v2_store(tmp_path / "z", filters=["pickle"])))


def test_harmless_codecs(tmp_path):
    import numcodecs

    packed = numcodecs.Zlib().encode(np.array([5, 10]).tobytes())
    path = v2_store(tmp_path / "x", compressor={"id": "zlib", "level": 1})
    (path / "meta/episode_ends/0").write_bytes(bytes(packed))
    np.testing.assert_array_equal(data.open(path)["action"].values, ROWS)
    path = v2_store(tmp_path / "y")
    words = v2_array(np.arange(10), dtype="|O", filters=[{"id": "vlen-utf8"}], fill_value="")
    write(path, {"data/words/.zarray": words})
    told = data.open(path)
    np.testing.assert_array_equal(told["action"].values, ROWS)
    assert [each.place for each in told.left_out] == ["words"]


def test_ends_of_objects(tmp_path):
    words = {"dtype": "|O", "filters": [{"id": "vlen-utf8"}], "fill_value": ""}
    with pytest.raises(data.FormatError, match="meta/episode_ends: has dtype .*, expected numbers"):
        data.open(v2_store(tmp_path / "x", **words))


def test_the_other_byte_order(tmp_path):
    path = v2_store(tmp_path / "x")
    write(path, {"data/action/.zarray": v2_array(ROWS, dtype=">f8"),
                 "data/action/0.0": ROWS.astype(">f8").tobytes()})  # fmt: skip
    values = data.open(path)["action"].values
    np.testing.assert_array_equal(values, ROWS)
    assert values.dtype == np.float64  # in the order of this machine, as statistics take them


def test_links_in_a_circle(tmp_path):
    path = v2_store(tmp_path / "x")
    (path / "again").symlink_to(path, target_is_directory=True)
    np.testing.assert_array_equal(data.open(path, follow_links=True)["action"].values, ROWS)


@pytest.mark.parametrize("text", ["{", "[]", "[" * 100_000, '{"metadata": {"a/.zarray": "{}"}}'])
def test_metadata_that_are_none(tmp_path, text):
    path = v2_store(tmp_path / "x")
    (path / ".zmetadata").write_text(text)
    with pytest.raises(data.FormatError, match=r"\.zmetadata: is not a Zarr group, or is damaged"):
        data.open(path)
