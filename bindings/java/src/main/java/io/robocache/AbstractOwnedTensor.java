// SPDX-License-Identifier: Apache-2.0
package io.robocache;

import java.util.function.LongConsumer;

/** Adds a factory and views to the generated {@link OwnedTensor}. */
abstract class AbstractOwnedTensor extends NativeHandle {
  AbstractOwnedTensor(long address, LongConsumer destroy) {
    super(address, destroy);
  }

  /**
   * Allocates an uninitialized compact tensor on the context's device. {@code RoboCache.tensorCopy}
   * copies between it and Java buffers.
   *
   * @param context may be closed before the tensor
   * @param dtype the type of the elements
   * @param shape the extents, slowest first; none for a scalar
   * @return a tensor that the caller closes
   */
  public static OwnedTensor create(Context context, DType dtype, long... shape) {
    return RoboCache.ownedTensorCreate(context, dtype, shape, null);
  }

  /**
   * Describes this tensor for calls that read or write it.
   *
   * @return a view that keeps this tensor alive; using it after {@link #close} is an {@link
   *     IllegalStateException}
   * @throws IllegalArgumentException if it was imported as read-only
   */
  public Tensor view() {
    return AbstractTensor.viewOf((OwnedTensor) this, true);
  }

  /**
   * Describes this tensor for calls that only read it.
   *
   * @return a view, as from {@link #view}
   */
  public Tensor readOnlyView() {
    return AbstractTensor.viewOf((OwnedTensor) this, false);
  }
}
