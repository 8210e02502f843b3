using System.Runtime.InteropServices;

namespace RoboCache {

/// <summary>A transform of adjacent channels of a stream of windows.</summary>
[StructLayout(LayoutKind.Sequential)]
public struct WindowsTransform {
  /// <summary>The first channel of values.</summary>
  public long Begin;

  /// <summary>The number of channels; SE3: 3 of the position and then the rotation's.</summary>
  public long Count;

  /// <summary>Rbc.TransformCopy to Rbc.TransformSe3Step.</summary>
  public int Kind;

  /// <summary>Rbc.TransformInverse or 0.</summary>
  public uint Flags;

  /// <summary>The index of a stream of the call.</summary>
  public int ReferenceStreamIndex;

  /// <summary>The index of one of that stream's offsets.</summary>
  public int ReferenceOffsetIndex;

  /// <summary>The first channel of the reference.</summary>
  public long ReferenceBegin;

  /// <summary>SE3: the representation in values, Rbc.RotationQuatXyzw and so on.</summary>
  public int Rotation;

  /// <summary>SE3: the representation in the reference.</summary>
  public int ReferenceRotation;

  /// <summary>SE3: the representation in the output.</summary>
  public int OutRotation;

  private readonly int reserved;
}

}
