// SPDX-License-Identifier: Apache-2.0
package io.robocache;

import java.util.function.LongConsumer;

/** Adds shorter calls to the generated {@link Store}. */
abstract class AbstractStore extends NativeHandle {
  AbstractStore(long address, LongConsumer destroy) {
    super(address, destroy);
  }

  /**
   * Opens a folder of entries to read them.
   *
   * @param path the folder, which must exist
   * @return a store that the caller closes; its entries stay usable
   */
  public static Store openReadOnly(String path) {
    StoreParams params = new StoreParams();
    params.setFlags(RoboCache.STORE_FLAG_READ_ONLY);
    return RoboCache.storeOpen(path, params);
  }

  /**
   * Opens an entry.
   *
   * @param key its 32 bytes
   * @return an entry that the caller closes; null if the store does not have it
   * @throws IllegalArgumentException if the entry is damaged
   */
  public Entry find(byte[] key) {
    try {
      return RoboCache.storeFind((Store) this, key);
    } catch (RoboCacheException error) {
      if (error.getStatus() == Status.NOT_FOUND) return null;
      throw error;
    }
  }
}
