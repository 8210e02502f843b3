"""The DLPack protocol: capsules of both kinds, their deleters, flags and versions."""

import ctypes
import gc
import sys
import weakref

import numpy as np
import pytest

import robocache as rbc
from dlpack_producers import Producer

VALUES = np.arange(8.0).reshape(4, 2)
TIMES = np.arange(4.0)
QUERIES = np.array([0.5, 2.25])
ANSWER = [[1.0, 2.0], [4.5, 5.5]]


capsule_name = ctypes.pythonapi.PyCapsule_GetName
capsule_name.restype = ctypes.c_char_p
capsule_name.argtypes = [ctypes.py_object]


class OldProducer(Producer):
    """From before DLPack 1.0: knows neither max_version nor copy."""

    def __init__(self, array):
        super().__init__(array, versioned=False)

    def __dlpack__(self, stream=None):
        return super().__dlpack__(stream=stream)


def answer(values=VALUES, times=TIMES, queries=QUERIES, **options):
    out = np.full((2, 2), np.nan)
    rbc.resample(values, times, queries, out=out, **options)
    return out


@pytest.mark.parametrize("versioned", [True, False])
@pytest.mark.parametrize("null_strides", [True, False])
def test_capsules_are_taken_and_deleted_once(versioned, null_strides):
    producers = [
        Producer(a, versioned=versioned, null_strides=null_strides)
        for a in (VALUES, TIMES, QUERIES)
    ]
    np.testing.assert_array_equal(answer(*producers), ANSWER)
    gc.collect()
    for producer in producers:
        assert producer.deleted == len(producer.given) >= 1
        taken = b"used_dltensor_versioned" if versioned else b"used_dltensor"
        assert {capsule_name(capsule) for capsule in producer.given} == {taken}
        assert producer.asked[0] == {"stream": None, "max_version": (1, 0), "copy": False}


def test_old_producers():
    producer = OldProducer(VALUES)
    np.testing.assert_array_equal(answer(producer), ANSWER)
    assert producer.deleted == len(producer.given) and producer.asked == [{"stream": None}]


def test_lengths_and_offsets_live_through_the_call():
    lengths = Producer(np.array([4], np.int64))
    out = np.empty((1, 2, 2))
    rbc.resample(VALUES[None], TIMES, QUERIES, lengths=lengths, out=out)
    np.testing.assert_array_equal(out[0], ANSWER)
    gc.collect()
    assert lengths.deleted == len(lengths.given) == 1


def test_byte_offset_and_negative_strides():
    room = np.arange(12.0)
    producer = Producer(room[4:].reshape(4, 2), offset=32)
    np.testing.assert_array_equal(answer(producer), np.array(ANSWER) + 4)
    backwards = VALUES[::-1].copy()[::-1]
    np.testing.assert_array_equal(answer(Producer(backwards)), ANSWER)


def test_an_unknown_major_version_is_deleted_and_no_more():
    producer = Producer(VALUES, major=2)
    with pytest.raises(BufferError, match="values: is in DLPack version 2, expected 1"):
        answer(producer)
    assert producer.deleted == 1


def test_read_only_is_honoured():
    np.testing.assert_array_equal(answer(Producer(VALUES, flags=1)), ANSWER)
    out = Producer(np.zeros((2, 2)), flags=1)
    with pytest.raises(ValueError, match="^out: is read-only"):
        rbc.resample(VALUES, TIMES, QUERIES, out=out)
    assert out.deleted == 1 and not out.array.any()
    out = Producer(np.zeros((2, 2)))
    assert rbc.resample(VALUES, TIMES, QUERIES, out=out) is out
    np.testing.assert_array_equal(out.array, ANSWER)


def test_errors_give_everything_back():
    producers = [Producer(VALUES), Producer(TIMES[:3]), Producer(QUERIES)]
    with pytest.raises(ValueError, match=r"^times: shape is \[3\], expected \[4\]"):
        answer(*producers)
    assert all(producer.deleted == len(producer.given) for producer in producers)
    producer = Producer(VALUES, lanes=2)
    with pytest.raises(TypeError, match="^values: .*lanes"):
        answer(producer)
    assert producer.deleted == 1


def test_what_lives_elsewhere_is_named():
    far = {"device": 2}
    for name, array in (("values", VALUES), ("times", TIMES), ("query_times", QUERIES)):
        arguments = {"values": VALUES, "times": TIMES, "query_times": QUERIES}
        arguments[name] = Producer(array, **far)
        with pytest.raises(ValueError, match=f"^{name}: lives on device .type 2"):
            rbc.resample(**arguments, out=np.empty((2, 2)))
    with pytest.raises(ValueError, match="^out: lives on device"):
        rbc.resample(VALUES, TIMES, QUERIES, out=Producer(np.empty((2, 2)), **far))
    for name, array in (("values", VALUES), ("mean", VALUES[0]), ("lengths", np.array([4]))):
        arguments = {"values": VALUES[None], "times": TIMES}
        good = rbc.Stream(**arguments)
        arguments[name] = Producer(array.reshape(1, 4, 2) if name == "values" else array, **far)
        with pytest.raises(ValueError, match=rf"^streams\[1\].{name}: lives on device"):
            rbc.fuse([good, rbc.Stream(**arguments)], QUERIES)


def test_a_used_capsule_is_refused():
    class Stale(Producer):
        def __dlpack__(self, **options):
            return self.given[0] if self.given else super().__dlpack__(**options)

    producer = Stale(VALUES)
    answer(producer)
    with pytest.raises(TypeError, match="values: its __dlpack__ gave no DLPack capsule"):
        answer(producer)
    assert producer.deleted == 1


def test_what_a_producer_raises_is_passed_on():
    class Broken(Producer):
        def __dlpack__(self, **options):
            raise KeyError("gone")

    with pytest.raises(KeyError, match="gone"):
        answer(Broken(VALUES))


def test_a_producer_without_from_dlpack_needs_out():
    with pytest.raises(
        TypeError, match="^values: .* has no from_dlpack, which the result needs; pass out"
    ):
        rbc.resample(Producer(VALUES), TIMES, QUERIES)


def test_arrays_with_dlpack_only():
    """Arrays without an attribute dtype."""
    np.testing.assert_array_equal(answer(queries=[0.5, 2.25], times=Producer(TIMES)), ANSWER)
    out = Producer(np.zeros((2, 2)))
    assert rbc.resample(VALUES, TIMES, QUERIES, out=out, dtype="float64") is out
    with pytest.raises(TypeError, match="^dtype: is float32, but out is float64"):
        rbc.resample(VALUES, TIMES, QUERIES, out=out, dtype="float32")
    np.testing.assert_array_equal(rbc.resample(VALUES, Producer(TIMES), [0.5, 2.25]), ANSWER)


def test_lists_beside_arrays_of_an_unknown_library_on_a_gpu():
    class OnGpu(Producer):
        def __dlpack_device__(self):
            return 2, 0

    with rbc.Context("cpu") as context:
        with pytest.raises(TypeError, match="^lengths: is a list, expected an array on the GPU"):
            rbc.resample(OnGpu(VALUES[None]), TIMES, QUERIES, lengths=[4], backend=context)


def test_what_torch_cannot_describe():
    torch = pytest.importorskip("torch")
    with pytest.raises((TypeError, ValueError), match="^values: "):
        answer(torch.zeros(4, 2, device="meta"))
    with pytest.raises((TypeError, ValueError), match="^values: "):
        answer(torch.zeros(4, 2).to_sparse())


@pytest.mark.parametrize("versioned", [True, False])
def test_results_are_given_out_without_a_copy(versioned):
    from robocache._arguments.frameworks import DTYPES, OwnedTensor
    from robocache._library.context import Context

    with Context("cpu") as context:
        owned = OwnedTensor(context, DTYPES["float64"], (2, 2))
    rbc.resample(VALUES, TIMES, QUERIES, out=owned)
    assert owned.__dlpack_device__() == (1, 0)
    if versioned:
        array = np.from_dlpack(owned)
    else:
        torch = pytest.importorskip("torch")
        array = torch.from_dlpack(owned.__dlpack__()).numpy()
    pointer = array.ctypes.data
    again = np.from_dlpack(owned)
    assert again.ctypes.data == pointer and pointer % 256 == 0
    owned.__dlpack__()  # dropped, not taken
    del owned, again
    gc.collect()
    np.testing.assert_array_equal(array, ANSWER)


def test_no_reference_is_kept_or_lost():
    torch = pytest.importorskip("torch")
    kinds = [
        [VALUES[None], TIMES, QUERIES, np.array([4])],
        [torch.from_numpy(each) for each in (VALUES[None].copy(), TIMES.copy(), QUERIES.copy())]
        + [torch.tensor([4])],
    ]
    for values, times, queries, lengths in kinds:
        out = np.empty((1, 2, 2))

        def calls(values=values, times=times, queries=queries, lengths=lengths, out=out):
            rbc.resample(values, times, queries, lengths=lengths, out=out, return_valid=True)
            with pytest.raises(ValueError, match="max_gap"):
                rbc.resample(values, times, queries, lengths=lengths, out=out, max_gap=-1)
            with pytest.raises(TypeError, match="query_times"):
                rbc.resample(values, times, "noon", lengths=lengths, out=out)

        calls()
        objects = (values, times, queries, lengths, out)
        before = [sys.getrefcount(each) for each in objects]
        for _ in range(20):
            calls()
        gc.collect()
        assert [sys.getrefcount(each) for each in objects] == before


def test_classes_of_arrays_are_not_kept():
    """Only the last few classes, which the extension has looked up, are kept."""
    classes = []
    for n in range(60):
        kind = type(f"Producer{n}", (Producer,), {})
        rbc.resample(kind(VALUES), TIMES, QUERIES, out=np.empty((2, 2)))
        classes.append(weakref.ref(kind))
    del kind
    gc.collect()
    assert sum(kind() is not None for kind in classes) <= 17
