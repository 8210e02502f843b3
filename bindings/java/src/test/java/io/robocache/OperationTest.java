// SPDX-License-Identifier: Apache-2.0
package io.robocache;

import static io.robocache.Data.shape;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.ByteBuffer;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** Cases that the golden vectors lack, which are compact and never empty. */
class OperationTest {
  private final Context context = Context.cpu();

  @AfterEach
  void close() {
    context.close();
  }

  @Test
  void versions() {
    assertTrue(RoboCache.version().matches("\\d+\\.\\d+\\.\\d+"), RoboCache.version());
    int[] abi = new int[1];
    RoboCache.getVersion(new int[1], abi);
    assertEquals(1, abi[0]);
  }

  @Test
  void contexts() {
    ContextParams params = new ContextParams();
    params.setBackend(RoboCache.BACKEND_CPU);
    params.setNumThreads(1);
    params.setSimd(RoboCache.SIMD_PORTABLE);
    try (Context single = RoboCache.contextCreate(params)) {
      ContextInfo info = single.getInfo();
      assertEquals(RoboCache.BACKEND_CPU, info.getBackend());
      assertEquals(1, info.getNumThreads());
      assertEquals(RoboCache.SIMD_PORTABLE, info.getSimd());
      assertTrue(info.getDeviceName().length() > 0);
      assertTrue(info.getTotalMemoryBytes() > 0);
      assertEquals(0, RoboCache.contextGetCudaStream(single));
      single.warmUp();
      single.reserve(1 << 20);
      assertTrue(single.getInfo().getWorkspaceBytes() >= 1 << 20);
      single.synchronize();
    }
    Context.auto().close();
  }

  @Test
  void stridedInputs() {
    // [D,S] in memory, read as [S,D], backwards in time.
    ByteBuffer buffer = Data.buffer(24);
    buffer.asFloatBuffer().put(new float[] {2, 1, 0, 12, 11, 10});
    Tensor values = Tensor.of(buffer, DType.FLOAT32, shape(3, 2), shape(-1, 3), 8);
    Tensor out = Tensor.allocate(DType.FLOAT32, 2, 2);
    Tensor mask = Tensor.allocate(DType.BOOL, 2);
    RoboCache.resample(
        context, values, Data.f64(shape(3), 0, 1, 2), Data.f64(shape(2), 0.5, 7), out, mask, null);
    assertArrayEquals(new float[] {0.5f, 10.5f, 2, 12}, Data.floats(out));
    assertArrayEquals(new byte[] {1, 0}, Data.bytes(mask));
  }

  @Test
  void emptyBatches() {
    RoboCache.resample(
        context,
        Tensor.allocate(DType.FLOAT32, 0, 5, 2),
        Tensor.allocate(DType.FLOAT64, 0, 5),
        Tensor.allocate(DType.FLOAT64, 3),
        Tensor.allocate(DType.FLOAT32, 0, 3, 2),
        Tensor.allocate(DType.UINT8, 0, 3),
        new ResampleParams());
  }

  @Test
  void nanQueriesAreInvalid() {
    Tensor out = Tensor.allocate(DType.FLOAT32, 1, 1);
    Tensor mask = Tensor.allocate(DType.UINT8, 1);
    ResampleParams params = new ResampleParams();
    params.setFillValue(-7);
    RoboCache.resample(
        context,
        Data.f32(shape(2, 1), 1, 2),
        Data.f64(shape(2), 0, 1),
        Data.f64(shape(1), Double.NaN),
        out,
        mask,
        params);
    assertArrayEquals(new float[] {-7}, Data.floats(out));
    assertArrayEquals(new byte[] {0}, Data.bytes(mask));
  }

  @Test
  void workspaceSizes() {
    Tensor points = Data.f32(shape(2, 3), 0, 0, 0, 1, 1, 1);
    VoxelizeParams params = new VoxelizeParams();
    params.setReduction(RoboCache.REDUCE_SUM);
    params.setGrid(new VoxelGrid(new double[3], new double[] {1, 1, 1}, shape(2, 2, 2)));
    Tensor out = Tensor.allocate(DType.FLOAT32, 2, 2, 2, 3);
    long bytes = RoboCache.voxelizeWorkspaceSize(context, points, null, out, null, params);
    assertTrue(bytes > 0);
    context.reserve(bytes);
    RoboCache.voxelize(context, points, null, out, null, params);
    assertEquals(1, Data.floats(out)[7 * 3]);
  }
}
