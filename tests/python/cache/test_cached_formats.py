"""Episodes and alignments from the cache equal those that are read, for every format."""

import pytest

import data_sources
import robocache as rbc
from cached import age, facts
from robocache import data

OPTIONS = {"as_numbers": True, "span": "union"}  # of alignments


@pytest.fixture
def cache(tmp_path):
    return rbc.Cache(tmp_path / "store", require=True)


def made(name, tmp_path):
    path = data_sources.make(name, tmp_path / "source")
    if path is None:
        pytest.skip("no package writes this format")
    return age(path)


def opened(path, **options):
    unit = "s" if path.name in data_sources.PLAIN else None
    return data.open(path, unit=unit, **options)


@pytest.mark.parametrize("name", data_sources.SOURCES)
def test_a_hit_equals_what_is_read(name, tmp_path, cache):
    path = made(name, tmp_path)
    plain = opened(path)
    if isinstance(plain, (data.PointCloud, data.PointClouds)):
        with pytest.raises(ValueError, match="this is a point cloud"):
            opened(path, cache=cache)
        return
    first, second = opened(path, cache=cache), opened(path, cache=cache)
    if isinstance(plain, data.Recording):
        rate = _rate(plain)
        plain = plain.align(rate, **OPTIONS)
        first = first.align(rate, cache=cache, **OPTIONS)
        second = second.align(rate, cache=cache, **OPTIONS)
        assert cache.last_miss is None
    assert len(cache.items()) == 1
    assert type(second._tracks).__name__ == "StoredTracks"
    assert facts(second) == facts(first) == facts(plain)
    assert second == plain
    for track in second.tracks.values():
        assert track.values is None or not track.values.flags.writeable or track.values.size == 0


def _rate(recording):
    """A rate that gives some rows of any recording, and not too many."""
    found = None
    for exponent in range(-9, 10):
        try:
            rows = recording.align(10.0**exponent, **OPTIONS).tracks["valid"].num_rows
        except ValueError as error:
            if "rows" not in str(error):
                raise
            break
        if found is not None and rows > 1000:
            break
        found = 10.0**exponent
    return found
