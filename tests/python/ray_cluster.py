"""A cluster of Ray of two nodes on this machine, what its stages give, and a node that is lost.

    python ray_cluster.py FOLDER

FOLDER has the data sets "lerobot" and "bag"; results are written there as "results.pickle".
"""

from __future__ import annotations

import logging
import os
import pickle
import sys
import tempfile
import threading
import time
from pathlib import Path

os.environ.update(
    RAY_USAGE_STATS_ENABLED="0",
    RAY_DISABLE_IMPORT_WARNING="1",
    RAY_enable_metrics_collection="0",
    RAY_ENABLE_UV_RUN_RUNTIME_ENV="0",
)

import numpy as np
import ray
import ray.cluster_utils

import robocache as rbc

BLOCKS, ROWS, CHANNELS = 24, 2000, 3
NODE = {"object_store_memory": 100 << 20, "node_ip_address": "127.0.0.1"}


def frames(block: int) -> dict[str, np.ndarray]:
    """Values for which an order of sums matters, and a few that do not count."""
    rng = np.random.default_rng(block)
    values = rng.normal(size=(ROWS, CHANNELS)) * 10.0 ** rng.integers(-6, 7, (ROWS, 1))
    state = values.astype(np.float32)
    state[rng.integers(0, ROWS, 3)] = np.nan
    return {"state": state, "robot": rng.integers(0, 2, ROWS)}


class Slow:
    """Makes the frames of a block, and tells where that was."""

    def __init__(self, folder: Path, pause: float) -> None:
        self._folder, self._pause = folder, pause

    def __call__(self, batch: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        time.sleep(self._pause)
        block = int(batch["block"][0])
        node = ray.get_runtime_context().get_node_id()
        (self._folder / f"{node} {block} {time.monotonic_ns()}").touch()
        return frames(block)


def blocks(folder: Path, pause: float = 0.0) -> ray.data.Dataset:
    made = ray.data.from_items([{"block": b} for b in range(BLOCKS)], override_num_blocks=BLOCKS)
    return made.map_batches(
        Slow, fn_constructor_args=[folder, pause], batch_size=1, num_cpus=0.25,
        compute=ray.data.ActorPoolStrategy(size=2),
    )  # fmt: skip


def kill_in_the_middle(cluster: object, node: object, folder: Path, told: dict) -> None:
    """Once the node has made some blocks, and others are still to come."""
    while not (made := [p for p in folder.iterdir() if p.name.startswith(node.node_id)]):
        time.sleep(0.01)
    told["blocks before"] = len(list(folder.iterdir()))
    told["of the node"] = len(made)
    told["killed"] = time.monotonic_ns()
    cluster.remove_node(node, allow_graceful=False)


def main(folder: Path) -> None:
    begin = time.monotonic()
    def say(what): print(f"{time.monotonic() - begin:6.1f} {what}", flush=True)
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    if True:
        cluster = ray.cluster_utils.Cluster(
            initialize_head=True,
            head_node_args={"num_cpus": 2, "include_dashboard": False, **NODE},
        )
        say("head")
        other = cluster.add_node(num_cpus=2, **NODE)
        say("node")
        ray.init(address=cluster.address, logging_level=logging.ERROR, log_to_driver=False)
        say("init")
        assert len(ray.nodes()) == 2
        results = {}
        pool = ray.data.ActorPoolStrategy(size=1)
        spec = rbc.WindowSpec({"observation.state": [-1, 0], "action": range(4)})
        told = rbc.ray.episodes(folder / "lerobot", num_blocks=3)
        cut = told.map_batches(rbc.ray.Windows, fn_constructor_args=[spec],
            fn_constructor_kwargs={"chunk": 5}, compute=pool, num_cpus=0.25)
        results["windows"] = cut.take_all()
        say("windows")
        aligned = rbc.ray.episodes(folder / "bag").map_batches(rbc.ray.Align,
            fn_constructor_kwargs={"rate": 20, "max_gap": 0.5}, compute=pool, num_cpus=0.25)
        results["aligned"] = aligned.take_all()
        say("align")
        results["of files"] = rbc.ray.statistics(told, compute=pool, num_cpus=0.25)
        say("of files")
        quiet = folder / "quiet"; quiet.mkdir()
        results["by robot"] = rbc.ray.statistics(blocks(quiet), ["state"], by="robot", compute=pool, num_cpus=0.25)
        say("by robot")
        marks = folder / "marks"; marks.mkdir()
        killer = threading.Thread(target=kill_in_the_middle, args=(cluster, other, marks, results))
        killer.start()
        results["with a node lost"] = rbc.ray.statistics(
            blocks(marks, 0.2), ["state"], compute=ray.data.ActorPoolStrategy(size=2), num_cpus=0.5)
        killer.join()
        say("killed")
        results["marks"] = sorted(p.name for p in marks.iterdir())
        ray.shutdown()
        cluster.shutdown()
        say("down")
    (folder / "results.pickle").write_bytes(pickle.dumps(results))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
