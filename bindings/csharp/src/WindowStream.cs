using System;

namespace RoboCache {

public partial class WindowStream {
  private WindowTransform[] transforms;

  /// <summary>
  /// What becomes of which channels, in any order, no channel in two of them; null or none: all are
  /// copied. The array is copied.
  /// </summary>
  public WindowTransform[] Transforms {
    get { return transforms == null ? null : (WindowTransform[])transforms.Clone(); }
    set {
      transforms = value == null ? null : (WindowTransform[])value.Clone();
      int count = transforms == null ? 0 : transforms.Length;
      NativeArray<WindowTransform> copy =
          count == 0 ? null : new NativeArray<WindowTransform>(transforms);
      SetTransforms(copy == null ? IntPtr.Zero : copy.Pointer, count);
      Keep("transforms", copy, false);
    }
  }
}

}
