"""Files of LeRobot, openpi and GR00T: both directions, and the numbers that they give."""

from __future__ import annotations

import copy
import json
import os

import pytest

np = pytest.importorskip("numpy")

import pipelines  # noqa: E402
import robocache as rbc  # noqa: E402
from normalization_reference import lerobot_steps  # noqa: E402
from robocache._pipeline import safetensors_file  # noqa: E402
from robocache._pipeline.statistics import result_of  # noqa: E402


def pipeline(**changed):
    """State and action of a data set, normalized as LeRobot does."""
    document = pipelines.document(unit="s", availability="stamp")
    state = [pipelines.channel(f"j{i}", origin=i) for i in range(4)]
    action = [pipelines.channel(f"a{i}", origin=i) for i in range(3)]
    document["streams"] = {
        "state": pipelines.stream({"column": "observation.state"}, state, stamp="log"),
        "action": pipelines.stream({"column": "action"}, action, stamp="log"),
    }
    document["windows"] = {
        "observation.state": pipelines.window("state", [0]),
        "action": pipelines.window("action", range(8)),
    }
    document["normalization"] = {
        "observation.state": pipelines.normalization(4, **changed),
        "action": pipelines.normalization(3, **changed),
    }
    document["actions"] = {**document["actions"], "channels": ["a2", "a0", "a1"]}
    return rbc.Pipeline(document)


def test_tensors_are_read_as_they_were_written(tmp_path):
    rng = np.random.default_rng(0)
    tensors = {
        "a": rng.normal(size=(2, 3)).astype(np.float32),
        "b": rng.normal(size=4),
        "c": np.array([7]),
        "d": np.zeros((0, 2), np.float32),
    }
    file = str(tmp_path / "x.safetensors")
    safetensors_file.write(file, tensors)
    read = safetensors_file.read(file)
    assert all(
        read[n].tobytes() == t.tobytes() and read[n].dtype == t.dtype for n, t in tensors.items()
    )


def test_the_library_of_the_format_reads_the_tensors(tmp_path):
    library = pytest.importorskip("safetensors.numpy")
    tensors = {"a": np.arange(6, dtype=np.float32).reshape(2, 3), "b": np.array([0.1])}
    safetensors_file.write(str(tmp_path / "x"), tensors)
    theirs = library.load_file(tmp_path / "x")
    assert all(theirs[name].tobytes() == each.tobytes() for name, each in tensors.items())
    library.save_file(tensors, tmp_path / "y")
    ours = safetensors_file.read(str(tmp_path / "y"))
    assert all(ours[name].tobytes() == each.tobytes() for name, each in tensors.items())


@pytest.mark.parametrize("cut", [0, 7, 40, -1])
def test_a_truncated_file_of_tensors(tmp_path, cut):
    file = tmp_path / "x.safetensors"
    safetensors_file.write(str(file), {"a": np.zeros(5)})
    file.write_bytes(file.read_bytes()[:cut])
    with pytest.raises(ValueError, match="x.safetensors: "):
        safetensors_file.read(str(file))


@pytest.mark.parametrize(
    "changed",
    [
        {"shape": [-2, -3]},
        {"shape": [2.5, 2]},
        {"shape": [True, 6]},
        {"shape": [2, 4]},
        {"shape": [1] * 33 + [6]},
        {"shape": [2**62, 2**62, 0], "data_offsets": [0, 0]},
        {"shape": "6"},
        {"shape": 6},
        {"shape": None},
        {"data_offsets": [0, -48]},
        {"data_offsets": [48, 0]},
        {"data_offsets": [0, 48, 96]},
        {"data_offsets": [8, 56]},
        {"dtype": "F128"},
        {"dtype": ["F64"]},
    ],
    ids=repr,
)
def test_a_wrong_entry_of_a_tensor(tmp_path, changed):
    entry = {"dtype": "F64", "shape": [2, 3], "data_offsets": [0, 48], **changed}
    header = json.dumps({"a.mean": entry}).encode()
    file = tmp_path / "x.safetensors"
    file.write_bytes(len(header).to_bytes(8, "little") + header + bytes(48))
    with pytest.raises(ValueError, match=r"x\.safetensors: a\.mean: (its entry|ends after)"):
        safetensors_file.read(str(file))


@pytest.mark.parametrize("kind,mode", [("lerobot", "mean_std"), ("lerobot", "quantiles"),
                                       ("openpi", "quantiles"), ("gr00t", "min_max")])  # fmt: skip
def test_a_round_trip_keeps_every_value(tmp_path, kind, mode):
    ours = pipeline(style=kind, mode=mode, rows="all")
    lost = ours.export_to(kind, tmp_path)
    assert any(each.startswith("/clock: the rate") for each in lost)
    blank = ours.to_dict()
    for entry in blank["normalization"].values():
        entry["statistics"] = "?"
    back = rbc.Pipeline(blank, draft=True).import_from(kind, tmp_path)
    pointers = [each.pointer for each in ours.diff(back)]
    if kind == "lerobot":
        assert pointers == []
        assert [each for each in lost if "/statistics" in each] == []
    else:  # counts, and ranges for openpi, are not in these files
        assert all(any(p.startswith(each.partition(": ")[0]) for each in lost) for p in pointers)
        assert not any("mean" in p or "std" in p or "0.01" in p for p in pointers)
    first = {each.name: each.read_bytes() for each in tmp_path.rglob("*") if each.is_file()}
    again = tmp_path / "again"
    back.export_to(kind, again)
    assert {e.name: e.read_bytes() for e in again.rglob("*") if e.is_file()} == first


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("mode", ["mean_std", "min_max", "quantiles"])
def test_normalized_values_are_those_of_lerobot(mode, dtype):
    """In training windows, on the robot, and back from the policy: bit for bit."""
    document = pipeline(mode=mode).to_dict()
    document["clock"]["dtype"] = dtype
    document["windows"]["action"]["transforms"] = []
    ours = rbc.Pipeline(document)
    rng = np.random.default_rng(1)
    times = np.arange(400) / 20
    tracks = {
        name: rbc.Track(rng.normal(size=(400, width)) * 3, [0, 400], times=times)
        for name, width in (("observation.state", 4), ("action", 3))
    }
    data = rbc.Episodes(tracks)
    plain = copy.deepcopy(document)
    plain["normalization"] = dict.fromkeys(plain["normalization"], "none")
    raw, normalized = (
        one.windows().cut(one.open(data), [0] * 390, range(390))
        for one in (rbc.Pipeline(plain), ours)
    )
    for name, entry in document["normalization"].items():
        result = result_of(entry["statistics"])
        x = raw[name][0]
        assert x.dtype == dtype
        expected = lerobot_steps(x, result, mode)
        assert normalized[name][0].tobytes() == expected.tobytes()
        back = lerobot_steps(expected, result, mode, inverse=True)
        assert np.asarray(ours.denormalize(name, expected)).tobytes() == back.tobytes()
    live = ours.live()
    state = tracks["observation.state"].values
    for row in range(100):
        live.push("state", times[row], state[row], times[row])
    seen = live.observe(times[99])
    result = result_of(document["normalization"]["observation.state"]["statistics"])
    expected = lerobot_steps(seen.raw["observation.state"], result, mode)
    assert seen["observation.state"].tobytes() == expected.tobytes()


def test_missing_statistics_are_an_error(tmp_path):
    ours = pipeline()
    ours.export_to("lerobot", tmp_path)
    (file,) = tmp_path.glob("policy_preprocessor*.safetensors")
    tensors = safetensors_file.read(str(file))
    kept = {name: each for name, each in tensors.items() if not name.startswith("observation")}
    safetensors_file.write(str(file), kept)
    with pytest.raises(ValueError, match=r"^/normalization/observation.state/statistics: .*none"):
        ours.import_from("lerobot", tmp_path)
    safetensors_file.write(str(file), {**tensors, "observation.state.mean": np.zeros(3)})
    with pytest.raises(ValueError, match=r"/statistics/mean: has the shape \[3\]; expected \[4\]"):
        ours.import_from("lerobot", tmp_path)
    config = json.loads((tmp_path / "policy_preprocessor.json").read_text())
    del config["steps"][2]["config"]["features"]["observation.state"]
    (tmp_path / "policy_preprocessor.json").write_text(json.dumps(config))
    with pytest.raises(ValueError, match=r"^/normalization/observation.state: .*not among"):
        ours.import_from("lerobot", tmp_path)


def test_processors_that_do_not_match_each_other(tmp_path):
    ours = pipeline()
    ours.export_to("lerobot", tmp_path)
    (file,) = tmp_path.glob("policy_postprocessor*.safetensors")
    tensors = safetensors_file.read(str(file))
    safetensors_file.write(str(file), {**tensors, "action.std": tensors["action.std"] + 1})
    with pytest.raises(ValueError, match="action.std differs from policy_preprocessor.json"):
        ours.import_from("lerobot", tmp_path)


def test_what_a_peer_cannot_hold():
    with pytest.raises(ValueError, match="^kind: is 'rlds'"):
        pipeline().export_to("rlds", "x")
    with pytest.raises(ValueError, match="^/normalization/observation.state/style: "):
        pipeline(style="openpi").export_to("lerobot", os.devnull + "x")


def test_parts_of_gr00t_are_kept(tmp_path):
    ours = pipeline(style="gr00t", mode="min_max")
    ours.export_to("gr00t", tmp_path)
    modality = {
        "state": {"arm": {"start": 0, "end": 3}, "gripper": {"start": 3, "end": 4}},
        "action": {"arm": {"start": 0, "end": 3, "absolute": False}},
        "video": {"front": {"original_key": "observation.images.front"}},
    }
    (tmp_path / "meta" / "modality.json").write_text(json.dumps(modality))
    back = ours.import_from("gr00t", tmp_path)
    back.export_to("gr00t", tmp_path / "again")
    again = json.loads((tmp_path / "again" / "meta" / "modality.json").read_text())
    assert again == modality
    modality["state"]["gripper"]["end"] = 5
    (tmp_path / "meta" / "modality.json").write_text(json.dumps(modality))
    with pytest.raises(ValueError, match="^modality.json: state.gripper: is channels 3 to 5"):
        ours.import_from("gr00t", tmp_path)
