"""Logs of PX4 and ArduPilot, compared with pyulog and pymavlink."""

from __future__ import annotations

import struct

import numpy as np
import pytest

import log_files
from robocache import data
from robocache.data._file_access import opened
from robocache.data._formats.logs import dataflash, dataflash_text, ulog

REAL = ["float", "double", "int8_t", "uint16_t", "int32_t", "uint64_t", "bool"]
DTYPES = ["<f4", "<f8", "<i1", "<u2", "<i4", "<u8", "?"]


def written(path, content):
    path.write_bytes(bytes(content))
    return path


# ---- PX4 ULog ----


def random_ulog(rng):
    """Topics of random fields, nested, with padding, interleaved at random."""
    formats, dtypes = ["inner:int16_t a;float[2] b;"], []
    for topic in range(int(rng.integers(1, 5))):
        fields, parts = ["uint64_t timestamp"], [("t", "<u8")]
        for i in range(int(rng.integers(1, 8))):
            kind = int(rng.integers(len(REAL) + 1))
            if kind == len(REAL):
                fields.append(f"inner f{i}")
                parts += [(f"f{i}.a", "<i2"), (f"f{i}.b", "<f4", 2)]
                continue
            count = int(rng.integers(0, 5))
            fields.append(f"{REAL[kind]}{f'[{count}]' if count else ''} f{i}")
            parts.append((f"f{i}", DTYPES[kind], count) if count else (f"f{i}", DTYPES[kind]))
        formats.append(f"topic{topic}:{';'.join(fields)};uint8_t[2] _padding0;")
        dtypes.append(np.dtype(parts))
    made = log_files.ULogBytes(formats)
    numbers = []
    for topic in range(len(dtypes)):
        for instance in range(int(rng.integers(1, 3))):
            made.subscribe(len(numbers), f"topic{topic}", instance)
            numbers.append(topic)
    for i in range(int(rng.integers(1, 200))):
        number = int(rng.integers(len(numbers)))
        row = np.frombuffer(rng.bytes(dtypes[numbers[number]].itemsize), np.uint8).copy()
        row[:8] = np.frombuffer(struct.pack("<Q", 1000 * i), np.uint8)
        made.row(number, row.tobytes())
        if rng.integers(10) == 0:
            made.sync()
    return made.data


@pytest.mark.parametrize("seed", range(12))
def test_ulog_is_what_pyulog_reads(tmp_path, seed):
    pyulog = pytest.importorskip("pyulog")
    path = written(tmp_path / "x.ulg", random_ulog(np.random.default_rng(seed)))
    opened = data.open(path)
    reference = pyulog.ULog(str(path))
    assert len(opened) == len(reference.data_list)
    for each in reference.data_list:
        name = each.name + (f"_{each.multi_id}" if each.multi_id else "")
        stream = opened[name]
        assert opened.info(name).count == len(stream) == len(each.data["timestamp"])
        assert stream.times("time").tolist() == each.data["timestamp"].tolist()
        columns = [key for key in each.data if key != "timestamp" and "_padding" not in key]
        assert list(stream.names) == columns
        for i, key in enumerate(columns):
            expected = each.data[key]
            if stream.dtypes[i] == "bool":
                expected = expected != 0
            with np.errstate(invalid="ignore"):  # NaN of any bits
                expected = expected.astype(stream.values.dtype)
            np.testing.assert_array_equal(stream.values[:, i], expected)


def test_ulog_lists_what_it_does_not_read(tmp_path):
    path = written(tmp_path / "x.ulg", log_files.ulog())
    opened = data.open(path)
    assert opened.names == ("vehicle_attitude", "sensor_accel", "sensor_accel_1")
    assert opened.unit == "us"
    kinds = {channel.name: channel.kind for channel in opened["vehicle_attitude"].channels}
    assert kinds == {**{f"q[{i}]": "quaternion" for i in range(4)}, "reset": "step"}
    group = opened["vehicle_attitude"].kinds.groups[0]
    assert group.columns == (1, 2, 3, 0) and group.source == "file"
    places = {each.place for each in opened.left_out}
    assert {"parameters", "information", "logged texts", "sensor_accel: name"} <= places
    (finding,) = opened.findings
    assert finding.kind == "gaps" and "1 dropout: the logger lost 0.02 s" in finding.text


def test_ulog_says_where_it_is_damaged(tmp_path):
    content = log_files.ulog()
    cut = written(tmp_path / "cut.ulg", content[:-3])
    with pytest.raises(data.FormatError, match=r"byte \d+: is truncated: .*damaged='keep'"):
        data.open(cut)
    kept = data.open(cut, damaged="keep")
    assert len(kept["vehicle_attitude"]) == 20 and len(kept.problems) == 1
    place = content.index(log_files.SYNC) + len(log_files.SYNC)  # the next header
    broken = bytearray(content)
    broken[place : place + 5] = b"\xff" * 5
    path = written(tmp_path / "broken.ulg", broken)
    with pytest.raises(data.FormatError, match=r"byte \d+: .* bytes are skipped"):
        data.open(path)
    kept = data.open(path, damaged="keep").load()
    assert sum(map(len, kept.streams.values())) >= 55
    whole = data.open(written(tmp_path / "x.ulg", content))
    assert set(kept["sensor_accel"].times()) <= set(whole["sensor_accel"].times())
    for name, text in (("empty", b""), ("short", content[:12])):
        with pytest.raises(data.FormatError):
            data.open(written(tmp_path / f"{name}.ulg", text))


def test_ulog_with_unknown_flags_is_refused(tmp_path):
    made = log_files.ULogBytes(["a:uint64_t timestamp;float x;"], flags=b"\x02" + bytes(7))
    with pytest.raises(data.FormatError, match="incompatible flags 02"):
        data.open(written(tmp_path / "x.ulg", made.data))


def test_ulog_with_appended_data(tmp_path):
    formats = ["a:uint64_t timestamp;float x;"]
    row = struct.pack("<HQf", 0, 1, 0.5)
    head = log_files.ULogBytes(formats)
    head.subscribe(0, "a")
    cut = len(head.data) + len(row) + 3 + 5  # a crash cut the second message
    made = log_files.ULogBytes(formats, b"\x01" + bytes(7), (cut, 0, 0))
    made.subscribe(0, "a")
    made.row(0, row[2:])
    made.row(0, row[2:])
    del made.data[cut:]
    made.row(0, struct.pack("<Qf", 2, 1.5))
    opened = data.open(written(tmp_path / "x.ulg", made.data))
    assert opened["a"].times().tolist() == [1, 2] and opened.problems == ()


def test_ulog_with_padding_at_the_end_of_messages(tmp_path):
    made = log_files.ULogBytes(["a:uint64_t timestamp;float x;uint8_t[4] _padding0;"])
    made.subscribe(0, "a")
    for i in range(4):
        made.row(0, struct.pack("<Qf", i, i / 2) + bytes(4 * (i % 2)))
    opened = data.open(written(tmp_path / "x.ulg", made.data))
    assert opened["a"].names == ("x",) and opened["a"].values[:, 0].tolist() == [0, 0.5, 1, 1.5]


def test_a_number_that_is_subscribed_again(tmp_path):
    made = log_files.ULogBytes(["a:uint64_t timestamp;float x;", "b:uint64_t timestamp;float x;"])
    for topic, at in (("a", 1), ("b", 2), ("a", 3)):
        made.subscribe(5, topic)
        made.row(5, struct.pack("<Qf", at, at))
    opened = data.open(written(tmp_path / "x.ulg", made.data))
    assert opened["a"].times().tolist() == [1, 3] and opened["b"].times().tolist() == [2]


# ---- ArduPilot ----


def compared(opened, reference):
    """Compare every number and time with pymavlink's; return how many there are."""
    rows, count = {}, 0
    while (message := reference.recv_msg()) is not None:
        key = message.fmt.instance_field
        label = getattr(message, key) if key else None
        rows.setdefault((message.fmt.name, label), []).append(message)
    for (name, label), messages in rows.items():
        if name in ("FMT", "FMTU", "UNIT", "MULT", "PARM", "MSG"):
            continue
        stream = opened[name if name in opened else f"{name}[{label}]"]
        assert stream.times("time").tolist() == [each.TimeUS for each in messages]
        for i, channel in enumerate(stream.names):
            values = np.array([getattr(each, channel) for each in messages])
            np.testing.assert_array_equal(stream.values[:, i], values.astype(stream.values.dtype))
            count += len(values)
    return count


@pytest.mark.parametrize("seed", range(6))
def test_dataflash_is_what_pymavlink_reads(tmp_path, seed):
    reader = pytest.importorskip("pymavlink.DFReader")
    rng = np.random.default_rng(seed)
    made = log_files.DataFlashBytes()
    letters = "bBhHiIqQfdcCeELM"
    for number in range(1, int(rng.integers(2, 6))):
        own = "".join(rng.choice(list(letters), int(rng.integers(1, 10))))
        made.define(
            number,
            f"M{number}",
            "Q" + own,
            ",".join(["TimeUS", *(f"F{i}" for i in range(len(own)))]),
        )
    for i in range(int(rng.integers(1, 300))):
        number = int(rng.integers(1, len(made.types)))
        own = made.types[f"M{number}"][1][1:]
        codes = [log_files.LETTERS[letter] for letter in own]
        parts = [struct.unpack(f"<{code}", rng.bytes(struct.calcsize(code)))[0] for code in codes]
        limits = [min(part, 100) if letter == "M" else part for letter, part in zip(own, parts)]
        made.add(f"M{number}", 1000 * i, *limits)
    path = written(tmp_path / "x.bin", made.data)
    assert compared(data.open(path), reader.DFReader_binary(str(path))) > 0


def test_dataflash_units_angles_and_instances(tmp_path):
    reader = pytest.importorskip("pymavlink.DFReader")
    path = written(tmp_path / "x.bin", log_files.dataflash())
    opened = data.open(path)
    assert opened.names == ("ATT", "IMU[0]", "IMU[1]", "AHR2")
    assert compared(opened, reader.DFReader_binary(str(path))) == 20 * (3 + 8 + 6)
    assert [(c.kind, c.unit) for c in opened["ATT"].channels] == [("angle", "deg")] * 3
    assert [c.unit for c in opened["IMU[0]"].channels] == ["m/s/s"] * 3 + [None]
    group = next(g for g in opened["AHR2"].kinds.groups if g.kind == "quaternion")
    assert group.columns == (3, 4, 5, 2)
    yaw = opened.select(["ATT"]).align(200.0).tracks["ATT"].values[:, 2]
    assert yaw.min() >= 0 and yaw.max() < 360
    assert not ((yaw > 20) & (yaw < 340)).any()  # from 350 up to 9, through 0
    places = {each.place for each in opened.left_out}
    assert {"PARM", "MSG"} <= places


def test_text_log_equals_binary_log(tmp_path):
    binary = data.open(written(tmp_path / "x.bin", log_files.dataflash()))
    text = data.open(written(tmp_path / "x.log", log_files.dataflash_text()))
    assert text.names == binary.names and text.unit == binary.unit
    for name in binary:
        assert text[name].names == binary[name].names
        assert text[name].times().tolist() == binary[name].times().tolist()
        np.testing.assert_allclose(text[name].values, binary[name].values, rtol=1e-6)
        assert text[name].channels == binary[name].channels


def test_dataflash_says_where_it_is_damaged(tmp_path):
    content = log_files.dataflash()
    whole = data.open(written(tmp_path / "x.bin", content)).load()
    broken = bytearray(content)
    place = content.rindex(b"\xa3\x95\x06")
    broken[place] = 0
    path = written(tmp_path / "broken.bin", broken)
    with pytest.raises(data.FormatError, match=rf"byte {place}: .*expected a395"):
        data.open(path)
    kept = data.open(path, damaged="keep")
    assert len(kept["ATT"]) == 19 and len(kept["AHR2"]) == 20
    cut = written(tmp_path / "cut.bin", content[:-10])
    place = content.rindex(b"\xa3\x95\x08")
    match = rf"byte {place}: is truncated: the log ends .*damaged='keep'"
    with pytest.raises(data.FormatError, match=match):
        data.open(cut)
    kept = data.open(cut, damaged="keep").load()
    assert len(kept["AHR2"]) == 19 and len(kept.problems) == 1
    padded = data.open(written(tmp_path / "padded.bin", content + b"\xff" * 2000))
    assert len(padded["AHR2"]) == len(whole["AHR2"]) and padded.problems == ()


def test_text_log_whose_first_line_has_no_columns(tmp_path):
    """APM Planner writes the definition of FMT with four names."""
    content = b"FMT, 128, 89, FMT, BBnNZ, Type,Length,Name,Format\r\n"
    content += log_files.dataflash_text().replace(b"\n", b"\r\n")
    opened = data.open(written(tmp_path / "x.log", content))
    assert len(opened["ATT"]) == 20 and opened.problems == ()


def test_text_log_says_where_it_is_damaged(tmp_path):
    lines = log_files.dataflash_text().decode().split("\n")
    at = next(i for i, line in enumerate(lines) if line.startswith("ATT"))
    for bad, text in (("ATT, 1000, x, 1, 2", "Roll of ATT is 'x'"), ("ATT, 1", "has 1 fields")):
        path = written(tmp_path / "x.log", "\n".join([*lines[:at], bad, *lines[at:]]).encode())
        with pytest.raises(data.FormatError, match=f"line {at + 1}: .*{text}"):
            data.open(path)
        assert len(data.open(path, damaged="keep")["ATT"]) == 20
    path = written(tmp_path / "cut.log", log_files.dataflash_text()[:-3])
    place = log_files.dataflash_text().count(b"\n")
    with pytest.raises(data.FormatError, match=rf"line {place}: is truncated: .*damaged='keep'"):
        data.open(path)
    kept = data.open(path, damaged="keep").load()
    assert len(kept["AHR2"]) == 19 and len(kept.problems) == 1


# ---- clocks in ms, and files made to take long ----


@pytest.mark.parametrize("letter", ["I", "Q"])
def test_milliseconds_become_microseconds(tmp_path, letter):
    """Old logs count ms: the product with 1000 does not fit the type in the file."""
    times = [1000, 4_294_968, 4_294_967_295]  # the last two are 2**32 us and more
    made = log_files.DataFlashBytes()
    made.define(6, "GPS", f"{letter}f", "T,Spd")
    made.define(7, "BARO", f"{letter}f", "TimeMS,Alt")
    lines = [f"FMT, 6, 11, GPS, {letter}f, T,Spd", f"FMT, 7, 11, BARO, {letter}f, TimeMS,Alt"]
    for at in times:
        made.add("GPS", at, 0.5)
        made.add("BARO", at, 1.5)
        lines += [f"GPS, {at}, 0.5", f"BARO, {at}, 1.5"]
    text = "".join(f"{line}\n" for line in lines).encode()
    for path, content in ((tmp_path / "x.bin", made.data), (tmp_path / "x.log", text)):
        log = data.open(written(path, content))
        for name in ("GPS", "BARO"):
            assert log[name].times().tolist() == [at * 1000 for at in times]


def test_times_that_do_not_fit_are_skipped(tmp_path):
    made = log_files.DataFlashBytes()
    made.define(7, "BARO", "Qf", "TimeMS,Alt")
    for at in (5, 2**63 // 1000 + 1, 2**64 - 1, 6):
        made.add("BARO", at, 1.5)
    with pytest.raises(data.FormatError, match="2 messages of BARO have a time below 0 or of 2"):
        data.open(written(tmp_path / "x.bin", made.data))
    kept = data.open(tmp_path / "x.bin", damaged="keep")
    assert kept["BARO"].times().tolist() == [5000, 6000]
    lines = "FMT, 7, 15, BARO, Qf, TimeMS,Alt\nBARO, 9223372036854776, 1\nBARO, 6, 1\n"
    kept = data.open(written(tmp_path / "x.log", lines.encode()), damaged="keep")
    assert kept["BARO"].times().tolist() == [6000] and len(kept.problems) == 1


def test_a_number_that_is_called_time_is_no_clock(tmp_path):
    lines = "FMT, 7, 19, NAV, Qif, TimeUS,TimeLeft,Alt\nNAV, 1000, -5, 1.5\nNAV, 2000, 7, 1.5\n"
    log = data.open(written(tmp_path / "x.log", lines.encode()))
    assert log["NAV"].values[:, 0].tolist() == [-5, 7]


def test_much_damage_takes_a_time_in_proportion(tmp_path, monkeypatch):
    """After damage, little is read again: the bytes read stay a multiple of the file."""
    binary = log_files.dataflash(rows=2000)
    at = binary.index(b"\xa3\x95\x06")
    parts = [binary[:at]]
    for begin in range(at, len(binary), 997):
        parts += [binary[begin : begin + 997], b"damage"]
    content = log_files.ulog(rows=2000)
    first = content.rindex(b"vehicle_attitude") + 200
    pieces = [content[:first]]
    for begin in range(first, len(content), 997):
        pieces += [content[begin : begin + 997], b"damage"]
    for path, whole in ((tmp_path / "x.bin", parts), (tmp_path / "x.ulg", pieces)):
        written(path, b"".join(whole) + bytes(16 << 20))
        counts = []

        def counting(path, counts=counts):
            return Counting(opened(path), counts)

        monkeypatch.setattr(dataflash, "opened", counting)
        monkeypatch.setattr(ulog, "opened", counting)
        data.open(path, damaged="keep")
        assert sum(counts) < 3 * path.stat().st_size + len(whole) * (1 << 19)


class Counting:
    """A file that notes how many bytes each read returns."""

    def __init__(self, file, counts):
        self.file, self.counts = file, counts

    def __getattr__(self, name):
        return getattr(self.file, name)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.file.close()

    def read(self, size=-1):
        content = self.file.read(size)
        self.counts.append(len(content))
        return content


def test_many_wrong_lines_are_examined_once(tmp_path, monkeypatch):
    calls = []
    real = dataflash_text._numbers
    monkeypatch.setattr(
        dataflash_text, "_numbers", lambda *arguments: calls.append(0) or real(*arguments)
    )
    head = "FMT, 7, 15, BARO, Qf, TimeUS,Alt\n"
    lines = "".join(f"BARO, {i}, {'x' if i % 2 else 1}\n" for i in range(1000))
    kept = data.open(written(tmp_path / "x.log", (head + lines).encode()), damaged="keep")
    assert len(kept["BARO"]) == 500 and len(kept.problems) == 500
    assert len(calls) == 2  # times and altitudes


def test_many_instances(tmp_path):
    made = log_files.DataFlashBytes()
    made.define(7, "NAME", "QNf", "TimeUS,Name,Value")
    order = np.random.default_rng(0).permutation(300).tolist()
    for at, i in enumerate([*order, *order]):
        made.add("NAME", at, f"n{i}", float(i))
    log = data.open(written(tmp_path / "x.bin", made.data))
    assert len(log.names) == 300
    for i in (0, 7, 299):
        stream = log[f"NAME[n{i}]"]
        assert stream.times().tolist() == [order.index(i), 300 + order.index(i)]
        assert stream.values.ravel().tolist() == [i, i]
