using System;

namespace RoboCache {

public partial class WindowsStream {
  private WindowsTransform[] transforms;

  /// <summary>
  /// Transforms of channels, in any order, each channel in at most one; null or empty: all channels
  /// are copied. The array is copied.
  /// </summary>
  public WindowsTransform[] Transforms {
    get { return transforms == null ? null : (WindowsTransform[])transforms.Clone(); }
    set {
      transforms = value == null ? null : (WindowsTransform[])value.Clone();
      int count = transforms == null ? 0 : transforms.Length;
      NativeArray<WindowsTransform> copy =
          count == 0 ? null : new NativeArray<WindowsTransform>(transforms);
      SetTransforms(copy == null ? IntPtr.Zero : copy.Pointer, count);
      Keep("transforms", copy, false);
    }
  }
}

}
