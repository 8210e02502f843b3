"""Samples per second of a loader with two cameras, from stored frames: on the CPU and on a GPU.

    python benchmarks/frames_loader.py [--folder DIR] [--frames 2000] [--size 480x640]
                                       [--repeat 20] [--threads 1] [--batch 64] [--seconds 4]
                                       [--ranks 1,2,4,8]

Stores frames of noise of two cameras, full and in 224 x 224, and measures loaders of state (1 x
14), actions (50 x 14) and one frame of each camera. On a GPU it also measures a pinned copy of the
same bytes, the share of time in which a small training loop keeps the GPU busy, and staging, where
the frames are not registered. With --ranks it measures several processes, of one core each, that
share the stored frames. Prints one JSON line per case.
"""

import argparse
import json
import multiprocessing
import os
import shutil
import tempfile
import time
from pathlib import Path

import numpy as np
import torch

import robocache as rbc
from robocache.data import FrameSource

ROWS, CHANNELS = 250, 14


class Noise(FrameSource):
    """Frames of noise: a few different ones, so that they cost nothing to make."""

    def __init__(self, path, name, episodes, shape):
        self.path, self.name = str(path), name
        self._lengths, self._shape = np.full(episodes, ROWS, np.int64), shape

    @property
    def shape(self):
        return self._shape

    @property
    def lengths(self):
        return self._lengths

    def files(self, episode):
        return (os.path.join(self.path, f"{self.name}.bin"),)

    def read(self, episode, rows, out):
        noise = np.random.default_rng(episode).integers(0, 256, self._shape, dtype=np.uint8)
        for i, row in enumerate(rows.tolist()):
            out[i] = np.roll(noise, row, axis=1)


def episodes_of(folder, frames, shape, cache, repeat=1):
    count = max(1, frames // ROWS)
    rng = np.random.default_rng(0)
    offsets = np.arange(count + 1) * ROWS
    tracks = {
        name: rbc.Track(rng.normal(size=(count * ROWS, CHANNELS)).astype("f4"), offsets)
        for name in ("state", "action")
    }
    cameras = {}
    for name in ("front", "wrist"):
        if not (folder / f"{name}.bin").exists():
            (folder / f"{name}.bin").write_bytes(name.encode())
            os.utime(folder / f"{name}.bin", (10**9, 10**9))
        cameras[name] = Noise(folder, name, count, shape)
    episodes = rbc.Episodes(tracks).with_cameras(cameras, cache=cache)
    return episodes.select(np.tile(np.arange(count), repeat))


def spec_of(crop, augment):
    options = {"size": 224, "crop": crop, "augment": augment, "normalize": "imagenet"}
    windows = {"state": [0], "action": range(50)}
    for name in ("front", "wrist"):
        windows[name] = rbc.Window([0], images=rbc.Images(name, **options))
    return rbc.WindowSpec(windows)


def rate_of(loader, seconds, use=None):
    """Return samples per second."""
    wait = torch.cuda.synchronize if torch.cuda.is_available() else (lambda: None)
    count, begin = 0, None
    while True:
        for number, batch in enumerate(loader):
            if use is not None:
                use(batch)
            if begin is None and number == 3:
                wait()
                begin = time.perf_counter()
            elif begin is not None:
                count += len(batch)
                if count % 8 == 0 and time.perf_counter() - begin > seconds:
                    wait()
                    return count / (time.perf_counter() - begin)


def copy_rate(size, device):
    """Return the bytes per second of a pinned copy of the frames of a batch."""
    host = torch.empty(size, dtype=torch.uint8, pin_memory=True)
    there = torch.empty(size, dtype=torch.uint8, device=device)
    for count in (3, 20):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(count):
            there.copy_(host, non_blocking=True)
        torch.cuda.synchronize()
    return count * size / (time.perf_counter() - begin)


def trainer(device):
    """Return a small training step, and the seconds that it takes without a loader."""
    net = torch.nn.Sequential(
        torch.nn.Conv2d(3, 128, 8, 4), torch.nn.ReLU(), torch.nn.Conv2d(128, 512, 4, 2),
        torch.nn.ReLU(), torch.nn.Conv2d(512, 512, 3), torch.nn.ReLU(),
        torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(512, 50 * CHANNELS),
    ).to(device, torch.bfloat16)  # fmt: skip
    optimizer = torch.optim.AdamW(net.parameters(), 1e-4)

    def step(batch):
        loss = 0
        for name in ("front", "wrist"):
            out = net(batch[name][:, 0].to(torch.bfloat16))
            loss = loss + (out.view(len(out), 50, CHANNELS) - batch["action"]).abs().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return step


def shown(case, **facts):
    rounded = {n: round(v, 4) if isinstance(v, float) else v for n, v in facts.items()}
    print(json.dumps({"case": case, **rounded}), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--frames", type=int, default=2000)
    parser.add_argument("--repeat", type=int, default=20, help="how often an epoch has a sample")
    parser.add_argument("--size", default="480x640", help="height x width")
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=4)
    parser.add_argument("--ranks", default="", help="numbers of processes, such as 1,2,4,8")
    arguments = parser.parse_args()
    if arguments.threads:
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: arguments.threads])
        torch.set_num_threads(arguments.threads)
    folder = Path(tempfile.mkdtemp(dir=arguments.folder))
    shape = (*map(int, arguments.size.split("x")), 3)
    try:
        cases(folder, shape, arguments)
        for count in filter(None, arguments.ranks.split(",")):
            ranks(folder, shape, arguments, int(count))
    finally:
        shutil.rmtree(folder)


def ranks(folder, shape, arguments, count):
    """Measure processes with one core each that share the stored frames."""
    context = multiprocessing.get_context("spawn")
    cores = sorted(os.sched_getaffinity(0))
    if count > len(cores):
        return
    for case, crop in (("full, crop 0.95", 0.95), ("224 x 224", None)):
        with context.Pool(count) as pool:
            options = (str(folder), arguments.frames, shape, crop, arguments.batch, count)
            tasks = [
                pool.apply_async(rank, (*options, i, cores[i], arguments.seconds))
                for i in range(count)
            ]
            found = [task.get() for task in tasks]
        rates, memory = zip(*found)
        shown(case, device="cpu", ranks=count, samples_per_s=sum(rates), pss_bytes=sum(memory))


def rank(folder, frames, shape, crop, batch, count, number, core, seconds):
    """Return the samples per second of one process, and its memory, shared parts divided."""
    os.sched_setaffinity(0, [core])
    torch.set_num_threads(1)
    cache = rbc.Cache(Path(folder) / "cache", require=True)
    episodes = episodes_of(Path(folder), frames, shape, cache, 20)
    spec = spec_of(crop, None)
    loader = rbc.torch.WindowLoader(episodes, spec, batch, rank=number, world_size=count)
    rate = rate_of(loader, seconds)
    with open("/proc/self/smaps_rollup") as file:
        memory = sum(int(line.split()[1]) for line in file if line.startswith("Pss:"))
    return rate, memory * 1024


def cases(folder, shape, arguments):
    cache = rbc.Cache(folder / "cache", require=True)
    episodes = episodes_of(folder, arguments.frames, shape, cache, arguments.repeat)
    color = rbc.ColorJitter(0.2, 0.2, 0.5)
    cores = len(os.sched_getaffinity(0))
    kinds = {
        "full, crop 0.95": spec_of(0.95, None),
        "full, crop 0.95, colours": spec_of(0.95, color),
        "224 x 224": spec_of(None, None),
        "224 x 224, colours": spec_of(None, color),
    }
    devices = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]
    for case, spec in kinds.items():
        for device in devices:
            for pin in [None] if device == "cpu" else [None, 0]:
                begin = time.perf_counter()
                loader = rbc.torch.WindowLoader(
                    episodes, spec, arguments.batch, device=device, pin=pin
                )
                opened = time.perf_counter() - begin
                frame = int(np.prod(loader._batches._images._windows[0].reader.shape))
                facts = {"device": device, "cores": cores, "opened_s": opened}
                rate = rate_of(loader, arguments.seconds)
                facts.update(samples_per_s=rate, frames_gb_per_s=2 * rate * frame / 1e9)
                if device == "cuda":
                    copy = copy_rate(2 * arguments.batch * frame, device)
                    facts["way"] = "staged" if pin == 0 else "registered"
                    facts["part_of_a_pinned_copy"] = 2 * rate * frame / copy
                    step = trainer(device)
                    batch = next(iter(loader))
                    held = {n: batch[n].clone() for n in batch.values}
                    for count in (5, 50):
                        torch.cuda.synchronize()
                        begin = time.perf_counter()
                        for _ in range(count):
                            step(held)
                        torch.cuda.synchronize()
                    alone = count * arguments.batch / (time.perf_counter() - begin)
                    facts["training_alone_per_s"] = alone
                    trained = rate_of(loader, arguments.seconds, step)
                    facts.update(training_per_s=trained, busy=trained / alone)
                shown(case, **facts)


if __name__ == "__main__":
    main()
