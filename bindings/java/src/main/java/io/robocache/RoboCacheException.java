// SPDX-License-Identifier: Apache-2.0
package io.robocache;

/**
 * What failed is neither an argument nor a lack of memory: no such device, an error of CUDA, and so
 * on. {@link #getStatus} tells which.
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
   * The status of the failed call.
   *
   * @return null if the library is newer than this binding and the status is too
   */
  public Status getStatus() {
    return status;
  }
}
