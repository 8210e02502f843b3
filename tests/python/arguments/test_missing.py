"""Missing samples: results are the same as without these samples."""

import numpy as np
import pytest

import reference
import robocache as rbc

TIMES = np.array([0.0, 1.0, 2.0, 3.0])
VALUES = np.array([[0.0, 5.0], [np.nan, 5.0], [20.0, 5.0], [30.0, 5.0]])
QUERIES = [0.5, 1.5, 2.5]
THERE = np.array([True, False, True, True])
EXPECTED = [[5, 5], [15, 5], [25, 5]]
METHODS = ["linear", "nearest", "previous", "next", "cubic", "pchip", "angle", "slerp"]


def recordings(random, batch=3, samples=40):
    times = np.cumsum(random.choice([0.0, 0.5, 1.0, 1.5], (batch, samples)), axis=-1)
    values = random.standard_normal((batch, samples, 8))
    there = random.random((batch, samples)) < 0.6
    there[1] = False
    queries = random.uniform(-2, times.max() + 2, (batch, 60))
    queries[:, :20] = times[:, :20]
    return values, times, queries, there


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("seed", range(3))
def test_it_is_as_if_they_were_not_there(method, seed):
    random = np.random.default_rng(seed)
    values, times, queries, there = recordings(random)
    options = {"method": method, "max_gap": 3.0, "fill_value": -9.0}
    got, valid = rbc.resample(
        values, times, queries, sample_mask=there, return_valid=True, **options
    )
    for b in range(len(values)):
        kept = there[b]
        out, mask = rbc.resample(
            values[b][kept], times[b][kept], queries[b], return_valid=True, **options
        )
        np.testing.assert_array_equal(got[b], out)
        np.testing.assert_array_equal(valid[b], mask)
    out, mask = reference.resample(values, times, queries, sample_mask=there, **options)
    np.testing.assert_array_equal(valid, mask)
    np.testing.assert_allclose(got, out, atol=1e-9)
    fused, valid_too = rbc.fuse(
        [rbc.Stream(values, times, sample_mask=there.astype(np.uint8), **options)] * 2,
        queries,
        return_valid=True,
    )
    np.testing.assert_array_equal(fused, np.concatenate([got, got], axis=-1))
    np.testing.assert_array_equal(valid_too[..., 1], valid)


def test_packed_rows_and_one_mask_for_all():
    random = np.random.default_rng(5)
    values, times, queries, there = recordings(random)
    offsets = np.arange(4) * 40
    packed = rbc.resample(
        values.reshape(-1, 8),
        times.reshape(-1),
        queries,
        batch_offsets=offsets,
        sample_mask=there.reshape(-1),
    )
    np.testing.assert_array_equal(packed, rbc.resample(values, times, queries, sample_mask=there))
    shared = rbc.resample(values, times, queries, sample_mask=there[0])
    each = rbc.resample(values, times, queries, sample_mask=np.tile(there[0], (3, 1)))
    np.testing.assert_array_equal(shared, each)
    assert not np.array_equal(shared, rbc.resample(values, times, queries))


def test_a_mask_may_be_a_list_a_column_or_of_another_library():
    torch = pytest.importorskip("torch")
    pandas = pytest.importorskip("pandas")
    masks = [THERE, THERE.tolist(), pandas.Series(THERE), torch.tensor(THERE), THERE.astype("u1")]
    for mask in masks:
        out = rbc.resample(VALUES, TIMES, QUERIES, sample_mask=mask)
        assert out.tolist() == EXPECTED
        stream = rbc.Stream(VALUES, TIMES, sample_mask=mask)
        assert rbc.fuse([stream], QUERIES).tolist() == EXPECTED


def test_rows_that_hold_a_nan_are_missing_if_they_are_asked_to_be():
    assert np.isnan(rbc.resample(VALUES, TIMES, QUERIES)[0, 0])
    assert rbc.resample(VALUES, TIMES, QUERIES, missing="nan").tolist() == EXPECTED
    stream = rbc.Stream(VALUES, TIMES, missing="nan")
    assert rbc.fuse([stream], QUERIES).tolist() == EXPECTED
    both = rbc.resample(VALUES, TIMES, [1.0], missing="nan", sample_mask=[True, True, False, True])
    assert both.tolist() == [[10, 5]]
    whole = np.arange(4)[:, None]
    out = rbc.resample(whole, TIMES, [1.2], method="previous", missing="nan")
    assert out.tolist() == [[1]]


@pytest.mark.parametrize("library", ["torch", "jax"])
def test_arrays_of_other_libraries_are_looked_through_by_these(library):
    if library == "torch":
        array = pytest.importorskip("torch").tensor
    else:
        array = pytest.importorskip("jax.numpy").asarray
    values, times = array(VALUES.astype(np.float32)), array(TIMES.astype(np.float32))
    for options in ({"missing": "nan"}, {"sample_mask": array(THERE)}):
        out = rbc.resample(values, times, array(np.float32(QUERIES)), **options)
        assert type(out) is type(values)
        assert np.asarray(out).tolist() == EXPECTED


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames_with_holes(library):
    frame = pytest.importorskip(library).DataFrame({"a": [0, None, 20, 30], "b": [5, 5, 5, 5]})
    if library == "pandas":
        frame = frame.astype("Int64")
    assert np.isnan(rbc.resample(frame, TIMES, QUERIES)[0, 0])
    assert rbc.resample(frame, TIMES, QUERIES, missing="nan").tolist() == EXPECTED
    stamps, asked = [(np.array(each) * 10).astype("M8[s]") for each in (TIMES, QUERIES)]
    stream = rbc.Stream(frame, stamps, missing="nan")
    assert rbc.fuse([stream], asked).tolist() == EXPECTED


def test_masked_arrays_have_their_own():
    masked = np.ma.masked_invalid(VALUES)
    masked.fill_value = 7
    assert rbc.resample(masked, TIMES, QUERIES).tolist() == EXPECTED
    assert rbc.resample(masked, TIMES, QUERIES, sample_mask=THERE).tolist() == EXPECTED
    assert rbc.fuse([rbc.Stream(masked, TIMES)], QUERIES).tolist() == EXPECTED
    also = rbc.resample(masked, TIMES, [1.0], sample_mask=[True, True, False, True])
    assert also.tolist() == [[10, 5]]
    for whole in (np.ma.array(VALUES), np.ma.array(VALUES, mask=np.zeros((4, 2), bool))):
        assert np.isnan(rbc.resample(whole, TIMES, QUERIES)[0, 0])
    stamps = (TIMES * 10).astype("M8[s]")
    assert rbc.resample(masked, stamps, stamps[:2] + np.timedelta64(5, "s")).tolist()[0] == [5, 5]


def test_a_masked_array_is_refused_where_no_array_of_numpy_can_be():
    masked = np.ma.masked_invalid(VALUES)
    with pytest.raises((ValueError, rbc.RoboCacheError)):
        rbc.resample(masked, TIMES, QUERIES, backend="cuda")
    with pytest.raises(TypeError, match="^times: is a masked array"):
        rbc.resample(VALUES, np.ma.array(TIMES), QUERIES)
    with pytest.raises(TypeError, match="^sample_mask: is a masked array"):
        rbc.resample(VALUES, TIMES, QUERIES, sample_mask=np.ma.array(THERE))


def test_an_array_that_is_no_mask_is_named():
    for mask, error, message in [
        (THERE[:3], ValueError, r"sample_mask: shape is \[3\], expected \[4\]"),
        (THERE[None], ValueError, r"sample_mask: rank is 2"),
        (TIMES, TypeError, "sample_mask: dtype is float64, expected bool or uint8"),
        ([0.5, 1, 1, 1], TypeError, "sample_mask: is a list of float64, expected bool"),
        ("yes", TypeError, "sample_mask: is a str"),
    ]:
        with pytest.raises(error, match=f"^{message}"):
            rbc.resample(VALUES, TIMES, QUERIES, sample_mask=mask)
        with pytest.raises(error, match=message):
            rbc.fuse([rbc.Stream(VALUES, TIMES, sample_mask=mask)], QUERIES)
    for make in (rbc.Stream, lambda *given, **o: rbc.resample(*given, QUERIES, **o)):
        with pytest.raises(ValueError, match="^missing: is 'none', expected None or 'nan'"):
            make(VALUES, TIMES, missing="none")


def test_times_of_missing_samples_are_verified():
    times = np.array([0.0, 9.0, 2.0, 3.0])
    with pytest.raises(ValueError, match="^times: row 0 decreases at index 2"):
        rbc.resample(VALUES, times, QUERIES, sample_mask=THERE)


# ---- robocache.torch ----------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["linear", "nearest", "previous", "next", "cubic"])
@pytest.mark.parametrize("form", ["padded", "packed", "alone", "shared mask"])
def test_the_gradient_is_that_of_the_samples_that_are_there(method, form):
    torch = pytest.importorskip("torch")
    values, times, queries, there = map(torch.tensor, recordings(np.random.default_rng(11)))
    outside = "extrapolate" if method == "linear" else "hold"
    options = {"method": method, "outside": outside}
    if form == "packed":
        options["batch_offsets"] = torch.arange(4) * 40
        values, times, there = values.reshape(-1, 8), times.reshape(-1), there.reshape(-1)
    if form == "alone":
        values, times, queries, there = values[0], times[0], queries[0], there[0]
    if form == "shared mask":
        there = there[0]
    ours = values.clone().requires_grad_()
    out = rbc.torch.resample(ours, times, queries, sample_mask=there, **options)
    direction = torch.linspace(-1, 1, out.numel(), dtype=out.dtype).view_as(out)
    (out * direction).sum().backward()
    assert torch.equal(
        out.detach(), rbc.resample(values, times, queries, sample_mask=there, **options)
    )
    if form == "packed":
        rows = [slice(40 * b, 40 * b + 40) for b in range(3)]
        rows = [(values[row], times[row], queries[b], there[row]) for b, row in enumerate(rows)]
    elif form == "alone":
        rows = [(values, times, queries, there)]
    else:
        rows = [(values[b], times[b], queries[b], there.expand(3, 40)[b]) for b in range(3)]
    for b, (row, own, asked, mask) in enumerate(rows):
        options.pop("batch_offsets", None)
        kept = row[mask].clone().requires_grad_()
        ahead = direction if form == "alone" else direction[b]
        (rbc.torch.resample(kept, own[mask], asked, **options) * ahead).sum().backward()
        gradient = ours.grad.reshape(-1, 40, 8)[b]
        torch.testing.assert_close(gradient[mask], kept.grad)
        assert (gradient[~mask] == 0).all()


def test_operators_of_torch_take_masks():
    torch = pytest.importorskip("torch")
    values, times, queries, there = map(torch.tensor, recordings(np.random.default_rng(12)))
    expected = rbc.resample(values, times, queries, sample_mask=there)

    def call(values, times, queries, there):
        return rbc.torch.resample(values, times, queries, sample_mask=there)

    assert torch.equal(torch.vmap(call)(values, times, queries, there), expected)
    one = torch.vmap(call, in_dims=(0, 0, 0, None))(values, times, queries, there[0])
    assert torch.equal(one, rbc.resample(values, times, queries, sample_mask=there[0]))
    # Inductor takes 20 s and calls the same operators: test_torch_ops.py has it.
    options = {"fullgraph": True, "backend": "aot_eager"}
    compiled = torch.compile(call, **options)
    assert torch.equal(compiled(values, times, queries, there), expected)

    def fused(values, there):
        streams = [
            rbc.torch.Stream(values, times, sample_mask=there, method="cubic"),
            rbc.torch.Stream(values.where(there[..., None], torch.nan), times, missing="nan"),
        ]
        return rbc.torch.fuse(streams, queries)

    plain = fused(values, there)
    assert torch.equal(torch.compile(fused, **options)(values, there), plain)
    given = values.clone().requires_grad_()
    fused(given, there).sum().backward()
    assert (given.grad[~there] == 0).all() and (given.grad[there] != 0).any()
