using System.Runtime.InteropServices;

namespace RoboCache {

/// <summary>Neighbouring channels and how they are interpolated.</summary>
[StructLayout(LayoutKind.Sequential)]
public struct ChannelGroup {
  private readonly long begin;
  private readonly long count;
  private readonly int method;
  private readonly int reserved;

  /// <summary>Channels begin to begin + count - 1, by a method of Rbc.MethodLinear on.</summary>
  public ChannelGroup(long begin, long count, int method) {
    this.begin = begin;
    this.count = count;
    this.method = method;
    reserved = 0;
  }

  /// <summary>The first channel.</summary>
  public long Begin {
    get { return begin; }
  }

  /// <summary>The number of channels; for slerp a multiple of 4.</summary>
  public long Count {
    get { return count; }
  }

  /// <summary>Rbc.MethodLinear to Rbc.MethodAngle.</summary>
  public int Method {
    get { return method; }
  }
}

}
