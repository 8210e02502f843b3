"""The places of files in LeRobot data sets."""

from __future__ import annotations

FILE_BYTES = 100 << 20  # of a data file of v3: then the next one begins, as in LeRobot
VIDEO_MIB = 200  # of a video file of v3, as LeRobot states it
CHUNK = 1000  # files in a folder
DATA = "data/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet"
VIDEO = "videos/{video_key}/chunk-{chunk_index:03d}/file-{file_index:03d}.mp4"
DATA_V2 = "data/chunk-{episode_chunk:03d}/episode_{episode_index:06d}.parquet"
VIDEO_V2 = "videos/chunk-{episode_chunk:03d}/{video_key}/episode_{episode_index:06d}.mp4"
EPISODES = "meta/episodes/chunk-000/file-000.parquet"
SOURCES = "meta/robocache.json"  # where each episode comes from; only RoboCache writes it


def place(template: str, number: int, camera: str = "") -> str:
    """Return the name of a file of v3, or of an episode of v2, by its number.

    >>> place(DATA, 1002)
    'data/chunk-001/file-002.parquet'
    """
    return template.format(
        chunk_index=number // CHUNK,
        file_index=number % CHUNK,
        episode_chunk=number // CHUNK,
        episode_index=number,
        video_key=camera,
    )
