// SPDX-License-Identifier: Apache-2.0
package io.robocache;

import java.util.function.LongConsumer;

/** An object in native memory. The field of its address has the name that generated code uses. */
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

  /** Makes a part of {@code parent}, and keeps the parent alive. */
  NativeObject(long address, NativeObject parent) {
    swigCPtr = address;
    this.parent = parent;
    cleanup = null;
  }

  /** Returns the address for a native call; {@code name} is the argument's name in errors. */
  long open(String name) {
    long address = swigCPtr;
    if (address == 0) throw new IllegalStateException(name + ": is closed");
    if (parent != null) parent.open(name);
    return address;
  }
}
