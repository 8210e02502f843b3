// SPDX-License-Identifier: Apache-2.0
package io.robocache;

import java.util.function.LongConsumer;

/** A handle of the C interface: closed once, by hand or after it became garbage. */
abstract class NativeHandle extends NativeObject implements AutoCloseable {
  NativeHandle(long address, LongConsumer destroy) {
    super(address, destroy);
  }

  /**
   * Gives back what this object holds, now rather than when it is garbage. Objects may be closed in
   * any order; closing again does nothing, and using a closed object is an {@link
   * IllegalStateException}. Not to be called while another thread is in a call with this object.
   */
  @Override
  public void close() {
    swigCPtr = 0;
    cleanup.run();
  }

  /**
   * Tells whether {@link #close} was called.
   *
   * @return true after {@link #close}
   */
  public boolean isClosed() {
    return swigCPtr == 0;
  }
}
