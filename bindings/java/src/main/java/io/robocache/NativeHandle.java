// SPDX-License-Identifier: Apache-2.0
package io.robocache;

import java.util.function.LongConsumer;

/** A handle of the C interface: closed once, by hand or after it became garbage. */
abstract class NativeHandle extends NativeObject implements AutoCloseable {
  NativeHandle(long address, LongConsumer destroy) {
    super(address, destroy);
  }

  /**
   * Releases the resources of this object now, instead of when it is garbage. Objects may be closed
   * in any order. Closing again does nothing, and using a closed object throws an {@link
   * IllegalStateException}. Must not be called while another thread is in a call with this object.
   */
  @Override
  public void close() {
    swigCPtr = 0;
    cleanup.run();
  }

  /**
   * Returns whether {@link #close} was called.
   *
   * @return true after {@link #close}
   */
  public boolean isClosed() {
    return swigCPtr == 0;
  }
}
