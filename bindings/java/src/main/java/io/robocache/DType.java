// SPDX-License-Identifier: Apache-2.0
package io.robocache;

/** The type of a tensor's elements. */
public enum DType {
  /** IEEE 754 binary16. */
  FLOAT16(RoboCache.DTYPE_FLOAT, 16),
  /** The upper half of a binary32. */
  BFLOAT16(RoboCache.DTYPE_BFLOAT, 16),
  /** Java's float. */
  FLOAT32(RoboCache.DTYPE_FLOAT, 32),
  /** Java's double. */
  FLOAT64(RoboCache.DTYPE_FLOAT, 64),
  /** Java's byte. */
  INT8(RoboCache.DTYPE_INT, 8),
  /** Java's short. */
  INT16(RoboCache.DTYPE_INT, 16),
  /** Java's int. */
  INT32(RoboCache.DTYPE_INT, 32),
  /** Java's long. */
  INT64(RoboCache.DTYPE_INT, 64),
  /** A byte of 0 to 255. */
  UINT8(RoboCache.DTYPE_UINT, 8),
  /** Java's char: 0 to 65535, such as depth in millimetres. */
  UINT16(RoboCache.DTYPE_UINT, 16),
  /** An int without a sign, as in {@link Integer#toUnsignedLong}. */
  UINT32(RoboCache.DTYPE_UINT, 32),
  /** A long without a sign, as in {@link Long#toUnsignedString}. */
  UINT64(RoboCache.DTYPE_UINT, 64),
  /** A byte that is 0 or 1. */
  BOOL(RoboCache.DTYPE_BOOL, 8);

  private final int packed;
  private final int bytes;

  DType(int code, int bits) {
    packed = code | bits << 8;
    bytes = bits / 8;
  }

  /**
   * Returns the size of an element in bytes.
   *
   * @return 1, 2, 4 or 8
   */
  public int getBytes() {
    return bytes;
  }

  static int pack(DType dtype) {
    if (dtype == null) throw new IllegalArgumentException("dtype: is null");
    return dtype.packed;
  }

  static DType unpack(int packed) {
    for (DType dtype : values()) {
      if (dtype.packed == packed) return dtype;
    }
    throw new UnsupportedOperationException(
        "dtype: code " + (packed & 0xff) + " of " + (packed >> 8) + " bits is none of DType's");
  }
}
