using System.Runtime.InteropServices;

namespace RoboCache {

/// <summary>Adjacent channels and how they are interpolated.</summary>
[StructLayout(LayoutKind.Sequential)]
public struct ChannelGroup {
  private readonly long begin;
  private readonly long count;
  private readonly int method;
  private readonly int period;

  /// <summary>Channels begin to begin + count - 1, with a method Rbc.Method....</summary>
  public ChannelGroup(long begin, long count, int method)
      : this(begin, count, method, Rbc.PeriodRadians) {}

  /// <summary>
  /// Channels with Rbc.MethodAngle, and the unit and range of angles: Rbc.PeriodRadians and so on.
  /// </summary>
  public ChannelGroup(long begin, long count, int method, int period) {
    this.begin = begin;
    this.count = count;
    this.method = method;
    this.period = period;
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

  /// <summary>The unit and the range of angles: Rbc.PeriodRadians to Rbc.PeriodTurnsPositive.</summary>
  public int Period {
    get { return period; }
  }
}

}
