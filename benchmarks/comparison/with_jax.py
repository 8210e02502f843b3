"""JAX, as its users write it: interp, or diffrax, for a recording, with vmap and jit."""

from __future__ import annotations

import functools
import os
import time
from typing import Any

from .cases import Case
from .timing import SAMPLE_SECONDS, Peer, Work, attempt, guarded


def _interp(jax: Any) -> Any:
    jnp = jax.numpy
    channels = jax.vmap(jnp.interp, in_axes=(None, None, 1), out_axes=1)
    return lambda values, times, queries: channels(queries, times, values)


def _diffrax(jax: Any) -> Any:
    import diffrax

    def one(values: Any, times: Any, queries: Any) -> Any:
        values = values.astype(queries.dtype)  # otherwise it would interpolate in bf16
        return jax.vmap(diffrax.LinearInterpolation(ts=times, ys=values).evaluate)(queries)

    return one


def fuse(jax: Any, align: Any) -> Any:
    batched = jax.vmap(align)

    @jax.jit
    def fused(values: list[Any], times: list[Any], queries: Any) -> Any:
        parts = [batched(v, t, queries).astype(v.dtype) for v, t in zip(values, times)]
        return parts[0] if len(parts) == 1 else jax.numpy.concatenate(parts, axis=2)

    return fused


def import_jax() -> Any:
    """Import JAX, which by default would reserve three quarters of the GPU's memory."""
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    import jax

    return jax


def interp() -> tuple[Any, Any]:
    """Return the function, and a function that converts arrays for it."""
    jax = import_jax()
    arrays = functools.partial(jax.tree.map, functools.partial(_array, jax))
    return fuse(jax, _interp(jax)), arrays


def peers(case: Case, arrays: tuple[Any, ...], result: Any) -> list[Peer]:
    """`arrays` are NumPy's or torch's; result(array) converts a result for comparison."""

    def make(name: str, align: Any) -> Peer:
        jax = import_jax()
        function = fuse(jax, align(jax))
        mine = jax.tree.map(functools.partial(_array, jax), arrays)
        return _peer(name, functools.partial(function, *mine), result)

    makers = {"jax.numpy.interp": _interp}
    if case.op == "resample":
        makers["diffrax LinearInterpolation"] = _diffrax
    return [attempt(name, functools.partial(make, name, align)) for name, align in makers.items()]


def _array(jax: Any, array: Any) -> Any:
    """Convert a torch tensor without a copy."""
    return jax.dlpack.from_dlpack(array) if hasattr(array, "is_cuda") else jax.numpy.asarray(array)


def _peer(name: str, work: Work, result: Any) -> Peer:
    peer = Peer(name, work, lambda: result(work()))
    start = time.perf_counter()
    peer.error = guarded(lambda: work().block_until_ready())
    peer.compile_seconds = time.perf_counter() - start
    if peer.error is None:
        peer.own_seconds = functools.partial(_seconds, work, _calls(work))
    return peer


def _calls(work: Work) -> int:
    seconds = min(_seconds(work, 1) for _ in range(2))
    return max(1, min(200, int(SAMPLE_SECONDS / seconds)))


def _seconds(work: Work, calls: int) -> float:
    """Return the real time per call: JAX has its own streams. The device never waits."""
    work().block_until_ready()
    start = time.perf_counter()
    for _ in range(calls):
        last = work()
    last.block_until_ready()
    return (time.perf_counter() - start) / calls
