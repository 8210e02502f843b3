"""Shared settings of the tests: hypothesis, and the folder of the real recordings."""

import functools
import gc
import os
import re
import sys
from pathlib import Path

import hypothesis
import pytest

from random_share import random_share

hypothesis.settings.register_profile(
    "robocache",
    max_examples=random_share(hypothesis.settings.default.max_examples),
    deadline=None,
    derandomize=True,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("robocache")

# JAX compiles for longer than it computes.
os.environ.setdefault("JAX_DISABLE_MOST_OPTIMIZATIONS", "1")

# The tests of the cache also pass on a disk that is almost full.
os.environ.setdefault("ROBOCACHE_MIN_FREE_BYTES", "0")


@pytest.fixture(scope="session")
def recordings():
    """The folder of real recordings: ROBOCACHE_DATA, or ../shared/data next to the repository."""
    default = Path(__file__).resolve().parents[2].parent / "shared" / "data"
    folder = Path(os.environ.get("ROBOCACHE_DATA", default))
    if not folder.is_dir():
        pytest.skip(f"no recordings in {folder} (set ROBOCACHE_DATA)")
    return folder


@pytest.fixture(autouse=True, scope="session")
def _nothing_waits_for_the_disk():
    """A test may end any process, but not the system: fsync makes thousands of small files slow."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            os, "fsync", lambda file: os.fstat(file if isinstance(file, int) else file.fileno())
        )
        yield


@pytest.fixture(autouse=True, scope="session")
def _commands_are_built_once():
    """Typer's runner builds all commands for each that it runs, unlike the command line."""
    testing = sys.modules.get("typer.testing")
    with pytest.MonkeyPatch.context() as patch:
        if testing is not None:
            patch.setattr(testing, "_get_command", functools.cache(testing._get_command))
        yield


@pytest.fixture(scope="module")
def few_objects():
    """Let the garbage collector, which a module calls often, skip what other tests keep."""
    gc.collect()
    gc.freeze()


def pytest_ignore_collect(collection_path):
    """ROBOCACHE_TEST_SHARE=3/8 collects files 3, 11, 19 and so on of all, sorted by path."""
    share = os.environ.get("ROBOCACHE_TEST_SHARE")
    if share is None or not collection_path.match("test_*.py"):
        return None
    numbers = re.fullmatch(r"(\d+)/(\d+)", share)
    first, shares = map(int, numbers.groups()) if numbers else (0, 0)
    if first >= shares:
        raise pytest.UsageError(f"ROBOCACHE_TEST_SHARE: is {share!r}, expected such as 3/8")
    return True if _files().index(collection_path) % shares != first else None


@functools.cache
def _files():
    return sorted(Path(__file__).parent.rglob("test_*.py"))


def pytest_collection_finish():
    """The garbage collector, which some tests call, skips the thousands of tests themselves."""
    gc.collect()
    gc.freeze()


def pytest_unconfigure():
    """Let Python free all objects when it ends: some libraries print what is left."""
    gc.unfreeze()


def pytest_configure(config):
    """Ignore range warnings: random queries may all be outside of the samples."""
    config.addinivalue_line("filterwarnings", "ignore::robocache.RangeWarning")
