"""robocache.torch.windows: gradients, and windows in graphs and under vmap."""

import shutil

import numpy as np
import pytest

import robocache as rbc
from random_share import fast_gradients

torch = pytest.importorskip("torch")
pytest.importorskip("torch.library", reason="torch without operators")

OFFSETS = [0, 4, 4, 5, 11]
EPISODES = torch.tensor([0, 0, 2, 3, 3, 3, 1])
ANCHORS = torch.tensor([0, 3, 0, -2, 2, 7, 0])
needs_vmap = pytest.mark.skipif(
    not hasattr(torch.library, "register_vmap"), reason="torch without register_vmap"
)
needs_compiler = pytest.mark.skipif(shutil.which("g++") is None, reason="g++ is not installed")


def random(*shape, seed=1, dtype=torch.float64):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


VALUES, OTHER = random(11, 3), random(11, 3, seed=2)
TIMES = torch.tensor([0.0, 1, 2, 4, 0, 0, 0.5, 1.5, 2, 4, 4.5], dtype=torch.float64)
THERE = torch.tensor([1, 1, 0, 1, 1, 1, 0, 1, 1, 1, 0], dtype=torch.bool)
NORM = rbc.Normalization([0.1, 0.2, 0.3], [2.0, 0.0, -0.5], 0.3, -0.7, 0.6)
BY_STEP = rbc.Normalization(np.ones((4, 3)), np.arange(12.0).reshape(4, 3) / 6 + 0.1)
DIVIDED = rbc.Normalization([0.1, 0.2, 0.3], [0.3, np.inf, -3.0], 0.3, -0.7, 0.6, divides=True)
ROWS = [-2, 0, 0, 3]
AT = [-0.75, 0.0, 0.5, 1.25]


def relative(**options):
    return [rbc.Transform("subtract", 1, 2, reference=(1, 0), reference_begin=0, **options)]


def own():
    return [rbc.Transform("subtract", 0, 2, reference=(0, 1))]


GATHERED = {
    "held": {},
    "filled": {"outside": "fill", "fill_value": 3.0},
    "neutral": {"outside": "neutral", "neutral": [1.0, 2.0, 3.0]},
    "neutral in part": {"outside": "neutral", "neutral_channels": [True, False, True]},
    "missing": {"sample_mask": THERE, "fill_value": -1.0},
    "normalized": {"normalization": NORM},
    "divided": {"normalization": DIVIDED},
    "by step": {"normalization": BY_STEP},
    "relative": {"transforms": relative()},
    "relative to itself": {"transforms": own()},
    "back": {"transforms": relative(inverse=True)},
    "all": {
        "outside": "fill",
        "fill_value": 9.0,
        "transforms": relative(),
        "normalization": NORM,
        "sample_mask": THERE,
    },
}
INTERPOLATED = {
    "linear": {"method": "linear"},
    "cubic": {"method": "cubic", "outside": "fill"},
    "nearest": {"method": "nearest", "tolerance": 0.3},
    "gaps": {"method": "linear", "max_gap": 1.2},
    "groups": {"method": [(0, 1, "linear"), (2, 1, "next"), (1, 1, "previous")]},
    "missing": {"method": "linear", "sample_mask": THERE},
    "relative": {"method": "linear", "transforms": relative(), "normalization": NORM},
    "divided": {"method": "linear", "transforms": relative(), "normalization": DIVIDED},
}
CASES = {
    **{f"rows, {name}": (ROWS, options) for name, options in GATHERED.items()},
    **{f"times, {name}": (AT, options) for name, options in INTERPOLATED.items()},
}


def streams(case, values, other, kind=None):
    offsets, options = CASES[case]
    kind = rbc.torch.WindowStream if kind is None else kind
    return [
        kind(values, offsets, episode_offsets=OFFSETS, times=TIMES, **options),
        kind(other, [0, 1], episode_offsets=OFFSETS, times=TIMES),
    ]


def cut(case, values, other):
    return rbc.torch.windows(streams(case, values, other), EPISODES, ANCHORS, anchor_stream=1)


def flat(pairs):
    return [array for pair in pairs for array in pair]


def assert_same(a, b):
    for x, y in zip(a, b):
        assert torch.equal(x.nan_to_num(7), y.nan_to_num(7)) and x.dtype == y.dtype


# ---- gradients -----------------------------------------------------------------------------------


@pytest.mark.parametrize("case", CASES)
def test_gradients(case):
    """Compare with finite differences of the function."""
    values, other = VALUES.clone().requires_grad_(), OTHER.clone().requires_grad_()

    def function(values, other):
        (first, _), (second, _) = cut(case, values, other)
        return first, second

    assert torch.autograd.gradcheck(function, (values, other), fast_mode=fast_gradients())
    # The function is linear: random directions, which are fast, suffice for second derivatives.
    assert torch.autograd.gradgradcheck(function, (values, other), fast_mode=True)


@pytest.mark.parametrize("case", CASES)
def test_the_same_bits_with_and_without_a_gradient(case):
    plain = rbc.windows(
        streams(case, VALUES, OTHER, rbc.WindowStream), EPISODES, ANCHORS, anchor_stream=1
    )
    graded = cut(case, VALUES.clone().requires_grad_(), OTHER)
    assert_same(flat(graded), flat(plain))
    assert graded[0][0].requires_grad
    assert_same(flat(cut(case, VALUES, OTHER)), flat(plain))


def test_gradients_of_half_precision_are_summed_in_float32():
    values = VALUES.bfloat16().requires_grad_()
    ((rows, _),) = rbc.torch.windows(
        [rbc.torch.WindowStream(values, [0] * 300, episode_offsets=OFFSETS)], [0], [1]
    )
    rows.sum().backward()
    assert values.grad.dtype == torch.bfloat16 and values.grad[1].tolist() == [300] * 3


def test_a_gradient_that_is_nan_where_nothing_leads_to():
    values = VALUES.clone().requires_grad_()
    stream = rbc.torch.WindowStream(values, [0, 9], episode_offsets=OFFSETS, outside="fill")
    ((rows, _),) = rbc.torch.windows([stream], [0], [1])
    gradient = torch.full_like(rows, float("nan"))
    gradient[:, 0] = 1
    rows.backward(gradient)
    assert not values.grad.isnan().any() and values.grad.sum() == 3


def pose_stream(values, reference):
    poses = {"rotation": "quat_xyzw", "reference": (0, 0)}
    kinds = [rbc.Transform("se3_relative", 0, 7, **poses)]
    return [
        rbc.torch.WindowStream(reference, [0], episode_offsets=[0, 3]),
        rbc.torch.WindowStream(values, [0], episode_offsets=[0, 3], transforms=kinds),
    ]


REFUSED = {
    "poses": (
        lambda v: pose_stream(v, v.detach()),
        r"streams\[1\].transforms\[0\]: is 'se3_relative', which is not linear in the values and "
        r"has no gradient; pass streams\[1\].values.detach\(\)$",
    ),
    "references of poses": (
        lambda v: pose_stream(v.detach(), v),
        r"streams\[1\].transforms\[0\]: is 'se3_relative', .*; "
        r"pass streams\[0\].values.detach\(\)$",
    ),
    "slerp": (
        lambda v: [
            rbc.torch.WindowStream(
                v[:, :4], [0.0], episode_offsets=[0, 3], times=TIMES[:3], method="slerp"
            )
        ],
        r"streams\[0\].method: is 'slerp', which is not linear in the values and has no gradient; ",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_gradients_that_there_are_not(case):
    make, message = REFUSED[case]
    values = random(3, 7).requires_grad_()
    with pytest.raises(ValueError, match=f"^{message}"):
        rbc.torch.windows(make(values), [0], [0])
    with torch.no_grad():
        rbc.torch.windows(make(values), [0], [0])


def test_the_plain_call_drops_no_gradient():
    values = VALUES.clone().requires_grad_()
    stream = rbc.torch.WindowStream(values, [0], episode_offsets=OFFSETS)
    message = r"^streams\[0\].values: requires grad, which is not carried through; call "
    with pytest.raises(ValueError, match=message + "robocache.torch.windows, or pass"):
        rbc.windows([stream], [0], [0])
    with torch.no_grad():
        rbc.windows([stream], [0], [0])
    with pytest.raises(ValueError, match="^values: requires grad"):
        rbc.WindowStream(values, [0], episode_offsets=OFFSETS)


def test_arguments_that_have_no_gradient():
    values = VALUES.clone().requires_grad_()
    stream = rbc.torch.WindowStream(
        values, AT, episode_offsets=OFFSETS, times=TIMES, method="linear"
    )
    with pytest.raises(ValueError, match="^anchors: requires grad"):
        rbc.torch.windows([stream], [0], torch.ones(1).double().requires_grad_(), anchor_times=True)


def test_no_accumulator_in_graphs():
    accumulator = rbc.StatisticsAccumulator(3)
    values = VALUES.clone().requires_grad_()
    counted = rbc.WindowStream(OTHER, [0], episode_offsets=OFFSETS, accumulator=accumulator)
    stream = rbc.torch.WindowStream(values, [0], episode_offsets=OFFSETS)
    with pytest.raises(ValueError, match=r"^streams\[1\].accumulator: not supported with"):
        rbc.torch.windows([stream, counted], [0], [0])


def test_no_values_and_no_output():
    values = VALUES.clone().requires_grad_()
    made = [
        rbc.torch.WindowStream(values, [0], episode_offsets=OFFSETS, output=False),
        rbc.WindowStream(None, [0, 1], episode_offsets=torch.tensor(OFFSETS)),
        rbc.torch.WindowStream(VALUES, [1], episode_offsets=OFFSETS),
    ]
    (nothing, _), (numbers, valid), (rows, _) = rbc.torch.windows(made, [0, 3], [3, 0])
    assert nothing is None and numbers.tolist() == [[3, 3], [5, 6]]
    assert valid.tolist() == [[True, False], [True, True]]
    assert torch.equal(rows[:, 0], VALUES[[3, 6]])


# ---- graphs --------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", ["rows, all", "times, linear", "rows, by step"])
def test_opcheck(case):
    from robocache.torch._options import encode
    from robocache.torch._window_operator import LISTS, WINDOWS_OP

    given = []

    def recorded(*arguments):
        given.append(arguments)
        return WINDOWS_OP(*arguments)

    from robocache.torch import _windows

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_windows, "WINDOWS_OP", recorded)
        cut(case, VALUES.clone().requires_grad_(), OTHER)
    assert len(given[0]) == len(LISTS) + 4 and encode({}, "windows") == ""
    torch.library.opcheck(torch.ops.robocache.windows.default, given[0])


def compiled_function(made):
    def function(episodes, anchors, scale):
        (first, valid), (second, _) = rbc.torch.windows(made, episodes, anchors, anchor_stream=1)
        return first * scale, valid, second - 1

    return function


@needs_compiler
@pytest.mark.parametrize("case", ["rows, all", "times, groups"])
def test_compiled_in_one_graph(case):
    function = compiled_function(streams(case, VALUES, OTHER))
    scale = torch.tensor(2.0, dtype=torch.float64)
    compiled = torch.compile(function, fullgraph=True)
    assert_same(compiled(EPISODES, ANCHORS, scale), function(EPISODES, ANCHORS, scale))


@pytest.mark.parametrize("case", ["rows, all", "times, relative", "rows, normalized"])
def test_gradients_of_compiled_code(case):
    results = []
    for wrap in (lambda f: f, lambda f: torch.compile(f, fullgraph=True, backend="aot_eager")):
        values, other = VALUES.clone().requires_grad_(), OTHER.clone().requires_grad_()
        function = wrap(compiled_function(streams(case, values, other)))
        first, _, second = function(EPISODES, ANCHORS, torch.tensor(2.0, dtype=torch.float64))
        (first.square().sum() + second.sum()).backward()
        results.append((values.grad, other.grad))
    assert_same(*results)


def test_exported():
    made = streams("rows, all", VALUES, OTHER)

    class Module(torch.nn.Module):
        def forward(self, episodes, anchors):
            return flat(rbc.torch.windows(made, episodes, anchors, anchor_stream=1))

    program = torch.export.export(Module(), (EPISODES, ANCHORS), strict=False)
    assert_same(program.module()(EPISODES, ANCHORS), Module()(EPISODES, ANCHORS))


@needs_vmap
def test_vmap_is_a_loop():
    made = streams("rows, relative", VALUES, OTHER)

    def function(episodes, anchors):
        return tuple(flat(rbc.torch.windows(made, episodes, anchors, anchor_stream=1)))

    episodes, anchors = torch.stack([EPISODES, EPISODES.flip(0)]), torch.stack([ANCHORS, ANCHORS])
    got = torch.vmap(function)(episodes, anchors)
    for i in range(2):
        assert_same([each[i] for each in got], function(episodes[i], anchors[i]))
