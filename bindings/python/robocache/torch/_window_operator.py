"""The operator ``torch.ops.robocache.windows``, and its gradient with respect to values.

The gradient is computed by windows of row numbers, of ones and of pulses: they give the rows of a
window, the elements that are filled, and the weights of interpolation. So the library's rules are
not duplicated here.
"""

from __future__ import annotations

from typing import Any

import torch

from .._windows.transform import out_channels
from .._windows.window_stream import WindowStream
from .._windows.windows import windows
from ._gradient import WINDOWS, add_rows, require_linear, sum_dtype
from ._neighbours import Queries, Samples, earlier, later, slots_of, weights_of
from ._operators import refuse_gradients, register
from ._options import decode, encode

# The arguments that are lists with one entry per stream, in the order of the operator.
LISTS = (
    "values",
    "episode_offsets",
    "times",
    "offsets",
    "sample_mask",
    "arrivals",
    "shift",
    "scale",
    "bias",
    "low",
    "high",
    "neutral",
    "neutral_channels",
)
_SCALES = ("shift", "scale", "bias", "low", "high")


class Call:
    """The arguments of a call, by name."""

    def __init__(self, operands: Any) -> None:
        *lists, self.episodes, self.anchors, texts, text = operands
        self.lists: dict[str, list[Any]] = dict(zip(LISTS, lists))
        self.rules = [decode(each) for each in texts]
        self.options = decode(text)

    def __len__(self) -> int:
        return len(self.rules)

    def array(self, name: str, n: int) -> Any:
        return self.lists[name][n]

    def rule(self, name: str, n: int, default: Any = None) -> Any:
        return self.rules[n].get(name, default)

    def writes(self, n: int) -> bool:
        return bool(self.rule("output", n, True))

    def looks_back(self, n: int) -> bool:
        """Whether a stream is causal. Its rows that are not valid have no gradient."""
        return bool(self.rule("causal", n, False))

    def channels(self, n: int) -> Any:
        """Return D', or None for row numbers."""
        values = self.array("values", n)
        if values is None:
            return None
        return out_channels(values.shape[1], self.rule("transforms", n, ()))

    def arguments(self) -> tuple[Any, ...]:
        """Return the arguments as the operator takes them."""
        texts = [encode(rule, "WindowStream") for rule in self.rules]
        lists = [self.lists[name] for name in LISTS]
        return (*lists, self.episodes, self.anchors, texts, encode(self.options, "windows"))


def _kernel(*operands: Any) -> list[Any]:
    call = Call(operands)
    streams = []
    for n in range(len(call)):
        arrays = {name: call.array(name, n) for name in LISTS if name not in _SCALES}
        rule = dict(call.rules[n])
        divides = rule.pop("divides", False)
        values, offsets = arrays.pop("values"), arrays.pop("offsets")
        stream: Any = WindowStream(values, offsets, **arrays, **rule)
        # Tensors on the device; a Normalization has numbers on the CPU.
        stream._opened.set_scales([call.array(name, n) for name in _SCALES], divides)
        streams.append(stream)
    pairs = windows(streams, call.episodes, call.anchors, **call.options)
    return [array for pair in pairs for array in pair if array is not None]


def _fake(*operands: Any) -> list[Any]:
    call = Call(operands)
    results = []
    for n in range(len(call)):
        if not call.writes(n):
            continue
        like = call.array("episode_offsets", n)
        shape = (call.episodes.shape[0], call.array("offsets", n).shape[0])
        channels = call.channels(n)
        dtype = torch.int64 if channels is None else _dtype(call, n)
        last = () if channels is None else (channels,)
        results.append(like.new_empty((*shape, *last), dtype=dtype))
        results.append(like.new_empty(shape, dtype=torch.bool))
    return results


def _dtype(call: Call, n: int) -> torch.dtype:
    name = call.rule("dtype", n)
    dtype: torch.dtype = call.array("values", n).dtype if name is None else getattr(torch, name)
    return dtype


# ---- the gradient -------------------------------------------------------------------------------


def _setup(ctx: Any, *operands: Any) -> None:
    call = Call(operands)
    for n in range(len(call)):
        arrays = {name: call.array(name, n) for name in LISTS[2:]}
        refuse_gradients(f"streams[{n}].", **arrays)
    refuse_gradients(anchors=call.anchors)
    for n in range(len(call)):
        for i, each in enumerate(call.rule("transforms", n, ())):
            graded = [m for m in (n, each.reference[0]) if _requires_grad(call.array("values", m))]
            if graded and each.kind != "subtract":
                raise ValueError(
                    f"streams[{n}].transforms[{i}]: is {each.kind!r}, which is not linear in the "
                    f"values and has no gradient; pass streams[{graded[0]}].values.detach()"
                )
        if _requires_grad(call.array("values", n)) and call.rule("method", n) is not None:
            require_linear(call.rule("method", n), f"streams[{n}].")
    saved = [array for name in LISTS for array in call.lists[name]]
    ctx.save_for_backward(*saved, call.episodes, call.anchors)
    ctx.rules, ctx.options = call.rules, call.options


def _requires_grad(values: Any) -> bool:
    return values is not None and bool(values.requires_grad)


def _gradient(ctx: Any, *gradients: Any) -> tuple[Any, ...]:
    *saved, episodes, anchors = ctx.saved_tensors
    count = len(ctx.rules)
    call = object.__new__(Call)
    call.lists = {name: saved[i * count : (i + 1) * count] for i, name in enumerate(LISTS)}
    call.lists["values"] = [each if each is None else each.detach() for each in saved[:count]]
    call.episodes, call.anchors = episodes, anchors
    call.rules, call.options = ctx.rules, {**ctx.options, "backend": None, "check_times": False}
    value_gradients = iter(gradients[::2])  # of the values, without those of the masks
    of_results = [next(value_gradients) if call.writes(n) else None for n in range(count)]
    return tuple(_Backward(call, of_results).of_values(wanted=ctx.wanted))


class _Backward:
    """Computation of the gradients of the values from those of the results."""

    def __init__(self, call: Call, gradients: list[Any]) -> None:
        self._call = call
        self._gradients = gradients

    def of_values(self, wanted: Any) -> list[Any]:
        call = self._call
        totals: list[Any] = [None] * len(call)
        for n in range(len(call)):
            if wanted[n]:
                values = call.array("values", n)
                totals[n] = values.new_zeros(values.shape, dtype=sum_dtype(values.dtype))
        for n, gradient in enumerate(self._gradients):
            if gradient is not None:
                self._add(n, gradient, totals)
        return [
            None if total is None else total.to(call.array("values", n).dtype)
            for n, total in enumerate(totals)
        ]

    def _add(self, n: int, gradient: Any, totals: list[Any]) -> None:
        """Add the gradients of the result of stream n to its own values and to its references."""
        call = self._call
        transforms = call.rule("transforms", n, ())
        concerned = [n, *(each.reference[0] for each in transforms)]
        if all(totals[m] is None for m in concerned):
            return
        if any(each.kind != "subtract" for each in transforms):
            return  # gradients of these were refused
        gradient = self._scaled(n, gradient)
        copied = [True] * call.array("values", n).shape[1]
        for each in transforms:
            copied[each.begin : each.end] = [False] * each.count
            stream, offset = each.reference
            part = gradient[..., each.begin : each.end] * self._live(stream, offset)
            self._spread(totals[n], n, slice(each.begin, each.end), part)
            sign = 1.0 if each.inverse else -1.0
            first = each.reference_begin
            channels = slice(first, first + each.count)
            summed = (sign * part).sum(1, keepdim=True)
            self._spread(totals[stream], stream, channels, summed, offset)
        for begin, end in _runs(copied):
            self._spread(totals[n], n, slice(begin, end), gradient[..., begin:end])

    def _scaled(self, n: int, gradient: Any) -> Any:
        """Return the gradient before clip and scale; 0 where a fill value was written."""
        call = self._call
        gradient = gradient.to(sum_dtype(call.array("values", n).dtype))
        alive = self._ones(n, "fill" if call.looks_back(n) else call.rule("outside", n, "hold"))
        which = call.array("neutral_channels", n)
        if which is not None:
            held = self._ones(n, "hold")
            alive = torch.where(which != 0, alive, held)
        low, high = call.array("low", n), call.array("high", n)
        if low is not None or high is not None:
            changed = {"low": None, "high": None}
            name = str(gradient.dtype).rpartition(".")[2]
            result = self._windows(n, changed, {"dtype": name})
            if low is not None:
                alive = alive * (result >= low.to(gradient.dtype))
            if high is not None:
                alive = alive * (result <= high.to(gradient.dtype))
        scale = call.array("scale", n)
        if scale is not None:
            scale = scale.to(gradient.dtype)
            alive = alive / scale if call.rule("divides", n, False) else alive * scale
        # A NaN or infinite gradient must not count where the result is constant.
        return (gradient * alive).masked_fill(alive == 0, 0)

    def _live(self, stream: int, offset: int) -> Any:
        """Return 1 where a reference has a value, [B,1,1]."""
        return self._ones(stream, "hold")[:, offset : offset + 1]

    def _ones(self, n: int, outside: str) -> Any:
        """Return 1 where there is a value, 0 where a fill value was written, [B,O,1]."""
        values = self._call.array("values", n)
        ones = values.new_ones((values.shape[0], 1), dtype=sum_dtype(values.dtype))
        rule = {
            "outside": outside,
            "fill_value": 0.0,
            "dtype": None,
            "transforms": (),
            "output": True,
        }
        method = self._call.rule("method", n)
        if method is not None and not isinstance(method, str):
            rule["method"] = method[0][2]
        return self._windows(n, {"values": ones, **_PLAIN}, rule)

    def _spread(
        self, total: Any, n: int, channels: slice, part: Any, offset: int | None = None
    ) -> None:
        """Add a gradient to the rows in windows of stream n, or in one offset of them."""
        if total is None:
            return
        chosen = slice(None) if offset is None else slice(offset, offset + 1)
        method = self._call.rule("method", n)
        groups = [(0, total.shape[1], method)]
        if method is not None and not isinstance(method, str):
            groups = method
        for begin, count, name in groups:
            first, last = max(begin, channels.start), min(begin + count, channels.stop)
            if first >= last:
                continue
            taken = part[..., first - channels.start : last - channels.start]
            flat = taken.reshape(-1, last - first)
            for row, weight in self._weights(n, name):
                row = row[:, chosen].reshape(-1)
                if weight is not None:
                    weight = weight[:, chosen].reshape(-1, 1)
                    flat_part = (flat * weight).masked_fill(weight == 0, 0)
                else:
                    flat_part = flat
                add_rows(total[:, first:last], row, flat_part)

    def _weights(self, n: int, method: Any) -> list[tuple[Any, Any]]:
        """Return rows of the values [B,O], and their weights; None stands for 1."""
        call = self._call
        if method is None and call.array("arrivals", n) is not None:
            values = call.array("values", n)
            number = torch.arange(values.shape[0], device=values.device)[:, None]
            rule = {"outside": "hold", "fill_value": -1.0, "dtype": None, "transforms": ()}
            found = self._windows(n, {"values": number.to(torch.float64), **_PLAIN}, rule)
            return [(found[..., 0].long().clamp(min=0), None)]
        if method is None:
            rule = {"outside": "hold", "fill_value": 0.0, "dtype": None, "transforms": ()}
            rows = self._windows(n, {"values": None, "sample_mask": None, **_PLAIN}, rule)
            return [(rows.clamp(min=0), None)]
        values = call.array("values", n)
        dtype = sum_dtype(values.dtype)
        if call.array("arrivals", n) is not None or call.looks_back(n):
            return self._weights_of_existing(n, method, dtype)
        count, first = WINDOWS[method]
        number = torch.arange(values.shape[0], device=values.device)
        place, mask = number, call.array("sample_mask", n)
        if mask is not None:  # number the samples that are not missing
            there = mask != 0
            place = there.to(torch.uint8).argsort(descending=True, stable=True)
            number = (there.cumsum(0) - 1).clamp(min=0)
        phases = torch.arange(count, device=values.device)
        pulses = (number[:, None] % count == phases).to(dtype)
        rule = {
            "outside": "hold",
            "fill_value": 0.0,
            "dtype": None,
            "transforms": (),
            "method": method,
        }
        weights = self._windows(n, {"values": pulses, **_PLAIN}, rule)
        if method not in ("nearest", "previous", "next"):
            rule.update(method="previous", max_gap=None, tolerance=None)
        numbers = {"values": number[:, None].to(torch.float64), **_PLAIN}
        start = first + self._windows(n, numbers, rule).long()
        sample = (start + (phases - start) % count).clamp(0, max(values.shape[0] - 1, 0))
        return [(place[sample[..., i]], weights[..., i]) for i in range(count)]

    def _weights_of_existing(
        self, n: int, method: str, dtype: torch.dtype
    ) -> list[tuple[Any, Any]]:
        """Return rows and weights [B,O] where the rows that exist depend on the query."""
        call = self._call
        offsets, mask = call.array("offsets", n), call.array("sample_mask", n)
        shape = (call.episodes.shape[0], offsets.shape[0])
        chosen = call.episodes.to(torch.int64)
        bounds = call.array("episode_offsets", n).to(torch.int64)
        begin, end = bounds[chosen], bounds[chosen + 1]
        times, known = self._anchor_times(chosen)
        end = torch.where(known, end, begin)
        query = later(times[:, None].expand(shape), offsets.expand(shape)).reshape(-1)
        queries = Queries(
            begin[:, None].expand(shape).reshape(-1),
            end[:, None].expand(shape).reshape(-1),
            earlier(query, call.rule("clock_offset", n, 0)),
            later(query, call.options.get("lag", 0)),
        )
        samples = Samples(
            call.array("times", n), None if mask is None else mask != 0, call.array("arrivals", n)
        )
        rules = {name: call.rules[n][name] for name in _OF_QUERIES if name in call.rules[n]}
        rules["outside"] = "fill" if rules.get("outside") == "fill" else "hold"
        text = encode({**rules, "method": method}, "WindowStream")
        rows, weights = WEIGHTS_OP(*vars(samples).values(), *vars(queries).values(), dtype, text)
        return [(row.view(shape), weight.view(shape)) for row, weight in zip(rows, weights)]

    def _anchor_times(self, chosen: Any) -> tuple[Any, Any]:
        """Return the time of each anchor, and whether it has one."""
        call = self._call
        if call.options.get("anchor_times"):
            return call.anchors, torch.ones_like(call.anchors, dtype=torch.bool)
        n = int(call.options.get("anchor_stream", 0))
        bounds = call.array("episode_offsets", n).to(torch.int64)
        begin, end = bounds[chosen], bounds[chosen + 1]
        row = begin + call.anchors.to(torch.int64).clamp(min=0).minimum(end - begin - 1)
        times = call.array("times", n)
        own = times[row.clamp(0, len(times) - 1)]
        return later(own, call.rule("clock_offset", n, 0)), end > begin

    def _windows(self, n: int, arrays: dict[str, Any], rule: dict[str, Any]) -> Any:
        """Return the values of windows of stream n only, with some arguments changed."""
        call = self._call
        anchor = int(call.options.get("anchor_stream", 0))
        at = [n] if anchor == n else [anchor, n]
        made = object.__new__(Call)
        made.lists = {name: [call.array(name, m) for m in at] for name in LISTS}
        made.rules = [dict(call.rules[m]) for m in at]
        transforms = rule.get("transforms", made.rules[-1].get("transforms", ()))
        if transforms:  # they need all streams of the call
            made.lists = {name: list(call.lists[name]) for name in LISTS}
            made.rules = [dict(each) for each in call.rules]
            at = list(range(len(call)))
        mine = at.index(n)
        for m, other in enumerate(made.rules):
            other["output"] = m == mine
            if not transforms:
                other.pop("transforms", None)
        for name, array in arrays.items():
            made.lists[name][mine] = array
        made.rules[mine].update(rule)
        made.rules[mine]["output"] = True
        made.episodes, made.anchors = call.episodes, call.anchors
        made.options = {**call.options, "anchor_stream": at.index(anchor)}
        if all(times is None for times in made.lists["times"]):
            made.options.pop("lag", None)  # for other streams only
        return WINDOWS_OP(*made.arguments())[0]


_OF_QUERIES = ("max_gap", "tolerance", "causal", "max_age", "outside")


def _weights_kernel(times: Any, there: Any, arrivals: Any, *more: Any) -> tuple[Any, Any]:
    # more: begin, end, time and until of the queries, dtype, options
    *queries, dtype, text = more
    rules = dict(decode(text))
    method = rules.pop("method")
    found = weights_of(Samples(times, there, arrivals), Queries(*queries), method, rules, dtype)
    rows, weights = zip(*found)
    return torch.stack(rows), torch.stack(weights)[..., 0]


def _weights_fake(times: Any, there: Any, arrivals: Any, *more: Any) -> tuple[Any, Any]:
    begin, *_, dtype, text = more
    shape = (slots_of(decode(text)["method"]), begin.shape[0])
    return begin.new_empty(shape), begin.new_empty(shape, dtype=dtype)


def _no_setup(ctx: Any, *operands: Any) -> None:
    """Save nothing: weights have no gradient."""


_PLAIN: dict[str, Any] = dict.fromkeys((*_SCALES, "neutral", "neutral_channels"))


def _runs(chosen: list[bool]) -> list[tuple[int, int]]:
    """Return the begin and the end of each run of True."""
    edges = [i for i in range(len(chosen) + 1) if (chosen + [False])[i] != ([False] + chosen)[i]]
    return list(zip(edges[::2], edges[1::2]))


WEIGHTS_OP = register(
    "query_weights",
    "Tensor times, Tensor? there, Tensor? arrivals, Tensor begin, Tensor end, Tensor time, "
    "Tensor until, ScalarType dtype, str options",
    "(Tensor, Tensor)",
    *(_weights_kernel, _weights_fake, _no_setup),
)
WINDOWS_OP = register(
    "windows",
    "Tensor?[] values, Tensor[] episode_offsets, Tensor?[] times, Tensor[] offsets, "
    "Tensor?[] sample_mask, Tensor?[] arrivals, Tensor?[] shift, Tensor?[] scale, "
    "Tensor?[] bias, Tensor?[] low, "
    "Tensor?[] high, Tensor?[] neutral, Tensor?[] neutral_channels, Tensor episodes, "
    "Tensor anchors, str[] streams, str options",
    "Tensor[]",
    *(_kernel, _fake, _setup, _gradient),
)
