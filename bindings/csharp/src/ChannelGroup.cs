using System.Runtime.InteropServices;

namespace RoboCache {

/// <summary>Adjacent channels and how they are interpolated.</summary>
[StructLayout(LayoutKind.Sequential)]
public struct ChannelGroup {
  private readonly long begin;
  private readonly long count;
  private readonly int method;
  private readonly int period;
  private readonly uint flags;
  private readonly int reserved0;
  private readonly double maxAge;

  /// <summary>Channels begin to begin + count - 1, with a method Rbc.Method....</summary>
  public ChannelGroup(long begin, long count, int method)
      : this(begin, count, method, Rbc.PeriodRadians) {}

  /// <summary>
  /// Channels with Rbc.MethodAngle, and the unit and range of angles: Rbc.PeriodRadians and so on.
  /// </summary>
  public ChannelGroup(long begin, long count, int method, int period)
      : this(begin, count, method, period, 0, 0) {}

  /// <summary>
  /// Channels that look back only, with Rbc.FlagCausal: they are valid if their last sample is at
  /// most maxAge old, in the unit of the times.
  /// </summary>
  public ChannelGroup(long begin, long count, int method, int period, uint flags, double maxAge) {
    this.begin = begin;
    this.count = count;
    this.method = method;
    this.period = period;
    this.flags = flags;
    this.reserved0 = 0;
    this.maxAge = maxAge;
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

  /// <summary>Rbc.FlagCausal or 0.</summary>
  public uint Flags {
    get { return flags; }
  }

  /// <summary>With Rbc.FlagCausal: how old the last sample of a valid value may be.</summary>
  public double MaxAge {
    get { return maxAge; }
  }
}

}
