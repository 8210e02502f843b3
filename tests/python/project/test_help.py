"""help() of the operations shows the types of their arguments."""

import pydoc

import pytest

import robocache as rbc


@pytest.mark.parametrize(
    ("name", "types"),
    [
        (
            "resample",
            ["times: 'Times | None'", "max_gap: 'Duration | None' = None", "method: 'Method'"],
        ),
        (
            "fuse",
            [
                "streams: 'Sequence[Stream[Any] | RecordedStream | Track]'",
                "query_times: 'Times'",
                "'Indices | None'",
            ],
        ),
        (
            "voxelize",
            [
                "points: 'SupportsDLPack | PointCloud'",
                "voxel_size: 'float | Numbers3'",
                "reduction: 'DenseReduction'",
            ],
        ),
        (
            "voxelize_tsdf",
            ["sensors: 'Numbers3 | Sequence[Sequence[float]]'", "truncation: 'float'"],
        ),
        ("clock", ["rate: 'float'", "unit: 'str | None' = None"]),
    ],
)
def test_types_are_shown(name, types):
    shown = pydoc.plain(pydoc.render_doc(getattr(rbc, name)))
    for each in types:
        assert each in shown
    signature = shown[: shown.index("\n    ")]
    assert signature.count(": 'Any'") <= 1  # a dtype may be of any library
