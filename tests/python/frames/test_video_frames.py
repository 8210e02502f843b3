"""Every frame of a video is the one that its number says, read in sequence or at random."""

import os
import pickle
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import numpy as np
import pytest

import numbered_videos as videos
from robocache.data import FormatError
from robocache.data._frames import video_decoder, video_index
from robocache.data._frames.video import VideoFrames
from robocache.data._frames.video_index import VideoIndex

av = pytest.importorskip("av")

ONE_THREAD = "log-level=error:pools=1:frame-threads=1"
CODECS = {
    "h264": ("libx264", {"x264-params": "keyint=12:min-keyint=12:bframes=3:scenecut=0"}),
    "h264-open": (
        "libx264",
        {"x264-params": "keyint=12:min-keyint=12:bframes=3:b-adapt=0:open-gop=1:scenecut=0"},
    ),
    "h264-refresh": ("libx264", {"x264-params": "keyint=20:intra-refresh=1:scenecut=0"}),
    "h264-rgb": ("libx264rgb", {"qp": "0", "g": "2"}),
    "hevc-open": (
        "libx265",
        {"x265-params": f"keyint=12:bframes=4:b-adapt=0:open-gop=1:{ONE_THREAD}"},
    ),
    "av1": ("libsvtav1", {"g": "10", "preset": "12", "svtav1-params": "lp=1"}),
    "vp9": ("libvpx-vp9", {"g": "10", "deadline": "realtime", "cpu-used": "8"}),
    "mpeg4": ("mpeg4", {"g": "12", "bf": "2", "qmin": "1", "qmax": "3"}),
}
OPEN = ("h264-open", "hevc-open")


@pytest.fixture(scope="module", autouse=True)
def quiet():
    os.environ.setdefault("SVT_LOG", "1")


def write(folder, name="h264", numbers=range(60), extension="mp4", **options):
    codec, params = CODECS[name]
    if codec not in av.codecs_available:
        pytest.skip(f"this PyAV has no {codec}")
    if codec == "libx264rgb":
        options["pixels"] = "rgb24"
    path = folder / f"{name}.{extension}"
    if codec == "libsvtav1":
        with _scheduling_kept():
            return videos.write(path, numbers, codec, options=params, **options)
    return videos.write(path, numbers, codec, options=params, **options)


def _scheduling_kept():
    from robocache.data._write.video import _scheduling_kept

    return _scheduling_kept()


def source(path, rows, fps=30, begin=0.0, **options):
    """One episode of a file, or several: begins and rows are then lists."""
    begins, lengths = np.atleast_1d(begin), np.atleast_1d(rows)
    places = [(str(path), float(each)) for each in begins]
    return VideoFrames("front", os.path.dirname(path), places, lengths, fps, **options)


def read(frames, episode=0, rows=None):
    rows = np.arange(frames.lengths[episode]) if rows is None else np.asarray(rows)
    out = np.empty((len(rows), *frames.shape), np.uint8)
    frames.read(episode, rows, out)
    return out


def numbers(frames, episode=0, rows=None):
    return [videos.number_of(image) for image in read(frames, episode, rows)]


@pytest.mark.parametrize("extension", ["mp4", "mkv"])
@pytest.mark.parametrize("name", CODECS)
def test_frames_are_right_in_sequence_and_at_random(tmp_path, name, extension):
    path = write(tmp_path, name, extension=extension)
    frames = source(path, 60)
    whole = read(frames)
    assert [videos.number_of(image) for image in whole] == list(range(60))
    for row in np.random.default_rng(1).permutation(60).tolist():
        assert (read(frames, rows=[row])[0] == whole[row]).all()
    for threads in (2, "auto"):
        assert (read(source(path, 60, threads=threads)) == whole).all()
    rows = [0, 1, 7, 25, 26, 58]
    assert (read(source(path, 60), rows=rows) == whole[rows]).all()


@pytest.mark.parametrize("name", OPEN)
def test_leading_pictures_belong_to_the_group_before(tmp_path, name):
    index = VideoIndex.read(write(tmp_path, name))
    leading = 0
    for frame in range(len(index.pts)):
        start = index.start_before(frame)
        after = np.searchsorted(index.starts, index.order[frame], "right") - 1
        leading += start < after
        assert index.start_pts[start] <= index.pts[frame]
    assert leading > 3  # the file has some, else this shows nothing


def test_recovery_points_that_take_frames_are_no_starts(tmp_path):
    def marked(packets):
        for packet in packets:
            packet.is_keyframe = True
        return packets

    path = write(tmp_path, "h264-refresh")
    changed = videos.remux(path, tmp_path / "marked.mp4", marked)
    assert len(VideoIndex.read(changed).starts) == 1
    assert numbers(source(changed, 60), rows=[50]) == [50]


@pytest.mark.parametrize("name", ["h264", "h264-open", "hevc-open", "vp9", "mpeg4"])
def test_packets_that_are_wrongly_marked_as_keyframes(tmp_path, name):
    def marked(packets):
        for packet in packets:
            packet.is_keyframe = True
        return packets

    path = videos.remux(write(tmp_path, name), tmp_path / "marked.mp4", marked)
    frames = source(path, 60)
    whole = read(frames)
    assert [videos.number_of(image) for image in whole] == list(range(60))
    for row in np.random.default_rng(1).permutation(60).tolist():
        assert (read(frames, rows=[row])[0] == whole[row]).all()


def test_a_long_group_of_pictures(tmp_path):
    params = {"x264-params": "keyint=250:min-keyint=250:bframes=3:scenecut=0"}
    path = videos.write(tmp_path / "long.mp4", range(600), options=params)
    frames = source(path, 600)
    rows = [3, 249, 250, 251, 499, 599]
    assert numbers(frames, rows=rows) == rows
    assert numbers(frames, rows=[248]) == [248]


def test_a_read_in_sequence_seeks_once_and_opens_the_file_once(tmp_path, monkeypatch):
    path = write(tmp_path, "h264-open")
    frames = source(path, [30, 30], begin=[0.0, 1.0])
    assert frames.shape == (*videos.SIZE, 3)
    opened, begun = [], []
    own_open, own_begin = video_decoder.opened, video_decoder.VideoDecoder._begin
    monkeypatch.setattr(video_decoder, "opened", lambda p: opened.append(p) or own_open(p))
    monkeypatch.setattr(
        video_decoder.VideoDecoder, "_begin", lambda own, at: begun.append(at) or own_begin(own, at)
    )
    found = []
    for episode in (0, 1):
        for row in range(0, 30, 5):
            found += numbers(frames, episode, range(row, row + 5))
    assert found == list(range(60)) and len(opened) == len(begun) == 1
    frames.close()
    assert numbers(frames, 0, [29]) == [29] and len(opened) == 2
    assert len(begun) == 2 and begun[1] > 0


def test_variable_rate_and_several_episodes(tmp_path):
    # 30 frames at 30 fps, a gap of 0.4 s, and 20 frames with stamps that shake
    shake = np.random.default_rng(0).integers(-180, 180, 20)
    times = [*range(0, 30 * 1000, 1000), *(42000 + 1000 * np.arange(20) + shake).tolist()]
    path = videos.write(
        tmp_path / "vfr.mp4",
        range(50),
        options={"bf": "2", "g": "8"},
        times=times,
        time_base=Fraction(1, 30000),
    )
    frames = source(path, [10, 20, 20], begin=[0.0, 10 / 30, 1.4])
    assert numbers(frames, 0) == list(range(10))
    assert numbers(frames, 1) == list(range(10, 30))
    assert numbers(frames, 2) == list(range(30, 50))
    with pytest.raises(FormatError, match=r"episode 0, row 30: has no frame at 1\.000000 s"):
        read(source(path, 40))


@pytest.mark.parametrize("drift", [0.0, 0.12, -0.12])
def test_begins_that_drift_are_rounded(tmp_path, drift):
    path = write(tmp_path)
    assert numbers(source(path, 20, begin=(20 + drift) / 30)) == list(range(20, 40))


def test_begins_between_frames(tmp_path):
    path = write(tmp_path)
    assert numbers(source(path, 9, begin=(20 + 0.24) / 30)) == list(range(20, 29))
    with pytest.raises(FormatError, match="episode 0, row 0: has no frame"):
        read(source(path, 9, begin=(20 + 0.26) / 30))
    assert numbers(source(path, 9, begin=(20 + 0.26) / 30, tolerance=0.5 / 30))[0] == 20


def test_of_two_frames_that_are_equally_near_the_earlier_one_is_taken(tmp_path):
    path = videos.write(tmp_path / "32.mp4", range(40), rate=32)
    found = numbers(source(path, 9, fps=32, begin=20.5 / 32, tolerance=1 / 64))
    assert found == list(range(20, 29))


def test_late_hours_keep_exact_times(tmp_path):
    times = [30 * 3600 * 50 + i for i in range(20)]
    path = videos.write(tmp_path / "late.mkv", range(20), times=times, options={"bf": "0"})
    assert numbers(source(path, 20, whole=True)) == list(range(20))


def test_edit_lists_are_applied(tmp_path):
    def cut(packets):
        for packet in packets:
            packet.pts -= 5 * 512
            packet.dts -= 5 * 512
        return packets

    path = videos.remux(
        write(tmp_path), tmp_path / "cut.mp4", cut, {"avoid_negative_ts": "disabled"}
    )
    index = VideoIndex.read(path)
    assert index.pts[0] == 0 and len(index.pts) == 55
    assert numbers(source(path, 55)) == list(range(5, 60))
    frames = source(path, 55)
    assert [numbers(frames, rows=[row])[0] for row in (40, 3, 0)] == [45, 8, 5]


@pytest.mark.parametrize("how", [{"use_editlist": "0"}, {"movflags": "frag_keyframe+empty_moov"}])
def test_a_file_that_begins_late(tmp_path, how):
    path = videos.remux(write(tmp_path), tmp_path / "late.mp4", container=how)
    assert numbers(source(path, 60, whole=True)) == list(range(60))
    with pytest.raises(FormatError, match=r"late\.mp4: episode 0: begins at 0\.06"):
        read(source(path, 60))


def test_a_file_that_is_one_episode_has_a_frame_for_each_row(tmp_path):
    path = write(tmp_path)
    with pytest.raises(FormatError, match="episode 0: has 60 frames, expected 59"):
        read(source(path, 59, whole=True))
    assert numbers(source(path, 59)) == list(range(59))


# ---- damage -------------------------------------------------------------------------------------


@pytest.mark.parametrize("extension", ["mp4", "fast.mp4", "parts.mp4", "mkv", "ts", "avi"])
def test_a_truncated_file_gives_an_error_or_the_right_frames(tmp_path, extension):
    path = write(tmp_path, "mpeg4" if extension == "avi" else "h264-open")
    flags = {"fast.mp4": "faststart", "parts.mp4": "frag_keyframe+empty_moov"}.get(extension)
    if extension == "avi":
        path = videos.write(tmp_path / "a.avi", range(60), "mpeg4", options={"bf": "0"})
    elif extension != "mp4":
        target = tmp_path / f"copy.{extension}"
        path = videos.remux(path, target, container={"movflags": flags} if flags else {})
    content = open(path, "rb").read()
    cut = tmp_path / f"cut.{extension}"
    lengths = {*np.linspace(0, len(content) - 1, 30).astype(int).tolist()}
    for length in sorted(lengths | {len(content) - n for n in range(1, 9)}):
        cut.write_bytes(content[:length])
        try:
            found = numbers(source(cut, 60, whole=True))
        except FormatError as error:
            assert error.path == str(cut)
        else:
            assert found == list(range(60)), length
    cut.write_bytes(content)
    assert numbers(source(cut, 60, whole=True)) == list(range(60))


def test_a_packet_that_is_missing(tmp_path):
    path = write(tmp_path)
    for at in (5, 25, 40):
        changed = videos.remux(
            path, tmp_path / "less.mp4", lambda all_, at=at: all_[:at] + all_[at + 1 :]
        )
        with pytest.raises(FormatError, match=r"less\.mp4: episode 0, row .*has no frame at"):
            read(source(changed, 60))


@pytest.mark.parametrize("name", ["h264", "h264-open", "hevc-open"])
def test_a_reference_that_is_missing_while_the_times_have_no_gap(tmp_path, name):
    """The decoder would show other frames in its place; no frame may be wrong."""
    path = write(tmp_path, name)
    wrong = 0
    for at in range(20, 32):

        def closed(packets, at=at):
            pts, dts = sorted(each.pts for each in packets), [each.dts for each in packets]
            del packets[at]
            ranks = {time: i for i, time in enumerate(sorted(each.pts for each in packets))}
            for i, packet in enumerate(packets):
                packet.pts, packet.dts = pts[ranks[packet.pts]], dts[i]
            return packets

        changed = videos.remux(path, tmp_path / "closed.mp4", closed)
        left = [*range(60)]
        left.remove(_shown_at(path, at))
        frames = source(changed, 59)
        for row in range(59):
            try:
                assert numbers(frames, rows=[row]) == [left[row]]
            except FormatError as error:
                assert error.path == changed and f"row {row}" in str(error)
                wrong += 1
    assert 20 < wrong < 300


def _shown_at(path, packet):
    index = VideoIndex.read(path)
    return int(np.flatnonzero(index.order == packet)[0])


@pytest.mark.parametrize("name", ["h264", "hevc-open", "mpeg4"])
def test_packets_in_another_order(tmp_path, name):
    def swapped(packets):
        contents = [bytes(packet) for packet in packets]
        contents[22], contents[23] = contents[23], contents[22]
        made = []
        for packet, content in zip(packets, contents):
            new = av.Packet(content)
            new.pts, new.dts, new.duration = packet.pts, packet.dts, packet.duration
            new.time_base, new.is_keyframe = packet.time_base, packet.is_keyframe
            made.append(new)
        return made

    path = videos.remux(write(tmp_path, name), tmp_path / "swapped.mp4", swapped)
    with pytest.raises(FormatError, match=r"swapped\.mp4: episode 0, row 2.*cannot be decoded"):
        read(source(path, 60))


def test_damaged_packets(tmp_path):
    path = write(tmp_path)
    content = bytearray(open(path, "rb").read())
    at = content.index(b"mdat") + 1500
    content[at : at + 200] = bytes(200)
    (tmp_path / "zeros.mp4").write_bytes(content)
    with pytest.raises(FormatError, match=r"zeros\.mp4: episode 0, row .*cannot be decoded"):
        read(source(tmp_path / "zeros.mp4", 60))


def test_equal_times(tmp_path):
    path = tmp_path / "same.mkv"

    def same(packets):
        packets[4].pts = packets[5].pts
        return packets

    plain = videos.write(tmp_path / "plain.mkv", range(10), options={"bf": "0"})
    videos.remux(plain, path, same)
    with pytest.raises(
        FormatError, match=r"same\.mkv: packets 4 and 5: have the same time, 0\.167"
    ):
        read(source(path, 10))


def test_times_that_are_missing(tmp_path, monkeypatch):
    """FFmpeg finds times where containers have none; a broken one may still give such packets."""
    path = write(tmp_path)
    own = video_index.opened

    class Container:
        def __init__(self, path):
            self.real = own(path)

        def demux(self, stream):
            for i, packet in enumerate(self.real.demux(stream)):
                if i == 7:
                    packet.pts = None
                yield packet

        def __getattr__(self, name):
            return getattr(self.real, name)

        def __enter__(self):
            return self

        def __exit__(self, *_):
            self.real.close()

    monkeypatch.setattr(video_index, "opened", Container)
    with pytest.raises(FormatError, match=r"h264\.mp4: packet 7: has no presentation time"):
        read(source(path, 60))


def test_files_that_are_no_video(tmp_path):
    sound = tmp_path / "sound.mp4"
    with av.open(str(sound), "w") as file:
        stream = file.add_stream("aac", 48000)
        frame = av.AudioFrame.from_ndarray(np.zeros((1, 1024), np.float32), "fltp", "mono")
        frame.sample_rate = 48000
        file.mux(stream.encode(frame))
        file.mux(stream.encode(None))
    text = tmp_path / "text.mp4"
    text.write_text("#EXTM3U\n#EXTINF:10,\n/etc/passwd\n")
    for path, reason in ((sound, "has audio streams, expected a video"), (text, "is not a video")):
        with pytest.raises(FormatError, match=reason) as caught:
            read(source(path, 10))
        assert caught.value.path == str(path)
    with pytest.raises(FormatError, match="expected a regular file"):
        read(source(tmp_path, 10))


def test_a_change_of_size(tmp_path):
    small = videos.write(tmp_path / "small.mp4", range(10), options={"bf": "0"})
    large = videos.write(tmp_path / "large.ts", range(10, 20), options={"bf": "0"}, size=(64, 128))
    joined = tmp_path / "joined.ts"
    first = videos.remux(small, tmp_path / "small.ts")
    joined.write_bytes(open(first, "rb").read() + open(large, "rb").read())
    with pytest.raises(FormatError, match=r"joined\.ts"):
        read(source(joined, 20, whole=True))
    frames = VideoFrames(
        "front", str(tmp_path), [(small, 0.0), (large, 0.0)], np.array([10, 10]), 30, whole=True
    )
    with pytest.raises(FormatError, match="128 x 64 pixels, expected 96 x 32"):
        read(frames, 1)


def test_pixels_that_are_not_square(tmp_path):
    path = write(tmp_path, sample_aspect_ratio=Fraction(4, 3))
    with pytest.raises(FormatError, match=r"has pixels of 4:3, expected square ones"):
        read(source(path, 60))


def test_interlaced_video(tmp_path):
    params = {"x264-params": "interlaced=1:bframes=0", "flags": "+ildct+ilme"}
    path = videos.write(tmp_path / "fields.mp4", range(10), options=params)
    with pytest.raises(FormatError, match="is interlaced, expected whole frames"):
        read(source(path, 10))


def test_depth_is_refused(tmp_path):
    if "ffv1" not in av.codecs_available:
        pytest.skip("this PyAV has no ffv1")
    path = videos.write(tmp_path / "depth.mkv", range(5), "ffv1", pixels="gray16le")
    with pytest.raises(FormatError, match="has pixels gray16le.*robocache.unproject"):
        read(source(path, 5))


@pytest.mark.parametrize("degrees", [90, 180, 270])
def test_rotation(tmp_path, degrees):
    path = write(tmp_path, numbers=range(5))
    _turn(path, degrees)
    with pytest.raises(FormatError, match=rf"must be turned by {degrees} degrees.*rotate=True"):
        read(source(path, 5))
    frames = source(path, 5, rotate=True)
    turned = read(frames)
    assert frames.shape[:2] == (videos.SIZE if degrees == 180 else videos.SIZE[::-1])
    stored = [np.rot90(image, -degrees // 90) for image in turned]
    assert [videos.number_of(image) for image in stored] == list(range(5))


def _turn(path, degrees):
    """Write a rotation into the track header of an MP4 file, as a phone does."""
    content = bytearray(open(path, "rb").read())
    at = content.index(b"tkhd") + 4 + 40
    a, b, c, d = {90: (0, -1, 1, 0), 180: (-1, 0, 0, -1), 270: (0, 1, -1, 0)}[degrees]
    matrix = np.array([a << 16, b << 16, 0, c << 16, d << 16, 0, 0, 0, 1 << 30], ">i4")
    content[at : at + 36] = matrix.tobytes()
    open(path, "wb").write(content)
    with av.open(path) as file:
        turn = getattr(next(file.decode(video=0)), "rotation", degrees)  # not in PyAV 14
    assert turn % 360 == degrees  # as FFmpeg reads it: counter-clockwise


def test_a_mirrored_video(tmp_path):
    path = write(tmp_path, numbers=range(5))
    content = bytearray(open(path, "rb").read())
    at = content.index(b"tkhd") + 4 + 40
    matrix = np.array([-1 << 16, 0, 0, 0, 1 << 16, 0, 0, 0, 1 << 30], ">i4")
    content[at : at + 36] = matrix.tobytes()
    open(path, "wb").write(content)
    with pytest.raises(FormatError, match="is mirrored by its display matrix"):
        read(source(path, 5, rotate=True))


# ---- the object ---------------------------------------------------------------------------------


def test_pickles_hold_paths(tmp_path):
    path = write(tmp_path)
    frames = source(path, 60)
    before = read(frames)
    content = pickle.dumps(frames)
    assert len(content) < 2000
    assert (read(pickle.loads(content)) == before).all()


def test_copies_for_threads_share_the_index(tmp_path, monkeypatch):
    path = write(tmp_path, "h264-open")
    calls = []
    own = video_index.VideoIndex.read
    monkeypatch.setattr(video_index.VideoIndex, "read", lambda p: calls.append(p) or own(p))
    frames = source(path, 60)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda row: numbers(frames.copy(), rows=[row])[0], range(60)))
    assert found == list(range(60)) and calls == [path]
    assert numbers(pickle.loads(pickle.dumps(frames)), rows=[5]) == [5] and len(calls) == 2


def test_old_indexes_are_dropped(tmp_path, monkeypatch):
    monkeypatch.setattr(video_index, "_MOST", 400)
    paths = [videos.write(tmp_path / f"{i}.mp4", range(i, i + 10)) for i in range(6)]
    frames = VideoFrames("front", "", [(path, 0.0) for path in paths], np.full(6, 10), 30)
    for episode in [*range(6), 0, 3, 5]:
        assert numbers(frames, episode) == list(range(episode, episode + 10))
    assert len(frames.indexes._kept) == 3


@pytest.mark.skipif(not hasattr(os, "fork"), reason="has no fork")
@pytest.mark.parametrize("threads", [1, "auto"])
def test_a_forked_process_opens_the_files_again(tmp_path, threads):
    path = write(tmp_path, "h264-open")
    frames = source(path, 60, threads=threads)
    assert numbers(frames, rows=range(10)) == list(range(10))
    child = os.fork()
    if child == 0:
        code = 1
        try:
            code = 0 if numbers(frames, rows=range(10, 40)) == list(range(10, 40)) else 2
            frames.close()
        finally:
            os._exit(code)
    assert numbers(frames, rows=range(10, 50)) == list(range(10, 50))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_creating_a_source_opens_nothing(tmp_path):
    frames = source(tmp_path / "absent.mp4", 60)
    assert frames.lengths.tolist() == [60] and frames.files(0) == (str(tmp_path / "absent.mp4"),)
    assert frames.place(0) == ["0", 60, "30", False]
    with pytest.raises(FileNotFoundError):
        _ = frames.shape


def test_place_changes_with_the_frames(tmp_path):
    path = str(tmp_path / "absent.mp4")
    places = [
        source(path, 60).place(0),
        source(path, 59).place(0),
        source(path, 60, fps=29.97002997).place(0),
        source(path, 60, begin=1 / 30).place(0),
        source(path, 60, begin=1.3 / 30).place(0),
        source(path, 60, whole=True).place(0),
    ]
    assert len({str(place) for place in places}) == len(places)
    assert source(path, 60, begin=1.01 / 30).place(0) == places[3]


def test_arguments(tmp_path):
    path = write(tmp_path)
    with pytest.raises(ValueError, match=r"fps: is 29\.97, expected"):
        source(path, 60, fps=29.97)
    with pytest.raises(ValueError, match="threads: is 0"):
        source(path, 60, threads=0)
    with pytest.raises(IndexError, match="rows: has 60, but episode 0 of front has 60 frames"):
        read(source(path, 60), rows=[0, 60])
