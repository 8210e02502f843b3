"""Zarr 3, run in the calling thread.

Zarr 3 reads and writes in its own threads, and waits for them forever: for a thread that could not
start, and for one that ran out of memory. Here its coroutines run to completion in the calling
thread. They need no descriptor and no other thread, and cannot wait for anything else.
"""

from __future__ import annotations

import asyncio
import importlib
import threading
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, Callable


@contextmanager
def in_one_thread() -> Iterator[None]:
    """Disable the threads of Blosc, which reports a thread that cannot start as damaged data."""
    try:
        blosc: Any = importlib.import_module("numcodecs.blosc")
    except ImportError:
        yield
        return
    before, blosc.use_threads = blosc.use_threads, False
    try:
        yield
    finally:
        blosc.use_threads = before


class _Events:
    """A selector without any files and threads to wait for."""

    def select(self, timeout: float | None = None) -> list[Any]:
        if timeout is None:  # a deadlock: the task that should continue found no memory
            raise MemoryError("out of memory")
        return []

    def close(self) -> None:
        pass


class _Loop(asyncio.BaseEventLoop):
    """An event loop that runs work for other threads at once."""

    def __init__(self) -> None:
        super().__init__()
        self._selector = _Events()

    def _process_events(self, events: list[Any]) -> None:
        pass

    def run_in_executor(  # type: ignore[override]
        self, executor: Any, function: Callable[..., Any], *arguments: Any
    ) -> asyncio.Future[Any]:
        done = self.create_future()
        try:
            done.set_result(function(*arguments))
        except Exception as error:
            done.set_exception(error)
        return done


def ran(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """Return the result of a coroutine of Zarr."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return _run(coroutine)
    results: list[Any] = []  # a loop runs in this thread, as in a notebook: use another thread
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(_run(coroutine))
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run, name="robocache-zarr", daemon=True)
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
    if not results:
        raise MemoryError("out of memory")
    return results[0]


def _run(coroutine: Coroutine[Any, Any, Any]) -> Any:
    loop = _Loop()
    try:
        return loop.run_until_complete(coroutine)
    finally:
        try:
            _cancel_rest(loop)
        finally:
            loop.close()


def _cancel_rest(loop: _Loop) -> None:
    """Cancel the other tasks, so that no writer continues after one failed."""
    tasks = asyncio.all_tasks(loop)
    for task in tasks:
        task.cancel()
    if tasks:
        loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))


async def _all(iterator: Any) -> list[Any]:
    return [item async for item in iterator]


class Group:
    """A group of Zarr 3 with the methods of Zarr 2."""

    def __init__(self, zarr_object: Any) -> None:
        self._object = zarr_object

    @property
    def attrs(self) -> Any:
        return self._object.attrs

    def __contains__(self, name: str) -> bool:
        return bool(ran(self._object.contains(name)))

    def __getitem__(self, name: str) -> Group | Array:
        return _wrapped(ran(self._object.getitem(name)))

    def arrays(self) -> Iterator[tuple[str, Array]]:
        for name, array in ran(_all(self._object.arrays())):
            yield name, Array(array)

    def group_keys(self) -> list[str]:
        return list(ran(_all(self._object.group_keys())))

    def create_array(self, name: str, **options: Any) -> Array:
        return Array(ran(self._object.create_array(name, **options)))

    def update_attributes(self, attributes: dict[str, Any]) -> None:
        ran(self._object.update_attributes(attributes))


class Array:
    """An array of Zarr 3."""

    def __init__(self, zarr_object: Any) -> None:
        self._object = zarr_object

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self._object.shape)

    @property
    def dtype(self) -> Any:
        return self._object.dtype

    @property
    def size(self) -> int:
        return int(self._object.size)

    @property
    def chunks(self) -> tuple[int, ...]:
        return tuple(self._object.chunks)

    @property
    def metadata(self) -> Any:
        return self._object.metadata

    @property
    def fill_value(self) -> Any:
        return self._object.metadata.fill_value

    def __getitem__(self, region: Any) -> Any:
        return ran(self._object.getitem(region))

    def __setitem__(self, region: Any, values: Any) -> None:
        ran(self._object.setitem(region, values))


def _wrapped(zarr_object: Any) -> Group | Array:
    return Array(zarr_object) if hasattr(zarr_object, "dtype") else Group(zarr_object)


def open_group(store: Any, mode: str, **options: Any) -> Group:
    """Open a group of Zarr 3."""
    api = importlib.import_module("zarr.api.asynchronous")
    return Group(ran(api.open_group(store=store, mode=mode, **options)))
