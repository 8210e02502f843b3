// SPDX-License-Identifier: Apache-2.0
package io.robocache;

/** Converts and checks the arguments of generated calls. */
abstract class Calls {
  /**
   * Returns the release of the loaded library.
   *
   * @return for example "0.1.0"
   */
  public static String version() {
    int[] release = new int[1];
    RoboCache.getVersion(release, new int[1]);
    return release[0] / 10000 + "." + release[0] / 100 % 100 + "." + release[0] % 100;
  }

  static long required(String name, NativeObject object) {
    if (object == null) throw new IllegalArgumentException(name + ": is null");
    return object.open(name);
  }

  static long optional(String name, NativeObject object) {
    return object == null ? 0 : object.open(name);
  }

  static long output(String name, Tensor tensor) {
    if (tensor != null && !tensor.isWritable()) {
      throw new IllegalArgumentException(name + ": is read-only, expected a writable tensor");
    }
    return optional(name, tensor);
  }

  /** Checks a number that is unsigned in C. */
  static long size(String name, long size) {
    if (size < 0) {
      throw new IllegalArgumentException(name + ": is " + size + ", expected 0 or more");
    }
    return size;
  }

  /** A copy, so that the array cannot change between these checks and the call. */
  static NativeObject[] all(String name, NativeObject[] objects) {
    if (objects == null) return null;
    NativeObject[] checked = objects.clone();
    for (int i = 0; i < checked.length; ++i) required(name + "[" + i + "]", checked[i]);
    return checked;
  }
}
