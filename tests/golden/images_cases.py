"""Cases of rbcImages. A stream is one of the arrays of frames."""

import numpy as np
from vectors import DTYPES, Case, dyadic, rounded

import images_reference

FLAGS = {"color_first": 1 << 16}
RULES = ["pillow", "pillow_12", "pillow_13", "torchvision", "opencv", "exact"]
FILTERS = [
    *("box", "bilinear", "hamming", "bicubic", "lanczos3"),
    *("linear", "linear_exact", "area"),
]
FITS = ["stretch", "pad", "cover"]
ANCHORS = ["center", "start", "end"]
LAYOUTS = ["chw", "hwc"]
CHOICES = {
    "rule": RULES,
    "filter": FILTERS,
    "fit": FITS,
    "pad_anchor": ANCHORS,
    "layout": LAYOUTS,
}


def images(
    name, frames, h, w, dtype, *, rows=None, boxes=None, flips=None, colors=None, color_order=None,
    table=None, layout="chw", pad=(0, 0, 0, 0), color_first=False, **options,
):  # fmt: skip
    case = Case(f"images/{name}", "images")
    codes = {"rule": "pillow", "filter": "bilinear", **options}
    case.set(**{field: CHOICES[field].index(value) for field, value in codes.items()})
    case.set(layout=LAYOUTS.index(layout), pad_value=tuple(map(float, pad)))
    if color_first:
        case.set(flags=FLAGS["color_first"])
    case.input(
        rows=rows, boxes=boxes, flips=flips, colors=colors, color_order=color_order, table=table
    )
    every = np.concatenate(frames)
    made = []
    for i, row in enumerate(range(len(every)) if rows is None else rows):
        options = {
            **codes,
            "anchor": codes.get("pad_anchor", "center"),
            "box": None if boxes is None else tuple(boxes if boxes.ndim == 1 else boxes[i]),
            "flip": 0 if flips is None else int(flips[i]),
            "factors": None if colors is None else colors[i],
            "order": (0, 1, 2, 3) if color_order is None else tuple(color_order[i]),
            "color_first": color_first,
            "pad": pad,
        }
        options.pop("pad_anchor", None)
        if row < 0:
            made.append(np.broadcast_to(np.uint8(pad[: every.shape[-1]]), (h, w, every.shape[-1])))
        else:
            made.append(images_reference.images(every[row], h, w, **options))
    out = np.stack(made)
    if table is not None:
        out = np.stack([table[c][out[..., c]] for c in range(out.shape[-1])], axis=-1)
    if layout == "chw":
        out = np.moveaxis(out, -1, 1)
    case.output(out=np.ascontiguousarray(rounded(out, DTYPES[dtype])))
    for array in frames:
        case.lines.append("stream")
        case.input(values=array)
    return case


def cases():
    random = np.random.RandomState(11)

    def frames(*shape):
        return random.randint(0, 256, shape).astype(np.uint8)

    one = [frames(1, 9, 7, 3)]
    for rule in RULES:
        for each in images_reference.FILTERS[rule]:
            size = (4, 3) if rule != "opencv" else (6, 5)
            yield images(f"{rule}, {each}", one, *size, "u8", rule=rule, filter=each)
    yield images("enlarged, u8 [B,h,w,C]", [frames(2, 3, 4, 1)], 6, 7, "u8", layout="hwc")
    yield images("whole blocks", [frames(1, 6, 6, 4)], 2, 3, "u8", rule="opencv", filter="area")
    tall = [frames(1, 210, 2, 1)]
    yield images("columns first, 12", tall, 5, 1, "u8", rule="pillow_12", filter="bicubic")
    yield images("columns first, 13", [frames(1, 20, 6, 1)], 5, 4, "u8", rule="pillow_13")
    arrays = [frames(2, 6, 8, 3), frames(0, 6, 8, 3), frames(1, 6, 8, 3)]
    rows = np.array([2, -1, 0], np.int32)
    boxes = np.array([[0, 1, 4, 5], [0, 0, 6, 8], [3, 2, 2, 6]])
    flips = np.array([1, 3, 2], np.uint8)
    table = dyadic(random, (3, 256), "f32", bits=12)
    pad = (1, 2, 3, 0)
    yield images(
        "boxes, flips, padding, table",
        *(arrays, 4, 4, "f32"),
        **{"rows": rows, "boxes": boxes, "flips": flips, "table": table, "pad": pad},
        fit="pad",
        pad_anchor="end",
    )
    yield images("cover, one box, bf16", arrays, 3, 5, "bf16", boxes=boxes[0], fit="cover")
    nan = np.nan
    colors = np.array([[1.25, 0.5, 1.75, nan], [nan, nan, nan, 0], [0.75, nan, 0, 0]])
    order = np.array([[2, 1, 0, 3], [0, 1, 2, 3], [3, 2, 1, 0]], np.uint8)
    yield images("colours, f16", arrays, 4, 3, "f16", colors=colors, color_order=order, flips=flips)
    hues = np.array([[nan, 1.5, nan, -0.25], [1.25, nan, 0.5, 0.5], [nan, nan, nan, 0.125]])
    yield images("hue, u8", arrays, 4, 3, "u8", colors=hues, color_order=order)
    yield images(
        "colours of f32 first, f64",
        *(arrays, 4, 3, "f64"),
        colors=colors.astype(np.float32),
        boxes=boxes,
        color_first=True,
    )
    narrow = {"rows": np.zeros(2, np.int32), "boxes": np.array([[9, 0, 205, 1], [0, 0, 240, 1]])}
    one_wide = [frames(1, 240, 1, 3)]
    yield images("columns first, one wide", one_wide, 3, 40, "u8", rule="pillow_12", **narrow)
