// SPDX-License-Identifier: Apache-2.0
package io.robocache;

/**
 * An error other than a wrong argument or a lack of memory, for example a missing device or a CUDA
 * error. {@link #getStatus} returns the status.
 */
public final class RoboCacheException extends RuntimeException {
  private static final long serialVersionUID = 1;

  /** The status of the failed call. */
  private final Status status;

  RoboCacheException(String message, int status) {
    super(message);
    this.status = Status.of(status);
  }

  /**
   * Returns the status of the failed call.
   *
   * @return null if the library is newer than this binding and the status is too
   */
  public Status getStatus() {
    return status;
  }
}
