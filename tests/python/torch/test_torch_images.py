"""Images in robocache.torch: the same as the plain call, compiled, exported and mapped."""

import io

import pytest

import robocache as rbc

torch = pytest.importorskip("torch")
if not hasattr(torch.library, "opcheck"):
    pytest.skip("torch without opcheck", allow_module_level=True)

FRAMES = torch.randint(
    0, 256, (3, 9, 13, 3), dtype=torch.uint8, generator=torch.Generator().manual_seed(1)
)
BOXES = torch.tensor([[0, 0, 9, 13], [2, 3, 5, 2], [1, 1, 8, 12]])
FLIPS = torch.tensor([1, 2, 3], dtype=torch.uint8)
COLORS = torch.tensor([[1.2, 0.7, 0.3, 0.0], [0.5, 1.4, 1.0, 0.0], [1.0, 1.0, 0.1, 0.0]])
TABLE = torch.from_numpy(rbc.normalization_table("x / 127.5 - 1"))


def plain(frames):
    return rbc.torch.images(frames, (5, 6))


def whole(frames, boxes, flips, colors, table):
    return rbc.torch.images(
        [frames, frames.flip(0)],
        7,
        rows=[5, -1, 0],
        boxes=boxes,
        flips=flips,
        colors=colors,
        color_order=[[2, 1, 0, 3]] * 3,
        color_first=True,
        table=table,
        rule="pillow_13",
        filter="bicubic",
        fit="pad",
        pad_value=(1, 2, 3),
        layout="hwc",
        dtype=torch.bfloat16,
    )


CALLS = {
    "plain": (plain, (FRAMES,)),
    "whole": (whole, (FRAMES, BOXES, FLIPS, COLORS, TABLE)),
}
of_each_call = pytest.mark.parametrize(("function", "arrays"), CALLS.values(), ids=CALLS)


def test_the_same_as_the_plain_call():
    assert torch.equal(plain(FRAMES), rbc.images(FRAMES, (5, 6)))
    expected = rbc.images(
        [FRAMES, FRAMES.flip(0)], 7, rows=[5, -1, 0], boxes=BOXES, flips=FLIPS, colors=COLORS,
        color_order=[[2, 1, 0, 3]] * 3, color_first=True, table=TABLE, rule="pillow_13",
        filter="bicubic", fit="pad", pad_value=(1, 2, 3), layout="hwc", dtype="bfloat16",
    )  # fmt: skip
    assert torch.equal(whole(FRAMES, BOXES, FLIPS, COLORS, TABLE), expected)


def test_opcheck():
    assert rbc.torch  # which makes the operator
    operator = torch.ops.robocache.images.default
    nothing = (None,) * 6
    torch.library.opcheck(operator, ([FRAMES], *nothing, "size=4,5"))
    torch.library.opcheck(
        operator,
        ([FRAMES, FRAMES], torch.tensor([0, 5, -1]), BOXES, FLIPS, COLORS, None, TABLE, "size=4"),
    )


@of_each_call
def test_traced_in_one_graph(function, arrays):
    torch._dynamo.reset()
    compiled = torch.compile(function, fullgraph=True, backend="aot_eager")
    assert torch.equal(compiled(*arrays), function(*arrays))


class Module(torch.nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *arrays):
        return self.function(*arrays)


def test_exported_saved_and_loaded():
    file = io.BytesIO()
    torch.export.save(torch.export.export(Module(plain), (FRAMES,), strict=False), file)
    file.seek(0)
    loaded = torch.export.load(file).module()
    assert torch.equal(loaded(FRAMES.flip(0)), plain(FRAMES.flip(0)))


@pytest.mark.skipif(
    not hasattr(torch.library, "register_vmap"), reason="torch without register_vmap"
)
def test_vmap_is_a_loop():
    several = torch.stack([FRAMES, FRAMES.flip(1)])
    expected = torch.stack([plain(each) for each in several])
    assert torch.equal(torch.vmap(plain)(several), expected)


def test_errors():
    with pytest.raises(TypeError, match="frames: is a list|frames: is a str"):
        rbc.torch.images("frames", 4)
    with pytest.raises(TypeError, match="out: not supported"):
        rbc.torch.images(FRAMES, 4, out=torch.zeros(3, 3, 4, 4))
    with pytest.raises(ValueError, match="table: requires grad"):
        rbc.torch.images(FRAMES, 4, table=TABLE.clone().requires_grad_())
