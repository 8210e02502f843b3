// SPDX-License-Identifier: Apache-2.0
package io.robocache;

import java.util.function.LongConsumer;

/** Adds the channel groups to the generated {@link ResampleParams}. */
abstract class AbstractResampleParams extends NativeStruct {
  private ChannelGroup[] groups;

  AbstractResampleParams(long address, LongConsumer destroy) {
    super(address, destroy);
  }

  AbstractResampleParams(long address, NativeObject parent) {
    super(address, parent);
  }

  /** Copies the groups into native memory. */
  abstract void assignGroups(ChannelGroup[] groups);

  /**
   * Sets groups of channels with their methods; the groups are copied.
   *
   * @param groups in any order, each channel in one group; null or empty: {@code method} for all
   *     channels
   */
  public void setGroups(ChannelGroup... groups) {
    assignGroups(groups);
    this.groups = groups == null ? null : groups.clone();
  }

  /**
   * Returns the groups that were set.
   *
   * @return a copy of the array, or null
   */
  public ChannelGroup[] getGroups() {
    return groups == null ? null : groups.clone();
  }
}
