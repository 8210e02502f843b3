"""Measure how fast camera frames become training images, compared with other libraries.

    python benchmarks/images_peers.py [--frames N] [--cores N]

Frames of 480 x 640 become 224 x 224 by a bilinear filter with antialiasing, normalized, with
channels first: f32 on the CPU and bf16 on CUDA. Peers alternate; the table has the median time of
an image, and the values that differ from RoboCache's, before normalization, by the rule of that
library. Libraries that are not installed are skipped.
"""

from __future__ import annotations

import argparse
import importlib
import os
import statistics
import time
from types import ModuleType
from typing import Any, Callable, NamedTuple

import numpy as np

import robocache as rbc

HEIGHT, WIDTH, SIZE, ROUNDS = 480, 640, 224, 7
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
Calls = list[tuple[str, Callable[[], Any]]]


class Peer(NamedTuple):
    name: str
    rule: str | None  # whose bits it has; None: unknown
    resize: Callable[[], Any]  # bytes [n,h,w,3], to be compared
    call: Callable[[], Any]  # everything


def installed(name: str) -> ModuleType | None:
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


def normalized(images: Any) -> Any:
    values = (images.astype(np.float32) / 255 - np.float32(MEAN)) / np.float32(STD)
    return np.ascontiguousarray(values.transpose(0, 3, 1, 2))


def cpu_peers(frames: Any) -> list[Peer]:
    peers = []
    if pillow := installed("PIL.Image"):

        def by_pillow() -> Any:
            bilinear = pillow.Resampling.BILINEAR
            return np.stack(
                [np.asarray(pillow.fromarray(f).resize((SIZE, SIZE), bilinear)) for f in frames]
            )

        version = installed("PIL").__version__  # type: ignore[union-attr]
        number = tuple(int(part) for part in version.split(".")[:2])
        rule = "pillow_13" if number >= (13, 0) else "pillow_12" if number >= (12, 2) else "pillow"
        peers.append(Peer(f"Pillow {version}", rule, by_pillow, lambda: normalized(by_pillow())))
    if cv2 := installed("cv2"):

        def by_opencv() -> Any:
            size = (SIZE, SIZE)
            return np.stack([cv2.resize(f, size, interpolation=cv2.INTER_AREA) for f in frames])

        peers.append(
            Peer(
                f"OpenCV {cv2.__version__}, area",
                "opencv",
                by_opencv,
                lambda: normalized(by_opencv()),
            )
        )
    if torch := installed("torch"):
        images = torch.from_numpy(frames).permute(0, 3, 1, 2)
        mean = torch.tensor(MEAN).view(3, 1, 1)
        std = torch.tensor(STD).view(3, 1, 1)

        def by_torch() -> Any:
            return torch.nn.functional.interpolate(
                images, (SIZE, SIZE), mode="bilinear", antialias=True
            )

        peers.append(
            Peer(
                f"torch {torch.__version__}, as torchvision",
                "torchvision",
                lambda: by_torch().permute(0, 2, 3, 1).numpy(),
                lambda: (by_torch().float() / 255 - mean) / std,
            )
        )
    return peers


def ours(frames: Any, rule: str, **options: Any) -> Callable[[], Any]:
    filter_ = "area" if rule == "opencv" else "bilinear"
    return lambda: rbc.images(frames, SIZE, rule=rule, filter=filter_, **options)


def medians(calls: Calls, wait: Callable[[], Any]) -> dict[str, float]:
    seconds: dict[str, list[float]] = {name: [] for name, _ in calls}
    for _ in range(ROUNDS):
        for name, call in calls:
            wait()
            begin = time.perf_counter()
            call()
            wait()
            seconds[name].append(time.perf_counter() - begin)
    return {name: statistics.median(values[1:]) for name, values in seconds.items()}


def print_table(times: dict[str, float], frames: int, notes: dict[str, str]) -> None:
    print("| | us per image | images/s | differing values |\n|---|---|---|---|")
    for name, seconds in times.items():
        image = seconds / frames
        print(f"| {name} | {image * 1e6:.1f} | {1 / image:,.0f} | {notes.get(name, '')} |")
    print()


def measure_cpu(frames: Any, cores: int) -> None:
    all_cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, sorted(all_cores)[:cores])  # before a library counts them
    table = rbc.normalization_table(mean=MEAN, std=STD)
    if torch := installed("torch"):
        torch.set_num_threads(cores)
    if cv2 := installed("cv2"):
        cv2.setNumThreads(cores)
    calls: Calls = []
    notes = {}
    for peer in cpu_peers(frames):
        if peer.rule is not None:
            name = f"robocache {peer.rule}"
            calls.append((name, ours(frames, peer.rule, table=table)))
            expected = ours(frames, peer.rule, dtype=np.uint8, layout="hwc")()
            notes[peer.name] = (
                f"{np.count_nonzero(peer.resize() != expected):,} of {expected.size:,}"
            )
        calls.append((peer.name, peer.call))
    print(f"{len(frames)} frames on {cores} core{'s' if cores > 1 else ''}, f32\n")
    print_table(medians(calls, lambda: None), len(frames), notes)
    os.sched_setaffinity(0, all_cores)


def measure_cuda(frames: Any) -> None:
    torch = installed("torch")
    if torch is None or not torch.cuda.is_available():
        print("CUDA is skipped: it needs torch and a GPU")
        return
    images = importlib.import_module("robocache.torch").images
    on_gpu = torch.from_numpy(frames).cuda()
    table = torch.from_numpy(rbc.normalization_table(mean=MEAN, std=STD)).cuda()
    mean = torch.tensor(MEAN, device="cuda").view(3, 1, 1)
    std = torch.tensor(STD, device="cuda").view(3, 1, 1)

    def eager(x: Any) -> Any:
        small = torch.nn.functional.interpolate(
            x.permute(0, 3, 1, 2).float(), (SIZE, SIZE), mode="bilinear", antialias=True
        )
        return ((small / 255 - mean) / std).to(torch.bfloat16)

    compiled = torch.compile(eager)
    calls = [
        ("robocache pillow", lambda: images(on_gpu, SIZE, table=table)),
        ("robocache torchvision", lambda: images(on_gpu, SIZE, rule="torchvision", table=table)),
        ("torch, eager", lambda: eager(on_gpu)),
    ]
    try:
        compiled(on_gpu)
        calls.append(("torch, compiled", lambda: compiled(on_gpu)))
    except Exception as error:  # the compiler needs tools that a machine may lack
        print(f"torch.compile is skipped: {str(error).splitlines()[0]}\n")
    if kornia := installed("kornia"):

        def by_kornia() -> Any:
            x = on_gpu.permute(0, 3, 1, 2).float() / 255
            small = kornia.geometry.transform.resize(x, (SIZE, SIZE), antialias=True)
            return kornia.enhance.normalize(small, mean.flatten(), std.flatten()).to(torch.bfloat16)

        calls.append((f"kornia {kornia.__version__}", by_kornia))
    print(f"{len(frames)} frames on {torch.cuda.get_device_name()}, bf16\n")
    print_table(medians(calls, torch.cuda.synchronize), len(frames), {})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--frames", type=int, default=32, help="on the CPU (default %(default)s)")
    parser.add_argument("--gpu-frames", type=int, default=320, help="(default %(default)s)")
    parser.add_argument("--cores", type=int, default=1, help="(default %(default)s)")
    arguments = parser.parse_args()
    random = np.random.default_rng(0)
    shape = (max(arguments.frames, arguments.gpu_frames), HEIGHT, WIDTH, 3)
    frames = random.integers(0, 256, shape, np.uint8)
    measure_cpu(frames[: arguments.frames], arguments.cores)
    measure_cuda(frames[: arguments.gpu_frames])


if __name__ == "__main__":
    main()
