using System;
using System.Runtime.InteropServices;

namespace RoboCache {

/// A copy of structs in native memory.
internal sealed class NativeArray<T> : NativeObject where T : struct {
  internal NativeArray(T[] structs) : base(Copy(structs), true) {
    swigCPtr.Release = memory => Marshal.FreeHGlobal(memory.DangerousGetHandle());
  }

  internal IntPtr Pointer {
    get { return swigCPtr.DangerousGetHandle(); }
  }

  private static IntPtr Copy(T[] structs) {
    int size = Marshal.SizeOf(typeof(T));
    IntPtr memory = Marshal.AllocHGlobal(structs.Length * size);
    for (int i = 0; i < structs.Length; ++i) {
      Marshal.StructureToPtr(structs[i], memory + i * size, false);
    }
    return memory;
  }
}

}
