using System.Runtime.InteropServices;

namespace RoboCache {

/// <summary>What becomes of neighbouring channels of a stream of windows.</summary>
[StructLayout(LayoutKind.Sequential)]
public struct WindowsTransform {
  /// <summary>The first channel of values.</summary>
  public long Begin;

  /// <summary>How many; SE3: 3 of the position and those of Rotation.</summary>
  public long Count;

  /// <summary>Rbc.TransformCopy to Rbc.TransformSe3Step.</summary>
  public int Kind;

  /// <summary>Rbc.TransformInverse or 0.</summary>
  public uint Flags;

  /// <summary>The number of a stream of the call.</summary>
  public int ReferenceStreamIndex;

  /// <summary>The number of one of that stream's offsets.</summary>
  public int ReferenceOffsetIndex;

  /// <summary>The first channel there.</summary>
  public long ReferenceBegin;

  /// <summary>SE3: Rbc.RotationQuatXyzw on, of values.</summary>
  public int Rotation;

  /// <summary>SE3: of the reference.</summary>
  public int ReferenceRotation;

  /// <summary>SE3: of what is written.</summary>
  public int OutRotation;

  private readonly int reserved;
}

}
