"""Identities of source files: what changes them, and what does not."""

import hashlib
import os
import shutil
import time

import pytest

from cached import age
from robocache._cache.identities import Sources
from robocache._cache.memo import Memo


def files(folder, **contents):
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in contents.items():
        path = folder / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return age(folder)


def document(path, method="stat", **options):
    return Sources(str(path), method, **options).document()


def test_a_folder_has_all_its_files(tmp_path):
    path = files(tmp_path / "set", a__x=b"1", b=b"22", c=b"")
    (path / "empty").mkdir()
    found = dict(document(path))
    assert list(found) == ["a/x", "b", "c", "empty"]
    assert found["b"][:2] == ["stat", 2] and found["empty"] == ["folder"]


def test_hidden_folders_and_shared_memory_of_sqlite_are_no_sources(tmp_path):
    path = files(tmp_path / "set", a=b"1", b=b"2")
    before = document(path)
    files(path / ".git", HEAD=b"x")
    (path / "a-shm").write_bytes(b"x")
    age(path)
    assert [name for name, _ in document(path)] == [name for name, _ in before]


def test_a_file_has_its_name(tmp_path):
    path = files(tmp_path / "set", one=b"1", two=b"1")
    assert [name for name, _ in document(path / "one")] == ["one"]
    others = [str(path / "two"), str(path / "missing")]
    assert [name for name, _ in document(path / "one", companions=others)] == [
        "companions/two",
        "one",
    ]


@pytest.mark.parametrize("at", [0, 70_000, 150_000, 299_999])
def test_a_change_of_the_content_with_equal_size_and_mtime(tmp_path, at):
    """In the first and last 64 KiB; in the middle "content" finds it, "stat" only in 16 blocks."""
    path = files(tmp_path / "set", a=bytes(300_000), b=b"2")
    known, content = document(path), document(path, "content")
    of = os.stat(path / "a")
    with (path / "a").open("r+b") as file:
        file.seek(at)
        file.write(b"!")
    os.utime(path / "a", ns=(of.st_atime_ns, of.st_mtime_ns))
    assert document(path, "content") != content
    sampled = (
        at < 1 << 16
        or at >= 300_000 - (1 << 16)
        or any(start <= at < start + 4096 for start in (i * 300_000 // 16 for i in range(16)))
    )
    assert (document(path) != known) == sampled


def test_copies_have_equal_identities_by_content_and_revision(tmp_path):
    path = files(tmp_path / "set", a=bytes(300_000), b__c=b"2")
    shutil.copytree(path, tmp_path / "elsewhere" / "copy")
    copy = tmp_path / "elsewhere" / "copy"
    age(copy, 100)
    assert document(copy) != document(path)
    assert document(copy, "content") == document(path, "content")
    assert document(copy, "revision:v1") == document(path, "revision:v1")
    assert document(copy, "revision:v1") != document(path, "revision:v2")


def test_two_data_sets_with_equal_names_sizes_and_mtimes(tmp_path):
    one = files(tmp_path / "one" / "set", a=b"1" * 10, b=b"2")
    other = files(tmp_path / "other" / "set", a=b"3" * 10, b=b"2")
    assert [n for n, _ in document(one)] == [n for n, _ in document(other)]
    for method in ("stat", "content"):
        assert document(one, method) != document(other, method)


@pytest.mark.parametrize("at", [0, 3 * 10**8, 1_700_000_000])
def test_times_that_say_nothing_are_replaced_by_content(tmp_path, at):
    path = files(tmp_path / "set", a=b"1", b=b"2")
    for name in "ab":
        os.utime(path / name, (at, at))
    assert {identity[0] for _, identity in document(path)} == {"content"}


def test_a_link_into_the_cache_of_the_hub_has_the_name_of_its_blob(tmp_path):
    blob = "ab" * 32
    folder = files(tmp_path / "blobs", **{blob: b"1"})
    snapshot = tmp_path / "snapshots" / "1f"
    snapshot.mkdir(parents=True)
    (snapshot / "a").symlink_to(folder / blob)
    assert document(snapshot, follow_links=True) == [["a", ["blob", blob, 1]]]
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "a").symlink_to(folder / blob)
    assert document(tmp_path / "other")[0][1][0] == "stat"


def test_of_listed_folders_only_names_count(tmp_path):
    path = files(tmp_path / "set", data__a=b"1", videos__a=b"1", videos__b=b"2")
    before = document(path, listed=("videos",))
    (path / "videos" / "a").write_bytes(b"other")
    assert document(path, listed=("videos",)) == before
    (path / "videos" / "c").write_bytes(b"")
    assert document(path, listed=("videos",)) != before


def test_links_to_folders(tmp_path):
    outside = files(tmp_path / "outside", a=b"1")
    path = files(tmp_path / "set", b=b"2", inner__c=b"3")
    (path / "out").symlink_to(outside)
    (path / "in").symlink_to(path / "inner")
    (path / "round").symlink_to(path)
    (path / "gone").symlink_to(path / "missing")
    found = dict(document(path))
    assert found["out"] == found["round"] == found["gone"] == ["link"]
    assert found["in/c"][0] == "stat"
    assert dict(document(path, follow_links=True))["out/a"][0] == "stat"


def test_files_that_change_are_not_published(tmp_path):
    path = files(tmp_path / "set", a=b"1", b=b"2")
    sources = Sources(str(path))
    assert sources.why_not_published() is None
    (path / "c").write_bytes(b"")
    age(path)
    assert sources.why_not_published() == "a changed while it was read"
    sources = Sources(str(path))
    (path / "c").unlink()
    assert sources.why_not_published() == "c changed while it was read"


def test_files_that_were_written_just_now_are_not_published(tmp_path):
    path = files(tmp_path / "set", a=b"1", b=b"2")
    (path / "b").write_bytes(b"3")
    text = "b was written less than 2 seconds before it was read"
    assert Sources(str(path)).why_not_published() == text
    assert Sources(str(path), "content").why_not_published() == text
    assert Sources(str(path), "revision:v1").why_not_published() is None


def test_a_clock_that_went_back(tmp_path):
    """Files from the future are not changing, and have an identity."""
    path = files(tmp_path / "set", a=b"1", b=b"2")
    ahead = time.time_ns() + 3600 * 10**9
    os.utime(path / "a", ns=(ahead, ahead))
    sources = Sources(str(path))
    assert sources.why_not_published() is None
    assert dict(sources.document())["a"][2] == ahead


def test_digests_are_kept_until_a_file_changes(tmp_path, monkeypatch):
    path = files(tmp_path / "set", a=bytes(300_000), b=b"2")
    time.sleep(2.1)  # younger files are digested each time

    def digests():
        from robocache._cache import identities

        done = []
        known = identities._sha256
        monkeypatch.setattr(identities, "_sha256", lambda p, w: done.append(p) or known(p, w))
        made = Sources(str(path), memo=Memo(str(tmp_path / "store"), str(path))).document()
        monkeypatch.setattr(identities, "_sha256", known)
        return made, len(done)

    first, count = digests()
    assert count == 2
    second, count = digests()
    assert (second, count) == (first, 0)
    of = os.stat(path / "b")
    (path / "b").write_bytes(b"3")
    os.utime(path / "b", ns=(of.st_atime_ns, of.st_mtime_ns))  # ctime differs
    third, count = digests()
    assert count == 1 and third != first


def test_many_files_are_digested_in_threads(tmp_path):
    many = {f"file{i:02d}": bytes([i]) * (1000 + i) for i in range(40)}
    path = files(tmp_path / "set", **many)
    for method in ("stat", "content"):
        found = dict(document(path, method))
        for name, content in many.items():
            assert found[name][-1] == hashlib.sha256(content).hexdigest()


def test_a_damaged_or_foreign_memo_is_ignored(tmp_path):
    path = files(tmp_path / "set", a=b"1")
    store = tmp_path / "store"
    before = document(path)
    memo = Memo(str(store), str(path))
    memo.put((1, 2), "x")
    memo.save()
    (file,) = (store / "digests").iterdir()
    for content in (b"", b"{", b"[1]", b'[["a"]]', b"\xff"):
        file.write_bytes(content)
        assert document(path, memo=Memo(str(store), str(path))) == before


@pytest.mark.parametrize("method", ["", "hash", "revision", "revision:", None, 3])
def test_unknown_methods_are_refused(tmp_path, method):
    with pytest.raises(ValueError, match="identity: is .*, expected 'stat', 'content' or"):
        Sources(str(tmp_path), method)


def test_names_that_are_not_utf8(tmp_path):
    name = os.fsencode(tmp_path) + b"/a\xff"
    with open(name, "wb") as file:
        file.write(b"1")
    assert document(tmp_path)[0][0] == "a%FF"
