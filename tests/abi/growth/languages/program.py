"""A program of release 0.1.0 in Python.

program.py LIBRARY    where LIBRARY is the file that must be loaded
"""

import sys

import first as rbc


def array(kind, values):
    made = getattr(rbc, f"new_{kind}")(len(values))
    for i, value in enumerate(values):
        getattr(rbc, f"{kind}_setitem")(made, i, value)
    return made


def read(kind, values, count):
    return [getattr(rbc, f"{kind}_getitem")(values, i) for i in range(count)]


CODES = {
    "floats": (rbc.RBC_DTYPE_FLOAT, 32),
    "doubles": (rbc.RBC_DTYPE_FLOAT, 64),
    "longs": (rbc.RBC_DTYPE_INT, 64),
    "ints": (rbc.RBC_DTYPE_INT, 32),
    "bytes": (rbc.RBC_DTYPE_UINT, 8),
}


def tensor(kind, values, *shape):
    made = rbc.rbcTensor()
    made.data = getattr(rbc, f"{kind}_address")(values)
    made.device.type = rbc.RBC_DEVICE_CPU
    made.device.id = 0
    made.dtype.code, made.dtype.bits = CODES[kind]
    made.dtype.lanes = 1
    made.ndim = len(shape)
    made.shape = array("longs", shape)
    made.strides = None
    made.byte_offset = 0
    return made


def given(kind, values, *shape):
    return tensor(kind, array(kind, values), *shape)


def require(status, expected, message=""):
    told = rbc.rbcGetLastError()
    assert status == expected, (status, told)
    assert expected == rbc.RBC_STATUS_SUCCESS or told.startswith(message), told


def resample(context):
    times = array("doubles", [0, 1, 3])
    out, mask = array("floats", [9] * 6), array("bytes", [9] * 3)
    mean, inv_std = given("floats", [1, 0], 2), given("floats", [2, 1], 2)
    groups = rbc.new_groups(2)
    for i, (begin, method) in enumerate([(1, rbc.RBC_METHOD_PREVIOUS), (0, rbc.RBC_METHOD_LINEAR)]):
        group = rbc.rbcChannelGroup()
        group.begin, group.count, group.method, group.reserved = begin, 1, method, 0
        rbc.groups_setitem(groups, i, group)
    params = rbc.rbcResampleParamsInit()
    params.flags, params.bounds, params.fill_value = rbc.RBC_CHECK_TIMES, rbc.RBC_BOUNDS_FILL, -1
    params.max_gap, params.tolerance = 2, 1.5
    params.mean, params.inv_std = mean, inv_std
    params.groups, params.num_groups = groups, 2
    arguments = (
        context,
        given("floats", [0, 10, 2, 20, 6, 30], 3, 2),
        tensor("doubles", times, 3),
        given("doubles", [0.5, 2, 5], 3),
        tensor("floats", out, 3, 2),
        tensor("bytes", mask, 3),
        params,
    )
    require(rbc.rbcResample(*arguments), rbc.RBC_STATUS_SUCCESS)
    assert read("floats", out, 6) == [0, 10, 6, 20, -1, -1]
    assert read("bytes", mask, 3) == [1, 1, 0]
    rbc.doubles_setitem(times, 2, 0.5)
    message = "times: row 0 decreases at index 2 (1 -> 0.5)"
    require(rbc.rbcResample(*arguments), rbc.RBC_STATUS_INVALID_ARGUMENT, message)


def fuse(context):
    times = given("doubles", [0, 2], 2)
    values = [
        given("floats", [0, 4], 1, 2, 1),
        given("doubles", [10, 20], 1, 2, 1),
        given("floats", [100, 200], 1, 2, 1),
    ]
    nearest = rbc.rbcResampleParamsInit()
    nearest.method = rbc.RBC_METHOD_NEAREST
    streams = rbc.new_streams(3)

    def put(n, of):
        stream = rbc.rbcFuseStreamInit()
        stream.values, stream.times = of, times
        stream.params = nearest if n == 1 else None
        stream.clock_offset = 1 if n == 2 else 0
        rbc.streams_setitem(streams, n, stream)

    for n in range(3):
        put(n, values[n])
    out, mask = array("floats", [9] * 9), array("bytes", [9] * 9)
    lengths = given("longs", [2], 1)
    params = rbc.rbcFuseParamsInit()
    params.query_lengths = lengths
    arguments = (
        context,
        streams,
        3,
        given("doubles", [1, 1.5, 1], 3),
        tensor("floats", out, 1, 3, 3),
        tensor("bytes", mask, 1, 3, 3),
        params,
    )
    require(rbc.rbcFuse(*arguments), rbc.RBC_STATUS_SUCCESS)
    assert read("floats", out, 9) == [2, 10, 100, 3, 20, 125, 0, 0, 0]
    assert read("bytes", mask, 9) == [1, 1, 1, 1, 1, 1, 0, 0, 0]
    put(2, None)
    message = "streams[2].values: is null"
    require(rbc.rbcFuse(*arguments), rbc.RBC_STATUS_INVALID_ARGUMENT, message)


def voxelize(context):
    counted, outside = array("ints", [9] * 8), array("longs", [9])
    params = rbc.rbcVoxelizeParamsInit()
    params.mode, params.empty_value = rbc.RBC_VOXEL_COUNT, -7
    params.grid.origin = array("doubles", [0, 0, 0])
    params.grid.voxel_size = array("doubles", [1, 1, 1])
    params.grid.shape = array("longs", [2, 2, 2])
    offsets = given("longs", [0, 4], 2)
    params.offsets = offsets
    points = [1.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.25, 9, 9, 9]
    out, dropped = tensor("ints", counted, 1, 2, 2, 2), tensor("longs", outside, 1)
    cloud = given("floats", points, 4, 3)
    status = rbc.rbcVoxelize(context, cloud, None, out, dropped, params)
    require(status, rbc.RBC_STATUS_SUCCESS)
    assert read("ints", counted, 8) == [2, -7, -7, -7, 1, -7, -7, -7]
    assert read("longs", outside, 1) == [1]
    flat = given("floats", points, 12)
    status = rbc.rbcVoxelize(context, flat, None, out, dropped, params)
    require(status, rbc.RBC_STATUS_SHAPE_MISMATCH, "points: ")


def main(library):
    made = rbc.new_context()
    params = rbc.rbcContextParamsInit()
    params.backend, params.num_threads = rbc.RBC_BACKEND_CPU, 2
    require(rbc.rbcContextCreate(params, made), rbc.RBC_STATUS_SUCCESS)
    context = rbc.context_value(made)
    with open("/proc/self/maps") as maps:
        assert f" {library}\n" in maps.read(), f"{library} is not loaded"
    resample(context)
    fuse(context)
    voxelize(context)
    params.backend = 77
    status = rbc.rbcContextCreate(params, made)
    require(status, rbc.RBC_STATUS_INVALID_ARGUMENT, "params: backend is 77, expected ")
    require(rbc.rbcContextDestroy(context), rbc.RBC_STATUS_SUCCESS)


main(sys.argv[1])
