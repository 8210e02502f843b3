using System;

namespace RoboCache {

/// <summary>
/// A failure that no exception of .NET stands for: of CUDA, of a device that is not there, of a
/// workspace that cannot grow now.
/// </summary>
public class RoboCacheException : Exception {
  /// <summary>Makes the exception of a status.</summary>
  public RoboCacheException(Status status, string message) : base(message) {
    Status = status;
  }

  /// <summary>What the call came to.</summary>
  public Status Status { get; }
}

/// The exceptions of statuses; the message names the argument, what it was and what was expected.
internal static class Errors {
  internal static Exception Of(Status status, string message) {
    switch (status) {
      case Status.InvalidArgument:
      case Status.BufferTooSmall:
      case Status.Damaged:
      case Status.DeviceMismatch:
      case Status.DtypeMismatch:
      case Status.ShapeMismatch:
        return new ArgumentException(message);
      case Status.Unsupported:
        return new NotSupportedException(message);
      case Status.OutOfMemory:
        return new OutOfMemoryException(message);
      default:
        return new RoboCacheException(status, message);
    }
  }
}

}
