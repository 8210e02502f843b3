// SPDX-License-Identifier: Apache-2.0
package io.robocache;

import static io.robocache.Data.shape;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.ByteBuffer;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Test;

class ErrorTest {
  private final Tensor values = Data.f32(shape(3, 1), 0, 1, 2);
  private final Tensor times = Data.f64(shape(3), 0, 1, 2);
  private final Tensor clock = Data.f64(shape(2), 0.5, 1.5);
  private final Tensor out = Tensor.allocate(DType.FLOAT32, 2, 1);

  /** Returns the message of the exception that a resample throws. */
  private static <T extends Throwable> String thrown(
      Class<T> type, Tensor values, Tensor times, Tensor clock, Tensor out, ResampleParams params) {
    try (Context context = Context.cpu()) {
      return assertThrows(
              type, () -> RoboCache.resample(context, values, times, clock, out, null, params))
          .getMessage();
    }
  }

  @Test
  void invalidArgument() {
    ResampleParams params = new ResampleParams();
    params.setMethod(99);
    String message = thrown(IllegalArgumentException.class, values, times, clock, out, params);
    assertTrue(message.contains("method") && message.contains("99"), message);
    message = thrown(IllegalArgumentException.class, null, times, clock, out, null);
    assertTrue(message.contains("values") && message.contains("null"), message);
  }

  @Test
  void dtypeAndShapeMismatch() {
    Tensor integers = Tensor.allocate(DType.INT32, 3, 1);
    String message = thrown(IllegalArgumentException.class, integers, times, clock, out, null);
    assertTrue(message.startsWith("values: "), message);
    Tensor narrow = Tensor.allocate(DType.FLOAT32, 1, 1);
    message = thrown(IllegalArgumentException.class, values, times, clock, narrow, null);
    assertTrue(message.startsWith("out: "), message);
  }

  @Test
  void aContextInUseByAnotherThread() throws InterruptedException {
    Tensor points = Tensor.allocate(DType.FLOAT32, 200_000, 3);
    AtomicReference<String> refusal = new AtomicReference<>();
    AtomicReference<Throwable> failure = new AtomicReference<>();
    try (Context context = Context.cpu()) {
      Runnable work =
          () -> {
            Tensor counts = Tensor.allocate(DType.INT32, 64, 64, 64);
            VoxelizeParams params = new VoxelizeParams();
            params.setReduction(RoboCache.REDUCE_COUNT);
            params.setGrid(
                new VoxelGrid(new double[3], new double[] {1, 1, 1}, new long[] {64, 64, 64}));
            long end = System.nanoTime() + 30_000_000_000L;
            while (refusal.get() == null && failure.get() == null && System.nanoTime() < end) {
              try {
                RoboCache.voxelize(context, points, null, counts, null, params);
              } catch (UnsupportedOperationException refused) {
                refusal.set(refused.getMessage());
              } catch (Throwable other) {
                failure.set(other);
              }
            }
          };
      Thread other = new Thread(work);
      other.start();
      work.run();
      other.join();
      assertEquals(null, failure.get());
      assertTrue(refusal.get().contains("in use by another thread"), refusal.get());
      context.warmUp(); // the next call works
    }
  }

  @Test
  void deviceMismatch() {
    Tensor elsewhere =
        Tensor.ofDevicePointer(0x1000, RoboCache.DEVICE_CUDA, 0, DType.FLOAT32, 3, 1);
    String message = thrown(IllegalArgumentException.class, elsewhere, times, clock, out, null);
    assertTrue(message.startsWith("values: "), message);
  }

  @Test
  void badTimes() {
    ResampleParams params = new ResampleParams();
    params.setFlags(RoboCache.FLAG_CHECK_TIMES);
    Tensor nan = Data.f64(shape(3), 0, Double.NaN, 2);
    String message = thrown(IllegalArgumentException.class, values, nan, clock, out, params);
    assertTrue(message.startsWith("times: ") && message.contains("NaN"), message);
    Tensor decreasing = Data.f64(shape(3), 0, 2.5, 2.25);
    message = thrown(IllegalArgumentException.class, values, decreasing, clock, out, params);
    assertTrue(message.contains("2.5 -> 2.25"), message);
  }

  @Test
  void readOnlyOutputs() {
    Tensor readOnly = Tensor.of(out.getBuffer().asFloatBuffer().asReadOnlyBuffer(), 2, 1);
    String expected = ": is read-only, expected a writable tensor";
    assertEquals(
        "out" + expected,
        thrown(IllegalArgumentException.class, values, times, clock, readOnly, null));
    VoxelizeSparseOutputs voxels = new VoxelizeSparseOutputs();
    assertEquals(
        "voxel_features" + expected,
        assertThrows(IllegalArgumentException.class, () -> voxels.setVoxelFeatures(readOnly))
            .getMessage());
    try (Context context = Context.cpu()) {
      assertEquals(
          "destination" + expected,
          assertThrows(
                  IllegalArgumentException.class,
                  () -> RoboCache.tensorCopy(context, out, readOnly))
              .getMessage());
      RoboCache.tensorCopy(context, readOnly, Tensor.allocate(DType.FLOAT32, 2, 1));
    }
  }

  @Test
  void streamsAreNamed() {
    FuseStream good = FuseStream.of(values, times, null);
    FuseStream bad = FuseStream.of(values, Data.f64(shape(2), 0, 1), null);
    Tensor wide = Tensor.allocate(DType.FLOAT32, 2, 2);
    try (Context context = Context.cpu()) {
      String message =
          assertThrows(
                  IllegalArgumentException.class,
                  () ->
                      RoboCache.fuse(
                          context, new FuseStream[] {good, bad}, clock, wide, null, null))
              .getMessage();
      assertTrue(message.startsWith("streams[1].times: "), message);
      message =
          assertThrows(
                  IllegalArgumentException.class,
                  () ->
                      RoboCache.fuse(
                          context, new FuseStream[] {good, null}, clock, wide, null, null))
              .getMessage();
      assertEquals("streams[1]: is null", message);
      assertThrows(
          IllegalArgumentException.class,
          () -> RoboCache.fuse(context, null, clock, wide, null, null));
      message =
          assertThrows(
                  IllegalArgumentException.class,
                  () -> RoboCache.fuse(context, new FuseStream[0], clock, wide, null, null))
              .getMessage();
      assertEquals("num_streams: is 0, expected 1 to 64", message);
    }
  }

  @Test
  void nullContext() {
    assertEquals(
        "context: is null",
        assertThrows(
                IllegalArgumentException.class,
                () -> RoboCache.resample(null, values, times, clock, out, null, null))
            .getMessage());
  }

  @Test
  void negativeSizes() {
    try (Context context = Context.cpu()) {
      assertEquals(
          "bytes: is -1, expected 0 or more",
          assertThrows(IllegalArgumentException.class, () -> context.reserve(-1)).getMessage());
      context.reserve(0);
    }
  }

  @Test
  void outOfMemory() {
    try (Context context = Context.cpu()) {
      String message =
          assertThrows(
                  OutOfMemoryError.class,
                  () -> OwnedTensor.create(context, DType.FLOAT32, 1L << 55))
              .getMessage();
      assertTrue(message.contains(Long.toString(4L << 55)), message);
    }
  }

  @Test
  void unsupported() {
    // A DLManagedTensorVersioned of a future version, without a deleter.
    ByteBuffer managed = Data.buffer(128);
    managed.putInt(0, 99);
    String message =
        assertThrows(
                UnsupportedOperationException.class,
                () -> RoboCache.ownedTensorImportDLPackVersioned(RoboCache.bufferAddress(managed)))
            .getMessage();
    assertTrue(message.contains("99"), message);
  }

  @Test
  void notAvailable() {
    boolean withCuda;
    try (Context context = Context.cpu()) {
      withCuda = context.getInfo().getBuiltWithCuda() == 1;
    }
    if (withCuda) {
      RoboCacheException exception =
          assertThrows(RoboCacheException.class, () -> Context.cuda(9999));
      assertEquals(Status.NOT_AVAILABLE, exception.getStatus());
      assertTrue(exception.getMessage().length() > 0);
    } else {
      assertThrows(UnsupportedOperationException.class, () -> Context.cuda(0));
      System.out.println("SKIPPED: notAvailable: the library was built without CUDA");
    }
    assertEquals(null, new RoboCacheException("of a newer library", 1000).getStatus());
  }
}
