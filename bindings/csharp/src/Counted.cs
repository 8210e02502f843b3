using System;

namespace RoboCache {

/// Sizes and arrays for the wrapper: the number of elements comes before the array.
internal static class Counted {
  /// For sizes, which are unsigned in C.
  internal static long Size(long size, string name) {
    if (size < 0) {
      throw new ArgumentException(
          FormattableString.Invariant($"{name}: is {size}, expected 0 or more"));
    }
    return size;
  }

  internal static long[] Of(long[] elements) {
    if (elements == null) throw new ArgumentNullException("shape");
    long[] counted = new long[elements.Length + 1];
    counted[0] = elements.Length;
    elements.CopyTo(counted, 1);
    return counted;
  }

  internal static void Require(double[] elements, int count, string name) {
    int given = elements == null ? 0 : elements.Length;
    if (given == count) return;
    throw new ArgumentException(
        FormattableString.Invariant($"{name}: has {given} elements, expected {count}"));
  }

  /// Memory for results of the native side.
  internal static double[] Room(double[] results) {
    int count = results == null ? 0 : results.Length;
    double[] counted = new double[count + 1];
    counted[0] = count;
    if (count > 0) results.CopyTo(counted, 1);
    return counted;
  }

  internal static void CopyTo(double[] counted, double[] results) {
    if (results != null) Array.Copy(counted, 1, results, 0, results.Length);
  }

  /// The caller pins the objects.
  internal static IntPtr[] Of(NativeObject[] objects) {
    int count = objects == null ? 0 : objects.Length;
    IntPtr[] counted = new IntPtr[count + 1];
    counted[0] = (IntPtr)count;
    for (int i = 0; i < count; ++i) counted[i + 1] = objects[i].swigCPtr.DangerousGetHandle();
    return counted;
  }

  /// A key of a store.
  internal static byte[] Key(byte[] key) {
    int length = key == null ? 0 : key.Length;
    if (length != Rbc.StoreKeyBytes) {
      throw new ArgumentException("key: has " + length + " bytes, expected " + Rbc.StoreKeyBytes);
    }
    return key;
  }
}

}
