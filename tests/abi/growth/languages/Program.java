import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * A program of release 0.1.0 in Java.
 *
 * <p>java Program WRAPPER LIBRARY, where LIBRARY is the file that must be loaded.
 */
public final class Program {
  /** What tensors and structs point to stays as long as the program. */
  private static final List<Object> KEPT = new ArrayList<>();

  private static SWIGTYPE_p_rbcContext context;

  private static <T> T keep(T made) {
    KEPT.add(made);
    return made;
  }

  private static void require(boolean condition, String text) {
    if (!condition) {
      throw new AssertionError(text + " (last error: " + first.rbcGetLastError() + ")");
    }
  }

  private static void succeeds(rbcStatus_t status, String call) {
    require(status == rbcStatus_t.RBC_STATUS_SUCCESS, call + ": " + status);
  }

  private static void refused(rbcStatus_t status, rbcStatus_t expected, String message) {
    require(status == expected, "the status of: " + message + ": " + status);
    require(first.rbcGetLastError().startsWith(message), message);
  }

  private static SWIGTYPE_p_long longs(long... values) {
    SWIGTYPE_p_long made = first.new_longs(values.length);
    for (int i = 0; i < values.length; ++i) {
      first.longs_setitem(made, i, values[i]);
    }
    return made;
  }

  private static SWIGTYPE_p_double doubles(double... values) {
    SWIGTYPE_p_double made = first.new_doubles(values.length);
    for (int i = 0; i < values.length; ++i) {
      first.doubles_setitem(made, i, values[i]);
    }
    return made;
  }

  private static SWIGTYPE_p_float floats(float... values) {
    SWIGTYPE_p_float made = first.new_floats(values.length);
    for (int i = 0; i < values.length; ++i) {
      first.floats_setitem(made, i, values[i]);
    }
    return made;
  }

  private static rbcTensor tensor(SWIGTYPE_p_void data, int code, int bits, long... shape) {
    rbcTensor made = keep(new rbcTensor());
    made.setData(data);
    made.getDevice().setType(first.RBC_DEVICE_CPU);
    made.getDevice().setId(0);
    made.getDtype().setCode((short) code);
    made.getDtype().setBits((short) bits);
    made.getDtype().setLanes(1);
    made.setNdim(shape.length);
    made.setShape(longs(shape));
    made.setStrides(null);
    made.setByte_offset(0);
    return made;
  }

  private static rbcTensor of(SWIGTYPE_p_float data, long... shape) {
    return tensor(first.floats_address(data), first.RBC_DTYPE_FLOAT, 32, shape);
  }

  private static rbcTensor of(SWIGTYPE_p_double data, long... shape) {
    return tensor(first.doubles_address(data), first.RBC_DTYPE_FLOAT, 64, shape);
  }

  private static rbcTensor of(SWIGTYPE_p_long data, long... shape) {
    return tensor(first.longs_address(data), first.RBC_DTYPE_INT, 64, shape);
  }

  private static rbcTensor of(SWIGTYPE_p_int data, long... shape) {
    return tensor(first.ints_address(data), first.RBC_DTYPE_INT, 32, shape);
  }

  private static rbcTensor of(SWIGTYPE_p_unsigned_char data, long... shape) {
    return tensor(first.bytes_address(data), first.RBC_DTYPE_UINT, 8, shape);
  }

  private static float[] read(SWIGTYPE_p_float values, int count) {
    float[] told = new float[count];
    for (int i = 0; i < count; ++i) {
      told[i] = first.floats_getitem(values, i);
    }
    return told;
  }

  private static int[] read(SWIGTYPE_p_unsigned_char values, int count) {
    int[] told = new int[count];
    for (int i = 0; i < count; ++i) {
      told[i] = first.bytes_getitem(values, i);
    }
    return told;
  }

  private static rbcChannelGroup group(int begin, int method) {
    rbcChannelGroup made = keep(new rbcChannelGroup());
    made.setBegin(begin);
    made.setCount(1);
    made.setMethod(method);
    made.setReserved(0);
    return made;
  }

  private static void resample() {
    SWIGTYPE_p_double times = doubles(0, 1, 3);
    SWIGTYPE_p_float out = floats(9, 9, 9, 9, 9, 9);
    SWIGTYPE_p_unsigned_char mask = first.new_bytes(3);
    rbcChannelGroup groups = keep(first.new_groups(2));
    first.groups_setitem(groups, 0, group(1, first.RBC_METHOD_PREVIOUS));
    first.groups_setitem(groups, 1, group(0, first.RBC_METHOD_LINEAR));
    rbcResampleParams params = keep(first.rbcResampleParamsInit());
    params.setFlags(first.RBC_CHECK_TIMES);
    params.setBounds(first.RBC_BOUNDS_FILL);
    params.setFill_value(-1);
    params.setMax_gap(2);
    params.setTolerance(1.5);
    params.setMean(of(floats(1, 0), 2));
    params.setInv_std(of(floats(2, 1), 2));
    params.setGroups(groups);
    params.setNum_groups(2);
    rbcTensor values = of(floats(0, 10, 2, 20, 6, 30), 3, 2);
    rbcTensor at = of(times, 3);
    rbcTensor queries = of(doubles(0.5, 2, 5), 3);
    rbcTensor result = of(out, 3, 2);
    rbcTensor valid = of(mask, 3);
    succeeds(first.rbcResample(context, values, at, queries, result, valid, params), "resample");
    require(Arrays.equals(read(out, 6), new float[] {0, 10, 6, 20, -1, -1}), "resample");
    require(Arrays.equals(read(mask, 3), new int[] {1, 1, 0}), "the mask of resample");
    first.doubles_setitem(times, 2, 0.5);
    refused(
        first.rbcResample(context, values, at, queries, result, valid, params),
        rbcStatus_t.RBC_STATUS_INVALID_ARGUMENT,
        "times: row 0 decreases at index 2 (1 -> 0.5)");
  }

  private static void fuse() {
    rbcTensor times = of(doubles(0, 2), 2);
    rbcTensor[] values = {
      of(floats(0, 4), 1, 2, 1), of(doubles(10, 20), 1, 2, 1), of(floats(100, 200), 1, 2, 1)
    };
    rbcResampleParams nearest = keep(first.rbcResampleParamsInit());
    nearest.setMethod(first.RBC_METHOD_NEAREST);
    rbcFuseStream streams = keep(first.new_streams(3));
    for (int n = 0; n < 3; ++n) {
      rbcFuseStream stream = keep(first.rbcFuseStreamInit());
      stream.setValues(values[n]);
      stream.setTimes(times);
      stream.setParams(n == 1 ? nearest : null);
      stream.setClock_offset(n == 2 ? 1 : 0);
      first.streams_setitem(streams, n, stream);
    }
    rbcFuseParams params = keep(first.rbcFuseParamsInit());
    params.setQuery_lengths(of(longs(2), 1));
    SWIGTYPE_p_float out = floats(9, 9, 9, 9, 9, 9, 9, 9, 9);
    SWIGTYPE_p_unsigned_char mask = first.new_bytes(9);
    rbcTensor queries = of(doubles(1, 1.5, 1), 3);
    rbcTensor result = of(out, 1, 3, 3);
    rbcTensor valid = of(mask, 1, 3, 3);
    succeeds(first.rbcFuse(context, streams, 3, queries, result, valid, params), "fuse");
    float[] expected = {2, 10, 100, 3, 20, 125, 0, 0, 0};
    require(Arrays.equals(read(out, 9), expected), "fuse");
    require(Arrays.equals(read(mask, 9), new int[] {1, 1, 1, 1, 1, 1, 0, 0, 0}), "its mask");
    first.streams_setitem(streams, 2, keep(first.rbcFuseStreamInit()));
    refused(
        first.rbcFuse(context, streams, 3, queries, result, valid, params),
        rbcStatus_t.RBC_STATUS_INVALID_ARGUMENT,
        "streams[2].values: is null");
  }

  private static void voxelize() {
    SWIGTYPE_p_int counted = first.new_ints(8);
    SWIGTYPE_p_long outside = longs(9);
    rbcVoxelizeParams params = keep(first.rbcVoxelizeParamsInit());
    params.setMode(first.RBC_VOXEL_COUNT);
    params.setEmpty_value(-7);
    params.getGrid().setOrigin(doubles(0, 0, 0));
    params.getGrid().setVoxel_size(doubles(1, 1, 1));
    params.getGrid().setShape(longs(2, 2, 2));
    params.setOffsets(of(longs(0, 4), 2));
    SWIGTYPE_p_float points = floats(1.5f, .5f, .5f, .5f, .5f, .5f, .5f, .5f, .25f, 9, 9, 9);
    rbcTensor result = of(counted, 1, 2, 2, 2);
    rbcTensor dropped = of(outside, 1);
    succeeds(
        first.rbcVoxelize(context, of(points, 4, 3), null, result, dropped, params), "voxelize");
    int[] expected = {2, -7, -7, -7, 1, -7, -7, -7};
    for (int i = 0; i < 8; ++i) {
      require(first.ints_getitem(counted, i) == expected[i], "voxelize");
    }
    require(first.longs_getitem(outside, 0) == 1, "the points outside");
    refused(
        first.rbcVoxelize(context, of(points, 12), null, result, dropped, params),
        rbcStatus_t.RBC_STATUS_SHAPE_MISMATCH,
        "points: ");
  }

  public static void main(String[] arguments) throws Exception {
    System.load(arguments[0]);
    SWIGTYPE_p_p_rbcContext made = first.new_context();
    rbcContextParams params = first.rbcContextParamsInit();
    params.setBackend(first.RBC_BACKEND_CPU);
    params.setNum_threads(2);
    succeeds(first.rbcContextCreate(params, made), "rbcContextCreate");
    context = first.context_value(made);
    String maps = new String(Files.readAllBytes(Paths.get("/proc/self/maps")), "UTF-8");
    require(maps.contains(" " + arguments[1] + "\n"), arguments[1] + " is loaded");
    resample();
    fuse();
    voxelize();
    params.setBackend(77);
    refused(
        first.rbcContextCreate(params, made),
        rbcStatus_t.RBC_STATUS_INVALID_ARGUMENT,
        "params: backend is 77, expected ");
    succeeds(first.rbcContextDestroy(context), "rbcContextDestroy");
    require(!KEPT.isEmpty(), "what the structs point to");
  }
}
