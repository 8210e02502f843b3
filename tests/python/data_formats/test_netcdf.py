"""NetCDF-4 files and objects of xarray, compared with xarray's own decoding."""

from __future__ import annotations

import numpy as np
import pytest

import fuzz_readers
import robocache as rbc

xr = pytest.importorskip("xarray")
netCDF4 = pytest.importorskip("netCDF4")
data = rbc.data
PARTS = ["x", "y", "z", "w"]


def of_robot(seed=0, rows=40):
    rng = np.random.default_rng(seed)
    times = np.datetime64("2024-03-01T12:00:00", "ns") + np.cumsum(
        rng.integers(1, 10**9, rows)
    ) * np.timedelta64(1, "ns")
    turns = rng.normal(size=(rows, 4))
    turns /= np.linalg.norm(turns, axis=1, keepdims=True)
    slow = np.arange(7) * 0.25
    return xr.Dataset(
        {
            "a": ("time", rng.normal(size=rows)),
            "b": ("time", rng.normal(size=rows).astype("f4")),
            "turn": (("part", "time"), turns.T),
            "cov": (("time", "i", "j"), rng.normal(size=(rows, 2, 3))),
            "count": ("time", rng.integers(0, 1 << 60, rows)),
            "flag": ("time", rng.random(rows) < 0.5),
            "force": (("t_s", "axis"), rng.normal(size=(7, 3))),
            "matrix": (("i", "j"), rng.normal(size=(2, 3))),
            "frame": (("time", "h", "w", "c"), np.zeros((rows, 4, 4, 3), "u1")),
            "scale": 2.5,
        },
        coords={"time": times, "part": PARTS, "t_s": slow, "axis": [10, 20, 30]},
    )


def expected_of(source):
    return {
        "time": (np.column_stack([source[n].values for n in ("a", "b", "flag")]), "time"),
        "turn": (source["turn"].values.T, "time"),
        "cov": (source["cov"].values.reshape(len(source["time"]), 6), "time"),
        "count": (source["count"].values[:, None], "time"),
        "force": (source["force"].values, "t_s"),
    }


def same(given, source):
    expected = expected_of(source)
    assert set(given.names) == set(expected) and given.unit == "ns"
    for name, (values, dim) in expected.items():
        np.testing.assert_array_equal(given[name].values, values)
        times = source[dim].values
        whole = times.astype("M8[ns]").view("i8") if dim == "time" else np.rint(times * 1e9)
        np.testing.assert_array_equal(given[name].times(), whole.astype("i8"))
    assert given["turn"].names == tuple(PARTS)
    assert {channel.kind for channel in given["turn"].channels} == {"quaternion"}
    assert given["cov"].names == ("[0][0]", "[0][1]", "[0][2]", "[1][0]", "[1][1]", "[1][2]")
    assert given["force"].names == ("[0]", "[1]", "[2]")
    left_out = {each.place: each.reason for each in given.left_out}
    assert left_out["matrix"] == "is constant: none of its dimensions has times"
    assert left_out["scale"] == "a single number" and left_out["frame"].startswith("pictures")
    assert not given.unread


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("engine", ["netcdf4", "h5netcdf"])
def test_files_of_xarray(tmp_path, seed, engine):
    pytest.importorskip(engine.replace("netcdf4", "netCDF4"))
    source = of_robot(seed)
    packed = {"cov": {"zlib": True}, "force": {"_FillValue": 1e30}}
    source.to_netcdf(tmp_path / "x", engine=engine, encoding=packed)
    same(data.open(tmp_path / "x"), source)


@pytest.mark.parametrize("seed", range(3))
def test_objects(seed):
    source = of_robot(seed)
    same(data.from_xarray(source), source)
    one = data.from_xarray(source["turn"])
    assert one.names == ("turn",)
    np.testing.assert_array_equal(one["turn"].values, source["turn"].values.T)
    plain = xr.DataArray(np.arange(6.0).reshape(3, 2), dims=("row", "col"))
    given = data.from_xarray(plain, rate=10)
    assert given.names == ("values",) and given["values"].times().tolist() == [0, 0.1, 0.2]
    (unread,) = data.from_xarray(plain).unread
    assert unread.place == "values" and "no coordinate" in unread.reason


@pytest.mark.parametrize("mode", ["NETCDF4", "NETCDF4_CLASSIC"])
def test_packed_values(tmp_path, mode):
    rng = np.random.default_rng(5)
    rows = 30
    with netCDF4.Dataset(tmp_path / "x.nc", "w", format=mode) as file:
        file.createDimension("time", None)
        time = file.createVariable("time", "f8", ("time",))
        time.units, time[:] = "hours since 1999-12-31 23:30:00 +01:00", np.arange(rows) / 4
        packed = file.createVariable("packed", "i2", ("time",), fill_value=-9)
        packed.scale_factor, packed.add_offset = 0.25, 100.0
        packed[:] = np.ma.array(rng.integers(0, 99, rows) / 4 + 100, mask=rng.random(rows) < 0.2)
        whole = file.createVariable("whole", "i4", ("time",))
        whole.missing_value = np.int32(7)
        whole[:] = np.arange(rows)
        single = file.createVariable("single", "f4", ("time",), fill_value=1e20)
        single[:] = np.ma.array(rng.normal(size=rows), mask=rng.random(rows) < 0.2)
        yaw = file.createVariable("yaw", "f8", ("time",))
        yaw.units, yaw[:] = "degrees", np.linspace(0, 3, rows)
    given = data.open(tmp_path / "x.nc")
    (stream,) = given.streams.values()
    assert stream.names == ("packed", "whole", "single", "yaw [deg]")
    assert (stream.channels[3].kind, stream.channels[3].unit) == ("angle", "deg")
    with xr.open_dataset(tmp_path / "x.nc") as source:
        for i, name in enumerate(("packed", "whole", "single", "yaw")):
            np.testing.assert_array_equal(stream.values[:, i], source[name].values)
        times = source["time"].values.astype("M8[ns]").view("i8")
    np.testing.assert_array_equal(stream.times(), times)
    with xr.open_dataset(tmp_path / "x.nc", decode_cf=False) as raw:
        again = data.from_xarray(raw)["time"]
        np.testing.assert_array_equal(again.values, stream.values)
        np.testing.assert_array_equal(again.times(), stream.times())


def test_groups_and_labels(tmp_path):
    given = data.open(fuzz_readers.FORMATS["netcdf"](tmp_path))
    assert given.names == ("time", "imu/a", "q") and given["q"].names == tuple(PARTS)
    assert given["time"].names == ("x", "yaw [deg]", "t")
    np.testing.assert_array_equal(given["q"].values, np.eye(20, 4))
    np.testing.assert_array_equal(given["time"].values[:, 2], np.arange(20) / 2)
    begin = 1_704_067_200 * 10**9
    assert given["q"].times().tolist() == [begin + i * 10**7 for i in range(20)]
    assert given["imu/a"].times().tolist() == [begin + i * 10**8 for i in range(5)]


def test_characters_and_bare_dimensions(tmp_path):
    with netCDF4.Dataset(tmp_path / "x.nc", "w") as file:
        for name, size in (("time", 3), ("joint", 2), ("letters", 8)):
            file.createDimension(name, size)
        file.createVariable("joint", "S1", ("joint", "letters"))[:] = netCDF4.stringtochar(
            np.array(["elbow", "wrist"], "S8")
        )
        file.createVariable("stamp_ms", "i4", ("time",))[:] = [0, 10, 30]
        file.createVariable("position", "f8", ("time", "joint"))[:] = np.arange(6).reshape(3, 2)
        file.createVariable("word", str, ("time",))[:] = np.array(["a", "b", "c"], object)
    given = data.open(tmp_path / "x.nc")
    assert given.names == ("position",) and given["position"].names == ("elbow", "wrist")
    assert given["position"].times().tolist() == [0, 10, 30] and given.unit == "ms"
    assert [str(each) for each in given.left_out] == ["word: has texts, which are not read"]


def test_rows_that_were_not_written(tmp_path):
    with netCDF4.Dataset(tmp_path / "x.nc", "w") as file:
        file.createDimension("time", None)
        file.createVariable("time", "f8", ("time",))[:] = np.arange(5) / 10
        file.createVariable("x", "f8", ("time",))[:] = np.arange(3)
        file.createVariable("n", "i4", ("time",))[:] = np.arange(2)
        file.createVariable("m", "f4", ("time",))
    given = data.open(tmp_path / "x.nc").load()
    with netCDF4.Dataset(tmp_path / "x.nc") as file:
        for i, name in enumerate("xnm"):
            expected = file[name][:].astype("f8").filled(np.nan)
            np.testing.assert_array_equal(given["time"].values[:, i], expected)
    assert [(p.place, p.text) for p in given.problems] == [
        ("x", "rows 3 to 4 were never written, and read as NaN"),
        ("n", "rows 2 to 4 were never written, and read as NaN"),
        ("m", "rows 0 to 4 were never written, and read as NaN"),
    ]


def test_the_name_of_the_times():
    source = xr.Dataset({"mine": ("row", [0, 5, 10]), "x": ("row", [1.0, 2, 3])})
    given = data.from_xarray(source, time="mine:ms")
    assert given.names == ("x",) and given["x"].times().tolist() == [0, 5, 10]
    assert given.unit == "ms"
    with pytest.raises(data.FormatError, match="--time no: no such variable.*mine, x"):
        data.from_xarray(source, time="no")


@pytest.mark.parametrize(
    ("values", "units", "match"),
    [
        ([0, 1], "fortnights since 2000-01-01", "has the unit 'fortnights since 2000-01-01'"),
        ([0, 1], "seconds since yesterday", "expected one like 'seconds since 2000-01-01"),
        ([0, 1], "days since 2000-02-30", "has the unit 'days since 2000-02-30'"),
        ([0, 10**6], "days since 2000-01-01", "do not fit in 64 bits"),
        ([0.0, 1e300], "s since 2000-01-01", "do not fit in 64 bits"),
        ([0.0, np.nan], "s since 2000-01-01", "t, row 1: 1 of 2 rows has no time"),
    ],
)
def test_times_that_cannot_be_read(values, units, match):
    times = xr.Variable("t", values, {"units": units})
    source = xr.Dataset({"x": ("t", [1.0, 2.0])}, {"t": times})
    with pytest.raises(data.FormatError, match=match):
        data.from_xarray(source)


def test_calendars_and_dates_out_of_range():
    times = xr.Variable("t", [0, 1], {"units": "days since 2000-01-01", "calendar": "360_day"})
    with pytest.raises(data.FormatError, match="calendar 360_day"):
        data.from_xarray(xr.Dataset({"x": ("t", [1.0, 2.0])}, {"t": times}))
    far = np.array(["2024-01-01", "3000-01-01"], "M8[s]")
    with pytest.raises(data.FormatError, match="do not fit in 64 bits as ns"):
        data.from_xarray(xr.Dataset({"x": ("t", [1.0, 2.0])}, {"t": far}))
    missing = np.array(["2024-01-01", "NaT"], "M8[ns]")
    source = xr.Dataset({"x": ("t", [1.0, 2.0])}, {"t": missing})
    kept = data.from_xarray(source, damaged="keep")
    assert kept["x"].values.tolist() == [[1.0]] and len(kept.problems) == 1


def test_integers_that_float64_rounds():
    values = xr.Variable("time", [2**53 + 1, 5], {"_FillValue": 5})
    source = xr.Dataset({"x": values}, {"time": [0.0, 1.0]})
    with pytest.raises(data.FormatError, match=r"x: has missing values and integers above 2\*\*53"):
        data.from_xarray(source).load()


def test_other_objects():
    for wrong in (np.ones(3), {"a": 1}, xr.Variable("t", [1])):
        with pytest.raises(TypeError, match="expected an xarray Dataset"):
            data.from_xarray(wrong)
    source = xr.Dataset({"q": (("time", "n"), np.ones((3, 4)))}, {"time": [0.0, 1, 2]})
    given = data.from_xarray(source, kinds={"q": {"0-3": "quaternion_wxyz"}})
    assert {channel.kind for channel in given["q"].channels} == {"quaternion"}


def test_damage(tmp_path):
    path = fuzz_readers.FORMATS["netcdf"](tmp_path)
    content = path.read_bytes()
    for size in range(16 << 10, len(content), 499):
        path.write_bytes(content[:size])
        with pytest.raises(data.FormatError, match="damaged or truncated"):
            data.open(path)
    with netCDF4.Dataset(tmp_path / "empty.nc", "w") as file:
        file.createDimension("time", 3)
    with pytest.raises(data.FormatError, match="has no variable that is an array of numbers"):
        data.open(tmp_path / "empty.nc")
