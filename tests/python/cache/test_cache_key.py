"""Keys: canonical JSON and its digest."""

import hashlib
import json
import math
import unicodedata
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from robocache._cache.key import canonical, key_of, portable_path

GOLDEN = Path(__file__).parent / "keys.json"

scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"]), max_size=6), inner)
    ),
    max_leaves=20,
)


def simple(value):
    """The structure that canonical JSON says, by the words of its description."""
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return value
    if isinstance(value, int):
        return value if abs(value) <= 2**53 else str(value)
    if isinstance(value, float):
        if math.isinf(value):
            return "inf" if value > 0 else "-inf"
        return "0x0.0p+0" if value == 0 else value.hex()
    if isinstance(value, dict):
        return {key: simple(each) for key, each in value.items()}
    return [simple(each) for each in value]


@given(values)
def test_canonical_json_says_the_value(value):
    text = canonical(value)
    assert json.loads(text) == simple(value)
    expected = json.dumps(
        simple(value), sort_keys=True, ensure_ascii=False, separators=(",", ":"), allow_nan=False
    )
    assert text == expected


@given(values)
def test_the_order_of_keys_and_tuples_do_not_matter(value):
    def turned(each):
        if isinstance(each, dict):
            return {key: turned(each[key]) for key in reversed(list(each))}
        return tuple(map(turned, each)) if isinstance(each, list) else each

    assert key_of(turned(value)) == key_of(value)


@given(values, values)
def test_different_structures_have_different_keys(one, other):
    assert (key_of(one) == key_of(other)) == (simple(one) == simple(other) and same(one, other))


def same(one, other):
    """Equality that distinguishes True and 1."""
    return json.dumps(simple(one), sort_keys=True) == json.dumps(simple(other), sort_keys=True)


def test_keys_of_fixed_structures_stay():
    """The golden file: a change of these digests makes every stored entry useless."""
    for case in json.loads(GOLDEN.read_text("utf-8")):
        text = case["canonical"]
        assert canonical(json.loads(case["json"])) == text
        key = bytes.fromhex(case["key"])
        assert key_of(json.loads(case["json"])) == hashlib.sha256(text.encode()).digest() == key


def test_numbers_of_numpy_are_those_of_python():
    made = {"a": np.int32(3), "b": np.float64(0.5), "c": np.bool_(True), "d": np.float32(0.1)}
    assert canonical(made) == canonical({"a": 3, "b": 0.5, "c": True, "d": float(np.float32(0.1))})


@pytest.mark.parametrize(
    ("value", "error", "text"),
    [
        ({"a": [1, {"b": math.nan}]}, ValueError, "a[1].b: is NaN, which equals nothing"),
        ({"a": b"x"}, TypeError, "a: is a bytes, expected None, a bool, a number"),
        ({"a": {1: 2}}, TypeError, "a: has the key 1, expected a string"),
        ({"a": "\ud800"}, ValueError, "a: has '\\ud800' at index 0, which is half of a surrogate"),
        ({"a": [len]}, TypeError, "a[0]: is a builtin_function_or_method"),
        ({"a": len}, TypeError, "give it the attributes name, a string, and version"),
        (np.zeros(2), TypeError, "the key: is an ndarray"),
        ({"a": {1}}, TypeError, "a: is a set"),
    ],
)
def test_values_without_a_form_are_refused_with_their_place(value, error, text):
    with pytest.raises(error) as raised:
        canonical(value)
    assert text in str(raised.value)


def test_endless_structures_are_refused():
    endless = []
    endless.append(endless)
    with pytest.raises(ValueError, match="nested more than 100 deep"):
        canonical({"a": endless})


def test_a_function_with_a_name_and_a_version_is_a_value():
    def step(x):
        return x

    step.name, step.version = "double", 2
    assert canonical([step]) == '[{"function":"double","version":2}]'
    step.version = 3
    assert canonical([step]) == '[{"function":"double","version":3}]'


@given(st.binary(min_size=1, max_size=12).filter(lambda name: b"\0" not in name))
def test_paths_are_portable_and_different(name):
    text = portable_path(name)
    text.encode("utf-8")
    assert unicodedata.normalize("NFC", text) == text


@given(st.binary(max_size=8), st.binary(max_size=8))
def test_only_forms_of_one_name_have_one_path(one, other):
    def form(name):
        try:
            return unicodedata.normalize("NFC", name.decode())
        except UnicodeDecodeError:
            return name

    if form(one) == form(other):
        assert portable_path(one) == portable_path(other)
    elif isinstance(form(one), str) and isinstance(form(other), str):
        assert portable_path(one) != portable_path(other)


def test_paths():
    assert portable_path("e\u0301.csv") == "\u00e9.csv"
    assert portable_path(b"a\xffb%20") == "a%FFb%2520"
