// SPDX-License-Identifier: Apache-2.0
package io.robocache;

import java.nio.Buffer;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.DoubleBuffer;
import java.nio.FloatBuffer;
import java.nio.IntBuffer;
import java.nio.LongBuffer;
import java.util.Arrays;
import java.util.Locale;
import java.util.function.LongConsumer;

/** Adds factories and properties to the generated {@link Tensor}. */
abstract class AbstractTensor extends NativeStruct {
  private Object owner; // of the memory: a Buffer, an OwnedTensor or an Entry; null: the caller
  private boolean writable = true;

  AbstractTensor(long address, LongConsumer destroy) {
    super(address, destroy);
  }

  AbstractTensor(long address, NativeObject parent) {
    super(address, parent);
  }

  /**
   * Allocates a compact tensor of zeros in a direct buffer: see {@link Tensor#getBuffer}.
   *
   * @param dtype the type of the elements
   * @param shape the extents, slowest first; none for a scalar
   * @return a writable tensor of less than 2 GiB; {@link OwnedTensor} has no such limit
   */
  public static Tensor allocate(DType dtype, long... shape) {
    long bytes = new Extent(dtype, shape, null).end;
    if (bytes > Integer.MAX_VALUE) {
      throw new IllegalArgumentException(
          String.format(
              Locale.ROOT,
              "shape: %s takes %d bytes, expected less than 2^31",
              Arrays.toString(shape),
              bytes));
    }
    return of(ByteBuffer.allocateDirect((int) bytes).order(ByteOrder.nativeOrder()), dtype, shape);
  }

  /**
   * Describes a compact tensor in a direct buffer, from its position on. The buffer is neither
   * copied nor moved; it is kept alive.
   *
   * @param buffer direct, in {@link ByteOrder#nativeOrder} (which new buffers are not), at least as
   *     large as the tensor; if it is read-only, so is the tensor
   * @param dtype the type of the elements
   * @param shape the extents, slowest first; none for a scalar
   * @return a tensor that shares the buffer's memory
   */
  public static Tensor of(ByteBuffer buffer, DType dtype, long... shape) {
    return of(buffer, dtype, shape, null, 0);
  }

  /**
   * Describes a tensor in a direct buffer, with strides.
   *
   * @param buffer as for {@link #of(ByteBuffer, DType, long...)}
   * @param dtype the type of the elements
   * @param shape the extents
   * @param strides from one index to the next on each axis, in elements; may be 0 or negative;
   *     null: compact
   * @param byteOffset from the buffer's position to the tensor's first element
   * @return a tensor that shares the buffer's memory
   */
  public static Tensor of(
      ByteBuffer buffer, DType dtype, long[] shape, long[] strides, long byteOffset) {
    return in(buffer, buffer.order(), 1, dtype, shape, strides, byteOffset);
  }

  /**
   * Describes a compact tensor of float32 in a direct buffer, from its position on.
   *
   * @param buffer as for {@link #of(ByteBuffer, DType, long...)}
   * @param shape the extents, slowest first; none for a scalar
   * @return a tensor that shares the buffer's memory
   */
  public static Tensor of(FloatBuffer buffer, long... shape) {
    return in(buffer, buffer.order(), Float.BYTES, DType.FLOAT32, shape, null, 0);
  }

  /**
   * Describes a compact tensor of float64 in a direct buffer, from its position on.
   *
   * @param buffer as for {@link #of(ByteBuffer, DType, long...)}
   * @param shape the extents, slowest first; none for a scalar
   * @return a tensor that shares the buffer's memory
   */
  public static Tensor of(DoubleBuffer buffer, long... shape) {
    return in(buffer, buffer.order(), Double.BYTES, DType.FLOAT64, shape, null, 0);
  }

  /**
   * Describes a compact tensor of int32 in a direct buffer, from its position on.
   *
   * @param buffer as for {@link #of(ByteBuffer, DType, long...)}
   * @param shape the extents, slowest first; none for a scalar
   * @return a tensor that shares the buffer's memory
   */
  public static Tensor of(IntBuffer buffer, long... shape) {
    return in(buffer, buffer.order(), Integer.BYTES, DType.INT32, shape, null, 0);
  }

  /**
   * Describes a compact tensor of int64 in a direct buffer, from its position on.
   *
   * @param buffer as for {@link #of(ByteBuffer, DType, long...)}
   * @param shape the extents, slowest first; none for a scalar
   * @return a tensor that shares the buffer's memory
   */
  public static Tensor of(LongBuffer buffer, long... shape) {
    return in(buffer, buffer.order(), Long.BYTES, DType.INT64, shape, null, 0);
  }

  /**
   * Describes a compact tensor at an address, for example on a CUDA device. The caller owns the
   * memory, and must keep it alive; the address is not verified.
   *
   * @param address of the first element
   * @param deviceType {@code RoboCache.DEVICE_CPU}, {@code DEVICE_CUDA} or another constant
   * @param deviceId the CUDA device; 0 for the CPU
   * @param dtype the type of the elements
   * @param shape the extents, slowest first; none for a scalar
   * @return a writable tensor
   */
  public static Tensor ofDevicePointer(
      long address, int deviceType, int deviceId, DType dtype, long... shape) {
    return ofDevicePointer(address, deviceType, deviceId, dtype, shape, null);
  }

  /**
   * Describes a tensor at an address, with strides.
   *
   * @param address of the first element, as for {@link #ofDevicePointer(long, int, int, DType,
   *     long...)}
   * @param deviceType {@code RoboCache.DEVICE_CPU}, {@code DEVICE_CUDA} or another constant
   * @param deviceId the CUDA device; 0 for the CPU
   * @param dtype the type of the elements
   * @param shape the extents
   * @param strides from one index to the next on each axis, in elements; null: compact
   * @return a writable tensor
   */
  public static Tensor ofDevicePointer(
      long address, int deviceType, int deviceId, DType dtype, long[] shape, long[] strides) {
    new Extent(dtype, shape, strides);
    return new Tensor(address, deviceType, deviceId, dtype, shape, strides);
  }

  static Tensor viewOf(OwnedTensor owner, boolean writable) {
    Tensor view = new Tensor(0, RoboCache.DEVICE_CPU, 0, DType.UINT8, new long[0], null);
    RoboCache.ownedTensorGetView(owner, writable ? 1 : 0, view);
    return view.belongTo(owner, writable);
  }

  static Tensor viewOf(Entry owner, String name, long segment) {
    Tensor view = new Tensor(0, RoboCache.DEVICE_CPU, 0, DType.UINT8, new long[0], null);
    RoboCache.entryGetTensor(owner, name, segment, view);
    return view.belongTo(owner, false);
  }

  private static Tensor in(
      Buffer buffer,
      ByteOrder order,
      int unit,
      DType dtype,
      long[] shape,
      long[] strides,
      long byteOffset) {
    if (!buffer.isDirect()) {
      throw new IllegalArgumentException(
          "buffer: is not direct, expected one of ByteBuffer.allocateDirect");
    }
    Extent extent = new Extent(dtype, shape, strides);
    if (order != ByteOrder.nativeOrder() && dtype.getBytes() > 1) {
      throw new IllegalArgumentException(
          "buffer: its byte order is " + order + ", expected " + ByteOrder.nativeOrder());
    }
    extent.requireWithin(byteOffset, (long) buffer.remaining() * unit);
    long first = RoboCache.bufferAddress(buffer) + (long) buffer.position() * unit + byteOffset;
    Tensor tensor = new Tensor(first, RoboCache.DEVICE_CPU, 0, dtype, shape, strides);
    return tensor.belongTo(buffer, !buffer.isReadOnly());
  }

  final Tensor belongTo(Object owner, boolean writable) {
    this.owner = owner;
    this.writable = writable;
    return (Tensor) this;
  }

  @Override
  final long open(String name) {
    if (owner instanceof NativeHandle) ((NativeHandle) owner).open(name);
    return super.open(name);
  }

  /**
   * Returns the extents.
   *
   * @return slowest first; empty for a scalar
   */
  public long[] getShape() {
    return Arrays.copyOf(normalize().getShape(), ((Tensor) this).getNdim());
  }

  /**
   * Returns the distances from one index to the next on each axis, in elements.
   *
   * @return the strides; as if compact where an extent is 0 or 1
   */
  public long[] getStrides() {
    return Arrays.copyOf(normalize().getStrides(), ((Tensor) this).getNdim());
  }

  private TensorInfo normalize() {
    TensorInfo info = new TensorInfo();
    RoboCache.tensorGetInfo((Tensor) this, info);
    return info;
  }

  /**
   * Returns whether the tensor may be an output.
   *
   * @return false for read-only buffers and views
   */
  public boolean isWritable() {
    return writable;
  }

  /**
   * Returns the memory of a tensor made by {@link Tensor#allocate} or {@link Tensor#of(ByteBuffer,
   * DType, long...)}.
   *
   * @return the buffer from its position on, in native byte order, with its own position and limit
   * @throws IllegalStateException if the tensor does not use a ByteBuffer
   */
  public ByteBuffer getBuffer() {
    if (!(owner instanceof ByteBuffer)) {
      throw new IllegalStateException("the tensor is not in a ByteBuffer");
    }
    return ((ByteBuffer) owner).slice().order(ByteOrder.nativeOrder());
  }
}
