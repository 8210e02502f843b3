"""Validation of the images of a pipeline file: a source, a size, and operations in order."""

from __future__ import annotations

from .._operations.images import ANCHORS, FILTERS_OF, FITS, LAYOUTS
from .image_plan import COLOR_STEPS, FLIPS, FORMULAS
from .place import UNKNOWN, Place
from .strict_json import shown

# In the order of one call; color may come first instead, as in LeRobot.
ORDER = ("crop", "resize", "flip", "color", "pad", "table", "layout")
_KEYS = {
    "crop": ("box",),
    "resize": ("rule", "filter", "fit", "size"),
    "flip": ("axes",),
    "color": (*COLOR_STEPS, "order"),
    "pad": ("anchor", "value"),
    "table": ("form", "mean", "std"),
    "layout": ("layout", "dtype"),
}
_LONGEST_SIDE = 65535


def check_images(images: Place) -> None:
    for _, image in images.named("images"):
        image.members(("source", "size", "channels", "operations"))
        source = image["source"]
        if isinstance(source.value, dict) and "column" in source.value:
            source.members(("column",))["column"].text()
        else:
            source.members(("topic", "type"))
            source["topic"].text()
            source["type"].text()
        _check_size(image["size"])
        channels = image["channels"].whole(1, 4)
        if channels == 2:
            raise image["channels"].refused("1, 3 or 4")
        _check_operations(image, channels)


def _check_size(place: Place) -> tuple[int, int]:
    height, width = place.items("sides, height and width,", count=2)
    return height.whole(1, _LONGEST_SIDE), width.whole(1, _LONGEST_SIDE)


def _check_operations(image: Place, channels: int) -> None:
    size = image["size"].value[0], image["size"].value[1]
    operations = image["operations"].items("operations")
    done: list[str] = []
    fit = None
    for place in operations:
        kind = place.kind(ORDER)
        place.members(("kind", *_KEYS[kind]))
        if kind in done:
            raise place["kind"].fault(f"{shown(kind)} appears twice; expected it once")
        later = [each for each in done if each != "color" or done[0] != "color"]
        after = [each for each in later if ORDER.index(each) > ORDER.index(kind)]
        if after and not (kind == "color" and not done):
            raise place["kind"].fault(
                f"{shown(kind)} follows {shown(after[0])}; expected the order {', '.join(ORDER)}, "
                "or color at the front"
            )
        done.append(kind)
        if kind == "crop":
            size = _check_crop(place["box"], size)
        elif kind == "resize":
            size = _check_size(place["size"])
            rule = place["rule"].one_of(FILTERS_OF)
            if rule != UNKNOWN:
                place["filter"].one_of(FILTERS_OF[rule], f" for the rule {shown(rule)}")
            fit = place["fit"].one_of(FITS)
        elif kind == "flip":
            place["axes"].one_of(FLIPS)
        elif kind == "color":
            _check_color(place, channels)
        elif kind == "pad":
            if fit != "pad":
                raise place.fault('follows no resize with "fit": "pad"')
            place["anchor"].one_of(ANCHORS)
            for each in place["value"].items("values, one per channel,", count=channels):
                each.whole(0, 255)
        elif kind == "table":
            _check_table(place, channels)
        else:
            place["layout"].one_of(LAYOUTS)
            dtype = place["dtype"].one_of(("uint8", "float16", "bfloat16", "float32", "float64"))
            if (dtype == "uint8") == ("table" in done):
                expected = "a float dtype after a table" if dtype == "uint8" else "uint8"
                raise place["dtype"].refused(f"{expected}, or a table before the layout")
    if "layout" not in done:
        raise image["operations"].fault('has no operation of kind "layout"; expected it at the end')
    if fit == "pad" and "pad" not in done:
        raise image["operations"].fault('has "fit": "pad", but no operation of kind "pad"')


def _check_crop(box: Place, size: tuple[int, int]) -> tuple[int, int]:
    top, left, height, width = box.items("numbers, y, x, height and width,", count=4)
    y, x = top.whole(0, size[0] - 1), left.whole(0, size[1] - 1)
    return height.whole(1, size[0] - y), width.whole(1, size[1] - x)


def _check_color(place: Place, channels: int) -> None:
    for key in COLOR_STEPS:
        if place[key].value is not None:
            place[key].number("null, or a factor, 0 or more", least=0)
    order = place["order"].items("steps", count=len(COLOR_STEPS))
    seen = []
    for step in order:
        name = step.one_of(COLOR_STEPS)
        if name in seen:
            raise step.fault(f"{shown(name)} appears twice; expected each step once")
        seen.append(name)
    if channels == 4:
        raise place.fault("color needs 1 or 3 channels, but the image has 4")


def _check_table(place: Place, channels: int) -> None:
    form = place["form"].one_of(FORMULAS)
    for key in ("mean", "std"):
        if form != "mean_std":
            if place[key].value is not None:
                raise place[key].refused(f"null for the form {shown(form)}")
            continue
        for each in place[key].items("numbers, one per channel,", count=channels):
            if key == "std":
                each.number("a number above 0", above=0)
            else:
                each.number()
