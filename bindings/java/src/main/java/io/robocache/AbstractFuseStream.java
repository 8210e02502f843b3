// SPDX-License-Identifier: Apache-2.0
package io.robocache;

import java.util.function.LongConsumer;

/** Adds a factory to the generated {@link FuseStream}. */
abstract class AbstractFuseStream extends NativeStruct {
  AbstractFuseStream(long address, LongConsumer destroy) {
    super(address, destroy);
  }

  AbstractFuseStream(long address, NativeObject parent) {
    super(address, parent);
  }

  /**
   * Describes one sensor, as for {@code RoboCache.resample}.
   *
   * @param values [B,S,D], [S,D] or packed [N,D]
   * @param times [B,S], [S] or [N], the same dtype in every stream
   * @param params null for the defaults
   * @return a stream that keeps the arguments alive
   */
  public static FuseStream of(Tensor values, Tensor times, ResampleParams params) {
    FuseStream stream = new FuseStream();
    stream.setValues(values);
    stream.setTimes(times);
    stream.setParams(params);
    return stream;
  }
}
