"""Validation of a pipeline file: everything that can be known without data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from . import units
from .image_schema import check_images
from .place import UNKNOWN, Place, listed
from .strict_json import shown

VERSION = 1
KEY = "robocache_pipeline"
_TOP = (KEY, "clock", "streams", "images", "windows", "normalization", "actions")
_CLOCK = ("rate", "unit", "lag", "availability", "dtype")
_STREAM = (
    *("source", "channels", "stamp", "latency", "method", "max_gap", "max_age"),
    *("fill", "filter", "capacity", "late_bound"),
)
_CHANNEL = ("name", "unit", "kind", "from", "scale", "offset")
_FILTERS = {
    "poly": ("samples", "order", "derivative"),
    "kernel": ("cutoff",),
    "sos": ("sos",),
    "hampel": ("samples", "threshold"),
    "median": ("samples",),
}
_LEAST_CAPACITY = {"linear": 2, "previous": 1, "nearest": 1, "cubic": 4, "pchip": 4}


def check(document: Any, draft: bool = False) -> None:
    """Raise ValueError if a document is not a pipeline; ``draft``: "?" is allowed.

    A filter, which no part of this version runs, raises NotImplementedError.
    """
    top = Place(document, "", draft)
    if isinstance(document, dict) and KEY in document:
        version = top[KEY]
        if version.whole(1) > VERSION:
            raise version.fault(
                f"is {version.value}: the file was made by a newer version of RoboCache, which "
                f"reads up to {VERSION}; update it"
            )
    top.members(_TOP, ("provenance",))
    _check_clock(top["clock"])
    widths = {}
    for name, stream in top["streams"].named("streams"):
        widths[name] = _check_stream(stream)
    if not widths and not document["images"]:
        raise top["streams"].fault("has no streams; expected 1 or more")
    check_images(top["images"])
    _check_windows(top, widths)
    _check_actions(top, widths)


# ---- clock and streams --------------------------------------------------------------------------


def _check_clock(clock: Place) -> None:
    clock.members(_CLOCK)
    rate = clock["rate"].number("a number of rows per second above 0", above=0)
    if rate > 1e6:
        raise clock["rate"].refused("a number of rows per second, at most 1e6")
    clock["unit"].one_of(("s", "ns"))
    clock["lag"].seconds()
    clock["availability"].one_of(("arrival", "stamp"))
    clock["dtype"].one_of(("float32", "float64"))


def _check_stream(stream: Place) -> list[str]:
    """Return the names of the channels."""
    stream.members(_STREAM)
    by_name = _check_source(stream["source"])
    stream["stamp"].one_of(("header", "log"))
    stream["latency"].number("a number of seconds from -3600 to 3600", least=-3600)
    if stream["latency"].value > 3600:
        raise stream["latency"].refused("a number of seconds from -3600 to 3600")
    method = stream["method"].one_of(units.METHODS)
    gap = stream["max_gap"].or_null()
    if gap is not None:
        gap.seconds(zero=False)
    age = stream["max_age"]
    if age.value is None:
        raise age.refused(
            "a number of seconds; without a limit, a sensor that has stopped is valid for ever"
        )
    age.seconds()
    stream["fill"].number()
    _check_filter(stream["filter"])
    stream["late_bound"].whole(0, 2**20)
    names = _check_channels(stream, by_name, method)
    least = 2 if method not in _LEAST_CAPACITY else _LEAST_CAPACITY[method]
    kinds = {channel["kind"] for channel in stream.value["channels"]}
    if kinds & {units.QUATERNION, units.ANGLE, units.ANGLE_POSITIVE} and method in units.SMOOTH:
        least = max(least, 2)
    least = max(least, stream.value["late_bound"] + 1)
    stream["capacity"].whole(least, 2**30)
    return names


def _check_source(source: Place) -> bool | None:
    """Return whether channels are looked up by name; None if both are possible."""
    if isinstance(source.value, dict) and "column" in source.value:
        source.members(("column",))
        source["column"].text()
        return None
    source.members(("topic", "type", "field", "select"), ("key",))
    if "key" in source:
        source["key"].text()
    source["topic"].text()
    source["type"].text()
    if not isinstance(source["field"].value, str):
        raise source["field"].refused('a string; "" for the whole message')
    return source["select"].one_of(("name", "index")) == "name"


def _check_channels(stream: Place, by_name: bool | None, method: str) -> list[str]:
    places = stream["channels"].items("channels", least=1)
    names: list[str] = []
    origins: list[Any] = []
    for place in places:
        place.members(_CHANNEL)
        name = place["name"].text("a name, unlike the other channels'")
        if name in names:
            raise place["name"].fault(f"{shown(name)} is the name of channel {names.index(name)}")
        names.append(name)
        unit, kind = place["unit"].one_of(units.UNITS), place["kind"].one_of(units.KINDS)
        fault = None if UNKNOWN in (unit, kind) else units.channel_fault(kind, unit, method)
        if fault is not None:
            key, reason = fault
            where = place[key] if key in _CHANNEL else stream[key]
            raise where.fault(f"{shown(where.value)}; {reason}")
        origin = place["from"]
        if isinstance(origin.value, str) and by_name is not False:
            origin.text("a name, as in the messages or the table")
        elif isinstance(origin.value, str) or by_name:
            what = "a name, as in the messages" if by_name else "the index of a number, 0 or more"
            raise origin.refused(what)
        else:
            origin.whole(0, 2**31)
        if origin.value in origins:
            number = origins.index(origin.value)
            raise origin.fault(f"{shown(origin.value)} is channel {number} too")
        origins.append(origin.value)
        if place["scale"].number("a number other than 0") == 0:
            raise place["scale"].refused("a number other than 0")
        place["offset"].number()
        if kind == units.QUATERNION and (place["scale"].value, place["offset"].value) != (1, 0):
            key = "scale" if place["scale"].value != 1 else "offset"
            expected = "1" if key == "scale" else "0"
            raise place[key].refused(f"{expected} for a quaternion")
    _check_quaternions(places)
    return names


def _check_quaternions(places: list[Place]) -> None:
    channel = 0
    while channel < len(places):
        if places[channel].value["kind"] != units.QUATERNION:
            channel += 1
            continue
        for each in range(channel, channel + 4):
            if each >= len(places) or places[each].value["kind"] != units.QUATERNION:
                raise places[min(each, len(places) - 1)]["kind"].fault(
                    f"is in a quaternion of {each - channel} channels; expected 4 that follow each "
                    "other: x, y, z, w"
                )
        channel += 4


def _check_filter(place: Place) -> None:
    """Refuse any filter: a wrong one with ValueError, another with NotImplementedError."""
    if place.value is None:
        return
    kind = place.kind(_FILTERS)
    place.members(("kind", *_FILTERS[kind]))
    if "samples" in place:
        count = place["samples"].whole(1, 2**16)
        if count % 2 == 0:
            raise place["samples"].refused("an odd number of samples")
    if kind == "poly":
        order = place["order"].whole(0, 5)
        if order >= place["samples"].value:
            raise place["order"].refused('an order below "samples"')
        place["derivative"].whole(0, min(order, 2))
    elif kind == "kernel":
        place["cutoff"].number("a frequency in Hz above 0", above=0)
    elif kind == "hampel":
        place["threshold"].number("a number, 0 or more", least=0)
    elif kind == "sos":
        for section in place["sos"].items("sections", least=1):
            numbers = section.numbers("coefficients b0, b1, b2, a0, a1, a2", 6)
            if numbers[3] != 1:
                raise section[3].refused("1, since coefficients are divided by a0")
            if 1 + numbers[4] + numbers[5] == 0:
                raise section.fault("1 + a1 + a2 is 0; expected a filter with a finite gain")
    raise NotImplementedError(
        f"{place.pointer}: asks for a filter of kind {shown(kind)}, but this version of RoboCache "
        "does not run filters, and results without it would differ; write null"
    )


# ---- windows and normalization ------------------------------------------------------------------


def _check_windows(top: Place, streams: Mapping[str, list[str]]) -> None:
    windows = top["windows"]
    counts: dict[str, int] = {}
    for name, window in windows.named("windows"):
        window.members(("stream", "offsets", "outside", "transforms"))
        window["stream"].one_of(streams)
        offsets = window["offsets"].items("offsets", least=1)
        for offset in offsets:
            offset.whole(-(2**20), 2**20)
        counts[name] = len(offsets)
        window["outside"].one_of(("hold", "fill"))
    if not counts and not top["images"].value:
        raise windows.fault("has no windows; expected 1 or more")
    if len(counts) > 16:
        raise windows.fault(f"has {len(counts)} windows; expected at most 16")
    widths = {}
    for name, window in windows.named("windows"):
        widths[name] = _check_transforms(window, windows, streams, counts)
    normalization = top["normalization"].members(tuple(counts))
    for name in counts:
        _check_normalization(normalization[name], widths[name], top["clock"]["dtype"].value)


def _check_transforms(
    window: Place,
    windows: Place,
    streams: Mapping[str, list[str]],
    counts: Mapping[str, int],
) -> int:
    """Return the number of channels after the transforms."""
    from .._operations.convert_rotations import ROTATIONS, channels_of

    width = len(streams[window["stream"].value])
    places = window["transforms"].items("transforms")
    taken: dict[int, int] = {}
    result = width
    for number, place in enumerate(places):
        place.members(
            (
                *("kind", "begin", "count", "reference", "reference_begin"),
                *("rotation", "reference_rotation", "out_rotation"),
            )
        )
        kind = place["kind"].one_of(("subtract", "se3_relative", "se3_world", "se3_step"))
        begin = place["begin"].whole(0, max(width - 1, 0))
        count = place["count"].whole(1, width - begin)
        for channel in range(begin, begin + count):
            if channel in taken:
                raise place["begin"].fault(
                    f"channel {channel} is in transform {taken[channel]} too; expected one"
                )
            taken[channel] = number
        reference = place["reference"].members(("window", "index"))
        referred = reference["window"].one_of(counts)
        steps = counts[referred]
        reference["index"].whole(-steps, steps - 1)
        forms = [place[key] for key in ("rotation", "reference_rotation", "out_rotation")]
        needed = count
        if kind == "subtract":
            for form in forms:
                if form.value is not None:
                    raise form.refused("null for a difference")
        else:
            for form in forms:
                form.one_of(ROTATIONS)
            own, theirs, out = (3 + channels_of(form.value) for form in forms)
            if count != own:
                raise place["count"].refused(f"{own}: 3 of a position and {own - 3} of a rotation")
            needed, result = theirs, result + out - own
        available = len(streams[windows[referred]["stream"].value])
        place["reference_begin"].whole(0, available - needed)
    return result


_STYLES = ("lerobot", "openpi", "gr00t", "openvla", "octo", "diffusion_policy", "robomimic")
_NORMALIZATION = ("style", "mode", "rows", "mask", "clip", "epsilon", "statistics")
STATISTICS = ("count", "mean", "std", "min", "max", "quantiles")


def _check_normalization(place: Place, width: int, dtype: Any) -> None:
    from .._statistics.normalization import Normalization
    from .statistics import result_of

    if place.value == "none":
        return
    if not isinstance(place.value, dict):
        raise place.refused('"none", or an object with ' + listed(_NORMALIZATION))
    place.members(_NORMALIZATION)
    place["style"].one_of(_STYLES)
    place["mode"].one_of(("mean_std", "min_max", "quantiles", "quantile10", "gaussian"))
    place["rows"].one_of(("all", "valid", "whole"))
    mask = place["mask"].or_null()
    if mask is not None:
        for each in mask.items("channels", count=width):
            each.flag()
    if place["clip"].value is not None:
        place["clip"].flag()
    if place["epsilon"].value is not None:
        place["epsilon"].number("null, or a number above 0", above=0)
    statistics = place["statistics"]
    if statistics.is_unknown:
        return
    if statistics.value == UNKNOWN:
        raise statistics.fault('"?"; the statistics are missing: compute them with Pipeline.fit')
    if statistics.value is None:
        raise statistics.refused("statistics, of Pipeline.fit")
    statistics.members(STATISTICS)
    for count in statistics["count"].items("counts", count=width):
        count.whole(-1)
    for key in STATISTICS[1:5]:
        part = statistics[key].or_null()
        if part is not None:
            part.numbers("channels", width)
    for level, quantiles in statistics["quantiles"].named("quantiles"):
        try:
            right = 0 <= float(level) <= 1 and repr(float(level)) == level
        except ValueError:
            right = False
        if not right:
            raise quantiles.fault('is not a level; expected a number from 0 to 1, such as "0.01"')
        quantiles.numbers("channels", width)
    if statistics["std"].value is not None:
        for channel, std in enumerate(statistics["std"].value):
            if std < 0:
                raise statistics["std"][channel].refused("a standard deviation, 0 or more")
    options: Any = {key: place[key].value for key in ("style", "mask", "clip", "epsilon")}
    options["dtype"] = dtype
    try:
        Normalization.of(result_of(statistics.value), place["mode"].value, **options)
    except (ValueError, TypeError) as error:
        raise _blamed(place, str(error)) from None


def _blamed(place: Place, text: str) -> ValueError:
    """Return the error of Normalization.of with the pointer of the value that it is about."""
    name, _, reason = text.partition(": ")
    if name in ("mode", "style", "mask", "clip", "epsilon"):
        return place[name].fault(reason)
    statistics = place["statistics"]
    part = name.removeprefix("result.")
    if part in STATISTICS:
        return statistics[part].fault(reason)
    if part.startswith("quantile") or name == "level":
        return statistics["quantiles"].fault(reason)
    return statistics.fault(reason if name == "result" else text)


# ---- actions ------------------------------------------------------------------------------------


def _check_actions(top: Place, streams: Mapping[str, list[str]]) -> None:
    actions = top["actions"]
    if actions.value is None:
        return
    if not isinstance(actions.value, dict):
        raise actions.refused("null, or an object with the robot's commands")
    actions.members(("window", "channels", "limits", "smooth", "latency"))
    windows = top["windows"]
    name = actions["window"].one_of(windows.value)
    own = streams[windows[name]["stream"].value]
    channels = actions["channels"].items("channels", count=len(own))
    seen: set[str] = set()
    for channel in channels:
        chosen = channel.one_of(own)
        if chosen in seen:
            raise channel.fault(f"{shown(chosen)} appears twice; expected each channel once")
        seen.add(chosen)
    for pair in actions["limits"].items("limits, one per channel,", count=len(own)):
        if pair.value is None:
            continue
        low, high = (each.or_null() for each in pair.items("limits, low and high,", count=2))
        if low is not None and high is not None and low.number() > high.number():
            raise pair.refused("a low limit that is not above the high one")
        for each in (low, high):
            if each is not None:
                each.number()
    _check_filter(actions["smooth"])
    actions["latency"].seconds()
