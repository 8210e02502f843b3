// SPDX-License-Identifier: Apache-2.0
package io.robocache;

import java.util.function.LongConsumer;

/** Adds views and properties to the generated {@link Entry}. */
abstract class AbstractEntry extends NativeHandle {
  AbstractEntry(long address, LongConsumer destroy) {
    super(address, destroy);
  }

  /**
   * Returns the properties of the entry.
   *
   * @return a copy
   */
  public EntryInfo getInfo() {
    EntryInfo info = new EntryInfo();
    RoboCache.entryGetInfo((Entry) this, info);
    return info;
  }

  /**
   * Returns the dtype and the shape of a track, over all segments.
   *
   * @param name one of {@link #getNames}
   * @return a copy
   */
  public TrackInfo getTrack(String name) {
    TrackInfo info = new TrackInfo();
    RoboCache.entryGetTrack((Entry) this, name, info);
    return info;
  }

  /**
   * Returns the names of the tensors.
   *
   * @return a new array
   */
  public String[] getNames() {
    String[] names = new String[Math.toIntExact(getInfo().getNumTensors())];
    for (int i = 0; i < names.length; ++i) names[i] = RoboCache.entryGetName((Entry) this, i);
    return names;
  }

  /**
   * Describes a tensor of a segment, whose memory is the file's in the page cache.
   *
   * @param name one of {@link #getNames}
   * @param segment the number of the segment, from 0
   * @return a read-only view that keeps this entry alive; using it after {@link #close} is an
   *     {@link IllegalStateException}
   */
  public Tensor getTensor(String name, long segment) {
    return AbstractTensor.viewOf((Entry) this, name, segment);
  }
}
