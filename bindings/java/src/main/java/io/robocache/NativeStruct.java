// SPDX-License-Identifier: Apache-2.0
package io.robocache;

import java.util.HashMap;
import java.util.Map;
import java.util.function.LongConsumer;

/** A struct of the C interface. It keeps the objects alive that its fields point to. */
abstract class NativeStruct extends NativeObject {
  private final Map<String, NativeObject> kept = new HashMap<>(); // by field name

  NativeStruct(long address, LongConsumer destroy) {
    super(address, destroy);
  }

  NativeStruct(long address, NativeObject parent) {
    super(address, parent);
  }

  /** The objects that it points to must also be open. */
  @Override
  long open(String name) {
    kept.forEach((field, object) -> object.open(name + "." + field));
    return super.open(name);
  }

  // The generated setters call these with the name and the new value of a field.

  /** For a field that is copied. */
  final long required(String field, NativeObject value) {
    return Calls.required(field, value);
  }

  final NativeObject[] all(String field, NativeObject[] values) {
    return Calls.all(field, values);
  }

  /** For a field that points to its value. */
  final long optional(String field, NativeObject value) {
    return keep(field, value, Calls.optional(field, value));
  }

  final long output(String field, Tensor value) {
    return keep(field, value, Calls.output(field, value));
  }

  private long keep(String field, NativeObject value, long address) {
    if (value == null) {
      kept.remove(field);
    } else {
      kept.put(field, value);
    }
    return address;
  }

  /** Returns the object that a field points to, or null. */
  final NativeObject kept(long address) {
    for (NativeObject object : kept.values()) {
      if (object.swigCPtr == address) return object;
    }
    return null;
  }
}
