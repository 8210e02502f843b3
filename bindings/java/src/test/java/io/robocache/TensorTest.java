// SPDX-License-Identifier: Apache-2.0
package io.robocache;

import static io.robocache.Data.shape;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.DoubleBuffer;
import java.nio.FloatBuffer;
import java.util.Locale;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;

class TensorTest {
  private static void refused(String message, Executable make) {
    assertEquals(message, assertThrows(IllegalArgumentException.class, make).getMessage());
  }

  @Test
  void tellsWhatItIs() {
    ByteBuffer buffer = Data.buffer(100);
    buffer.position(4);
    Tensor tensor = Tensor.of(buffer, DType.FLOAT32, 2, 3);
    assertEquals(RoboCache.bufferAddress(buffer) + 4, tensor.getData());
    assertEquals(DType.FLOAT32, tensor.getDType());
    assertEquals(RoboCache.DEVICE_CPU, tensor.getDeviceType());
    assertEquals(2, tensor.getNdim());
    assertArrayEquals(shape(2, 3), tensor.getShape());
    assertArrayEquals(shape(3, 1), tensor.getStrides());
    assertTrue(tensor.isWritable());
    assertEquals(96, tensor.getBuffer().remaining());
    assertEquals(ByteOrder.nativeOrder(), tensor.getBuffer().order());
  }

  @Test
  void knowsEveryDType() {
    for (DType dtype : DType.values()) {
      Tensor tensor = Tensor.allocate(dtype, 3);
      assertEquals(dtype, tensor.getDType());
      TensorInfo info = new TensorInfo();
      RoboCache.tensorGetInfo(tensor, info);
      assertEquals(dtype.getBytes(), info.getElementSize());
      assertEquals(3 * dtype.getBytes(), info.getNumBytes());
    }
  }

  @Test
  void takesTypedBuffersFromTheirPosition() {
    FloatBuffer floats = Data.buffer(40).asFloatBuffer();
    floats.position(2);
    assertEquals(RoboCache.bufferAddress(floats) + 8, Tensor.of(floats, 8).getData());
    DoubleBuffer doubles = Data.buffer(40).asDoubleBuffer();
    assertEquals(DType.FLOAT64, Tensor.of(doubles, 5).getDType());
    assertEquals(DType.INT32, Tensor.of(Data.buffer(8).asIntBuffer(), 2).getDType());
    assertEquals(DType.INT64, Tensor.of(Data.buffer(8).asLongBuffer(), 1).getDType());
    refused(
        "buffer: has 32 bytes from its position on, expected the bytes from 0 up to 36:"
            + " FLOAT32 [9]",
        () -> Tensor.of(floats, 9));
    assertThrows(IllegalStateException.class, () -> Tensor.of(doubles, 5).getBuffer());
  }

  @Test
  void refusesHeapBuffers() {
    ByteBuffer heap = ByteBuffer.allocate(16).order(ByteOrder.nativeOrder());
    refused(
        "buffer: is not direct, expected one of ByteBuffer.allocateDirect",
        () -> Tensor.of(heap, DType.FLOAT32, 4));
    assertThrows(
        IllegalArgumentException.class, () -> Tensor.of(FloatBuffer.wrap(new float[4]), 4));
  }

  @Test
  void refusesTheOtherByteOrder() {
    ByteBuffer fresh = ByteBuffer.allocateDirect(16); // big-endian on every machine
    refused(
        "buffer: its byte order is BIG_ENDIAN, expected LITTLE_ENDIAN",
        () -> Tensor.of(fresh, DType.FLOAT32, 4));
    assertThrows(IllegalArgumentException.class, () -> Tensor.of(fresh.asLongBuffer(), 2));
    Tensor.of(fresh, DType.UINT8, 16); // bytes have none
  }

  @Test
  void refusesWhatDoesNotFit() {
    ByteBuffer buffer = Data.buffer(24);
    refused(
        "buffer: has 24 bytes from its position on, expected the bytes from 0 up to 32:"
            + " FLOAT32 [2, 4]",
        () -> Tensor.of(buffer, DType.FLOAT32, 2, 4));
    refused(
        "buffer: has 24 bytes from its position on, expected the bytes from 4 up to 28:"
            + " FLOAT32 [2, 3] at 4",
        () -> Tensor.of(buffer, DType.FLOAT32, shape(2, 3), null, 4));
    refused(
        "buffer: has 24 bytes from its position on, expected the bytes from -20 up to 4:"
            + " FLOAT32 [6]",
        () -> Tensor.of(buffer, DType.FLOAT32, shape(6), shape(-1), 0));
    Tensor.of(buffer, DType.FLOAT32, shape(6), shape(-1), 20);
    Tensor.of(buffer, DType.FLOAT32, shape(100, 6), shape(0, 1), 0);
    assertThrows(
        IllegalArgumentException.class,
        () -> Tensor.of(buffer, DType.FLOAT32, shape(2), null, Long.MAX_VALUE));
    assertThrows(
        IllegalArgumentException.class,
        () -> Tensor.of(buffer, DType.FLOAT32, shape(2), null, Long.MIN_VALUE));
    refused(
        "buffer: has 24 bytes from its position on, expected the bytes from -18446744073709551616"
            + " up to -9223372036854775807: UINT8 [2] at -9223372036854775808",
        () -> Tensor.of(buffer, DType.UINT8, shape(2), shape(Long.MIN_VALUE), Long.MIN_VALUE));
    for (long offset : new long[] {0, 24, Long.MAX_VALUE}) {
      assertThrows(
          IllegalArgumentException.class,
          () -> Tensor.of(buffer, DType.UINT8, shape(2), shape(Long.MIN_VALUE), offset));
    }
  }

  @Test
  void writesNumbersAlikeInEveryLocale() {
    Locale before = Locale.getDefault();
    Locale.setDefault(Locale.forLanguageTag("ar-EG-u-nu-arab"));
    try {
      assertFalse(String.format("%d", 24).equals("24"));
      refused(
          "buffer: has 24 bytes from its position on, expected the bytes from 0 up to 25:"
              + " INT8 [25]",
          () -> Tensor.of(Data.buffer(24), DType.INT8, 25));
      refused(
          "shape: [8589934592] takes 8589934592 bytes, expected less than 2^31",
          () -> Tensor.allocate(DType.INT8, 1L << 33));
    } finally {
      Locale.setDefault(before);
    }
  }

  @Test
  void refusesShapesThatMakeNoSense() {
    ByteBuffer buffer = Data.buffer(24);
    refused("shape: is null", () -> Tensor.of(buffer, DType.INT8, (long[]) null));
    refused("dtype: is null", () -> Tensor.of(buffer, null, 1));
    refused(
        "shape: is [2, -1], expected no negative extent",
        () -> Tensor.of(buffer, DType.INT8, 2, -1));
    refused(
        "strides: has 1 dimensions, expected 2",
        () -> Tensor.of(buffer, DType.INT8, shape(2, 2), shape(1), 0));
    refused(
        "shape: has 9 dimensions, expected at most 8",
        () -> Tensor.of(buffer, DType.INT8, 1, 1, 1, 1, 1, 1, 1, 1, 1));
    refused(
        "shape: [4294967296, 4294967296] takes more bytes than 64 bits can count",
        () -> Tensor.allocate(DType.INT8, 1L << 32, 1L << 32));
    refused(
        "shape: [2305843009213693952] takes more bytes than 64 bits can count",
        () -> Tensor.ofDevicePointer(0x1000, RoboCache.DEVICE_CUDA, 0, DType.FLOAT64, 1L << 61));
    refused(
        "shape: [1073741824] takes 4294967296 bytes, expected less than 2^31",
        () -> Tensor.allocate(DType.FLOAT32, 1 << 30));
  }

  @Test
  void isAsReadOnlyAsItsBuffer() {
    ByteBuffer buffer = Data.buffer(16).asReadOnlyBuffer().order(ByteOrder.nativeOrder());
    Tensor tensor = Tensor.of(buffer, DType.FLOAT32, 4);
    assertFalse(tensor.isWritable());
    assertTrue(tensor.getBuffer().isReadOnly());
    assertFalse(Tensor.of(buffer.asFloatBuffer(), 4).isWritable());
  }

  @Test
  void emptyAndScalar() {
    Tensor empty = Tensor.allocate(DType.FLOAT32, 0, 5);
    assertArrayEquals(shape(0, 5), empty.getShape());
    Tensor scalar = Tensor.allocate(DType.INT64);
    assertArrayEquals(shape(), scalar.getShape());
    assertEquals(8, scalar.getBuffer().remaining());
    Tensor.of(Data.buffer(0), DType.FLOAT32, Long.MAX_VALUE, 0);
  }
}
