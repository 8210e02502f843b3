using System;
using System.Runtime.InteropServices;

namespace RoboCache {

/// <remarks>
/// It describes an array, a Memory, a native pointer or an OwnedTensor. Nothing is copied. Managed
/// memory is pinned while a call runs and may move between calls: operations on the CPU, and copies
/// with host memory, are done when they return, and no other operation accepts managed memory.
/// Disposing a tensor frees only the description.
/// </remarks>
public partial class Tensor {
  private readonly object pinning = new object();
  private Pinning pin; // for managed memory
  private IDisposable pinned;
  private int holds;
  private long byteOffset;
  private NativeObject owner;
  private bool readOnly;

  /// <summary>An array with its own shape; DType.Of must support its elements.</summary>
  public static implicit operator Tensor(Array array) {
    return array == null ? null : Of(array);
  }

  /// <summary>A view of an owned tensor, to read and write.</summary>
  public static implicit operator Tensor(OwnedTensor tensor) {
    return tensor == null ? null : tensor.View();
  }

  /// <summary>An array with its own shape; float[,] has rank 2.</summary>
  public static Tensor Of(Array array) {
    Require(array, "array");
    return Of(array, Extents(array));
  }

  /// <summary>An array with a shape; no extents: a single element, of rank 0.</summary>
  public static Tensor Of(Array array, params long[] shape) {
    Require(array, "array");
    return Of(array, DType.Of(array.GetType().GetElementType()), shape);
  }

  /// <summary>
  /// An array whose elements represent another dtype, such as a ushort[] for half precision, or a
  /// byte[] for any dtype. Strides are in elements and may be 0 or negative; the first element is
  /// at an offset.
  /// </summary>
  /// <exception cref="ArgumentException">The array does not contain all of the elements.</exception>
  public static Tensor Of(Array array, DType dtype, long[] shape, long[] strides = null,
                          long offset = 0) {
    Require(array, "array");
    Type element = array.GetType().GetElementType();
    Pinning pin = (out IntPtr address) => new PinnedArray(array, out address);
    return Of(element, array.LongLength, pin, false, dtype, shape, strides, offset);
  }

  /// <summary>
  /// Memory of any device, with strides in elements. The tensor does not keep it alive: on CUDA it
  /// must stay valid until the work on the stream is done.
  /// </summary>
  public static Tensor OfPointer(IntPtr pointer, Device device, DType dtype, long[] shape,
                                 long[] strides = null) {
    Tensor tensor = Make(device, dtype, shape, strides);
    tensor.Data = pointer;
    return tensor;
  }

  /// <summary>The number of elements along each dimension.</summary>
  public long[] Shape {
    get {
      long[] shape = new long[Ndim];
      for (int i = 0; i < shape.Length; ++i) shape[i] = GetExtent(i);
      return shape;
    }
  }

  /// The pointer for the generated properties. Throws if the owner of a view was disposed.
  internal new NativeHandle swigCPtr {
    get {
      if (owner != null) {
        owner.Hold("tensor", false);
        owner.LetGo();
      }
      return base.swigCPtr;
    }
  }

  internal static Tensor Of(OwnedTensor owner, bool writable) {
    Tensor tensor = new Tensor(owner, writable ? 1 : 0);
    tensor.owner = owner;
    tensor.readOnly = !writable;
    return tensor;
  }

  internal static Tensor Of(Entry owner, string name, long segment) {
    return new Tensor(owner, name, segment) {owner = owner, readOnly = true};
  }

  internal override void Hold(string name, bool writable) {
    if (writable && readOnly) {
      throw new ArgumentException(name + ": is read-only, expected memory to write to");
    }
    base.Hold(name, writable);
    try {
      HoldData();
    } catch {
      base.LetGo();
      throw;
    }
  }

  internal override void LetGo() {
    if (owner != null) owner.LetGo();
    if (pin != null) {
      lock (pinning) {
        if (--holds == 0) {
          Data = IntPtr.Zero;
          pinned.Dispose();
        }
      }
    }
    base.LetGo();
  }

  private void HoldData() {
    if (owner != null) owner.Hold("tensor", false);
    if (pin == null) return;
    lock (pinning) { // threads may share a tensor, each with its own context
      if (holds == 0) {
        IntPtr address;
        pinned = pin(out address);
        Data = new IntPtr((long)address + byteOffset);
      }
      ++holds;
    }
  }

  private static Tensor Of(Type element, long length, Pinning pin, bool readOnly,
                           DType dtype, long[] shape, long[] strides, long offset) {
    int size = ElementSize(element);
    if (dtype.Bits == 0) throw new ArgumentException("dtype: is none");
    if (element != typeof(byte) && size * 8 != dtype.Bits) {
      throw new ArgumentException("dtype: has " + dtype.Bits + " bits, the elements of " +
                                  element + " have " + size * 8);
    }
    Tensor tensor = Make(Device.Cpu, dtype, shape, strides);
    try {
      Bounds.Require(shape, strides, offset, length * size / (dtype.Bits / 8));
    } catch {
      tensor.Dispose();
      throw;
    }
    tensor.byteOffset = offset * (dtype.Bits / 8);
    tensor.pin = pin;
    tensor.readOnly = readOnly;
    return tensor;
  }

  private static Tensor Make(Device device, DType dtype, long[] shape, long[] strides) {
    Require(shape, "shape");
    if (strides != null && strides.Length != shape.Length) {
      throw new ArgumentException("strides: has " + strides.Length + " elements, expected " +
                                  shape.Length);
    }
    return new Tensor(device, dtype, shape, strides);
  }

  private static long[] Extents(Array array) {
    long[] shape = new long[array.Rank];
    for (int i = 0; i < shape.Length; ++i) shape[i] = array.GetLongLength(i);
    return shape;
  }

  private static int ElementSize(Type element) {
    switch (Type.GetTypeCode(element)) {
      case TypeCode.Boolean: // Marshal.SizeOf returns the size of a BOOL
      case TypeCode.SByte:
      case TypeCode.Byte: return 1;
      case TypeCode.Int16:
      case TypeCode.UInt16: return 2;
      case TypeCode.Int32:
      case TypeCode.UInt32:
      case TypeCode.Single: return 4;
      case TypeCode.Int64:
      case TypeCode.UInt64:
      case TypeCode.Double: return 8;
      default: throw new ArgumentException("elements of " + element + " have no dtype");
    }
  }

  /// Pins memory until the returned object is disposed.
  private delegate IDisposable Pinning(out IntPtr address);

  private sealed class PinnedArray : IDisposable {
    private GCHandle handle;

    internal PinnedArray(Array array, out IntPtr address) {
      handle = GCHandle.Alloc(array, GCHandleType.Pinned);
      address = handle.AddrOfPinnedObject();
    }

    public void Dispose() {
      handle.Free();
    }
  }

  private static void Require(object argument, string name) {
    if (argument == null) throw new ArgumentNullException(name);
  }
}

}
