"""Time of the second open of a large data set, from a cache.

    python benchmarks/cached_open.py [--episodes 1000000] [--files 960] [--folder DIR]

Writes a LeRobot v3.0 data set with 5 rows of 2 x 7 float32 per episode, stores it in a cache, and
opens it in new processes: from the cache, from the cache after the digests of the files were
removed, and without a cache. Prints the seconds of `open`, after the import and with the key: the
median and all runs.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

ROWS, CHANNELS, TASKS = 5, 7, 100
NUMBER = {"dtype": "int64", "shape": [1], "names": None}
VECTOR = {"dtype": "float32", "shape": [CHANNELS], "names": None}
OPEN = """
import sys, time
import robocache as rbc
from robocache import data
cache = rbc.Cache(sys.argv[2], require=True) if sys.argv[2] else None
begin = time.perf_counter()
episodes = data.open(sys.argv[1], cache=cache)
print(time.perf_counter() - begin)
assert len(episodes) == int(sys.argv[3]) and (cache is None or cache.last_miss is None)
"""


def write(folder, episodes, files):
    """Write the data set, with a time of the last change that is long ago."""
    features = {"action": VECTOR, "observation.state": VECTOR}
    features["timestamp"] = {**NUMBER, "dtype": "float32"}
    features |= dict.fromkeys(("frame_index", "episode_index", "index", "task_index"), NUMBER)
    place = "{}/chunk-000/file-{:03d}.parquet".format
    info = {
        "codebase_version": "v3.0",
        "fps": 10,
        "robot_type": "arm",
        "total_episodes": episodes,
        "total_frames": episodes * ROWS,
        "total_tasks": TASKS,
        "chunks_size": 1000,
        "data_path": "data/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet",
        "video_path": None,
        "features": features,
        "splits": {"train": f"0:{episodes}"},
    }
    for part in ("data", "meta/episodes"):
        (folder / part / "chunk-000").mkdir(parents=True)
    (folder / "meta" / "info.json").write_text(json.dumps(info))
    tasks = {"task_index": np.arange(TASKS), "task": [f"task {i}" for i in range(TASKS)]}
    pq.write_table(pa.table(tasks), folder / "meta" / "tasks.parquet")
    random = np.random.default_rng(0)
    cuts = np.linspace(0, episodes, files // 2 + 1).astype(int)
    for number, (first, last) in enumerate(zip(cuts, cuts[1:])):
        which, count = np.arange(first, last), last - first
        rows, step = np.repeat(which, ROWS), np.tile(np.arange(ROWS), count)
        columns = {
            name: pa.FixedSizeListArray.from_arrays(
                pa.array(random.standard_normal(len(rows) * CHANNELS, np.float32)), CHANNELS
            )
            for name in ("action", "observation.state")
        }
        columns["timestamp"] = (step / 10).astype(np.float32)
        columns |= {"frame_index": step, "episode_index": rows, "task_index": rows % TASKS}
        columns["index"] = np.arange(first * ROWS, last * ROWS)
        pq.write_table(pa.table(columns), folder / place("data", number))
        zero = np.zeros(count, np.int64)
        columns = {
            "episode_index": which,
            "tasks": [[f"task {i % TASKS}"] for i in which],
            "length": zero + ROWS,
            "dataset_from_index": which * ROWS,
            "dataset_to_index": (which + 1) * ROWS,
            "data/chunk_index": zero,
            "data/file_index": zero + number,
            "meta/episodes/chunk_index": zero,
            "meta/episodes/file_index": zero + number,
        }
        pq.write_table(pa.table(columns), folder / place("meta/episodes", number))
    for i, path in enumerate(sorted(folder.rglob("*"))):
        os.utime(path, (1.7e9 + i, 1.7e9 + i))


def seconds(path, cache, episodes):
    """Return the time of one open, in a new process."""
    command = [sys.executable, "-c", OPEN, str(path), str(cache), str(episodes)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--episodes", type=int, default=1_000_000)
    parser.add_argument("--files", type=int, default=960)
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--folder", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        path, cache = Path(folder) / "set", Path(folder) / "cache"
        write(path, options.episodes, options.files)
        build = OPEN.partition("print")[0]
        subprocess.run([sys.executable, "-c", build, path, cache], check=True)
        seconds(path, cache, options.episodes)  # keeps digests of files that were young before
        for name, store, forgets in (
            ("from the cache", cache, False),
            ("from the cache, digesting the files again", cache, True),
            ("without a cache, metadata only", "", False),
        ):
            found = []
            for _ in range(options.runs):
                if forgets:
                    shutil.rmtree(cache / "digests")
                found.append(seconds(path, store, options.episodes))
            print(f"{name}: {statistics.median(found):.3f} s (runs: {sorted(found)})")


if __name__ == "__main__":
    main()
