using System;

namespace RoboCache {

public partial class ResampleParams {
  private ChannelGroup[] groups;

  /// <summary>
  /// Groups of channels with their methods, in any order, each channel in one group; null or empty:
  /// Method for all channels. The array is copied.
  /// </summary>
  public ChannelGroup[] Groups {
    get { return groups == null ? null : (ChannelGroup[])groups.Clone(); }
    set {
      groups = value == null ? null : (ChannelGroup[])value.Clone();
      int count = groups == null ? 0 : groups.Length;
      NativeArray<ChannelGroup> copy = count == 0 ? null : new NativeArray<ChannelGroup>(groups);
      SetGroups(copy == null ? IntPtr.Zero : copy.Pointer, count);
      Keep("groups", copy, false);
    }
  }
}

}
