"""Changed pipeline files: refused with the right pointer, or loaded with exactly that difference.

ROBOCACHE_PIPELINE_MUTATIONS sets how many files are tried.
"""

from __future__ import annotations

import copy
import json
import os
import random
import re

import pytest

np = pytest.importorskip("numpy")

import pipelines  # noqa: E402
import robocache as rbc  # noqa: E402

COUNT = int(os.environ.get("ROBOCACHE_PIPELINE_MUTATIONS", "300"))
NAMES = re.compile(r"/(streams|images|windows|normalization|[^/]*/[^/]*/statistics/quantiles)")
# Where the fault may be found if a value is changed that another place depends on.
DEPENDENT = (
    (r"/robocache_pipeline", r"$^"),
    (r"/streams/[^/]+", r"/windows/[^/]+/(stream|transforms)|/normalization/|/actions/"),
    (r"/streams/[^/]+/(channels|method|late_bound|source)", r"/streams/[^/]+/"),
    (r"/windows(/[^/]+)?", r"/windows/[^/]+/transforms|/normalization/|/actions/"),
    (r"/windows/[^/]+/(offsets|stream|transforms)", r"/(windows|normalization|actions)/"),
    (r"/normalization/[^/]+", r"/normalization/[^/]+/"),
    (r"/images/[^/]+/(size|channels|operations)", r"/images/[^/]+/operations"),
    (r"/actions/window", r"/actions/"),
    (r"/actions/channels/", r"/actions/channels/"),  # a name that another one has
    (r"/images/[^/]+/operations/\d+/kind", r"/images/[^/]+/operations"),
)


def places(value, pointer=""):
    """All places of a document, with their values."""
    yield pointer, value
    if isinstance(value, dict):
        for key, each in value.items():
            step = key.replace("~", "~0").replace("/", "~1")
            yield from places(each, f"{pointer}/{step}")
    elif isinstance(value, list):
        for i, each in enumerate(value):
            yield from places(each, f"{pointer}/{i}")


def parent_of(document, pointer):
    """The object or list around a value, and its key or index."""
    before, _, key = pointer.rpartition("/")
    around = pipelines.values_at(before, document)
    key = key.replace("~1", "/").replace("~0", "~")
    return around, int(key) if isinstance(around, list) else key


def refusal(text):
    """The pointer at the begin of the error, or None if the file is loaded."""
    try:
        return None, rbc.Pipeline._read(text.encode(), "file")
    except ValueError as error:
        return str(error).partition(": ")[0], None


def is_right(pointer, changed):
    """Whether a fault at a pointer is due to the place that was changed."""
    if pointer == changed or pointer.startswith(changed + "/"):
        return True
    if changed.startswith(pointer + "/"):  # an object or list around it
        return True
    return any(re.match(mine, changed) and re.match(theirs, pointer) for mine, theirs in DEPENDENT)


def is_name(pointer):
    """Whether a place is an entry of an object whose keys are names."""
    return NAMES.fullmatch(pointer.rpartition("/")[0]) is not None


ORIGINAL = pipelines.document(images=True)
EVERY = [
    (pointer, value)
    for pointer, value in places(ORIGINAL)
    if pointer and not pointer.startswith("/provenance")
]


def wrong_type(rng):
    """Another type, which no place accepts."""
    pointer, value = rng.choice(EVERY)
    document = copy.deepcopy(ORIGINAL)
    around, key = parent_of(document, pointer)
    around[key] = True if isinstance(value, list) else [[]]
    if value is True or value is False:
        around[key] = [[]]
    found, _ = refusal(json.dumps(document))
    assert found == pointer


def missing_key(rng):
    pointer, _ = rng.choice(EVERY)
    document = copy.deepcopy(ORIGINAL)
    around, key = parent_of(document, pointer)
    if isinstance(around, list):
        key = len(around) - 1
        pointer = f"{pointer.rpartition('/')[0]}/{key}"
    del around[key]
    found, loaded = refusal(json.dumps(document))
    if isinstance(around, dict) and not is_name(pointer):
        assert found == pointer
    elif loaded is None:
        assert is_right(found, pointer), (found, pointer)
    else:
        only_difference(loaded, pointer)


def unknown_key(rng):
    pointer, value = rng.choice([(p, v) for p, v in [("", ORIGINAL), *EVERY] if type(v) is dict])
    if NAMES.fullmatch(pointer):
        return
    document = copy.deepcopy(ORIGINAL)
    name = rng.choice(["zz", "Max_age", "max age", "X-note", "provenance ", "a/b~c", ""])
    pipelines.values_at(pointer, document)[name] = 1
    found, _ = refusal(json.dumps(document))
    assert found == f"{pointer}/{name.replace('~', '~0').replace('/', '~1')}"


def repeated_key(rng):
    pointer, value = rng.choice(EVERY)
    document = copy.deepcopy(ORIGINAL)
    around, key = parent_of(document, pointer)
    if isinstance(around, list):
        return
    around["@@"] = value
    text = json.dumps(document).replace('"@@"', json.dumps(key))
    assert refusal(text)[0] == pointer


def odd_number(rng):
    numbers = [p for p, v in EVERY if type(v) in (int, float)]
    pointer = rng.choice(numbers)
    document = copy.deepcopy(ORIGINAL)
    around, key = parent_of(document, pointer)
    around[key] = "@@"
    word = rng.choice(["NaN", "Infinity", "-Infinity", "1e999", "-1e400", "1e-400"])
    assert refusal(json.dumps(document).replace('"@@"', word))[0] == pointer


def other_value(rng):
    pointer, value = rng.choice([(p, v) for p, v in EVERY if type(v) not in (dict, list)])
    document = copy.deepcopy(ORIGINAL)
    around, key = parent_of(document, pointer)
    same = [v for _, v in EVERY if type(v) is type(value) and v != value]
    numbers = [0, -1, 1, 3, 0.1, 2.5, 1e-9, 1e30, 2**62, -0.0]
    if type(value) in (int, float):
        chosen = rng.choice([*numbers, value + 1, value * 2, -value, value / 3])
    else:
        chosen = rng.choice([*same, None, "zz", "", "?", "none", 1, value])
    around[key] = chosen
    found, loaded = refusal(json.dumps(document))
    if loaded is None:
        assert is_right(found, pointer), (found, pointer, chosen)
    elif chosen == value and str(chosen).startswith("-") == str(value).startswith("-"):
        original = rbc.Pipeline(ORIGINAL)  # the same value, or 1 and 1.0
        assert loaded == original and not loaded.diff(original)
    else:
        only_difference(loaded, pointer)


def same_values(rng):
    """White space, the order of keys, the spelling of numbers, provenance and x-*."""

    def shuffled(value, at_top=False):
        if isinstance(value, dict):
            items = list(value.items())
            rng.shuffle(items)
            made = {key: shuffled(each) for key, each in items}
            named = any(NAMES.fullmatch(p) and v == value for p, v in EVERY)
            if not named and rng.random() < 0.3:
                made[f"x-{rng.random()}"] = rng.choice([None, {"a": [1, "?"]}, -0.0, "x"])
            if at_top:
                made["provenance"] = rng.choice([1, {"by": ["?", 2.5]}, None])
            return made
        if isinstance(value, list):
            return [shuffled(each) for each in value]
        if type(value) in (int, float) and value != 0:
            return f"@@{rng.choice(spellings(value))}@@"
        return value

    text = json.dumps(shuffled(ORIGINAL, True), indent=rng.choice([None, 0, 3, "\t"]))
    text = re.sub(r'"@@(.*?)@@"', r"\1", text)
    found, loaded = refusal(text + rng.choice(["", "\n", " \r\n\t"]))
    assert found is None
    original = rbc.Pipeline(ORIGINAL)
    assert loaded == original and loaded.fingerprint == original.fingerprint
    assert loaded.diff(original) == () == original.diff(loaded)


def spellings(value):
    made = [json.dumps(value), f"{value!r}e0" if "e" not in repr(value) else repr(value)]
    if value == int(value):
        made += [f"{int(value)}.0", f"{int(value)}.000e+00", f"{int(value)}0e-1"]
    return [each for each in made if float(each) == value]


def trailing_text(rng):
    text = json.dumps(ORIGINAL)
    place = rng.choice([" {}", "//", "/* a */", ",", "\x00", "x"])
    assert refusal(text + place)[0] == "file"
    cut = rng.randrange(1, len(text))
    assert refusal(text[:cut])[0] == "file"
    assert refusal(text.replace("{", "{ // c\n", 1))[0] == "file"


def only_difference(loaded, pointer):
    original = rbc.Pipeline(ORIGINAL)
    assert [each.pointer for each in original.diff(loaded)] == [pointer]
    assert [each.pointer for each in loaded.diff(original)] == [pointer]
    assert loaded != original and loaded.fingerprint != original.fingerprint


KINDS = (
    *(wrong_type, missing_key, unknown_key, repeated_key, odd_number),
    *(other_value, other_value, other_value, same_values, trailing_text),
)


@pytest.mark.parametrize("part", range(10))
def test_changed_files(part):
    for number in range(part, COUNT, 10):
        KINDS[part](random.Random(number))
