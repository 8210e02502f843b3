"""A cluster of two nodes on this machine: what the stages give there, and a node that is lost.

    RAY_TMPDIR=folder python ray_cluster.py FOLDER

FOLDER has the data sets "lerobot" and "bag"; what comes out is written there as "results.pickle".
test_ray.py runs it in a separate process, since it may hang if Ray cannot start.
"""

from __future__ import annotations

import logging
import os
import pickle
import sys
import threading
import time
from pathlib import Path
from typing import Any

os.environ.update(
    RAY_USAGE_STATS_ENABLED="0",
    RAY_enable_metrics_collection="0",
    # A dead node is noticed after about 3 s, instead of 15.
    RAY_health_check_initial_delay_ms="1000",
    RAY_health_check_period_ms="500",
    RAY_health_check_timeout_ms="2000",
    RAY_health_check_failure_threshold="5",
)

import numpy as np
import ray
import ray.cluster_utils
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

import ray_killed
import robocache as rbc

BLOCKS, ROWS, CHANNELS = 24, 2000, 3
SMALL = {"num_cpus": 0.25, "compute": ray.data.ActorPoolStrategy(size=1)}


def frames(block: int) -> dict[str, np.ndarray]:
    """Return values whose sums depend on the order unless they are exact, with a few NaN."""
    rng = np.random.default_rng(block)
    values = rng.normal(size=(ROWS, CHANNELS)) * 10.0 ** rng.integers(-6, 7, (ROWS, 1))
    state = values.astype(np.float32)
    state[rng.integers(0, ROWS, 3)] = np.nan
    return {"state": state, "robot": rng.integers(0, 2, ROWS)}


class Maker:
    """Makes the frames of a block, and leaves a mark of where that was."""

    def __init__(self, folder: Path, pause: float) -> None:
        self._folder, self._pause = folder, pause
        self._node = ray.get_runtime_context().get_node_id()

    def __call__(self, batch: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        time.sleep(self._pause)
        block = int(batch["block"][0])
        (self._folder / f"{block}-{self._node}").touch()
        return frames(block)


def dataset(folder: Path, pause: float = 0, **resources: Any) -> ray.data.Dataset:
    folder.mkdir()
    made = ray.data.from_items([{"block": b} for b in range(BLOCKS)], override_num_blocks=BLOCKS)
    return made.map_batches(
        Maker, fn_constructor_args=[folder, pause], batch_size=1, **{**SMALL, **resources}
    )


def on_both(nodes: list[str]) -> dict[str, Any]:
    """A pool with an actor on each node, that may go on elsewhere."""
    turns = iter(nodes * 100)

    def placed() -> dict[str, Any]:
        return {"scheduling_strategy": NodeAffinitySchedulingStrategy(next(turns), soft=True)}

    pool = ray.data.ActorPoolStrategy(size=len(nodes))
    return {"compute": pool, "ray_remote_args_fn": placed, "num_cpus": 0.25}


def lose(cluster: Any, node: Any, folder: Path, done: threading.Event, told: dict) -> None:
    """Kill a node once it has made some of the blocks."""
    while not done.is_set():
        marks = [path.name for path in folder.glob("*")]
        own = [mark for mark in marks if mark.endswith(node.node_id)]
        if len(own) >= 3:
            cluster.remove_node(node, allow_graceful=False)
            told["blocks when it was lost"] = len({mark.partition("-")[0] for mark in marks})
            told["blocks of the node"] = len(own)
            return
        time.sleep(0.01)


def run_page(data: Path) -> dict[str, Any]:
    """Return the names that the first block of docs/deploy.md defines, for a data set."""
    page = Path(__file__).resolve().parents[3] / "docs" / "deploy.md"
    block = page.read_text().partition("```python\n")[2].partition("```")[0]
    assert '"so101"' in block
    names: dict[str, Any] = {}
    exec(compile(block.replace('"so101"', repr(str(data))), str(page), "exec"), names)
    return {name: names[name] for name in ("stats", "batch", "spec")}


def main(folder: Path) -> None:
    begin = time.monotonic()
    results: dict[str, Any] = {}

    def step(name: str, value: Any = None) -> None:
        results[name] = value
        print(f"{time.monotonic() - begin:5.1f} s: {name}", flush=True)

    ray.data.DataContext.get_current().enable_progress_bars = False
    ends = {"num_cpus": 2, "object_store_memory": 100 << 20}
    cluster = ray.cluster_utils.Cluster(
        initialize_head=True, head_node_args={"include_dashboard": False, **ends}
    )
    other = cluster.add_node(**ends)
    ray.init(address=cluster.address, logging_level=logging.ERROR, log_to_driver=False)
    nodes = [node["NodeID"] for node in ray.nodes()]
    step("nodes", len(nodes))

    episodes = rbc.ray.episodes(folder / "lerobot", num_blocks=3)
    spec = rbc.WindowSpec({"observation.state": [-1, 0], "action": range(4)})
    cut = episodes.map_batches(
        rbc.ray.Windows, fn_constructor_args=[spec], fn_constructor_kwargs={"chunk": 5}, **SMALL
    )
    step("windows", cut.take_all())

    options = {"rate": 20, "max_gap": 0.5}
    bags = rbc.ray.episodes([folder / "bag"])
    aligned = bags.map_batches(rbc.ray.Align, fn_constructor_kwargs=options, **SMALL)
    chained = aligned.map_batches(
        rbc.ray.Windows, fn_constructor_args=[rbc.WindowSpec({"/imu": [0, 1]})], **SMALL
    )
    step("windows of aligned", chained.take_all())
    step("aligned", aligned.take_all())

    step("of files", rbc.ray.statistics(episodes, quantiles=(), **SMALL))
    by_robot = rbc.ray.statistics(
        dataset(folder / "a"), ["state"], by="robot", quantiles=(), **SMALL
    )
    step("by robot", by_robot)

    step("the page", run_page(folder / "lerobot"))
    examples = str(Path(__file__).resolve().parents[3] / "examples" / "deploy")
    sys.path.insert(0, examples)
    import statistics_job

    job = [str(folder / "lerobot"), str(folder / "stats.json"), "--cpus", "0.25", "--relative", "2"]
    statistics_job.main(job)
    step("the job", rbc.statistics_files.read_lerobot(folder / "stats.json"))

    step("with workers killed", ray_killed.run(folder, spec, dataset, SMALL))

    marks, done = folder / "b", threading.Event()
    killer = threading.Thread(target=lose, args=(cluster, other, marks, done, results))
    killer.start()
    pools = on_both(nodes)
    lost = rbc.ray.statistics(dataset(marks, 0.1, **pools), ["state"], batch_size=500, **pools)
    done.set()
    killer.join()
    step("with a node lost", lost)
    step("nodes that are left", sum(node["Alive"] for node in ray.nodes()))
    ray.shutdown()
    cluster.shutdown()
    (folder / "results.pickle").write_bytes(pickle.dumps(results))
    step("end")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
