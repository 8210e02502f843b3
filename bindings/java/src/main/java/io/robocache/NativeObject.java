// SPDX-License-Identifier: Apache-2.0
package io.robocache;

import java.util.function.LongConsumer;

/** Something in native memory, with its address under the name that generated code reads. */
abstract class NativeObject {
  volatile long swigCPtr; // 0 once closed
  final Cleaner.Cleanup cleanup; // null for a part of another object
  private final NativeObject parent;

  NativeObject(long address, LongConsumer destroy) {
    if (address == 0) throw new OutOfMemoryError("no memory for a " + getClass().getSimpleName());
    swigCPtr = address;
    parent = null;
    cleanup = destroy == null ? null : Cleaner.register(this, address, destroy);
  }

  /** A part of {@code parent}, which it keeps alive. */
  NativeObject(long address, NativeObject parent) {
    swigCPtr = address;
    this.parent = parent;
    cleanup = null;
  }

  /** The address for a native call; {@code name} is what the argument is called in errors. */
  long open(String name) {
    long address = swigCPtr;
    if (address == 0) throw new IllegalStateException(name + ": is closed");
    if (parent != null) parent.open(name);
    return address;
  }
}
