// SPDX-License-Identifier: Apache-2.0
package io.robocache;

import static io.robocache.Data.shape;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import org.junit.jupiter.api.Test;

class CudaTest {
  /** Skips with the reason if CUDA is not available. */
  private static Context cudaOrSkip() {
    Context context = Context.auto();
    ContextInfo info = context.getInfo();
    if (info.getBackend() != RoboCache.BACKEND_CUDA) {
      context.close();
      System.out.println("SKIPPED: " + info.getCudaUnavailable());
      assumeTrue(false, info.getCudaUnavailable());
    }
    return context;
  }

  @Test
  void devicePointers() {
    try (Context context = cudaOrSkip();
        OwnedTensor values = OwnedTensor.create(context, DType.FLOAT32, 2, 1);
        OwnedTensor times = OwnedTensor.create(context, DType.FLOAT64, 2);
        OwnedTensor clock = OwnedTensor.create(context, DType.FLOAT64, 3);
        OwnedTensor out = OwnedTensor.create(context, DType.FLOAT32, 3, 1)) {
      RoboCache.tensorCopy(context, Data.f32(shape(2, 1), 0, 10), values.view());
      RoboCache.tensorCopy(context, Data.f64(shape(2), 0, 1), times.view());
      RoboCache.tensorCopy(context, Data.f64(shape(3), 0, 0.25, 2), clock.view());
      Tensor described = values.view();
      assertEquals(RoboCache.DEVICE_CUDA, described.getDeviceType());
      Tensor byPointer =
          Tensor.ofDevicePointer(
              described.getData(),
              described.getDeviceType(),
              described.getDeviceId(),
              DType.FLOAT32,
              2,
              1);
      RoboCache.resample(context, byPointer, times.view(), clock.view(), out.view(), null, null);
      Tensor result = Tensor.allocate(DType.FLOAT32, 3, 1);
      RoboCache.tensorCopy(context, out.view(), result);
      assertArrayEquals(new float[] {0, 2.5f, 10}, Data.floats(result));
    }
  }
}
