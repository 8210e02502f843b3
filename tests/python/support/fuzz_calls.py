"""Calls of every public function and method with arguments that fit and arguments that do not.

    python tests/python/support/fuzz_calls.py [--calls N] [--seed S]

A call gives its result, or raises one of the errors of its documentation with a text that says why.
It never raises anything else or ends the process. Call i of seed S is that of seed S + i.
"""

from __future__ import annotations

import argparse
import enum
import inspect
import random
import resource
import sys
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import good_calls
import robocache as rbc
from good_calls import Call

# KeyError is one of names: tracks, windows, streams, columns.
DOCUMENTED = (ValueError, TypeError, MemoryError, rbc.RoboCacheError, KeyError, IndexError)


class OwnDefect(Exception):
    """Error of an object of the caller, which the caller must receive."""


# ---- arguments that fit no call ------------------------------------------------------------------


class BrokenArray:
    def __array__(self, *given: Any, **named: Any) -> Any:
        raise OwnDefect


class BrokenDLPack:
    def __dlpack__(self, **named: Any) -> Any:
        raise OwnDefect

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0


class LiesAboutItsDevice:
    def __init__(self) -> None:
        self.array = np.zeros((3, 2), np.float32)

    def __dlpack__(self, **named: Any) -> Any:
        return self.array.__dlpack__()

    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, 0


class BrokenIndex:
    def __index__(self) -> int:
        raise OwnDefect


class Number:
    def __index__(self) -> int:
        return 2

    def __float__(self) -> float:
        return 2.5


NUMBERS = [0, 1, -1, 2, 3, 2**31, 2**63, 2**64, -(2**63), 10**30, 0.0, 0.5, -0.0, 1e308, 5e-324]
NUMBERS += [float("nan"), float("inf"), True, 1j, np.float32(1), np.int64(3), np.bool_(True)]
TEXTS = ["", "linear", "cubic", "slerp", "mean", "count", "cpu", "cuda:9", "nope", "\0", "é" * 300]
GROUPS = [[(0, 2, "linear")], [(0, 1, "slerp")], [(0, 2**40, "nearest")], [[1], 2], ((),)]
OBJECTS = [None, b"x", (), [], {}, (0, 0, 0), [1, 2, 3], [0.1, 0.1, 0.1], object(), int, range(3)]
OBJECTS += [slice(1), {"a": 1}, len, Number(), BrokenArray(), BrokenDLPack(), LiesAboutItsDevice()]
OBJECTS += [BrokenIndex(), np.datetime64("NaT"), np.timedelta64(3, "s"), "float32", "bfloat16"]
DTYPES = "f2 f4 f8 i4 i8 u1 ? i1 u2 u4 u8 c8 O S3 U2 M8[ns] m8[us] >f4 f16".split()


def odd_array(chance: random.Random) -> Any:
    shape = tuple(chance.choice([0, 1, 2, 3, 4, 7]) for _ in range(chance.randrange(6)))
    array = np.zeros(shape, chance.choice(DTYPES) if chance.random() < 0.6 else "f4")
    if array.dtype.kind in "iu":
        array[...] = np.arange(array.size).reshape(shape)
    if array.dtype.kind == "f":
        array[...] = np.random.default_rng(chance.randrange(99)).normal(size=shape)
        if array.size and chance.random() < 0.2:
            array.flat[0] = np.nan
    changes: list[Callable[[Any], Any]] = [
        lambda a: a[::-1] if a.ndim else a,
        lambda a: a.T,
        lambda a: np.broadcast_to(a, (2, *a.shape)),
        lambda a: np.ma.masked_array(a),
        lambda a: a.tolist(),
        lambda a: a.view(np.recarray),
        _read_only,
        _misaligned,
    ]
    return chance.choice(changes)(array) if chance.random() < 0.4 else array


def _read_only(array: Any) -> Any:
    array.flags.writeable = False
    return array


def _misaligned(array: Any) -> Any:
    if array.dtype.hasobject or not array.size:
        return array
    room = np.zeros(array.nbytes + 1, np.uint8)[1:]
    return room.view(array.dtype).reshape(array.shape)


def odd_tensor(chance: random.Random) -> Any:
    try:
        import torch
    except ModuleNotFoundError:
        return None
    dtype = chance.choice([torch.float32, torch.bfloat16, torch.float64, torch.int64, torch.bool])
    tensor = torch.zeros(
        [chance.choice([0, 1, 2, 3]) for _ in range(chance.randrange(4))], dtype=dtype
    )
    changes: list[Callable[[Any], Any]] = [
        lambda t: t.to("meta"),
        lambda t: t.to_sparse() if t.ndim else t,
        lambda t: t.requires_grad_() if t.is_floating_point() else t,
        lambda t: t.to(torch.complex64).conj(),
        lambda t: t.expand(2, *t.shape),
    ]
    return chance.choice(changes)(tensor) if chance.random() < 0.5 else tensor


def odd(chance: random.Random) -> Any:
    kind = chance.random()
    if kind < 0.4:
        return odd_array(chance)
    if kind < 0.5:
        return odd_tensor(chance)
    return chance.choice(chance.choice([NUMBERS, TEXTS, GROUPS, OBJECTS]))


# ---- calls ---------------------------------------------------------------------------------------


def calls() -> dict[str, Callable[[], Call]]:
    """Return the good calls, and of every other public function and class one without arguments."""
    made = good_calls.all_calls()
    for name in rbc.__all__:
        each = getattr(rbc, name)
        if name in made or not str(getattr(each, "__module__", "")).startswith("robocache"):
            continue
        if not inspect.isfunction(each) and not isinstance(each, type):
            continue
        if isinstance(each, type) and issubclass(each, (dict, enum.Enum, BaseException)):
            continue
        made[name] = lambda each=each: (each, [], {})  # type: ignore[misc]
    return made


def spoiled(call: Call, chance: random.Random) -> Call:
    """With some of its arguments replaced, and some given that it had not."""
    function, given, named = call
    parameters = list(inspect.signature(function).parameters.values())
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    if not given:
        given = [odd(chance) for p in positional if p.default is p.empty]
    elif chance.random() < 0.6:
        given[chance.randrange(len(given))] = odd(chance)
    options = [p.name for p in positional[len(given) :]]
    options += [p.name for p in parameters if p.kind == p.KEYWORD_ONLY]
    for _ in range(chance.choice([0, 1, 1, 2])):
        if options:
            named[chance.choice(options)] = odd(chance)
    return function, given, named


# ---- results of the calls ------------------------------------------------------------------------


def complaint(call: Call) -> str | None:
    """Return what is wrong with the result of a call, or None."""
    function, given, named = call
    try:
        repr(function(*given, **named))
    except OwnDefect:
        return None
    except DOCUMENTED as error:
        if isinstance(error, rbc.RoboCacheError) and error.status == rbc.Status.INTERNAL:
            return f"an internal error: {error}"
        return None if str(error) else f"{type(error).__name__} without a text"
    except RuntimeError as error:  # of a tensor that is given as a flag
        own = ("Boolean value of", "Tensor.item() cannot be called on meta")
        return None if str(error).startswith(own) else traceback.format_exc(limit=-4)
    except Exception:
        return traceback.format_exc(limit=-4)
    return None


def run(count: int, seed: int) -> list[str]:
    """Run calls; return a line for each problem, with the call and the reason."""
    makers = calls()
    names = sorted(makers)
    found = []
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for i in range(count):
            chance = random.Random(seed + i)
            name = chance.choice(names)
            call = spoiled(makers[name](), chance)
            wrong = complaint(call)
            if wrong is not None:
                found.append(f"seed {seed + i}: {name}: {wrong}")
    return found


def limit_memory(more: int) -> None:
    """Limit the process to ``more`` bytes, since odd arguments may be sizes of gigabytes."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + more
    resource.setrlimit(resource.RLIMIT_AS, (limit, resource.RLIM_INFINITY))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--calls", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    limit_memory(4 << 30)
    results = run(arguments.calls, arguments.seed)
    print("\n".join(results))
    sys.exit(f"{len(results)} of {arguments.calls} calls" if results else 0)
