// SPDX-License-Identifier: Apache-2.0
package io.robocache;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/** Converts arrays to tensors and back. */
final class Data {
  private Data() {}

  static ByteBuffer buffer(int bytes) {
    return ByteBuffer.allocateDirect(bytes).order(ByteOrder.nativeOrder());
  }

  static long[] shape(long... extents) {
    return extents;
  }

  static Tensor f32(long[] shape, float... values) {
    Tensor tensor = Tensor.allocate(DType.FLOAT32, shape);
    tensor.getBuffer().asFloatBuffer().put(values);
    return tensor;
  }

  static Tensor f64(long[] shape, double... values) {
    Tensor tensor = Tensor.allocate(DType.FLOAT64, shape);
    tensor.getBuffer().asDoubleBuffer().put(values);
    return tensor;
  }

  static Tensor i64(long[] shape, long... values) {
    Tensor tensor = Tensor.allocate(DType.INT64, shape);
    tensor.getBuffer().asLongBuffer().put(values);
    return tensor;
  }

  static float[] floats(Tensor tensor) {
    float[] values = new float[tensor.getBuffer().remaining() / Float.BYTES];
    tensor.getBuffer().asFloatBuffer().get(values);
    return values;
  }

  static byte[] bytes(Tensor tensor) {
    byte[] values = new byte[tensor.getBuffer().remaining()];
    tensor.getBuffer().get(values);
    return values;
  }
}
