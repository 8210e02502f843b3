from typing_extensions import assert_type

import robocache as rbc


def files(path: str) -> None:
    assert_type(rbc.data.open_recording(path), rbc.data.Recording)
    assert_type(rbc.data.open_recording(path, unit="us").align(50), rbc.Episodes)
    assert_type(rbc.data.open_episodes(path, damaged="keep"), rbc.Episodes)
    assert_type(rbc.data.open_episodes(path).report(), rbc.Report)
    assert_type(rbc.data.open_clouds(path)[0], rbc.data.PointCloud)
    opened = rbc.data.open(path)
    if isinstance(opened, rbc.data.Recording):
        assert_type(opened.left_out, tuple[rbc.data.LeftOut, ...])
    assert_type(rbc.data.open_recording(path)["arm"], rbc.data.RecordedStream)

    rbc.data.open_recording(path, damaged="ignore")  # type: ignore
    rbc.data.open_episodes(path).voxelize()  # type: ignore
