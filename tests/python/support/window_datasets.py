"""Batches of a WindowDataset, compared with WindowLoader sample by sample."""

from __future__ import annotations

import hashlib

import robocache as rbc
from camera_sources import LENGTHS, file_source, states

SEED = 3
IMAGES = rbc.Images(
    "front", (8, 10), crop=0.8, flip=0.5, augment=rbc.ColorJitter(0.3, 0.2, 0.2), dtype="float32"
)
SPEC = rbc.WindowSpec({
    "state": [-1, 0],
    "front": rbc.Window([-1, 0, 9], images=IMAGES, outside="fill"),
    "now": rbc.Window([0], images=IMAGES),
    "hidden": rbc.Window([0], track="state", output=False),
})  # fmt: skip
COUNT = sum(LENGTHS)


def episodes(folder):
    path = folder / "frames.bin"
    return states().with_cameras({"front": file_source(path)})


def dataset(folder, source_episodes=None, spec=SPEC, **options):
    source_episodes = episodes(folder) if source_episodes is None else source_episodes
    return rbc.torch.WindowDataset(source_episodes, spec, **{"seed": SEED, **options})


def digests(batches):
    """Return what each sample has, as a digest, in the order of the samples."""
    return [
        (
            (int(batch["episode"][i]), int(batch["anchor"][i])),
            digest({name: tensor[i] for name, tensor in batch.items()}),
        )
        for batch in batches
        for i in range(len(batch["episode"]))
    ]


def digest(sample):
    content = hashlib.blake2b(digest_size=16)
    for name in sorted(sample):
        tensor = sample[name].contiguous()
        content.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        content.update(tensor.numpy().tobytes())
    return content.hexdigest()


def as_dict(batch):
    """Return a batch of WindowLoader with the names of WindowDataset."""
    parts = {"episode": batch.episodes, "anchor": batch.anchors}
    for name, values in batch.values.items():
        parts[name], parts[f"{name}_is_valid"] = values, batch.valid[name]
    return parts


def expected(source_episodes, spec=SPEC, epochs=1, **options):
    """Return the digest of each sample of WindowLoader, by epoch: a dict by episode and anchor."""
    loader = rbc.torch.WindowLoader(source_episodes, spec, 4, SEED, **options)
    return [dict(digests(map(as_dict, loader))) for _ in range(epochs)]
