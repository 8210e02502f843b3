"""Writers that are killed, forked, or share a path; links; leftover files."""

from __future__ import annotations

import errno
import os
import stat
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import robocache as rbc
from child_processes import environment
from robocache._files import atomic_write, workplace
from robocache._files.atomic_write import written_beside
from writers import WRITERS, put, put_folder, texts

OTHERS = int(os.environ.get("ROBOCACHE_WRITERS", "10"))


@pytest.fixture(params=WRITERS)
def write(request):
    return WRITERS[request.param]


def python(code, *arguments, **options):
    """Run code in a process that imports the writers of this file."""
    code = "import sys, writers\n" + textwrap.dedent(code)
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, arguments)],
        env=environment(),
        stdout=subprocess.PIPE,
        text=True,
        **options,
    )


# ---- links --------------------------------------------------------------------------------------


def test_a_link_to_a_file_stays(tmp_path, monkeypatch):
    (tmp_path / "disk").mkdir()
    (tmp_path / "disk" / "x.npz").write_text("old")
    (tmp_path / "between").symlink_to("disk/x.npz")
    (tmp_path / "link").symlink_to(tmp_path / "between")
    parts = []
    sync = atomic_write.sync_tree
    monkeypatch.setattr(atomic_write, "sync_tree", lambda part: (parts.append(part), sync(part)))
    episodes = rbc.data.Episodes({"a": rbc.Track(np.arange(6.0).reshape(3, 2), [0, 3])})
    with pytest.raises(FileExistsError, match="link: exists; overwrite=True"):
        episodes.save(tmp_path / "link", "npz")
    episodes.save(tmp_path / "link", "npz", overwrite=True)
    assert os.readlink(tmp_path / "between") == "disk/x.npz" and (tmp_path / "link").is_symlink()
    assert rbc.data.open(tmp_path / "disk" / "x.npz")["a"] == episodes["a"]
    # Both names must be on one file system, so that renaming is atomic.
    assert os.path.dirname(os.path.dirname(parts[0])) == str(tmp_path / "disk")
    assert sorted(os.listdir(tmp_path)) == ["between", "disk", "link"]
    assert os.listdir(tmp_path / "disk") == ["x.npz"]


def test_a_link_to_nothing_is_followed(tmp_path):
    (tmp_path / "link").symlink_to("missing")
    with pytest.raises(FileExistsError):
        put(tmp_path / "link", "new", overwrite=False)
    put(tmp_path / "link", "new")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "missing").read_text() == "new"
    (tmp_path / "far").symlink_to("no/folder")
    with pytest.raises(FileNotFoundError, match="far"):
        put(tmp_path / "far", "new")


def test_links_that_lead_nowhere_or_to_folders(tmp_path):
    (tmp_path / "one").symlink_to("other")
    (tmp_path / "other").symlink_to("one")
    with pytest.raises(OSError, match="one") as caught:
        put(tmp_path / "one", "new")
    assert caught.value.errno == errno.ELOOP
    put_folder(tmp_path / "set", "old")
    (tmp_path / "link").symlink_to("set")
    (tmp_path / "dangling").symlink_to("nothing")
    for write in WRITERS.values():
        with pytest.raises(FileExistsError, match="is a link to a folder"):
            write(tmp_path / "link", "new")
    with pytest.raises(FileExistsError, match="dangling: is a link, expected a path for a folder"):
        put_folder(tmp_path / "dangling", "new")
    assert sorted(os.listdir(tmp_path)) == ["dangling", "link", "one", "other", "set"]
    assert texts(tmp_path / "set") == ["old", "old"]


def test_a_folder_above_a_link_is_that_of_the_system(tmp_path):
    (tmp_path / "disk" / "sub").mkdir(parents=True)
    (tmp_path / "link").symlink_to("disk/sub")
    put(f"{tmp_path}/link/../x", "new")
    assert (tmp_path / "disk" / "x").read_text() == "new" and not (tmp_path / "x").exists()


def test_the_statistics_of_a_linked_file(tmp_path):
    (tmp_path / "stats.json").write_text("{}")
    (tmp_path / "link.json").symlink_to("stats.json")
    result = rbc.statistics(np.arange(6.0).reshape(3, 2))
    rbc.statistics_files.write_lerobot(tmp_path / "link.json", {"a": result})
    assert (tmp_path / "link.json").is_symlink()
    assert rbc.statistics_files.read_lerobot(tmp_path / "stats.json")


# ---- killed -------------------------------------------------------------------------------------

# A process per step: each dies before the n-th call that changes a folder, opens a file or syncs.
SWEEP = """
import os, pathlib, signal
kind, place, steps = sys.argv[1], pathlib.Path(sys.argv[2]), int(sys.argv[3])
EVENTS = {"open", "os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.link", "os.chmod",
          "os.listdir", "os.scandir", "fcntl.flock", "shutil.rmtree"}

def dies(left):
    def count(event, _):
        nonlocal left
        if event in EVENTS:
            left -= 1
            if left < 0:
                os.kill(os.getpid(), signal.SIGKILL)
    sys.addaudithook(count)
    fsync = os.fsync
    def counted(file):
        count("open", None)
        fsync(file)
    os.fsync = counted

def killed(left, path, text, overwrite=True):
    child = os.fork()
    if child == 0:
        try:
            dies(left)
            writers.WRITERS[kind](path, text, overwrite)
        finally:
            os._exit(0)
    return os.waitpid(child, 0)[1] != 0

def require(found, *expected):
    assert found in expected, (found, expected)

numbers, n = range(0, 10**6), 0
whole = 2 if kind == "folder" else 1
seen = set()
while True:
    path = place / f"x{n}"
    writers.WRITERS[kind](path, "old")
    if not killed(n, path, "new"):
        break
    if path.exists():
        seen.add(writers.texts(path)[0])
        require(writers.texts(path), ["old"] * whole, ["new"] * whole)
    else:
        seen.add("missing")
    again = 0
    while again < steps and killed(again, path, "never", overwrite=False):
        if path.exists():
            require(writers.texts(path), ["old"] * whole, ["new"] * whole)
        again += 1
    try:
        writers.WRITERS[kind](path, "never", overwrite=False)
        raise AssertionError("there was nothing")
    except FileExistsError:
        pass
    require(writers.texts(path), ["old"] * whole, ["new"] * whole)
    require(os.listdir(place), [f"x{n}"])
    writers.WRITERS[kind](path, "newest")
    require(writers.texts(path), ["newest"] * whole)
    require(os.listdir(place), [f"x{n}"])
    import shutil
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    n += 1
print(n, sorted(seen))
"""


@pytest.mark.parametrize("kind", WRITERS)
def test_killed_at_every_step(tmp_path, kind):
    """The next writer is killed at each of its steps too, and a third one succeeds."""
    run = python(SWEEP, kind, tmp_path, 100)
    out, _ = run.communicate(timeout=300)
    assert run.returncode == 0
    steps, seen = out.split(maxsplit=1)
    assert int(steps) > (15 if kind == "file" else 30)
    assert ("missing" in seen) == (kind == "folder") and "'new', 'old'" in seen


HELD = """
import os, signal
with writers.written_beside(sys.argv[1], True) as part:
    if sys.argv[2] == "folder":
        os.mkdir(part)
    else:
        open(part, "w").write("held")
    print("writes", flush=True)
    signal.pause()
"""


@pytest.mark.parametrize("kind", WRITERS)
def test_what_a_writer_that_lives_has_stays_until_it_is_killed(tmp_path, kind):
    run = python(HELD, tmp_path / "x", kind)
    assert run.stdout.readline() == "writes\n"
    [left] = os.listdir(tmp_path)
    WRITERS[kind](tmp_path / "x", "mine")
    assert sorted(os.listdir(tmp_path)) == ["x", left]
    run.kill()
    run.communicate()
    WRITERS[kind](tmp_path / "other", "another path")
    assert left in os.listdir(tmp_path)
    WRITERS[kind](tmp_path / "x", "mine")
    assert sorted(os.listdir(tmp_path)) == ["other", "x"]


def test_what_another_host_has_stays(tmp_path, monkeypatch):
    """Some network file systems lock files on each host separately."""
    for host, boot, is_removed in (
        ("a", "1", True),
        ("a", "2", True),  # this host before it was started again
        ("b", "1", True),  # another container on it
        ("b", "2", False),
    ):
        monkeypatch.setattr(workplace, "_host", lambda: (host * 6, boot * 6))  # noqa: B023
        place = workplace.Workplace(str(tmp_path / "x"))
        os.close(place._lock)
        monkeypatch.setattr(workplace, "_host", lambda: ("a" * 6, "1" * 6))
        put(tmp_path / "x", "mine")
        assert os.path.exists(place.path) is not is_removed


def test_without_locks_nothing_of_others_is_removed(tmp_path, monkeypatch):
    def fail(*_):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(workplace.fcntl, "flock", fail)
    place = workplace.Workplace(str(tmp_path / "x"))
    put(tmp_path / "x", "mine")
    assert os.path.isdir(place.path) and (tmp_path / "x").read_text() == "mine"
    place.close()
    assert os.listdir(tmp_path) == ["x"]


def test_what_only_looks_like_a_workplace_stays(tmp_path):
    name = f"x.{'0' * 20}.part"
    (tmp_path / name).mkdir()
    (tmp_path / name / "thesis.txt").write_text("years")
    (tmp_path / f"x.{'1' * 20}.part").write_text("a file")
    (tmp_path / f"x.{'2' * 20}.part").symlink_to(name)
    before = sorted(os.listdir(tmp_path))
    put(tmp_path / "x", "new")
    assert sorted(os.listdir(tmp_path)) == sorted([*before, "x"])
    assert (tmp_path / name / "thesis.txt").read_text() == "years"


def test_a_killed_writer_of_statistics_does_not_spoil_its_data_set(tmp_path):
    """Its temporary file is in a folder that is replaced as a whole."""
    put_folder(tmp_path / "set", "old")
    run = python(HELD, tmp_path / "set" / "meta" / "stats.json", "file")
    assert run.stdout.readline() == "writes\n"
    with pytest.raises(FileExistsError, match=r"contains meta/stats.json.*\.part"):
        put_folder(tmp_path / "set", "new")
    run.kill()
    run.communicate()
    put_folder(tmp_path / "set", "new")
    assert texts(tmp_path / "set") == ["new", "new"] and os.listdir(tmp_path) == ["set"]


# ---- at once ------------------------------------------------------------------------------------

AT_ONCE = """
import os, pathlib
write, path = writers.WRITERS[sys.argv[1]], pathlib.Path(sys.argv[2])
children = []
for name in "1234":
    children.append(os.fork())
    if children[-1] == 0:
        try:
            for _ in range(int(sys.argv[3])):
                write(path, name)
            os._exit(0)
        finally:
            os._exit(1)
print([os.waitpid(child, 0)[1] for child in children])
"""


@pytest.mark.parametrize("kind", WRITERS)
def test_writers_at_once(tmp_path, kind):
    WRITERS[kind](tmp_path / "x", "0")
    statuses, _ = python(AT_ONCE, kind, tmp_path / "x", OTHERS).communicate(timeout=120)
    assert statuses == "[0, 0, 0, 0]\n"
    assert os.listdir(tmp_path) == ["x"]
    assert len(set(texts(tmp_path / "x"))) == 1


def test_what_came_meanwhile_stays(tmp_path, write):
    with pytest.raises(FileExistsError, match="x: exists; overwrite=True replaces it"):
        with written_beside(str(tmp_path / "x"), overwrite=False) as part:
            if write is put:
                open(part, "w").close()
            else:
                os.mkdir(part)
            write(tmp_path / "x", "of another", overwrite=False)
    assert os.listdir(tmp_path) == ["x"] and set(texts(tmp_path / "x")) == {"of another"}


def test_without_hard_links(tmp_path, monkeypatch):
    def fail(*_):
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(os, "link", fail)
    put(tmp_path / "x", "first", overwrite=False)
    with pytest.raises(FileExistsError):
        with written_beside(str(tmp_path / "y"), overwrite=False) as part:
            open(part, "w").close()
            (tmp_path / "y").write_text("of another")
    assert sorted(os.listdir(tmp_path)) == ["x", "y"]
    assert (tmp_path / "y").read_text() == "of another"


@pytest.mark.parametrize("raises", [True, False])
def test_a_child_takes_nothing_from_its_parent(tmp_path, write, raises):
    """A process forked within the block also leaves the block, at an error or at its end."""
    child = None
    try:
        with written_beside(str(tmp_path / "x"), overwrite=False) as part:
            if write is put:
                open(part, "w").close()
            else:
                os.mkdir(part)
            child = os.fork()
            if child == 0 and raises:
                raise KeyError
            if child:
                assert os.waitpid(child, 0)[1] == 0
                assert os.path.exists(part)
                write(tmp_path / "x.other", "another")
    except BaseException as error:
        if child == 0:
            os._exit(0 if isinstance(error, KeyError if raises else RuntimeError) else 1)
        raise
    assert sorted(os.listdir(tmp_path)) == ["x", "x.other"]


# ---- permissions and failures -------------------------------------------------------------------


def test_permissions(tmp_path, write):
    mask = os.umask(0o027)
    try:
        write(tmp_path / "x", "first")
        fresh = stat.S_IMODE((tmp_path / "x").stat().st_mode)
        assert fresh == (0o640 if write is put else 0o750)
        private = 0o600 if write is put else 0o700
        (tmp_path / "x").chmod(private)
        write(tmp_path / "x", "second")
    finally:
        os.umask(mask)
    assert stat.S_IMODE((tmp_path / "x").stat().st_mode) == private


def test_folders_that_are_read_only(tmp_path):
    put_folder(tmp_path / "set", "old")
    (tmp_path / "set" / "meta").chmod(0o500)
    put_folder(tmp_path / "set", "new")
    assert os.listdir(tmp_path) == ["set"] and texts(tmp_path / "set") == ["new", "new"]


@pytest.mark.parametrize("letter", ["x", "ñ"])
def test_the_longest_name(tmp_path, write, letter):
    name = letter * (255 // len(letter.encode()))
    write(tmp_path / name, "old")
    place = workplace.Workplace(str(tmp_path / name))
    os.close(place._lock)
    write(tmp_path / name, "new")
    assert os.listdir(tmp_path) == [name] and set(texts(tmp_path / name)) == {"new"}
    with pytest.raises(OSError, match="File name too long") as caught:
        write(tmp_path / (name + letter), "new")
    assert caught.value.filename == str(tmp_path / (name + letter))


def test_a_lock_that_cannot_be_opened(tmp_path, monkeypatch):
    def fail(path, *_, **__):
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE), path)

    monkeypatch.setattr(workplace.os, "open", fail)
    with pytest.raises(OSError, match="Too many open files: '.*x'"):
        put(tmp_path / "x", "new")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EIO])
def test_a_second_rename_that_fails_is_undone(tmp_path, monkeypatch, number):
    put_folder(tmp_path / "x", "old")
    rename = os.rename

    def fail(one, other):
        if os.path.basename(one) == "new":
            raise OSError(number, os.strerror(number), one, None, other)
        rename(one, other)

    monkeypatch.setattr(os, "rename", fail)
    with pytest.raises(OSError, match=f"{os.strerror(number)}: '{tmp_path}/x'"):
        put_folder(tmp_path / "x", "new")
    assert os.listdir(tmp_path) == ["x"] and texts(tmp_path / "x") == ["old", "old"]


def test_the_only_copy_is_never_deleted(tmp_path, monkeypatch):
    """If the folder cannot be renamed back either, the message says where it is."""
    put_folder(tmp_path / "x", "old")
    rename = os.rename

    def fail(one, other):
        if other == str(tmp_path / "x"):
            raise OSError(errno.EIO, os.strerror(errno.EIO), one, None, other)
        rename(one, other)

    monkeypatch.setattr(os, "rename", fail)
    with pytest.raises(OSError, match=r"the previous folder is at .*\.part/old0"):
        put_folder(tmp_path / "x", "new")
    monkeypatch.undo()
    with pytest.raises(FileExistsError):
        put_folder(tmp_path / "x", "new", overwrite=False)
    assert os.listdir(tmp_path) == ["x"] and texts(tmp_path / "x") == ["old", "old"]


def test_names_are_made_safe_on_disk(tmp_path, write, monkeypatch):
    synced, fsync = [], os.fsync

    def look(file):
        synced.append((os.readlink(f"/proc/self/fd/{file}"), sorted(os.listdir(tmp_path))))
        fsync(file)

    monkeypatch.setattr(os, "fsync", look)
    write(tmp_path / "x", "new")
    assert synced[-1][0] == str(tmp_path) and "x" in synced[-1][1]
    assert all(path != str(tmp_path) for path, _ in synced[:-1]) and len(synced) > 1
