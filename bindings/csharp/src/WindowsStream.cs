using System;

namespace RoboCache {

public partial class WindowsStream {
  private WindowsTransform[] transforms;

  /// <summary>
  /// What becomes of which channels, in any order, no channel in two of them; null or none: all are
  /// copied. The array is copied.
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
