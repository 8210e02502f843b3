// SPDX-License-Identifier: Apache-2.0
package io.robocache;

import java.util.function.LongConsumer;

/** A struct whose tensors are all written. */
abstract class OutputStruct extends NativeStruct {
  OutputStruct(long address, LongConsumer destroy) {
    super(address, destroy);
  }

  OutputStruct(long address, NativeObject parent) {
    super(address, parent);
  }

  @Override
  final long optional(String field, NativeObject value) {
    return output(field, (Tensor) value);
  }
}
