"""Every format that ``convert`` and ``save`` write, read again."""

import json
import os
import shutil
import struct
import zlib

import numpy as np
import pytest

import policy_bags as bags
from robocache import Episodes, Track, data

pytest.importorskip("pyarrow")

NAMES = ("shoulder", "elbow")


def episodes():
    """Two episodes of 30 and 20 rows at 10 Hz, in the dtype that all formats keep."""
    rng = np.random.default_rng(1)
    offsets = [0, 30, 50]
    times = np.concatenate([np.arange(30), np.arange(20)]) / 10
    tracks = {
        "observation.state": Track(
            rng.normal(size=(50, 2)).astype(np.float32), offsets, times=times, names=NAMES
        ),
        "action": Track(rng.normal(size=(50, 3)).astype(np.float32), offsets, times=times),
        "observation.on": Track(rng.random((50, 1)) > 0.5, offsets, times=times),
    }
    return Episodes(tracks, tasks=["pick", "place"])


def written(tmp_path, suffix, format=None, given=None):
    given = episodes() if given is None else given
    saved, converted = tmp_path / f"saved{suffix}", tmp_path / f"converted{suffix}"
    lost = given.save(saved, format)
    made = data.convert(given, converted, format=format, dtype=None)
    assert sorted(os.listdir(tmp_path)) == sorted([saved.name, converted.name])
    return (saved, lost), (converted, made.left_out)


# By suffix and format: the places of the tracks, and whether tasks, times and lengths return.
CASES = {
    "lerobot": ("", None, {}),
    "lerobot-v2.1": ("", "lerobot-v2.1", {}),
    "npz": (".npz", None, {}),
    "zarr": (".zarr", None, {}),
    "robomimic": (
        ".hdf5",
        None,
        {"action": "actions", "observation.state": "obs/state", "observation.on": "obs/on"},
    ),
    "rlds": (".rlds", None, {}),
}


@pytest.mark.parametrize("name", CASES)
def test_episodes_return(name, tmp_path):
    if name in ("zarr", "robomimic"):
        pytest.importorskip({"zarr": "zarr", "robomimic": "h5py"}[name])
    suffix, format, places = CASES[name]
    given = episodes()
    for path, lost in written(tmp_path, suffix, format):
        read = data.open(path).load()
        assert len(read) == 2
        for track, expected in given.tracks.items():
            own = read[places.get(track, track)]
            assert np.array_equal(own.values, expected.values), track
            assert own.values.dtype == expected.values.dtype
            assert own.lengths.tolist() == [30, 20]
        if name not in ("zarr", "robomimic"):
            assert read.tasks == ("pick", "place")
            assert read["observation.state"].names == NAMES
            assert np.allclose(read["action"].times, given["action"].times, atol=1e-6)
        if name == "zarr" and "converted" in path.name:
            assert [each.place for each in lost] == ["tasks"]
        elif name != "zarr":
            assert lost == ()


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_tables_have_a_column_per_channel(suffix, tmp_path):
    import pyarrow.csv
    import pyarrow.parquet

    given = episodes()
    for path, _ in written(tmp_path, suffix):
        read = pyarrow.csv.read_csv if suffix == ".csv" else pyarrow.parquet.read_table
        table = read(path)
        state = given["observation.state"].values
        for column, name in enumerate(NAMES):
            own = table[f"observation.state.{name}"].to_numpy().astype(np.float32)
            assert np.array_equal(own, state[:, column])
        assert table["action.2"].to_numpy().astype("f4").tolist() == (
            given["action"].values[:, 2].tolist()
        )
        assert table["episode_index"].to_pylist() == [0] * 30 + [1] * 20
        assert table["task"].to_pylist() == ["pick"] * 30 + ["place"] * 20
        assert np.allclose(table["timestamp"].to_numpy(), given["action"].times)
        assert not path.read_bytes().startswith(b"PK")


@pytest.mark.parametrize("suffix", [".xyz", ".CSVX", ".tar.gz"])
def test_an_unknown_suffix_is_an_error(suffix, tmp_path):
    for write in (episodes().save, lambda out: data.convert(episodes(), out)):
        with pytest.raises(ValueError, match="no format has the suffix .* Expected one of .npz"):
            write(tmp_path / f"x{suffix}")
    assert os.listdir(tmp_path) == []


def test_a_name_with_a_date_has_no_suffix(tmp_path):
    episodes().save(tmp_path / "run.2024-05-01")
    assert data.open(tmp_path / "run.2024-05-01").format == "LeRobot v3.0"


# ---- cameras ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def bag(tmp_path_factory):
    pytest.importorskip("av", reason="PyAV is not installed")
    pytest.importorskip("rosbags")
    return bags.write_bag(tmp_path_factory.mktemp("bag") / "run", seconds=1, size=16)


def with_cameras(bag, out, **options):
    tracks = {"observation.state": "/joint_states:position", "action": "/commands"}
    images = {"front": "/front/image_raw", "wrist": "/wrist/compressed"}
    return data.convert(bag, out, rate=30, tracks=tracks, images=images, **options)


def expected_pictures(rows):
    return np.stack([bags.picture(k, 16) for k in range(rows)])


def test_gr00t_reads_a_set_of_v2_1(bag, tmp_path):
    """The places and keys that GR00T's loader uses: no statistics are left for it to compute."""
    pytest.importorskip("av", reason="PyAV is not installed")
    import pyarrow.parquet as parquet

    import robocache as rbc

    out = tmp_path / "set"
    with_cameras(bag, out, tasks="pick", format="lerobot-v2.1")
    draft = rbc.Pipeline.init(data.open(out), 20)
    draft.fit(draft.open(data.open(out))).export_to("gr00t", tmp_path / "checkpoint")

    def read(path):
        return json.loads(path.read_text())

    def lines(name):
        return [json.loads(line) for line in (out / "meta" / name).read_text().splitlines()]

    info, modality = read(out / "meta/info.json"), read(tmp_path / "checkpoint/meta/modality.json")
    tasks = {each["task_index"]: each["task"] for each in lines("tasks.jsonl")}
    defaults = {"state": "observation.state", "action": "action"}
    for stats in (read(out / "meta/stats.json"), read(tmp_path / "checkpoint/meta/stats.json")):
        for kind, default in defaults.items():
            for part in modality[kind].values():
                own = stats[part.get("original_key", default)]
                for key in ("mean", "std", "min", "max", "q01", "q99"):
                    assert len(own[key][part["start"] : part["end"]]) == 2
    floats = [name for name, each in info["features"].items() if "float" in each["dtype"]]
    stats = read(out / "meta/stats.json")
    assert "timestamp" in floats
    assert all({"mean", "std", "min", "max", "q01", "q99"} <= set(stats[n]) for n in floats)
    for episode in lines("episodes.jsonl"):
        number = episode["episode_index"]
        place = {"episode_chunk": number // info["chunks_size"], "episode_index": number}
        rows = parquet.read_table(out / info["data_path"].format(**place))
        assert len(rows) == episode["length"] and episode["tasks"] == ["pick"]
        assert {tasks[index] for index in rows["task_index"].to_pylist()} == {"pick"}
        for kind, default in defaults.items():
            for part in modality[kind].values():
                first = rows[part.get("original_key", default)][0].as_py()
                assert len(first[part["start"] : part["end"]]) == 2
        for name, feature in info["features"].items():
            if feature["dtype"] == "video":
                assert name.startswith("observation.images.")
                assert (out / info["video_path"].format(video_key=name, **place)).is_file()


def test_hdf5_has_the_layout_of_robomimic(bag, tmp_path):
    h5py = pytest.importorskip("h5py")
    made = with_cameras(bag, tmp_path / "set.hdf5", tasks="pick")
    with h5py.File(tmp_path / "set.hdf5") as file:
        assert list(file["data"]) == ["demo_0"]
        assert json.loads(file["data"].attrs["env_args"]).keys() == {
            "env_name", "type", "env_kwargs",
        }  # fmt: skip
        demo = file["data/demo_0"]
        rows = demo.attrs["num_samples"]
        assert rows == made.rows == file["data"].attrs["total"]
        for key in ("actions", "dones", "rewards", "obs/state", "obs/front_image"):
            assert len(demo[key]) == rows, key
        assert np.array_equal(demo["obs/front_image"], expected_pictures(rows))
        images = demo["obs/front_image"][()]
        assert np.array_equal(demo["next_obs/front_image"][:-1], images[1:])
        assert np.array_equal(demo["next_obs/front_image"][-1], images[-1])
        assert np.array_equal(demo["next_obs/state"][:-1], demo["obs/state"][1:])
        assert demo["dones"][()].tolist() == [0] * (rows - 1) + [1]
        assert [each.decode() for each in file["mask/train"]] == ["demo_0"]


def test_a_replay_buffer_has_pictures_and_ends(bag, tmp_path):
    zarr = pytest.importorskip("zarr")
    made = with_cameras([bag, data.open(bag)], tmp_path / "set.zarr")
    group = zarr.open_group(str(tmp_path / "set.zarr"), mode="r")
    rows = made.rows // 2
    assert group["meta/episode_ends"][:].tolist() == [rows, 2 * rows]
    images = group["data/observation.images.front"][:]
    assert np.array_equal(images, np.concatenate([expected_pictures(rows)] * 2))


def test_parquet_has_pictures_and_csv_lists_them(bag, tmp_path):
    import pyarrow.parquet

    from robocache.data._frames.picture_decoder import PictureDecoder

    made = with_cameras(bag, tmp_path / "set.parquet")
    column = pyarrow.parquet.read_table(tmp_path / "set.parquet")["observation.images.front"]
    images = np.stack([PictureDecoder("RGB").rgb(each["bytes"]) for each in column.to_pylist()])
    assert np.array_equal(images, expected_pictures(made.rows))
    for suffix in (".csv", ".npz"):
        made = with_cameras(bag, tmp_path / f"set{suffix}")
        lost = [each.place for each in made.left_out if "cannot store" in each.reason]
        assert lost == ["observation.images.front", "observation.images.wrist"]
        assert not any("frames are at most" in note for note in made.notes)
    with pytest.raises(ValueError, match="'csv' stores no pictures"):
        with_cameras(bag, tmp_path / "x.csv", image_format="png")
    with pytest.raises(ValueError, match="stores pictures, not videos"):
        with_cameras(bag, tmp_path / "x.parquet", image_format="video")


def test_the_summary_counts_channels_without_names(tmp_path):
    values = {"action": np.zeros((9, 3), "f4"), "state": np.zeros((9, 1), "f4")}
    times = np.arange(9) / 10
    tracks = {name: Track(rows, [0, 9], times=times) for name, rows in values.items()}
    data.save(Episodes(tracks), tmp_path / "set.npz")
    made = data.convert(tmp_path / "set.npz", tmp_path / "set.csv")
    assert made.shapes == {"action": (3,), "state": (1,)}
    assert ["action", "3", "-"] in [line.split() for line in str(made).splitlines()]
    assert made.to_dict()["shapes"] == {"action": [3], "state": [1]}


def test_pictures_can_be_resized(bag, tmp_path):
    made = with_cameras(bag, tmp_path / "set.parquet", image_size=(8, 12))
    assert set(made.cameras.values()) == {(8, 12, 3)}


# ---- RLDS ---------------------------------------------------------------------------------------


def test_rlds_is_what_tensorflow_datasets_describes(bag, tmp_path):
    from robocache.data._formats.rlds import records
    from robocache.data._frames.picture_decoder import PictureDecoder

    made = with_cameras(bag, tmp_path / "set.rlds", tasks="pick")
    (shard,) = (tmp_path / "set.rlds").glob("*.tfrecord-00000-of-00001")
    ((at, size),) = records.places(str(shard))
    features = records.features_in(records.record_at(str(shard), at, size))
    images = records.texts_of(features["steps/observation/images.front"])
    decoded = np.stack([PictureDecoder("RGB").rgb(bytes(each)) for each in images])
    assert np.array_equal(decoded, expected_pictures(made.rows))
    assert len(records.numbers_of(features["steps/action"])) == 2 * made.rows
    assert records.numbers_of(features["steps/is_first"]).tolist() == [1] + [0] * (made.rows - 1)
    described = json.loads((tmp_path / "set.rlds" / "features.json").read_text())
    steps = described["featuresDict"]["features"]["steps"]["sequence"]["feature"]
    picture = steps["featuresDict"]["features"]["observation"]["featuresDict"]["features"]
    assert picture["images.front"]["image"]["encodingFormat"] == "png"
    info = json.loads((tmp_path / "set.rlds" / "dataset_info.json").read_text())
    assert info["splits"][0]["shardLengths"] == ["1"]
    read = data.open(tmp_path / "set.rlds")
    assert read.rate == 30 and read.tasks == ("pick",)
    assert not read.left_out
    assert set(read.cameras) == {"observation.images.front", "observation.images.wrist"}


def decoded(content):
    from robocache.data._frames.picture_decoder import PictureDecoder

    return np.stack([PictureDecoder("RGB").rgb(each) for each in content])


def cells_of(folder, camera):
    import pyarrow.parquet

    (path,) = folder.glob("data/chunk-000/*.parquet")
    return [cell["bytes"] for cell in pyarrow.parquet.read_table(path)[camera].to_pylist()]


def test_pictures_of_data_sets_are_converted(bag, tmp_path):
    camera = "observation.images.front"
    first = with_cameras([bag, data.open(bag)], tmp_path / "a.rlds", tasks="pick")
    rows = first.rows // 2
    given = data.open(tmp_path / "a.rlds").load()
    assert set(given.tracks) == {"action", "observation.state"}
    made = data.convert(tmp_path / "a.rlds", tmp_path / "b", image_format="png")
    assert made.left_out == () and made.cameras[camera] == (16, 16, 3)
    pictures = np.concatenate([expected_pictures(rows)] * 2)
    assert np.array_equal(decoded(cells_of(tmp_path / "b", camera)), pictures)
    back = data.convert(data.open(tmp_path / "b").select([1]), tmp_path / "c.rlds", rate=15)
    assert back.left_out == () and not any(" 4." in note for note in back.notes)
    last = data.convert(tmp_path / "c.rlds", tmp_path / "d", image_format="png")
    assert np.array_equal(decoded(cells_of(tmp_path / "d", camera)), pictures[:rows:2])
    assert last.episodes[0]["tasks"] == ["pick"]
    named = data.convert(tmp_path / "a.rlds", tmp_path / "e.npz")
    assert {each.place for each in named.left_out} == set(first.cameras)


def test_a_damaged_picture_is_named(bag, tmp_path):
    with_cameras(bag, tmp_path / "a.rlds")
    (shard,) = (tmp_path / "a.rlds").glob("*.tfrecord-*")
    from robocache.data._formats.rlds import records

    ((at, size),) = records.places(str(shard))
    record = bytearray(records.record_at(str(shard), at, size))
    begin = record.index(b"\x89PNG", record.index(b"\x89PNG") + 1)
    record[begin : begin + 4] = b"none"
    with shard.open("wb") as file:
        records.put(file, bytes(record))
    with pytest.raises(ValueError, match=r"images\.\w+: picture 1 is neither PNG nor JPEG"):
        data.convert(tmp_path / "a.rlds", tmp_path / "b")
    assert not (tmp_path / "b").exists()


def rlds_of_encoded_tensors(folder, encoding, steps, shape=(2, 3)):
    """Write one episode as TensorFlow Datasets does for Tensor(encoding=...)."""
    from robocache.data._formats.rlds.records import example, put

    folder.mkdir()
    number = {"dtype": "float32", "encoding": "none", "shape": {}}
    pose = {"dtype": "int16", "encoding": encoding, "shape": {"dimensions": list(map(str, shape))}}
    members = {
        "pose": {"pythonClassName": "features.Tensor", "tensor": pose},
        "reward": {"pythonClassName": "features.Scalar", "tensor": number},
    }
    step = {"featuresDict": {"features": members}}
    top = {"featuresDict": {"features": {"steps": {"sequence": {"feature": step}}}}}
    (folder / "features.json").write_text(json.dumps(top))
    (folder / "dataset_info.json").write_text("{}")
    rewards = np.arange(len(steps), dtype="f4")
    with open(folder / "x-train.tfrecord-00000-of-00001", "wb") as file:
        put(file, example({"steps/pose": steps, "steps/reward": rewards}))
    return folder


@pytest.mark.parametrize("encoding", ["bytes", "zlib"])
def test_encoded_tensors_of_rlds(encoding, tmp_path):
    pack = zlib.compress if encoding == "zlib" else bytes
    values = np.random.default_rng(0).integers(-999, 999, (4, 2, 3)).astype("<i2")
    steps = [pack(pose.tobytes()) for pose in values]
    read = data.open(rlds_of_encoded_tensors(tmp_path / "set", encoding, steps), rate=5)
    assert read["pose"].values.dtype == np.int16
    assert np.array_equal(read["pose"].values, values.reshape(4, 6))
    for content, text in (
        (pack(bytes(10)), "has 10 bytes in a step of pose, expected 12"),
        (pack(bytes(9999)), "has more bytes in a step of pose, expected 12"),
        *([(b"????", "zlib cannot unpack")] if encoding == "zlib" else []),
    ):
        folder = rlds_of_encoded_tensors(tmp_path / text[:8], encoding, [*steps[:3], content])
        with pytest.raises(data.FormatError, match=text):
            data.open(folder, rate=5).load()
        shutil.rmtree(folder)
    folder = rlds_of_encoded_tensors(tmp_path / "large", encoding, steps, (10**6, 10**6))
    with pytest.raises(
        data.FormatError, match=r"features.json: pose \[1000000, 1000000\], 4 steps"
    ):
        data.open(folder, rate=5)
    folder = rlds_of_encoded_tensors(tmp_path / "other", "blosc", steps)
    assert data.open(folder, rate=5).left_out[0].reason == "a compressed tensor is not read"


def test_the_checksum_of_records_is_crc32c():
    from robocache.data._formats.rlds.crc32c import crc32c, masked

    # RFC 3720, B.4, and a record that TensorFlow wrote.
    assert crc32c(bytes(32)) == 0x8A9136AA
    assert crc32c(b"\xff" * 32) == 0x62A8AB43
    assert crc32c(bytes(range(32))) == 0x46DD794E
    assert masked(struct.pack("<Q", 0)) == 0x07EB0129 or crc32c(struct.pack("<Q", 0)) == 0x8C28B28A
    whole = np.random.default_rng(0).integers(0, 256, 20_000, np.uint8).tobytes()
    state = 0
    for size in (4096, 4097, 12_345, 20_000):
        state = crc32c(whole[:size])
        assert state == slow_crc32c(whole[:size]), size


def slow_crc32c(content):
    crc = 0xFFFFFFFF
    for byte in content:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


@pytest.mark.parametrize("fault", ["bit", "truncated", "length"])
def test_damage_of_records_is_found(fault, tmp_path):
    episodes().save(tmp_path / "set.rlds")
    (shard,) = (tmp_path / "set.rlds").glob("*.tfrecord-*")
    content = bytearray(shard.read_bytes())
    if fault == "bit":
        content[len(content) // 4] ^= 1
    elif fault == "length":
        content[1] ^= 1
    else:
        del content[-30:]
    shard.write_bytes(content)
    with pytest.raises(data.FormatError, match=r"tfrecord.*byte \d+"):
        data.open(tmp_path / "set.rlds").load()


def test_a_float64_that_rlds_rounds_is_listed(tmp_path):
    track = Track(np.full((3, 1), 0.1), [0, 3], times=[0, 0.1, 0.2])
    (lost,) = Episodes({"action": track}).save(tmp_path / "set.rlds")
    assert str(lost) == "action: float64 is rounded to float32"


def test_negative_and_large_integers_return(tmp_path):
    values = np.array([[-1], [2**62], [-(2**63)], [300], [0]])
    track = Track(values, [0, 5], times=np.arange(5) / 10)
    Episodes({"action": track}).save(tmp_path / "set.rlds")
    assert np.array_equal(data.open(tmp_path / "set.rlds").load()["action"].values, values)
