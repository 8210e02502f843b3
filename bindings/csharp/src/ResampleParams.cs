using System;
using System.Runtime.InteropServices;

namespace RoboCache {

public partial class ResampleParams {
  private ChannelGroup[] groups;

  /// <summary>
  /// Methods of single channels, in any order, each channel in one group; null or none: Method for
  /// all. The array is copied.
  /// </summary>
  public ChannelGroup[] Groups {
    get { return groups == null ? null : (ChannelGroup[])groups.Clone(); }
    set {
      groups = value == null ? null : (ChannelGroup[])value.Clone();
      int count = groups == null ? 0 : groups.Length;
      NativeArray copy = count == 0 ? null : new NativeArray(groups);
      SetGroups(copy == null ? IntPtr.Zero : copy.Pointer, count);
      Keep("groups", copy, false);
    }
  }

  /// Groups in native memory.
  private sealed class NativeArray : NativeObject {
    internal NativeArray(ChannelGroup[] groups) : base(Copy(groups), true) {
      swigCPtr.Release = memory => Marshal.FreeHGlobal(memory.DangerousGetHandle());
    }

    internal IntPtr Pointer {
      get { return swigCPtr.DangerousGetHandle(); }
    }

    private static IntPtr Copy(ChannelGroup[] groups) {
      int size = Marshal.SizeOf(typeof(ChannelGroup));
      IntPtr memory = Marshal.AllocHGlobal(groups.Length * size);
      for (int i = 0; i < groups.Length; ++i) {
        Marshal.StructureToPtr(groups[i], memory + i * size, false);
      }
      return memory;
    }
  }
}

}
