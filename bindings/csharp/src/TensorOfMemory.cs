using System;
using System.Buffers;

namespace RoboCache {

public partial class Tensor {
  /// <summary>Memory with a shape, as Of(Array, ...).</summary>
  public static Tensor Of<T>(Memory<T> memory, params long[] shape) where T : struct {
    return Of(memory, DType.Of(typeof(T)), shape);
  }

  /// <summary>Memory with a dtype, a shape and strides, as Of(Array, ...).</summary>
  public static Tensor Of<T>(Memory<T> memory, DType dtype, long[] shape, long[] strides = null,
                             long offset = 0) where T : struct {
    Pinning pin = (out IntPtr address) => Address(memory.Pin(), out address);
    return Of(typeof(T), memory.Length, pin, false, dtype, shape, strides, offset);
  }

  /// <summary>Memory that calls may only read, as Of(Array, ...).</summary>
  public static Tensor Of<T>(ReadOnlyMemory<T> memory, params long[] shape) where T : struct {
    return Of(memory, DType.Of(typeof(T)), shape);
  }

  /// <summary>Memory that calls may only read, as Of(Array, ...).</summary>
  public static Tensor Of<T>(ReadOnlyMemory<T> memory, DType dtype, long[] shape,
                             long[] strides = null, long offset = 0) where T : struct {
    Pinning pin = (out IntPtr address) => Address(memory.Pin(), out address);
    return Of(typeof(T), memory.Length, pin, true, dtype, shape, strides, offset);
  }

  private static unsafe IDisposable Address(MemoryHandle handle, out IntPtr address) {
    address = (IntPtr)handle.Pointer;
    return handle;
  }
}

}
