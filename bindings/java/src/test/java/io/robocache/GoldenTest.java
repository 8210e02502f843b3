// SPDX-License-Identifier: Apache-2.0
package io.robocache;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;

import java.io.IOException;
import java.lang.reflect.Method;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.TestFactory;

/** The golden vectors, byte for byte. Properties are found by the C names of their fields. */
class GoldenTest {
  @TestFactory
  List<DynamicTest> golden() throws IOException {
    List<Path> files;
    try (Stream<Path> folder = Files.list(Paths.get(System.getProperty("robocache.test.golden")))) {
      files =
          folder
              .filter(file -> file.toString().endsWith(".txt"))
              .sorted()
              .collect(Collectors.toList());
    }
    List<DynamicTest> tests = new ArrayList<>();
    for (Path file : files) {
      for (GoldenCase golden : GoldenCase.read(file)) {
        tests.add(DynamicTest.dynamicTest(golden.name, () -> check(golden)));
      }
    }
    assertFalse(tests.isEmpty(), "there are no golden vectors");
    return tests;
  }

  private static void check(GoldenCase golden) throws ReflectiveOperationException {
    try (Context context = Context.cpu()) {
      run(context, golden);
    }
    for (Map.Entry<String, byte[]> output : golden.expected.entrySet()) {
      assertArrayEquals(
          output.getValue(), Data.bytes(golden.outputs.get(output.getKey())), output.getKey());
    }
  }

  private static void run(Context context, GoldenCase golden) throws ReflectiveOperationException {
    Map<String, Tensor> in = golden.call.inputs;
    Map<String, Tensor> out = golden.outputs;
    switch (golden.op) {
      case "resample":
        ResampleParams resample = fill(new ResampleParams(), golden.call);
        RoboCache.resample(
            context, in.get("values"), in.get("times"), in.get("query_times"), out.get("out"),
            out.get("mask"), resample);
        break;
      case "fuse":
        FuseStream[] streams = new FuseStream[golden.streams.size()];
        for (int i = 0; i < streams.length; ++i) {
          ResampleParams params = fill(new ResampleParams(), golden.streams.get(i));
          streams[i] = fill(FuseStream.of(null, null, params), golden.streams.get(i));
        }
        FuseParams fuse = fill(new FuseParams(), golden.call);
        RoboCache.fuse(
            context, streams, in.get("query_times"), out.get("out"), out.get("mask"), fuse);
        break;
      case "voxelize":
        VoxelizeParams dense = fill(new VoxelizeParams(), golden.call);
        RoboCache.voxelize(
            context, in.get("points"), in.get("features"), out.get("out"), out.get("dropped"),
            dense);
        break;
      case "voxelize_sparse":
        VoxelizeSparseParams sparse = fill(new VoxelizeSparseParams(), golden.call);
        SparseVoxels voxels = new SparseVoxels();
        for (Map.Entry<String, Tensor> output : out.entrySet()) {
          set(voxels, output.getKey(), output.getValue());
        }
        RoboCache.voxelizeSparse(context, in.get("points"), in.get("features"), voxels, sparse);
        break;
      case "voxelize_tsdf":
        TsdfParams tsdf = fill(new TsdfParams(), golden.call);
        RoboCache.voxelizeTsdf(
            context, in.get("points"), in.get("sensors"), out.get("tsdf"), out.get("weight"),
            out.get("dropped"), tsdf);
        break;
      default:
        throw new IllegalArgumentException("unknown op " + golden.op);
    }
  }

  /** Sets what the struct has a property for: a section speaks of a stream and of its params. */
  private static <T> T fill(T struct, GoldenCase.Section section)
      throws ReflectiveOperationException {
    for (Map.Entry<String, String> field : section.fields.entrySet()) {
      set(struct, field.getKey(), field.getValue());
    }
    for (Map.Entry<String, Tensor> input : section.inputs.entrySet()) {
      set(struct, input.getKey(), input.getValue());
    }
    if (section.grid != null) set(struct, "grid", section.grid);
    if (!section.groups.isEmpty()) {
      set(struct, "groups", section.groups.toArray(new ChannelGroup[0]));
    }
    return struct;
  }

  private static void set(Object struct, String field, Object value)
      throws ReflectiveOperationException {
    StringBuilder name = new StringBuilder("set");
    for (String word : field.split("_")) {
      name.append(Character.toUpperCase(word.charAt(0))).append(word.substring(1));
    }
    for (Method method : struct.getClass().getMethods()) {
      if (!method.getName().contentEquals(name)) continue;
      method.invoke(struct, convert(value, method.getParameterTypes()[0]));
      return;
    }
  }

  private static Object convert(Object value, Class<?> type) {
    if (type == int.class) return Integer.valueOf((String) value);
    if (type == long.class) return Long.valueOf((String) value);
    if (type == double.class) return number((String) value);
    return value;
  }

  private static double number(String text) {
    switch (text) {
      case "inf":
        return Double.POSITIVE_INFINITY;
      case "nan":
        return Double.NaN;
      default:
        return Double.parseDouble(text);
    }
  }
}
