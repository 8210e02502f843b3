"""SQLite bags with logs are read as by SQLite, never changed, and losses are reported."""

from __future__ import annotations

import os
import re
import signal
import sqlite3
import struct
import subprocess
import sys
import time
from contextlib import closing

import numpy as np
import pytest

import sqlite_recorder
import sqlite_states
import warm_python
from robocache import data
from robocache.data._formats.bags import sqlite_copies, sqlite_files
from sqlite_states import BATCH, BATCHES, add, connected, edited, flipped, unchanged

pytest.importorskip("rosbags")

FRAME = 24 + 1024
JOURNAL_MAGIC = bytes.fromhex("d9d505f920a163d7")  # pragma: allowlist secret


@pytest.fixture(autouse=True)
def temporary(tmp_path_factory, monkeypatch):
    """Check that no test leaves a temporary copy."""
    folder = tmp_path_factory.mktemp("temporary")
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    yield folder
    assert list(folder.iterdir()) == []


def load(path, damaged="refuse"):
    with unchanged(path.parent):
        return data.open(path, damaged=damaged).load()


def check_prefix(stream, count):
    assert len(stream) == count
    values = np.arange(1, count + 1)
    assert (stream.log_times == values * sqlite_recorder.STEP).all()
    assert count == 0 or (stream.values[:, 0] == values).all()


def refused(path, match):
    with unchanged(path.parent), pytest.raises(data.FormatError, match=match) as caught:
        data.open(path).load()
    return caught.value


def check_damaged(path, match, kept):
    """Check that it is refused; with ``keep``, it has a problem and some messages are read."""
    assert "damaged='keep'" in str(refused(path, match))
    recording = load(path, "keep")
    assert any(re.search(match, str(problem)) for problem in recording.problems)
    check_prefix(recording["/a"], kept)
    return recording


# ---- write-ahead logs ----------------------------------------------------------------------------


@pytest.mark.parametrize("page", [512, 4096, 65536])
@pytest.mark.parametrize("unfinished", [0, 2000])
def test_a_log(tmp_path, page, unfinished):
    path = sqlite_states.logged(tmp_path, unfinished=unfinished, page=page)
    recording = load(path)
    check_prefix(recording["/a"], BATCH * BATCHES)
    texts = [str(problem) for problem in recording.problems]
    assert all(re.search("was not committed", text) for text in texts)
    assert len(texts) == (unfinished > 0 and page < 65536)  # its cache holds such a transaction
    times, values = sqlite_states.by_sqlite(path, tmp_path / "own")
    assert times == recording["/a"].log_times.tolist()
    assert values == recording["/a"].values[:, 0].tolist()


def test_a_log_of_a_machine_of_the_other_byte_order(tmp_path):
    path = sqlite_states.logged(tmp_path, batches=2)
    log = path.with_name("bag.db3-wal")
    content = bytearray(log.read_bytes())
    (magic,) = struct.unpack_from(">I", content)
    struct.pack_into(">I", content, 0, magic ^ 1)
    order = ">" if (magic ^ 1) & 1 else "<"

    def checksum(a, b, raw):
        for x, y in struct.iter_unpack(f"{order}2I", bytes(raw)):
            a = (a + x + b) % 2**32
            b = (b + y + a) % 2**32
        return a, b

    sums = checksum(0, 0, content[:24])
    struct.pack_into(">2I", content, 24, *sums)
    for at in range(32, len(content), FRAME):
        sums = checksum(*sums, content[at : at + 8] + content[at + 24 : at + FRAME])
        struct.pack_into(">2I", content, at + 16, *sums)
    log.write_bytes(content)
    check_prefix(load(path)["/a"], 2 * BATCH)
    assert len(sqlite_states.by_sqlite(path, tmp_path / "own")[0]) == 2 * BATCH


def frames_of(path):
    content = path.with_name("bag.db3-wal").read_bytes()
    heads = [struct.unpack_from(">6I", content, at) for at in range(32, len(content), FRAME)]
    return heads, [i for i, head in enumerate(heads) if head[1]]


@pytest.mark.parametrize("with_index", [False, True])
@pytest.mark.parametrize("byte", [0, 5, 9, 17, 25])
def test_a_damaged_header_of_a_log(tmp_path, byte, with_index):
    path = sqlite_states.logged(tmp_path)
    if with_index:  # as a crash leaves it
        path.with_name("bag.db3-shm").write_bytes(bytes(32768))
    log = path.with_name("bag.db3-wal")
    flipped(log, byte)
    match = rf"bag.db3-wal: .*none of its {log.stat().st_size:,} bytes can be read"
    check_damaged(path, match, 0)


@pytest.mark.parametrize("byte", [2, 6, 9, 13, 17, 700])
@pytest.mark.parametrize("frame", ["first", "middle", "last"])
def test_a_damaged_frame(tmp_path, frame, byte):
    path = sqlite_states.logged(tmp_path)
    heads, commits = frames_of(path)
    number = {"first": 0, "middle": commits[1] + 2, "last": len(heads) - 1}[frame]
    if byte == 6 and frame == "last":
        edited(path.with_name("bag.db3-wal"), 32 + number * FRAME + 4, b"\0\0\1\0")
    else:
        flipped(path.with_name("bag.db3-wal"), 32 + number * FRAME + byte)
    lost = len(heads) - number
    match = rf"bag.db3-wal: {lost} of its {len(heads)} frames, from frame {number + 1} on"
    kept = sum(commit < number for commit in commits)
    check_damaged(path, match, kept * BATCH)


@pytest.mark.parametrize(
    "size", [1, 31, 32, 33, 100, 32 + FRAME // 2, 32 + 7 * FRAME + 30, -1, -FRAME]
)
def test_a_log_that_is_cut_off(tmp_path, size):
    path = sqlite_states.logged(tmp_path)
    log = path.with_name("bag.db3-wal")
    heads, commits = frames_of(path)
    content = log.read_bytes()[:size]
    log.write_bytes(content)
    frames = max(0, len(content) - 32) // FRAME
    kept = sum(commit < frames for commit in commits) * BATCH
    if size == -FRAME:  # whole frames, of a transaction that is not committed: it may have been
        (problem,) = load(path).problems
        assert "not committed" in problem.text
        check_prefix(load(path)["/a"], kept)
    else:
        check_damaged(path, "bag.db3-wal: .*(truncated|no frames)", kept)


def test_a_log_of_another_database(tmp_path):
    path = sqlite_states.logged(tmp_path)
    log = path.with_name("bag.db3-wal")
    (tmp_path / "other").mkdir()
    other = sqlite_states.logged(tmp_path / "other", batches=1)
    header = other.with_name("bag.db3-wal").read_bytes()[:32]
    edited(log, 0, header)  # valid, but with other salts
    count = len(frames_of(path)[0])
    check_damaged(path, f"{count} of its {count} frames, .*do not have the salts", 0)
    (tmp_path / "large").mkdir()
    large = sqlite_states.logged(tmp_path / "large", batches=1, page=4096)
    log.write_bytes(large.with_name("bag.db3-wal").read_bytes())
    check_damaged(path, "has pages of 4096 bytes, but its database has pages of 1024", 0)


def test_frames_that_a_file_system_lost(tmp_path):
    path = sqlite_states.logged(tmp_path)
    heads, commits = frames_of(path)
    edited(path.with_name("bag.db3-wal"), 32 + (commits[2] + 1) * FRAME, bytes(3 * FRAME))
    lost = len(heads) - commits[2] - 1
    check_damaged(path, f"{lost} of its {len(heads)} frames, .*are damaged", 3 * BATCH)


@pytest.mark.parametrize("state", ["empty", "checkpointed", "begun anew", "rolled back"])
def test_a_log_without_damage(tmp_path, state):
    made = tmp_path / "made"
    made.mkdir()
    with closing(connected(made / "bag.db3", "WAL")) as database:
        sqlite_recorder.tables(database)
        add(database, 1, 1000)
        if state == "rolled back":
            database.execute("BEGIN")
            database.execute("UPDATE messages SET data = ?", [sqlite_recorder.message(-1)])
            database.execute("ROLLBACK")
        else:
            how = {"empty": "TRUNCATE", "checkpointed": "PASSIVE", "begun anew": "RESTART"}[state]
            database.execute(f"PRAGMA wal_checkpoint({how})")
        if state in ("begun anew", "rolled back"):
            add(database, 1001, 10)
        path = sqlite_states.copied(made / "bag.db3", tmp_path / "bag")
        with unchanged(made):  # while the recorder has it open, too
            check_prefix(
                data.open(made / "bag.db3").load()["/a"],
                1010 if "b" in state[:1] or "r" in state[:1] else 1000,
            )
    recording = load(path)
    check_prefix(recording["/a"], 1010 if state in ("begun anew", "rolled back") else 1000)
    assert (path.with_name("bag.db3-wal").stat().st_size == 0) == (state == "empty")
    assert [p for p in recording.problems if "was not committed" not in p.text] == []
    assert len(recording.problems) == (state == "rolled back")


# ---- journals ------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", [512, 65536])
@pytest.mark.parametrize("synchronous", ["FULL", "OFF"])
@pytest.mark.parametrize("mode", ["DELETE", "TRUNCATE", "PERSIST"])
def test_a_hot_journal(tmp_path, mode, synchronous, page):
    path = sqlite_states.journaled(tmp_path, mode, synchronous, page)
    recording = load(path)
    check_prefix(recording["/a"], BATCH * BATCHES)
    assert not recording.problems
    times, values = sqlite_states.by_sqlite(path, tmp_path / "own")
    assert (times, values) == (recording["/a"].log_times.tolist(),
                               recording["/a"].values[:, 0].tolist())  # fmt: skip


@pytest.mark.parametrize("mode", ["TRUNCATE", "PERSIST"])
def test_a_journal_of_a_transaction_that_ended(tmp_path, mode):
    with closing(connected(tmp_path / "bag.db3", mode)) as database:
        sqlite_recorder.tables(database)
        add(database, 1)
        assert (tmp_path / "bag.db3-journal").exists()
        check_prefix(load(tmp_path / "bag.db3")["/a"], BATCH)


@pytest.mark.parametrize(
    ("synchronous", "damage", "match"),
    [
        ("FULL", "byte 0", "has a damaged header"),
        ("FULL", "byte 7", "has a damaged header"),
        ("FULL", "byte 26", "has a damaged header"),
        ("FULL", "cut to 3", "is truncated"),
        ("FULL", "cut to 20", "is truncated"),
        ("FULL", "cut to 512", r"[\d,]+ of [\d,]+ records are truncated"),
        ("FULL", "cut in the last record 500", r"[\d,]+ of [\d,]+ records are truncated"),
        ("FULL", "byte 700", r"[\d,]+ of [\d,]+ records are truncated or damaged"),
        ("OFF", "byte 700", "a record at its byte"),
        ("OFF", "cut by 5", "is truncated within a record"),
        ("OFF", "cut to 3000", "is truncated within a record"),
    ],
)
def test_a_journal_that_cannot_take_back_its_transaction(tmp_path, synchronous, damage, match):
    path = sqlite_states.journaled(tmp_path, "DELETE", synchronous)
    journal = path.with_name("bag.db3-journal")
    content = journal.read_bytes()
    number = int(damage.split()[-1])
    if damage.startswith("byte"):  # the sum of a page covers only every 200th byte
        there = content[number : number + (1 if number < 30 else 250)]
        edited(journal, number, bytes(byte ^ 0x55 for byte in there))
    elif "last" in damage:
        begins = [found.start() for found in re.finditer(re.escape(content[:8]), content)]
        synced = [at for at in begins if content[at + 8 : at + 12] != bytes(4)]
        journal.write_bytes(content[: synced[-1] + 512 + number])
    else:
        journal.write_bytes(content[: number if " to " in damage else -number])
    refused(path, f"bag.db3-journal: .*{match}")
    try:
        recording = load(path, "keep")
    except data.FormatError as error:
        assert "malformed" in str(error)
    else:
        assert "bag.db3-journal" in str(recording.problems[0])


def test_a_journal_that_lacks_whole_parts(tmp_path):
    """It looks like a journal that ends there, but the rest of the file contradicts that."""
    path = sqlite_states.journaled(tmp_path)
    journal = path.with_name("bag.db3-journal")
    content = journal.read_bytes()
    begins = [found.start() for found in re.finditer(re.escape(content[:8]), content)]
    journal.write_bytes(content[: begins[len(begins) // 2]])
    refused(path, "bag.db3-journal: does not undo the whole transaction|malformed")


def test_a_journal_that_names_a_file(tmp_path):
    """SQLite deletes that file if the file names no journal, and it can be any file."""
    victim = tmp_path / "victim" / "thesis.txt"
    victim.parent.mkdir()
    victim.write_text("not a journal")
    path = sqlite_states.journaled(tmp_path)
    name = os.fsencode(victim)
    lock_page = (1 << 30) // 1024 + 1
    with path.with_name("bag.db3-journal").open("ab") as journal:
        journal.write(struct.pack(">I", lock_page) + name)
        journal.write(struct.pack(">2I", len(name), sum(name)) + JOURNAL_MAGIC)
    with unchanged(victim.parent):
        refused(path, "bag.db3-journal: names a super-journal")
        check_prefix(load(path, "keep")["/a"], BATCH * BATCHES)
    sqlite_states.by_sqlite(path, tmp_path / "own")
    assert not victim.exists()  # the danger is real


def test_a_transaction_without_a_journal_that_was_cut_off(tmp_path):
    path = sqlite_states.journaled(tmp_path, "MEMORY")
    assert not path.with_name("bag.db3-journal").exists()
    refused(path, "bytes more than its header counts: a transaction is incomplete")


# ---- recorders that are killed -------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["DELETE", "PERSIST", "TRUNCATE", "WAL"])
def test_a_recorder_that_is_killed(tmp_path, mode):
    """The bag is read as SQLite reads it, or it is refused."""
    right = 0
    for i in range(int(os.environ.get("ROBOCACHE_SQLITE_KILLS", "3"))):
        folder = tmp_path / str(i)
        folder.mkdir()
        command = [
            sys.executable,
            sqlite_recorder.__file__,
            folder / "bag.db3",
            mode,
            "1024",
            "NORMAL",
        ]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as recorder:
            recorder.stdout.readline()
            time.sleep(0.02 + 0.013 * (i % 20))
            recorder.send_signal(signal.SIGKILL)
        try:
            recording = load(folder / "bag.db3")
        except data.FormatError as error:
            assert "bag.db3-" in str(error), error
        else:
            times, _ = sqlite_states.by_sqlite(folder / "bag.db3", tmp_path / f"own {i}")
            check_prefix(recording["/a"], len(times))
            right += 1
    assert right


# ---- logs and metadata that are not files --------------------------------------------------------


@pytest.mark.parametrize("end", ["-wal", "-journal"])
@pytest.mark.parametrize("kind", ["pipe", "folder", "broken link"])
def test_logs_that_are_no_files(tmp_path, end, kind):
    folder = tmp_path / "bag"
    folder.mkdir()
    path = folder / "bag.db3"
    with closing(connected(path)) as database:
        sqlite_recorder.tables(database)
        add(database, 1)
    beside = folder / f"bag.db3{end}"
    if kind == "pipe":
        os.mkfifo(beside)
    elif kind == "folder":
        beside.mkdir()
    else:
        beside.symlink_to("nowhere")
    check_damaged(path, f"bag.db3{end}: is a {kind}", BATCH)


def test_an_index_of_a_log_that_is_a_pipe(tmp_path):
    path = sqlite_states.logged(tmp_path)
    os.mkfifo(path.with_name("bag.db3-shm"))
    check_prefix(load(path)["/a"], BATCH * BATCHES)


def test_links(tmp_path):
    """SQLite uses the logs in the folder of the link's target."""
    path = sqlite_states.logged(tmp_path)
    link = tmp_path / "links" / "x.db3"
    link.parent.mkdir()
    link.symlink_to(path)
    with unchanged(path.parent):
        check_prefix(load(link)["/a"], BATCH * BATCHES)
        link.with_name("x.db3-wal").symlink_to(path.with_name("bag.db3-wal"))
        check_prefix(load(link)["/a"], BATCH * BATCHES)
    path.with_name("bag.db3-wal").rename(tmp_path / "log")
    link.with_name("x.db3-wal").unlink()
    link.with_name("x.db3-wal").symlink_to(tmp_path / "log")
    check_damaged(link, "x.db3-wal: is in the folder of a link", 0)


def test_names_with_all_kinds_of_letters(tmp_path):
    path = sqlite_states.logged(tmp_path)
    name = os.fsdecode(b"a b?c#d%25 \xff\xe4.db3")
    for end in ("", "-wal"):
        os.rename(f"{path}{end}", f"{path.parent}/{name}{end}")
    check_prefix(load(path.parent / name)["/a"], BATCH * BATCHES)


@pytest.mark.parametrize("kind", ["pipe", "folder", "broken link"])
def test_metadata_that_is_no_file(tmp_path, kind):
    path = sqlite_states.logged(tmp_path)
    metadata = path.parent / "metadata.yaml"
    if kind == "pipe":
        os.mkfifo(metadata)
    elif kind == "folder":
        metadata.mkdir()
    else:
        metadata.symlink_to("nowhere")
    with unchanged(path.parent):
        with pytest.raises(data.FormatError, match=f"metadata.yaml: is a {kind}"):
            data.open(path.parent)
        check_prefix(data.open(path.parent, damaged="keep").load()["/a"], BATCH * BATCHES)


def test_a_part_of_a_bag_that_is_a_pipe(tmp_path):
    path = sqlite_states.logged(tmp_path)
    os.mkfifo(path.parent / "bag_1.db3")
    with unchanged(path.parent):
        with pytest.raises(data.FormatError, match="bag_1.db3: is a pipe, expected a regular file"):
            data.open(path.parent)
        check_prefix(data.open(path.parent, damaged="keep").load()["/a"], BATCH * BATCHES)


@pytest.mark.skipif(os.getuid() != 0, reason="needs another user")
@pytest.mark.parametrize("state", ["log", "log and index", "journal", "neither"])
def test_a_folder_that_cannot_be_written(tmp_path, state):
    """Another user reads it, without the right to write."""
    if state == "journal":
        path = sqlite_states.journaled(tmp_path)
    else:
        path = sqlite_states.logged(tmp_path)
    if state == "log and index":
        path.with_name("bag.db3-shm").write_bytes(bytes(32768))
    if state == "neither":
        with closing(sqlite3.connect(path)) as database:
            database.execute("PRAGMA wal_checkpoint")  # its header still says that it has a log
        assert not path.with_name("bag.db3-wal").exists()
    code = f"""
import os, shutil, tempfile
from robocache import data
from sqlite_states import listed
data.open({str(path)!r}).load()
public = tempfile.mkdtemp()
shutil.copytree({str(path.parent)!r}, public + "/bag")
os.chmod(public, 0o777)
os.chdir(public + "/bag")
for name in os.listdir("."):
    os.chmod(name, 0o444)
os.chmod(".", 0o555)
before = listed(".")
os.seteuid(65534)
tempfile.tempdir = public
assert not os.access(".", os.W_OK, effective_ids=True)
print(len(data.open("bag.db3").load()["/a"]))
assert listed(".") == before and os.listdir("..") == ["bag"]
os.seteuid(0)
shutil.rmtree(public)
"""
    done = warm_python.run(code, imported=warm_python.LIBRARY)
    assert done == (0, f"{BATCH * BATCHES}\n".encode(), b"")


# ---- what is short, and what stops a reader ------------------------------------------------------


@pytest.mark.parametrize(
    ("limit", "error"),
    [("RLIMIT_FSIZE, (20000, 20000)", "EFBIG"), ("RLIMIT_NOFILE, (4, 4)", "EMFILE")],
)
def test_a_copy_that_does_not_fit(tmp_path, limit, error):
    path = sqlite_states.logged(tmp_path)
    code = f"""
import errno, resource, sys
from robocache import data
data.open({str(path)!r}, damaged="keep").load()
resource.setrlimit(resource.{limit})
try:
    data.open({str(path)!r}, damaged="keep").load()
except OSError as error:
    assert error.errno == errno.{error} and {str(path)!r} in str(error), error
    print("named")
"""
    with unchanged(path.parent):
        done = warm_python.run(code, imported=warm_python.LIBRARY)
    assert done == (0, b"named\n", b"")


def test_a_disk_that_is_full(tmp_path, monkeypatch):
    path = sqlite_states.logged(tmp_path)

    found = os.statvfs("/")

    def full(_):
        return os.statvfs_result((*found[:4], 0, *found[5:]))

    monkeypatch.setattr(sqlite_copies, "IN_MEMORY", 0)
    monkeypatch.setattr(sqlite_copies.os, "statvfs", full)
    with unchanged(path.parent), pytest.raises(OSError, match="No space left.*bag.db3"):
        data.open(path, damaged="keep")


def test_a_reader_that_is_interrupted(tmp_path, monkeypatch):
    path = sqlite_states.logged(tmp_path)

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(sqlite_files, "read_log", interrupted)
    with unchanged(path.parent), pytest.raises(KeyboardInterrupt):
        data.open(path)


def test_a_lock_for_writing_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(sqlite_files, "WAIT", 0.1)
    path = tmp_path / "bag.db3"
    with closing(connected(path)) as database:
        sqlite_recorder.tables(database)
        add(database, 1)
    code = "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); c.execute('BEGIN EXCLUSIVE'); "
    code += "print('locked', flush=True); sys.stdin.read()"
    command = [sys.executable, "-c", code, path]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        other.stdout.readline()
        refused(path, "bag.db3: is being written: try again when the recorder has stopped")
        with unchanged(tmp_path), pytest.raises(data.FormatError, match="is being written"):
            data.open(path, damaged="keep")  # not damage: that would lose all of it
        other.stdin.close()
    check_prefix(load(path)["/a"], BATCH)


def test_a_database_that_is_written_while_it_is_read(tmp_path):
    path = tmp_path / "bag.db3"
    with closing(connected(path)) as database:
        sqlite_recorder.tables(database)
        add(database, 1)
        os.utime(path, ns=(0, 0))
        recording = data.open(path)
        add(database, 1 + BATCH)
        with pytest.raises(data.FormatError, match="was written while it was read"):
            recording.load()
        assert sqlite3.connect(path).execute("SELECT count(*) FROM messages").fetchone() == (200,)
        check_prefix(load(path)["/a"], 2 * BATCH)


def test_a_recorder_is_not_kept_from_writing(tmp_path):
    """An open recording holds no lock, even while it is read."""
    path = tmp_path / "bag.db3"
    with closing(connected(path)) as database:
        database.execute("PRAGMA busy_timeout=0")
        sqlite_recorder.tables(database)
        add(database, 1)
        recording = data.open(path)
        pieces = recording.pieces()
        next(pieces)
        add(database, 1 + BATCH)
        assert sum(len(piece.values) for piece in pieces) < 2 * BATCH
