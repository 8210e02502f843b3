"""Compute the exact statistics of a data set on a Ray cluster, and write LeRobot's stats.json.

    python statistics_job.py /data/so101 /out/stats.json
    python statistics_job.py /data/so101 /out/stats.json --relative 50  # also of relative actions

Run directly, it starts Ray on this machine. Submitted to a cluster, it uses its machines; the data
set must be on a file system that all of them share.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import ray

import robocache as rbc


def relative(dataset: Any, horizon: int, pool: dict[str, Any]) -> Any:
    """Return statistics of whole chunks of actions, minus the state at the start of the chunk."""
    count = rbc.data.open(dataset.take(1)[0]["path"]).track_info("action").channels
    less = rbc.Transform("subtract", 0, count, reference=("state", 0))
    state = rbc.Window([0], track="observation.state")
    chunk = rbc.Window(range(horizon), track="action", transforms=[less])
    spec = rbc.WindowSpec({"state": state, "chunk": chunk}, anchors="whole")
    cut = dataset.map_batches(rbc.ray.Windows, fn_constructor_args=[spec], batch_size=16, **pool)
    return rbc.ray.statistics(cut, ["chunk"], **pool)["chunk"]


def main(command_line: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--relative", type=int, metavar="ROWS", help="of a chunk of actions")
    parser.add_argument("--cpus", type=float, default=1, help="of each worker")
    parser.add_argument("--gpus", type=float, default=0, help="of each worker")
    arguments = parser.parse_args(command_line)
    ray.init(ignore_reinit_error=True)
    pool = {"num_cpus": arguments.cpus, "num_gpus": arguments.gpus or None}
    pool["compute"] = ray.data.ActorPoolStrategy(min_size=1)
    dataset = rbc.ray.episodes(arguments.data)
    results = rbc.ray.statistics(dataset, **pool)
    if arguments.relative is not None:
        results["action.relative"] = relative(dataset, arguments.relative, pool)
    rbc.statistics_files.write_lerobot(arguments.out, results)
    for name, result in results.items():
        print(f"{name}\n{result}\n")


if __name__ == "__main__":
    main()
