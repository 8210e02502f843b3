"""One buffer goes from torch through RoboCache, NumPy or CuPy, and JAX to torch, uncopied."""

import numpy as np
import pytest

import robocache as rbc

torch = pytest.importorskip("torch")
jax = pytest.importorskip("jax")

GRID = {"origin": (0, 0, 0), "voxel_size": 1, "shape": (4, 4, 2)}


def numpy_or_cupy(device):
    """Return the library, and a function that waits for the device."""
    if device == "cpu":
        return np, lambda: None
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device that torch can use")
    if rbc.info().cuda_unavailable:
        pytest.skip(f"RoboCache has no CUDA here: {rbc.info().cuda_unavailable}")
    if jax.default_backend() != "gpu":
        pytest.skip("jax has no GPU")
    return pytest.importorskip("cupy"), torch.cuda.synchronize


def pointer(array):
    if isinstance(array, torch.Tensor):
        return array.data_ptr()
    if isinstance(array, np.ndarray):
        return array.ctypes.data
    if isinstance(array, jax.Array):
        return array.unsafe_buffer_pointer()
    return array.data.ptr


def as_numpy(array):
    return array.cpu().numpy() if isinstance(array, torch.Tensor) else np.asarray(array)


def example(device):
    random = torch.Generator().manual_seed(1)
    values = torch.randn(2, 64, 8, generator=random)
    times = torch.arange(64, dtype=torch.float32)
    queries = torch.rand(2, 64, generator=random) * 63
    return [each.to(device) for each in (values, times, queries)]


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_a_buffer_goes_round(device):
    other, wait = numpy_or_cupy(device)
    values, times, queries = example(device)
    room = torch.empty(2, 64, 8, device=device)
    result = rbc.resample(values, times, queries, out=room)
    assert result is room
    expected = rbc.resample(*example("cpu"))
    wait()

    in_other = other.from_dlpack(result)
    in_jax = jax.dlpack.from_dlpack(in_other)
    back = torch.from_dlpack(in_jax)
    assert pointer(in_other) == pointer(in_jax) == pointer(back) == pointer(room)
    assert torch.equal(back.cpu(), expected)

    # No array is copied: a write to the one buffer shows in all of them.
    again = expected.numpy() * 2
    room.mul_(2)
    wait()
    # Queries at the times of the rows return their values.
    for array in (room, in_other, in_jax, back):
        same = rbc.resample(array, times, times)
        wait()
        assert type(same) is type(array)
        assert np.array_equal(as_numpy(torch.from_dlpack(same)), again)


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_each_library_writes_to_the_buffer_of_another(device):
    other, wait = numpy_or_cupy(device)
    values, times, queries = example(device)
    expected = rbc.resample(*example("cpu"))
    wait()
    arrays = [values, times, queries]
    others = [other.from_dlpack(each) for each in arrays]
    in_jax = [jax.dlpack.from_dlpack(each) for each in others]
    room = torch.empty(2, 64, 8, device=device)
    view = other.from_dlpack(room)
    for given, out in ((arrays, view), (others, room), (in_jax, view), (in_jax, room)):
        room.fill_(-1)
        wait()
        assert rbc.resample(*given, out=out) is out and pointer(view) == pointer(room)
        wait()
        assert torch.equal(room.cpu(), expected)


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_new_results_are_taken_over_without_a_copy(device):
    other, wait = numpy_or_cupy(device)
    arrays = example(device)
    points = arrays[0][..., :3].abs()
    wait()
    calls = {
        "resample": lambda values, *times: rbc.resample(values, *times),
        "fuse": lambda values, *times: rbc.fuse([rbc.Stream(values, times[0])] * 2, times[1]),
    }
    for convert in (torch.from_dlpack, other.from_dlpack, jax.dlpack.from_dlpack):
        given = [convert(each) for each in arrays]
        for call in calls.values():
            result = call(*given)
            wait()
            assert type(result) is type(given[0])
            assert pointer(torch.from_dlpack(result)) == pointer(result)
        counts = rbc.voxelize(convert(points.contiguous()), reduction="count", **GRID)
        wait()
        assert type(counts) is type(given[0])
        assert pointer(torch.from_dlpack(counts)) == pointer(counts)
