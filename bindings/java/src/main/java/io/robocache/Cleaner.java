// SPDX-License-Identifier: Apache-2.0
package io.robocache;

import java.lang.ref.PhantomReference;
import java.lang.ref.ReferenceQueue;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.LongConsumer;

/** Destroys the resources of a native object once: on request, or after it became garbage. */
final class Cleaner {
  private static final ReferenceQueue<NativeObject> GARBAGE = new ReferenceQueue<>();
  // A reference that is itself unreachable is never enqueued.
  static final Set<Cleanup> PENDING = ConcurrentHashMap.newKeySet();

  static {
    Thread thread = new Thread(Cleaner::cleanForever, "robocache-cleaner");
    thread.setDaemon(true);
    thread.setContextClassLoader(null); // else the thread would keep it alive
    thread.start();
  }

  private Cleaner() {}

  /** {@code destroy} must not refer to the object. */
  static Cleanup register(NativeObject object, long address, LongConsumer destroy) {
    Cleanup cleanup = new Cleanup(object, address, destroy);
    PENDING.add(cleanup);
    return cleanup;
  }

  private static void cleanForever() {
    while (true) {
      try {
        ((Cleanup) GARBAGE.remove()).run();
      } catch (InterruptedException | RuntimeException ignored) {
        // No caller can receive the error, and the next object must also be cleaned.
      }
    }
  }

  static final class Cleanup extends PhantomReference<NativeObject> implements Runnable {
    private final long address;
    private final LongConsumer destroy;

    Cleanup(NativeObject object, long address, LongConsumer destroy) {
      super(object, GARBAGE);
      this.address = address;
      this.destroy = destroy;
    }

    @Override
    public void run() {
      if (PENDING.remove(this)) destroy.accept(address);
    }
  }
}
