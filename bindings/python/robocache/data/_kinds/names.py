"""Kinds that names of channels suggest: quaternions, rotation vectors, Euler angles, angles.

docs/concepts/kinds.md lists the same words; a test compares them.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

# Words in a name, in any case.
ROTATION_WORDS = (
    *("q", "quat", "quats", "quaternion", "quaternions", "orientation", "orientations", "orient"),
    *("ori", "rotation", "rotations", "rot", "attitude", "att"),
)
POSE_WORDS = ("pose", "poses")
VECTOR_WORDS = ("rotvec", "rotation_vector", "rot_vec", "axis_angle", "axisangle")
ANGLE_WORDS = (
    *("roll", "pitch", "yaw", "heading", "hdg", "course", "cog", "bearing", "azimuth"),
    *("theta", "phi", "psi", "lon", "lng", "longitude"),
)
JOINT_WORDS = ("joint", "joints", "angle", "angles", "direction")  # if values jump by a turn
DEGREE_WORDS = ("heading", "hdg", "course", "cog", "bearing", "azimuth", "lon", "lng", "longitude")
LONGITUDE_WORDS = ("lon", "lng", "longitude")
NO_ANGLE_WORDS = (
    *("rate", "rates", "speed", "vel", "velocity", "dot", "omega", "acc", "accel", "accuracy"),
    *("acceleration", "gyro", "std", "stddev", "sigma", "var", "variance", "cov", "covariance"),
    *("torque", "effort", "force", "current", "gain", "count", "counts", "index", "id", "valid"),
    *("flag", "status", "reset", "dps", "rps"),
)
NO_VECTOR_WORDS = ("speed", "vel", "rate", "cmd", "wrench", "force", "torque", "joy")
UNIT_WORDS = {
    **dict.fromkeys(("deg", "degs", "degree", "degrees", "°"), "deg"),
    **dict.fromkeys(("rad", "radian", "radians"), "rad"),
    **dict.fromkeys(("turn", "turns", "rev", "revs"), "turn"),
}
# The roles of the parts of a quaternion, in the order x y z w.
ROLES = (
    *(("x", "y", "z", "w"), ("x", "y", "z", "s"), ("x", "y", "z", "real")),
    *(("x", "y", "z", "scalar"), ("i", "j", "k", "real"), ("i", "j", "k", "w")),
    *(("i", "j", "k", "r"), ("i", "j", "k", "s"), ("i", "j", "k", "scalar")),
)

_ISOLATED = re.compile(
    r"(?<![a-z])(?:q|quat|quaternion|rot|rotation|ori|orient|orientation|att|attitude|rotvec|rv|r)?"
    r"(real|scalar|[xyzwijkrs])(?![a-z])",
    re.IGNORECASE,
)
_CAMEL = re.compile(r"(?<=[a-z])([XYZW])(?![a-z])")
_EULER = {"rpy", "ypr", "euler"}
_NUMBER = re.compile(r"\d+")
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|°|\d+")
_BRACKET = re.compile(r"[\[(]\s*([^\[\]()]*?)\s*[\])]\s*$")
_UNIT_BEHIND = re.compile(r"\s*[\[(](?!\d+\s*[\])])[^\[\]()*]*[\])]\s*$")
_UNIT = re.compile(r"^(?=.*[a-zA-Z°%])[\w°%µ/^*. -]{1,16}$")
_PER_SECOND = re.compile(r"/\s*s|_per_s|(deg|rad)_s\b", re.IGNORECASE)
_TURN = re.compile(r"(?<![a-z])(r|(rot|rotation)[_. ]?)\*", re.IGNORECASE)
_JOINT = re.compile(r"(?<![a-z])[jq]_?\[?\d+\]?$", re.IGNORECASE)
_PARTS = re.compile(r"[xyzw]", re.IGNORECASE)
_MOST = 4096  # streams with more channels are not examined
_LONGEST = 32  # most channels of an array of quaternions


@dataclass(frozen=True)
class Guess:
    """A kind that names suggest for some channels; the values may confirm it."""

    kind: str  # "quaternion", "rotation_vector", "euler", "angle"
    columns: tuple[int, ...]
    unit: str | None  # the unit in the names
    evidence: str  # in addition to the names
    sure: bool  # whether to warn if the values do not confirm it
    joint: bool = False  # whether it is an angle only if its values jump by a turn


def labels_of(name: str, names: Sequence[str] | None, width: int) -> tuple[str, ...]:
    """Return the channel names; unnamed or numbered channels get the stream's name in front."""
    if names is None:
        return tuple(f"{name}[{i}]" for i in range(width))
    return tuple(f"{name}{n}" if re.fullmatch(r"\[\d+\]", n) else n for n in names)


_JOINT_CHANNEL = re.compile(r"(position|velocity|effort)\[")


def words_of(name: str) -> list[str]:
    """Return the words of a name in lower case: "imu.yawRate_deg" gives imu, yaw, rate, deg."""
    return [word.lower() for word in _WORD.findall(name)]


def unit_of(name: str) -> str | None:
    """Return the unit in a name: in brackets at its end, or a word for an angle unit."""
    if _JOINT_CHANNEL.match(name):  # the name of a joint is in the brackets
        return None
    bracket = _BRACKET.search(name)
    if bracket and _UNIT.match(bracket[1]) and not _PARTS.fullmatch(bracket[1]):
        return UNIT_WORDS.get(bracket[1].lower(), bracket[1])
    if bracket and bracket[1].isdigit():
        name = name[: bracket.start()]
    words = words_of(name)
    for word, after in zip(words, [*words[1:], ""]):
        if word in UNIT_WORDS and after not in ("s", "sec", "per"):
            return UNIT_WORDS[word]
    return None


@functools.lru_cache(maxsize=512)
def guesses(
    name: str, names: tuple[str, ...] | None, width: int, joints: bool = False
) -> tuple[Guess, ...]:
    """Return the kinds that names suggest; ``joints``: the channels are joint positions."""
    if width == 0 or width > _MOST:
        return ()
    labels = labels_of(name, names, width)
    found: list[Guess] = []
    taken: set[int] = set()
    for guess in (
        *_quaternions(labels),
        *_of_arrays(labels),
        *_rotation_vectors(name, labels),
        *_euler(labels),
        *_angles(labels, joints),
    ):
        if taken.isdisjoint(guess.columns):
            found.append(guess)
            if guess.kind != "quaternion":  # if values refuse a quaternion, others are tried
                taken.update(guess.columns)
    return tuple(found)


def _places(label: str) -> Iterator[tuple[str, str]]:
    """Yield letters and words that may be the role of a channel, with the name around each."""
    seen = set()
    for pattern in (_ISOLATED, _CAMEL):
        at = 0
        while match := pattern.search(label, at):
            at = match.start(1) + 1 if match.end(1) > match.start() + 1 else match.start() + 1
            if match.start(1) not in seen:
                seen.add(match.start(1))
                key = f"{label[: match.start(1)]}*{label[match.end(1) :]}"
                yield key if pattern is _CAMEL else _folded(key), match[1].lower()


def _folded(key: str) -> str:
    """Return the name around a role without its unit: x [m] and rx [rad] belong together."""
    return re.sub(r"\s+", " ", _UNIT_BEHIND.sub("", key).strip())


def _quaternions(labels: Sequence[str]) -> Iterator[Guess]:
    """Find channels whose names differ only in the letter of their role."""
    by_key: dict[str, dict[str, list[int]]] = {}
    whole: dict[str, str] = {}
    for column, label in enumerate(labels):
        for key, role in _places(label):
            whole.setdefault(key.lower(), key)
            by_key.setdefault(key.lower(), {}).setdefault(role, []).append(column)
    taken: set[int] = set()
    for key, roles in by_key.items():
        named = _says_rotation(whole[key])
        for letters in ROLES:
            if any(len(roles.get(letter, ())) != 1 for letter in letters):
                continue
            columns = tuple(roles[letter][0] for letter in letters)
            says = "w" in letters[3] and letters[0] == "x" or named or letters[3] == "real"
            if says and taken.isdisjoint(columns):
                taken.update(columns)
                yield Guess("quaternion", columns, None, "", named)
            break


def _says_rotation(key: str) -> bool:
    return any(
        word in ROTATION_WORDS or ("quat" in word and "equat" not in word) for word in words_of(key)
    )


def _of_arrays(labels: Sequence[str]) -> Iterator[Guess]:
    """Find numbered channels: q[0] to q[3], quat_0, Q1 to Q4; poses of 7 numbers and of 6."""
    by_key: dict[str, dict[int, int]] = {}
    whole: dict[str, str] = {}
    for column, label in enumerate(labels):
        for match in _NUMBER.finditer(label):
            if len(match[0]) > 3:
                continue
            key = f"{label[: match.start()]}#{label[match.end() :]}"
            whole.setdefault(key.lower(), key)
            by_key.setdefault(key.lower(), {}).setdefault(int(match[0]), column)
    for key, numbered in by_key.items():
        first, count = min(numbered), len(numbered)
        if first not in (0, 1) or max(numbered) != first + count - 1 or count < 3:
            continue
        columns = tuple(numbered[i] for i in sorted(numbered))
        words = words_of(whole[key])
        says_pose = any(word in POSE_WORDS for word in words)
        if says_pose and (count % 7 == 0 or count == 8) and count <= _LONGEST:
            for begin in range(3, count - 1, 7):
                four = columns[begin : begin + 4]
                yield Guess("quaternion", four, None, "the last four of a pose of 7", True)
        elif _says_rotation(whole[key]) and count % 4 == 0 and count <= _LONGEST:
            scalar_first = "q" in words
            for begin in range(0, count, 4):
                four = columns[begin : begin + 4]
                roles = (*four[1:], four[0]) if scalar_first else four
                yield Guess("quaternion", roles, None, "", words[-1:] != ["q"])
        if _refuses_vector(whole[key]):
            continue
        if says_pose and count == 6 and not _EULER & set(words):
            three = columns[3:]
            text = "the last three of a pose of 6"
            yield Guess("rotation_vector", three, unit_of(whole[key]), text, True)
        elif _says_vector(whole[key]) and count % 3 == 0 and count <= _LONGEST:
            for begin in range(0, count, 3):
                three = columns[begin : begin + 3]
                yield Guess("rotation_vector", three, unit_of(whole[key]), "", True)
        elif _EULER & set(words) and count == 3:
            roles = columns[::-1] if "ypr" in words else columns
            yield Guess("euler", roles, unit_of(whole[key]), "roll, pitch and yaw", True)


def _says_vector(key: str) -> bool:
    joined = "_".join(words_of(key))
    return any(word in joined for word in VECTOR_WORDS)


def _refuses_vector(key: str) -> bool:
    return any(word in key.lower() for word in NO_VECTOR_WORDS if word != "rate") or (
        not {"rate", "rates"}.isdisjoint(words_of(key))
    )


def _rotation_vectors(name: str, labels: Sequence[str]) -> Iterator[Guess]:
    """Find rx ry rz next to x y z, or with pose, rotvec or axis_angle in the name."""
    by_key: dict[str, dict[str, int]] = {}
    whole: dict[str, str] = {}
    for column, label in enumerate(labels):
        for key, role in _places(label):
            whole.setdefault(key.lower(), key)
            by_key.setdefault(key.lower(), {}).setdefault(role, column)
    for key, roles in by_key.items():
        if not {"x", "y", "z"} <= set(roles) or "w" in roles or _refuses_vector(f"{name} {key}"):
            continue
        if _EULER & set(words_of(whole[key])):
            columns = (roles["x"], roles["y"], roles["z"])
            yield Guess("euler", columns, unit_of(labels[columns[0]]), "", True)
            continue
        short = re.search(r"(?<![a-z])r_?\*", key)
        says = _says_vector(whole[key])
        if not short and not says:
            continue
        columns = (roles["x"], roles["y"], roles["z"])
        position = short and by_key.get(f"{key[: short.start()]}*{key[short.end() :]}", {})
        near_xyz = bool(position) and {"x", "y", "z"} <= set(position or {})
        says_pose = not set(POSE_WORDS).isdisjoint(words_of(f"{name} {whole[key]}"))
        if says or near_xyz or says_pose:
            text = "next to x, y, z" if near_xyz else ""
            yield Guess("rotation_vector", columns, unit_of(labels[columns[0]]), text, True)


def unplaced_vectors(name: str, names: Sequence[str] | None, width: int) -> list[tuple[int, ...]]:
    """Return channels rx, ry, rz that may be a rotation vector, but are not named as one."""
    if names is None or width > _MOST:
        return []
    guessed = guesses(name, tuple(names), width)
    known = {column for guess in guessed for column in guess.columns}
    by_key: dict[str, dict[str, int]] = {}
    for column, label in enumerate(names):
        for key, role in _places(label):
            if _TURN.search(key) and not _refuses_vector(f"{name} {key}"):
                by_key.setdefault(key.lower(), {}).setdefault(role, column)
    return [
        (roles["x"], roles["y"], roles["z"])
        for roles in by_key.values()
        if {"x", "y", "z"} <= set(roles) and "w" not in roles and known.isdisjoint(roles.values())
    ]


def _euler(labels: Sequence[str]) -> Iterator[Guess]:
    """Find roll, pitch and yaw with the same name around them."""
    by_key: dict[str, dict[str, int]] = {}
    for column, label in enumerate(labels):
        if not _may_be_angle(label):
            continue
        for match in re.finditer(r"(?i)roll|pitch|yaw", label):
            key = f"{label[: match.start()]}*{label[match.end() :]}".lower()
            by_key.setdefault(key, {}).setdefault(match[0].lower(), column)
    for roles in by_key.values():
        if len(roles) == 3:
            columns = (roles["roll"], roles["pitch"], roles["yaw"])
            unit = unit_of(labels[columns[2]])
            yield Guess("euler", columns, unit, "", True)


def _may_be_angle(label: str) -> bool:
    words = words_of(label)
    if not {"roll", "pitch", "yaw"} & set(words) and set(words).isdisjoint(ANGLE_WORDS):
        return False
    return _has_unit_of_angle(label)


def _has_unit_of_angle(label: str) -> bool:
    words = words_of(label)
    if not set(NO_ANGLE_WORDS).isdisjoint(words) or _PER_SECOND.search(label):
        return False
    unit = unit_of(label)
    return unit is None or unit in ("deg", "rad", "turn")


def _angles(labels: Sequence[str], joints: bool) -> Iterator[Guess]:
    for column, label in enumerate(labels):
        words = words_of(label)
        if not _has_unit_of_angle(label):
            continue
        if not set(ANGLE_WORDS).isdisjoint(words):
            yield Guess("angle", (column,), unit_of(label), "", True)
        elif joints or not set(JOINT_WORDS).isdisjoint(words) or _JOINT.search(label):
            yield Guess("angle", (column,), unit_of(label), "", False, joint=True)
