"""Random training samples from disk: the store and other libraries, on one core.

    store_peers.py FOLDER [--frames 4000] [--seconds 3]

A sample has 50 rows of 14 float32 and 2 frames of 224 x 224 x 3 bytes; batches have 64 samples.
Every library writes the same arrays once, below FOLDER, uncompressed, in its usual form: a record
per frame, and the numbers in memory where it has no arrays. LeRobot compresses its frames. Then all
take turns, and a batch of each round is compared with the arrays. Libraries that are not installed
are skipped. Prints samples per second: the median of the rounds.
"""

import argparse
import io
import os
import statistics
import time
from pathlib import Path

import numpy as np

BATCH, ROWS, FRAMES, CHANNELS = 64, 50, 2, 14
SHAPE = (224, 224, 3)
SIZE = int(np.prod(SHAPE))


class Arrays:
    """The data in memory, and the batch that every library fills."""

    def __init__(self, count):
        random = np.random.default_rng(1)
        self.count = count
        self.states = random.standard_normal((count, CHANNELS), np.float32)
        self.frames = random.integers(0, 256, (count, *SHAPE), np.uint8)
        self.batch_states = np.empty((BATCH, ROWS, CHANNELS), np.float32)
        self.batch_frames = np.empty((BATCH, FRAMES, *SHAPE), np.uint8)

    def fill_states(self, anchors):
        for k, anchor in enumerate(anchors):
            self.batch_states[k] = self.states[anchor : anchor + ROWS]

    def require(self, anchors):
        for k, anchor in enumerate(anchors):
            assert np.array_equal(self.batch_states[k], self.states[anchor : anchor + ROWS])
            assert np.array_equal(self.batch_frames[k], self.frames[anchor : anchor + FRAMES])


class InMemory:
    """NumPy's copies from arrays in memory: what there is to lose."""

    name = "memory (NumPy)"

    def __init__(self, folder, data):
        self.data = data

    def fill(self, anchors):
        data = self.data
        for k, anchor in enumerate(anchors):
            data.batch_states[k] = data.states[anchor : anchor + ROWS]
            data.batch_frames[k] = data.frames[anchor : anchor + FRAMES]


class Store:
    name = "robocache"

    def __init__(self, folder, data):
        from robocache._cache.store import Store as Opened

        self.data = data
        store, key = Opened(str(folder / "store"), min_free_bytes=0), bytes([1] * 32)
        self.entry = store.find(key)
        if self.entry is None:
            arrays = {"state": data.states, "front": data.frames}
            with store.lock(key, 0, episodes=1, rows=data.count) as writer:
                for name, array in arrays.items():
                    writer.add(name, array.dtype, array.shape)
                for name, array in arrays.items():
                    writer.write_array(name, array)
                writer.publish()
            store.publish(key, 1, np.array([0, data.count]), "{}")
            self.entry = store.find(key)
        self.rows, self.pair = np.arange(ROWS), np.arange(FRAMES)

    def fill(self, anchors):
        data = self.data
        first = np.asarray(anchors)[:, None]
        states = data.batch_states.reshape(-1, CHANNELS)
        frames = data.batch_frames.reshape(-1, *SHAPE)
        self.entry.gather("state", (first + self.rows).ravel(), states)
        self.entry.gather("front", (first + self.pair).ravel(), frames)


class Lmdb:
    name = "LMDB"

    def __init__(self, folder, data):
        import lmdb

        self.data = data
        path = folder / "lmdb"
        new = not path.exists()
        self.file = lmdb.open(str(path), map_size=1 << 40, readahead=False)
        if new:
            for begin in range(0, data.count, 500):
                with self.file.begin(write=True) as change:
                    for i in range(begin, min(begin + 500, data.count)):
                        change.put(b"%09d" % i, data.frames[i].tobytes())
        self.view = self.file.begin(buffers=True)

    def fill(self, anchors):
        data = self.data
        for k, anchor in enumerate(anchors):
            data.batch_states[k] = data.states[anchor : anchor + ROWS]
            for j in range(FRAMES):
                frame = self.view.get(b"%09d" % (anchor + j))
                data.batch_frames[k, j] = np.frombuffer(frame, np.uint8).reshape(SHAPE)


class Arrow:
    name = "Arrow IPC, mapped"

    def __init__(self, folder, data):
        import pyarrow as pa

        self.data = data
        path = folder / "frames.arrow"
        if not path.exists():
            column = pa.FixedSizeBinaryArray.from_buffers(
                pa.binary(SIZE), data.count, [None, pa.py_buffer(data.frames)]
            )
            table = pa.table({"frame": column})
            with pa.OSFile(str(path), "wb") as sink:
                with pa.ipc.new_file(sink, table.schema) as writer:
                    writer.write_table(table)
        table = pa.ipc.open_file(pa.memory_map(str(path))).read_all()
        buffer = table["frame"].chunk(0).buffers()[1]
        self.frames = np.frombuffer(buffer, np.uint8).reshape(-1, *SHAPE)

    def fill(self, anchors):
        data = self.data
        for k, anchor in enumerate(anchors):
            data.batch_states[k] = data.states[anchor : anchor + ROWS]
            data.batch_frames[k] = self.frames[anchor : anchor + FRAMES]


class Hdf5:
    name = "HDF5 (h5py)"

    def __init__(self, folder, data):
        import h5py

        self.data = data
        path = folder / "data.h5"
        if not path.exists():
            with h5py.File(path, "w") as file:
                file["state"], file["front"] = data.states, data.frames
        self.file = h5py.File(path)
        self.states, self.frames = self.file["state"], self.file["front"]

    def fill(self, anchors):
        data = self.data
        for k, anchor in enumerate(anchors):
            self.states.read_direct(data.batch_states, np.s_[anchor : anchor + ROWS], np.s_[k])
            self.frames.read_direct(data.batch_frames, np.s_[anchor : anchor + FRAMES], np.s_[k])


class Zarr:
    name = "Zarr, a chunk per frame"

    def __init__(self, folder, data):
        import zarr

        self.data = data
        path = folder / "data.zarr"
        if not path.exists():
            array = zarr.create_array(
                store=str(path),
                shape=data.frames.shape,
                chunks=(1, *SHAPE),
                dtype="uint8",
                compressors=None,
            )
            array[:] = data.frames
        self.frames = zarr.open_array(str(path), mode="r")

    def fill(self, anchors):
        data = self.data
        for k, anchor in enumerate(anchors):
            data.batch_states[k] = data.states[anchor : anchor + ROWS]
            data.batch_frames[k] = self.frames[anchor : anchor + FRAMES]


class Lance:
    name = "Lance"

    def __init__(self, folder, data):
        import lance
        import pyarrow as pa

        self.data = data
        path = folder / "frames.lance"
        if not path.exists():
            column = pa.FixedSizeBinaryArray.from_buffers(
                pa.binary(SIZE), data.count, [None, pa.py_buffer(data.frames)]
            )
            lance.write_dataset(pa.table({"frame": column}), str(path))
        self.dataset = lance.dataset(str(path))

    def fill(self, anchors):
        data = self.data
        rows = (np.asarray(anchors)[:, None] + np.arange(FRAMES)).ravel()
        # Lance returns rows in the order of the request.
        table = self.dataset.take(rows.tolist(), columns=["frame"])
        frames = data.batch_frames.reshape(-1, *SHAPE)
        begin = 0
        for chunk in table["frame"].chunks:
            values = np.frombuffer(chunk.buffers()[1], np.uint8).reshape(-1, *SHAPE)
            values = values[chunk.offset : chunk.offset + len(chunk)]
            frames[begin : begin + len(chunk)] = values
            begin += len(chunk)
        data.fill_states(anchors)


class Mds:
    name = "MDS (mosaicml-streaming)"

    def __init__(self, folder, data):
        from streaming import LocalDataset, MDSWriter

        self.data = data
        path = folder / "mds"
        if not path.exists():
            columns = {"frame": "bytes"}
            with MDSWriter(out=str(path), columns=columns, size_limit=1 << 28) as writer:
                for frame in data.frames:
                    writer.write({"frame": frame.tobytes()})
        self.dataset = LocalDataset(str(path))

    def fill(self, anchors):
        data = self.data
        for k, anchor in enumerate(anchors):
            data.batch_states[k] = data.states[anchor : anchor + ROWS]
            for j in range(FRAMES):
                frame = self.dataset[int(anchor + j)]["frame"]
                data.batch_frames[k, j] = np.frombuffer(frame, np.uint8).reshape(SHAPE)


class WebDataset:
    """Only in order: a tar file has no index. A sample is read with its 2 frames."""

    name = "WebDataset, in order"
    in_order = True

    def __init__(self, folder, data):
        import webdataset

        self.data = data
        path = folder / "samples.tar"
        if not path.exists():
            with webdataset.TarWriter(str(path)) as writer:
                for anchor in range(0, data.count - ROWS, FRAMES):
                    sample = {
                        "__key__": f"{anchor:09d}",
                        "state.bin": data.states[anchor : anchor + ROWS].tobytes(),
                        "frames.bin": data.frames[anchor : anchor + FRAMES].tobytes(),
                    }
                    writer.write(sample)
        self.dataset = webdataset.WebDataset(str(path), shardshuffle=False)
        self.samples = iter(self.dataset)

    def fill(self, anchors):
        data = self.data
        for k in range(BATCH):
            sample = next(self.samples, None)
            if sample is None:
                self.samples = iter(self.dataset)
                sample = next(self.samples)
            anchors[k] = int(sample["__key__"])
            states = np.frombuffer(sample["state.bin"], np.float32)
            data.batch_states[k] = states.reshape(ROWS, CHANNELS)
            frames = np.frombuffer(sample["frames.bin"], np.uint8)
            data.batch_frames[k] = frames.reshape(FRAMES, *SHAPE)


class HuggingFace:
    name = "Hugging Face datasets"

    def __init__(self, folder, data):
        import datasets

        self.data = data
        path = folder / "datasets"
        if not path.exists():
            array = datasets.Array3D(shape=SHAPE, dtype="uint8")
            written = datasets.Dataset.from_generator(
                lambda: ({"frame": frame} for frame in data.frames),
                features=datasets.Features({"frame": array}),
                cache_dir=str(folder / "datasets.tmp"),
            )
            written.save_to_disk(str(path))
        self.dataset = datasets.load_from_disk(str(path)).with_format("numpy")

    def fill(self, anchors):
        data = self.data
        rows = (np.asarray(anchors)[:, None] + np.arange(FRAMES)).ravel()
        data.batch_frames.reshape(-1, *SHAPE)[:] = self.dataset[rows.tolist()]["frame"]
        data.fill_states(anchors)


class LeRobot:
    """Frames as PNG, which loses nothing; samples are tensors, with frames of float32."""

    name = "LeRobot, PNG"

    def __init__(self, folder, data):
        from lerobot.datasets.lerobot_dataset import LeRobotDataset

        self.data = data
        path, fps = folder / "lerobot", 30
        if not path.exists():
            features = {
                "state": {"dtype": "float32", "shape": (CHANNELS,), "names": None},
                "front": {
                    "dtype": "image",
                    "shape": SHAPE,
                    "names": ["height", "width", "channels"],
                },
            }
            written = LeRobotDataset.create("peer", fps, features, path, use_videos=False)
            for state, frame in zip(data.states, data.frames):
                written.add_frame({"state": state, "front": frame, "task": "none"})
            written.save_episode()
            written.finalize()
        steps = {
            "state": [i / fps for i in range(ROWS)],
            "front": [i / fps for i in range(FRAMES)],
        }
        self.dataset = LeRobotDataset("peer", path, delta_timestamps=steps)

    def fill(self, anchors):
        self.samples = [self.dataset[int(anchor)] for anchor in anchors]

    def finish(self):
        for k, sample in enumerate(self.samples):
            self.data.batch_states[k] = sample["state"].numpy()
            frames = (sample["front"] * 255).round().permute(0, 2, 3, 1)
            self.data.batch_frames[k] = frames.numpy()


def opened(folder, data):
    """Return the libraries that are installed, with their files written."""
    found = []
    libraries = (InMemory, Store, Lmdb, Arrow, Hdf5, Zarr, Lance, Mds, WebDataset)
    for library in (*libraries, HuggingFace, LeRobot):
        try:
            found.append(library(folder, data))
        except ImportError as error:
            print(f"{library.name}: skipped: {error}")
    return found


def measure(libraries, data, seconds, rounds=5):
    random = np.random.default_rng(2)
    rates = {library.name: [] for library in libraries}
    for number in range(rounds + 1):
        for library in libraries:
            batches, spent = 0, 0.0
            while spent < seconds / rounds:
                anchors = random.integers(0, data.count - ROWS, BATCH)
                begin = time.perf_counter()
                library.fill(anchors)
                spent += time.perf_counter() - begin
                batches += 1
            if hasattr(library, "finish"):
                library.finish()
            data.require(anchors)
            if number > 0:  # the first round reads the files into the page cache
                rates[library.name].append(batches * BATCH / spent)
    return {name: statistics.median(values) for name, values in rates.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--frames", type=int, default=4000)
    parser.add_argument("--seconds", type=float, default=3)
    options = parser.parse_args()
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    options.folder.mkdir(parents=True, exist_ok=True)
    data = Arrays(options.frames)
    results = measure(opened(options.folder, data), data, options.seconds)
    table = io.StringIO()
    for name, rate in sorted(results.items(), key=lambda item: -item[1]):
        table.write(f"{name:28} {rate:10,.0f} samples/s {rate / results['robocache']:6.2f}\n")
    print(table.getvalue(), end="")


if __name__ == "__main__":
    main()
