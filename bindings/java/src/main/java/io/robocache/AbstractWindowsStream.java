// SPDX-License-Identifier: Apache-2.0
package io.robocache;

import java.util.function.LongConsumer;

/** Adds the transforms to the generated {@link WindowsStream}. */
abstract class AbstractWindowsStream extends NativeStruct {
  private WindowsTransform[] transforms;

  AbstractWindowsStream(long address, LongConsumer destroy) {
    super(address, destroy);
  }

  AbstractWindowsStream(long address, NativeObject parent) {
    super(address, parent);
  }

  /** Copies the transforms into native memory. */
  abstract void assignTransforms(WindowsTransform[] transforms);

  /**
   * Sets the transforms of channels; the transforms are copied.
   *
   * @param transforms in any order, each channel in at most one; null or empty: all channels are
   *     copied
   */
  public void setTransforms(WindowsTransform... transforms) {
    assignTransforms(transforms);
    this.transforms = transforms == null ? null : transforms.clone();
  }

  /**
   * Returns the transforms that were set.
   *
   * @return a copy of the array, or null
   */
  public WindowsTransform[] getTransforms() {
    return transforms == null ? null : transforms.clone();
  }
}
