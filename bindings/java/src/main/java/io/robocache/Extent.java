// SPDX-License-Identifier: Apache-2.0
package io.robocache;

import java.math.BigInteger;
import java.util.Arrays;
import java.util.Locale;

/** The bytes of a tensor, relative to its first element: begin (0 or less) to end. */
final class Extent {
  private final DType dtype;
  private final long[] shape;
  final long begin;
  final long end;

  /** Null strides: compact. */
  Extent(DType dtype, long[] shape, long[] strides) {
    DType.pack(dtype);
    if (shape == null) throw new IllegalArgumentException("shape: is null");
    if (strides != null && strides.length != shape.length) {
      throw new IllegalArgumentException(
          "strides: has " + strides.length + " dimensions, expected " + shape.length);
    }
    this.dtype = dtype;
    this.shape = shape;
    boolean empty = false;
    for (long extent : shape) {
      if (extent < 0) {
        throw new IllegalArgumentException(
            "shape: is " + Arrays.toString(shape) + ", expected no negative extent");
      }
      empty |= extent == 0;
    }
    long first = 0;
    long last = 0;
    long compact = 1;
    try {
      for (int i = shape.length - 1; i >= 0 && !empty; --i) {
        long stride = strides == null ? compact : strides[i];
        long reach = Math.multiplyExact(shape[i] - 1, stride);
        first = Math.addExact(first, Math.min(reach, 0));
        last = Math.addExact(last, Math.max(reach, 0));
        if (strides == null) compact = Math.multiplyExact(compact, shape[i]);
      }
      begin = Math.multiplyExact(first, (long) dtype.getBytes());
      end = empty ? 0 : Math.multiplyExact(Math.addExact(last, 1), (long) dtype.getBytes());
    } catch (ArithmeticException overflow) {
      throw new IllegalArgumentException(
          "shape: " + Arrays.toString(shape) + " takes more bytes than 64 bits can count");
    }
  }

  /** Throws unless the bytes are in 0 .. size, if the first element is at {@code offset}. */
  void requireWithin(long offset, long size) {
    // No side overflows: begin is 0 or less, end and size are 0 or more.
    boolean inside = offset >= 0 && begin + offset >= 0 && offset <= size - end;
    if (!inside) {
      throw new IllegalArgumentException(
          String.format(
              Locale.ROOT,
              "buffer: has %d bytes from its position on, expected the bytes from %d up to %d:"
                  + " %s %s%s",
              size,
              BigInteger.valueOf(begin).add(BigInteger.valueOf(offset)),
              BigInteger.valueOf(end).add(BigInteger.valueOf(offset)),
              dtype,
              Arrays.toString(shape),
              offset == 0 ? "" : " at " + offset));
    }
  }
}
