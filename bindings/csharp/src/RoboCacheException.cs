using System;

namespace RoboCache {

/// <summary>
/// A failure without a matching exception of .NET: a CUDA error, a device that is not available, a
/// workspace that cannot grow now.
/// </summary>
public class RoboCacheException : Exception {
  /// <summary>Creates the exception for a status.</summary>
  public RoboCacheException(Status status, string message) : base(message) {
    Status = status;
  }

  /// <summary>The status of the failed call.</summary>
  public Status Status { get; }
}

/// The exceptions for statuses. A message has the argument, its value and what was expected.
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
