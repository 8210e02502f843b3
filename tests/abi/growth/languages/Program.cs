// A program of release 0.1.0 in C#.
//
//   Program.exe LIBRARY    where LIBRARY is the file that must be loaded
using System;
using System.Collections.Generic;
using System.IO;

static class Program {
  // What tensors and structs point to stays as long as the program.
  static readonly List<object> Kept = new List<object>();

  static SWIGTYPE_p_rbcContext context;

  static T Keep<T>(T made) {
    Kept.Add(made);
    return made;
  }

  static void Require(bool condition, string text) {
    if (condition) return;
    Console.Error.WriteLine("failed: {0} (last error: {1})", text, first.rbcGetLastError());
    Environment.Exit(1);
  }

  static void Succeeds(rbcStatus_t status, string call) {
    Require(status == rbcStatus_t.RBC_STATUS_SUCCESS, call + ": " + status);
  }

  static void Refused(rbcStatus_t status, rbcStatus_t expected, string message) {
    Require(status == expected, "the status of: " + message + ": " + status);
    Require(first.rbcGetLastError().StartsWith(message, StringComparison.Ordinal), message);
  }

  static SWIGTYPE_p_long Longs(params long[] values) {
    var made = first.new_longs(values.Length);
    for (int i = 0; i < values.Length; ++i) first.longs_setitem(made, i, values[i]);
    return made;
  }

  static SWIGTYPE_p_double Doubles(params double[] values) {
    var made = first.new_doubles(values.Length);
    for (int i = 0; i < values.Length; ++i) first.doubles_setitem(made, i, values[i]);
    return made;
  }

  static SWIGTYPE_p_float Floats(params float[] values) {
    var made = first.new_floats(values.Length);
    for (int i = 0; i < values.Length; ++i) first.floats_setitem(made, i, values[i]);
    return made;
  }

  static rbcTensor Tensor(SWIGTYPE_p_void data, int code, byte bits, long[] shape) {
    var made = Keep(new rbcTensor());
    made.data = data;
    made.device.type = first.RBC_DEVICE_CPU;
    made.device.id = 0;
    made.dtype.code = (byte)code;
    made.dtype.bits = bits;
    made.dtype.lanes = 1;
    made.ndim = shape.Length;
    made.shape = Longs(shape);
    made.strides = null;
    made.byte_offset = 0;
    return made;
  }

  static rbcTensor Of(SWIGTYPE_p_float data, params long[] shape) {
    return Tensor(first.floats_address(data), first.RBC_DTYPE_FLOAT, 32, shape);
  }

  static rbcTensor Of(SWIGTYPE_p_double data, params long[] shape) {
    return Tensor(first.doubles_address(data), first.RBC_DTYPE_FLOAT, 64, shape);
  }

  static rbcTensor Of(SWIGTYPE_p_long data, params long[] shape) {
    return Tensor(first.longs_address(data), first.RBC_DTYPE_INT, 64, shape);
  }

  static rbcTensor Of(SWIGTYPE_p_int data, params long[] shape) {
    return Tensor(first.ints_address(data), first.RBC_DTYPE_INT, 32, shape);
  }

  static rbcTensor Of(SWIGTYPE_p_unsigned_char data, params long[] shape) {
    return Tensor(first.bytes_address(data), first.RBC_DTYPE_UINT, 8, shape);
  }

  static void Same(SWIGTYPE_p_float values, string what, params float[] expected) {
    for (int i = 0; i < expected.Length; ++i)
      Require(first.floats_getitem(values, i) == expected[i], what);
  }

  static void Same(SWIGTYPE_p_unsigned_char values, string what, params byte[] expected) {
    for (int i = 0; i < expected.Length; ++i)
      Require(first.bytes_getitem(values, i) == expected[i], what);
  }

  static rbcChannelGroup Group(long begin, int method) {
    var made = Keep(new rbcChannelGroup());
    made.begin = begin;
    made.count = 1;
    made.method = method;
    made.reserved = 0;
    return made;
  }

  static void Resample() {
    var times = Doubles(0, 1, 3);
    var output = Floats(9, 9, 9, 9, 9, 9);
    var mask = first.new_bytes(3);
    var groups = Keep(first.new_groups(2));
    first.groups_setitem(groups, 0, Group(1, first.RBC_METHOD_PREVIOUS));
    first.groups_setitem(groups, 1, Group(0, first.RBC_METHOD_LINEAR));
    var options = Keep(first.rbcResampleParamsInit());
    options.flags = first.RBC_CHECK_TIMES;
    options.bounds = first.RBC_BOUNDS_FILL;
    options.fill_value = -1;
    options.max_gap = 2;
    options.tolerance = 1.5;
    options.mean = Of(Floats(1, 0), 2);
    options.inv_std = Of(Floats(2, 1), 2);
    options.groups = groups;
    options.num_groups = 2;
    var values = Of(Floats(0, 10, 2, 20, 6, 30), 3, 2);
    var at = Of(times, 3);
    var queries = Of(Doubles(0.5, 2, 5), 3);
    var result = Of(output, 3, 2);
    var valid = Of(mask, 3);
    Succeeds(first.rbcResample(context, values, at, queries, result, valid, options), "resample");
    Same(output, "resample", 0, 10, 6, 20, -1, -1);
    Same(mask, "the mask of resample", 1, 1, 0);
    first.doubles_setitem(times, 2, 0.5);
    Refused(first.rbcResample(context, values, at, queries, result, valid, options),
            rbcStatus_t.RBC_STATUS_INVALID_ARGUMENT,
            "times: row 0 decreases at index 2 (1 -> 0.5)");
  }

  static void Fuse() {
    var times = Of(Doubles(0, 2), 2);
    var values = new[] {
      Of(Floats(0, 4), 1, 2, 1), Of(Doubles(10, 20), 1, 2, 1), Of(Floats(100, 200), 1, 2, 1)
    };
    var nearest = Keep(first.rbcResampleParamsInit());
    nearest.method = first.RBC_METHOD_NEAREST;
    var streams = Keep(first.new_streams(3));
    for (int n = 0; n < 3; ++n) {
      var stream = Keep(first.rbcFuseStreamInit());
      stream.values = values[n];
      stream.times = times;
      stream.parameters = n == 1 ? nearest : null;
      stream.clock_offset = n == 2 ? 1 : 0;
      first.streams_setitem(streams, n, stream);
    }
    var options = Keep(first.rbcFuseParamsInit());
    options.query_lengths = Of(Longs(2), 1);
    var output = Floats(9, 9, 9, 9, 9, 9, 9, 9, 9);
    var mask = first.new_bytes(9);
    var queries = Of(Doubles(1, 1.5, 1), 3);
    var result = Of(output, 1, 3, 3);
    var valid = Of(mask, 1, 3, 3);
    Succeeds(first.rbcFuse(context, streams, 3, queries, result, valid, options), "fuse");
    Same(output, "fuse", 2, 10, 100, 3, 20, 125, 0, 0, 0);
    Same(mask, "the mask of fuse", 1, 1, 1, 1, 1, 1, 0, 0, 0);
    first.streams_setitem(streams, 2, Keep(first.rbcFuseStreamInit()));
    Refused(first.rbcFuse(context, streams, 3, queries, result, valid, options),
            rbcStatus_t.RBC_STATUS_INVALID_ARGUMENT, "streams[2].values: is null");
  }

  static void Voxelize() {
    var counted = first.new_ints(8);
    var outside = Longs(9);
    var options = Keep(first.rbcVoxelizeParamsInit());
    options.mode = first.RBC_VOXEL_COUNT;
    options.empty_value = -7;
    options.grid.origin = Doubles(0, 0, 0);
    options.grid.voxel_size = Doubles(1, 1, 1);
    options.grid.shape = Longs(2, 2, 2);
    options.offsets = Of(Longs(0, 4), 2);
    var points = Floats(1.5f, .5f, .5f, .5f, .5f, .5f, .5f, .5f, .25f, 9, 9, 9);
    var result = Of(counted, 1, 2, 2, 2);
    var dropped = Of(outside, 1);
    Succeeds(first.rbcVoxelize(context, Of(points, 4, 3), null, result, dropped, options),
             "voxelize");
    int[] expected = {2, -7, -7, -7, 1, -7, -7, -7};
    for (int i = 0; i < 8; ++i) Require(first.ints_getitem(counted, i) == expected[i], "voxelize");
    Require(first.longs_getitem(outside, 0) == 1, "the points outside");
    Refused(first.rbcVoxelize(context, Of(points, 12), null, result, dropped, options),
            rbcStatus_t.RBC_STATUS_SHAPE_MISMATCH, "points: ");
  }

  static void Main(string[] arguments) {
    var made = first.new_context();
    var options = first.rbcContextParamsInit();
    options.backend = first.RBC_BACKEND_CPU;
    options.num_threads = 2;
    Succeeds(first.rbcContextCreate(options, made), "rbcContextCreate");
    context = first.context_value(made);
    Require(File.ReadAllText("/proc/self/maps").Contains(" " + arguments[0] + "\n"),
            arguments[0] + " is loaded");
    Resample();
    Fuse();
    Voxelize();
    options.backend = 77;
    Refused(first.rbcContextCreate(options, made), rbcStatus_t.RBC_STATUS_INVALID_ARGUMENT,
            "params: backend is 77, expected ");
    Succeeds(first.rbcContextDestroy(context), "rbcContextDestroy");
    GC.KeepAlive(Kept);
  }
}
