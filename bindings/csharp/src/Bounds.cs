using System;

namespace RoboCache {

/// The bounds of the elements of a strided view, in 64 bits.
internal static class Bounds {
  /// Throws if a view has elements outside the first `length`.
  internal static void Require(long[] shape, long[] strides, long offset, long length) {
    long first = offset;
    long last = offset;
    bool empty = false;
    try {
      long compact = 1;
      for (int i = shape.Length - 1; i >= 0; --i) {
        if (shape[i] < 0) {
          throw new ArgumentException(
              FormattableString.Invariant($"shape: extent {i} is {shape[i]}"));
        }
        empty |= shape[i] == 0;
        long reach = empty ? 0 : checked((shape[i] - 1) * (strides == null ? compact : strides[i]));
        first = checked(first + Math.Min(reach, 0));
        last = checked(last + Math.Max(reach, 0));
        compact = checked(compact * shape[i]);
      }
    } catch (OverflowException) {
      throw new ArgumentException("shape: its elements reach beyond 64 bits");
    }
    if (offset < 0 || (empty ? offset > length : first < 0 || last >= length)) {
      throw new ArgumentException(FormattableString.Invariant(
          $"array: holds elements 0 to {length - 1}, the shape reaches from {first} to {last}"));
    }
  }
}

}
