"""Reading, validating, comparing and writing pipeline files."""

from __future__ import annotations

import copy
import json
import math
import pickle

import pytest

np = pytest.importorskip("numpy")

import pipelines  # noqa: E402
import robocache as rbc  # noqa: E402
from robocache._pipeline.strict_json import parsed  # noqa: E402
from robocache._pipeline.typed_values import encoded  # noqa: E402


def changed(*changes, images=False):
    """A document with other values at JSON pointers."""
    document = pipelines.document(images)
    for pointer, value in changes:
        before, _, key = pointer.rpartition("/")
        around = pipelines.values_at(before, document)
        around[int(key) if isinstance(around, list) else key] = value
    return document


def refused(document):
    with pytest.raises(ValueError) as caught:
        rbc.Pipeline(document)
    return str(caught.value)


# ---- files --------------------------------------------------------------------------------------


def test_a_file_is_read_as_it_was_written(tmp_path):
    pipeline = rbc.Pipeline(pipelines.document(images=True))
    pipeline.save(tmp_path)
    file = tmp_path / "robocache_pipeline.json"
    for path in (tmp_path, file, str(file)):
        again = rbc.Pipeline.load(path)
        assert again == pipeline and again.fingerprint == pipeline.fingerprint
        assert again.to_dict() == pipeline.to_dict() and not again.diff(pipeline)
    before = file.read_bytes()
    again.save(file)
    assert file.read_bytes() == before
    assert [each.name for each in tmp_path.iterdir()] == [file.name]


def test_numbers_keep_their_bits(tmp_path):
    numbers = [0.1, 1 / 3, 5e-324, 1.7976931348623157e308, -0.0, 2**53 + 1, 1e22]
    document = pipelines.document()
    document["streams"]["imu"]["channels"][4]["offset"] = -0.0
    document["x-numbers"] = numbers
    rbc.Pipeline(document).save(tmp_path / "p.json")
    read = rbc.Pipeline.load(tmp_path / "p.json").to_dict()["x-numbers"]
    assert read == numbers and math.copysign(1, read[4]) == -1


def test_a_pipeline_is_pickled_hashed_and_compared():
    pipeline = rbc.Pipeline(pipelines.document())
    assert pickle.loads(pickle.dumps(pipeline)) == pipeline
    other = rbc.Pipeline(changed(("/clock/rate", 30)))
    assert len({pipeline, other, rbc.Pipeline(pipelines.document())}) == 2
    assert pipeline != other and pipeline != 3


def test_a_file_that_cannot_be_written_stays(tmp_path):
    (tmp_path / "p.json").mkdir()
    (tmp_path / "p.json" / "robocache_pipeline.json").mkdir()
    with pytest.raises(IsADirectoryError):
        rbc.Pipeline(pipelines.document()).save(tmp_path / "p.json")


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"[1]",
        b"\xff{}",
        b"\xef\xbb\xbf{}",
        b'{"a": 1,}',
        b"{'a': 1}",
        b'{"a": 01}',
        b'{"a": .5}',
        b'{"a": "\n"}',
        b"[" * 100_000,
    ],
    ids=repr,
)
def test_what_is_not_strict_json(tmp_path, text):
    file = tmp_path / "p.json"
    file.write_bytes(text[:100_000])
    with pytest.raises(ValueError, match=r"^(.*p\.json: |: )"):
        rbc.Pipeline.load(file)


@pytest.mark.parametrize(
    "number", ["1e400", "-1e400", "1e-400", "1e9999999999999999999", "1e-9999999999999999999"]
)
def test_a_number_that_no_float64_holds_is_refused(number):
    text = json.dumps(pipelines.document()).replace('"a test"', number)
    with pytest.raises(ValueError, match=f"^/provenance/made by: is {number}, expected a number"):
        rbc.Pipeline._read(text.encode(), "file")


@pytest.mark.parametrize("number", ["0e9999999999999999999", "-0.00E-9999999999999999999"])
def test_zero_may_have_any_exponent(number):
    read = parsed(number)
    assert read == 0 and math.copysign(1, read) == (-1 if number.startswith("-") else 1)


def test_half_of_a_surrogate_pair_is_refused():
    text = json.dumps(pipelines.document()).replace('"a test"', '"\\ud800"')
    with pytest.raises(ValueError, match="^/provenance/made by: has half of a surrogate pair"):
        rbc.Pipeline._read(text.encode(), "file")


# ---- validation ---------------------------------------------------------------------------------

FAULTS = [
    ("/robocache_pipeline", 2, "made by a newer version"),
    ("/streams/arm/channels/1/unit", "degree", 'expected one of "rad", "deg"'),
    ("/streams/arm/channels/1/unit", "?", "the format does not say it"),
    ("/streams/arm/channels/1/name", "wrist", None),
    ("/streams/arm/max_age", None, "valid for ever"),
    ("/streams/arm/max_age", -1, "0 or more"),
    ("/streams/arm/method", "next", "expected one of"),
    ("/streams/arm/capacity", 2, "3 or more"),  # late_bound is 2
    ("/streams/arm/source/select", "order", '"name", "index"'),
    ("/streams/arm/channels/0/from", 0, "expected a name"),
    ("/streams/command/channels/0/from", "shoulder", "the index"),
    ("/streams/imu/channels/2/kind", "number", None),
    ("/streams/imu/channels/4/kind", "matrix", None),
    ("/streams/imu/channels/4/kind", "angle", None),
    ("/streams/imu/channels/0/scale", 2, "1 for a quaternion"),
    ("/clock/availability", "log", '"arrival", "stamp"'),
    ("/clock/rate", 0, "above 0"),
    ("/windows/state/offsets", [], "1 or more"),
    ("/windows/state/stream", "leg", '"arm", "imu", "command"'),
    ("/windows/action/transforms/0/count", 4, "1 to 3"),
    ("/windows/action/transforms/0/reference/window", "x", "expected one of"),
    ("/windows/action/transforms/0/reference/index", 3, "-3 to 2"),
    ("/normalization/imu", None, '"none", or an object'),
    ("/normalization/state/mode", "quantile10", None),
    ("/normalization/state/statistics", None, "of Pipeline.fit"),
    ("/normalization/state/statistics", "?", "are missing"),
    ("/normalization/state/statistics/mean", [0.0, 1.0], "expected 3"),
    ("/normalization/state/statistics/std", None, None),
    ("/normalization/state/statistics/std", [1, -1, 1], None),
    ("/normalization/action/statistics/quantiles", {}, None),
    ("/normalization/action/mask", [True] * 3, "not supported by lerobot"),
    ("/actions/channels", ["wrist", "wrist", "elbow"], None),
    ("/actions/limits", [None], "expected 3"),
    ("/actions/limits/0", [1, -1], "not above the high one"),
    ("/actions/smooth", {"kind": "mean"}, "expected one of"),
    ("/images/wrist/operations/1/filter", "area", 'for the rule "pillow"'),
    ("/images/wrist/operations/0/box", [0, 0, 481, 10], "1 to 480"),
    ("/images/wrist/operations/1/fit", "cover", None),
    ("/images/wrist/operations/4/std", [0.0, 1, 1], None),
    ("/images/wrist/operations/5/dtype", "uint8", "a float dtype"),
]


@pytest.mark.parametrize("pointer,value,text", FAULTS, ids=lambda each: str(each)[:50])
def test_faults_have_a_pointer(pointer, value, text):
    message = refused(changed((pointer, value), images=True))
    pointers = {
        # The fault shows in another place, which depends on this one.
        "/streams/arm/channels/1/name": "/streams/arm/channels/2/name",
        "/streams/imu/channels/4/kind": {
            "matrix": "/streams/imu/method",
            "angle": "/streams/imu/channels/4/unit",
        },
        "/normalization/state/mode": "/normalization/state/statistics/quantiles",
        "/actions/channels": "/actions/channels/1",
        "/normalization/state/statistics/std": "/normalization/state/statistics/std",
        "/images/wrist/operations/1/fit": "/images/wrist/operations/3",
    }
    expected = pointers.get(pointer, pointer)
    expected = expected[value] if isinstance(expected, dict) else expected
    assert message.startswith(f"{expected}: ") or message.startswith(f"{expected}/"), message
    assert text is None or text in message


def test_a_newer_file_is_refused_before_its_new_keys():
    document = pipelines.document()
    document.update({"robocache_pipeline": 2, "audio": {}})
    assert refused(document).startswith("/robocache_pipeline: is 2: the file was made by a newer")


def test_a_typing_error_in_a_key():
    document = pipelines.document()
    document["streams"]["arm"]["maxage"] = 1
    assert refused(document).startswith("/streams/arm/maxage: unknown key")
    assert refused(document).endswith('did you mean "max_age"?')


def test_names_are_escaped_in_pointers():
    document = pipelines.document()
    document["streams"]["a/b~c"] = {**document["streams"]["imu"], "fill": "x"}
    assert refused(document).startswith('/streams/a~1b~0c/fill: "x"; expected a number')


def test_a_draft_may_have_unknown_units_and_statistics():
    document = changed(
        ("/streams/arm/channels/0/unit", "?"), ("/normalization/state/statistics", "?")
    )
    draft = rbc.Pipeline(document, draft=True)
    assert draft.unknown == (
        "/streams/arm/channels/0/unit",
        "/normalization/state/statistics",
    )
    with pytest.raises(ValueError, match=r'^/streams/arm/channels/0/unit: "\?"'):
        draft.windows()
    with pytest.raises(ValueError, match=r'^/streams/arm/channels/0/unit: "\?"'):
        draft.live()


FILTERS = [
    {"kind": "poly", "samples": 5, "order": 2, "derivative": 0},
    {"kind": "kernel", "cutoff": 20.0},
    {"kind": "sos", "sos": [[0.1, 0.2, 0.1, 1, -1.1, 0.5]]},
    {"kind": "hampel", "samples": 7, "threshold": 3.0},
    {"kind": "median", "samples": 3},
]


@pytest.mark.parametrize(
    "pointer", ["/streams/arm/filter", "/streams/imu/filter", "/actions/smooth"]
)
@pytest.mark.parametrize("entry", FILTERS, ids=lambda entry: entry["kind"])
def test_a_file_that_asks_for_a_filter_is_refused(tmp_path, pointer, entry):
    document = changed((pointer, entry))
    expected = rf"^{pointer}: asks for a filter of kind \"{entry['kind']}\""
    file = tmp_path / "robocache_pipeline.json"
    file.write_text(json.dumps(document))
    for draft in (False, True):
        with pytest.raises(NotImplementedError, match=expected):
            rbc.Pipeline.load(file, draft=draft)
        with pytest.raises(NotImplementedError, match=expected):
            rbc.Pipeline(document, draft=draft)


# ---- fingerprints -------------------------------------------------------------------------------


def test_the_bytes_of_typed_values():
    assert encoded([None, True, False]) == b"[\0\0\0\0\0\0\0\3ntf"
    assert encoded(20) == encoded(20.0) == b"i\0\0\0\0\0\0\0\x14"
    assert encoded(-0.0) == b"d\x80\0\0\0\0\0\0\0" and encoded(0.5) == b"d\x3f\xe0\0\0\0\0\0\0"
    assert encoded(2.0**63) == b"d\x43\xe0\0\0\0\0\0\0"
    assert encoded({"b": "é", "a": 1, "x-c": 2}) == (
        b"{\0\0\0\0\0\0\0\2s\0\0\0\0\0\0\0\1ai\0\0\0\0\0\0\0\1"
        b"s\0\0\0\0\0\0\0\1bs\0\0\0\0\0\0\0\2\xc3\xa9"
    )


def test_the_two_parts_of_a_fingerprint():
    pipeline = rbc.Pipeline(pipelines.document())
    inputs, numbers = pipeline.fingerprint.split("-")
    assert len(inputs) == len(numbers) == 64
    units = rbc.Pipeline(changed(("/streams/arm/channels/0/unit", "deg")))
    assert units.fingerprint.split("-")[1] == numbers
    means = rbc.Pipeline(changed(("/normalization/state/statistics/mean", [1, 2, 3])))
    assert means.fingerprint.split("-")[0] == inputs
    pipeline.require(pipeline.fingerprint)
    for other, words in ((units, "the inputs of"), (means, "the numbers of")):
        with pytest.raises(ValueError, match=f"^fingerprint: {words}"):
            pipeline.require(other.fingerprint)
    with pytest.raises(ValueError, match="^fingerprint: is 'x'"):
        pipeline.require("x")


def test_a_difference_names_both_values():
    ours = rbc.Pipeline(pipelines.document())
    document = changed(("/clock/lag", 0.5))
    document["windows"]["later"] = copy.deepcopy(document["windows"]["imu"])
    document["normalization"]["later"] = "none"
    found = ours.diff(rbc.Pipeline(document))
    assert [str(each) for each in found] == [
        "/clock/lag: 0.01, other: 0.5",
        '/windows/later: missing, other: {"stream": "imu", "offsets": [0], "outside"'
        ': "fill", "tra...',
        '/normalization/later: missing, other: "none"',
    ]
