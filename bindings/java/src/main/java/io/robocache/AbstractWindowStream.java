// SPDX-License-Identifier: Apache-2.0
package io.robocache;

import java.util.function.LongConsumer;

/** Adds the transforms to the generated {@link WindowStream}. */
abstract class AbstractWindowStream extends NativeStruct {
  private WindowTransform[] transforms;

  AbstractWindowStream(long address, LongConsumer destroy) {
    super(address, destroy);
  }

  AbstractWindowStream(long address, NativeObject parent) {
    super(address, parent);
  }

  /** Copies the transforms into native memory. */
  abstract void assignTransforms(WindowTransform[] transforms);

  /**
   * Sets what becomes of which channels; they are copied.
   *
   * @param transforms in any order, no channel in two of them; null or none: all channels are copied
   */
  public void setTransforms(WindowTransform... transforms) {
    assignTransforms(transforms);
    this.transforms = transforms == null ? null : transforms.clone();
  }

  /**
   * The transforms that were set.
   *
   * @return a copy of the array, or null
   */
  public WindowTransform[] getTransforms() {
    return transforms == null ? null : transforms.clone();
  }
}
