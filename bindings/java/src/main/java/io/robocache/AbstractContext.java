// SPDX-License-Identifier: Apache-2.0
package io.robocache;

import java.util.function.LongConsumer;

/** Adds factories and methods to the generated {@link Context}. */
abstract class AbstractContext extends NativeHandle {
  AbstractContext(long address, LongConsumer destroy) {
    super(address, destroy);
  }

  /**
   * A context on CUDA if a device is usable, else on the CPU.
   *
   * @return a new context
   */
  public static Context auto() {
    return RoboCache.contextCreate(null);
  }

  /**
   * A context on the CPU, with as many threads as this process has CPUs.
   *
   * @return a new context
   */
  public static Context cpu() {
    return of(RoboCache.BACKEND_CPU, 0);
  }

  /**
   * A context on a CUDA device and its legacy default stream.
   *
   * @param deviceId from 0
   * @return a new context
   * @throws RoboCacheException if there is no such device or no usable driver
   * @throws UnsupportedOperationException if the library was built without CUDA
   */
  public static Context cuda(int deviceId) {
    return of(RoboCache.BACKEND_CUDA, deviceId);
  }

  private static Context of(int backend, int deviceId) {
    ContextParams params = new ContextParams();
    params.setBackend(backend);
    params.setDeviceId(deviceId);
    return RoboCache.contextCreate(params);
  }

  /**
   * Returns the properties of the context.
   *
   * @return a copy of the current values
   */
  public ContextInfo getInfo() {
    ContextInfo info = new ContextInfo();
    RoboCache.contextGetInfo((Context) this, info);
    return info;
  }

  /** Waits for all work enqueued on the context's stream, and throws its errors. */
  public void synchronize() {
    RoboCache.contextSynchronize((Context) this);
  }

  /**
   * Grows the workspace, so that calls that need no more allocate nothing.
   *
   * @param bytes the size, for example from {@code RoboCache.resampleWorkspaceSize}
   */
  public void reserve(long bytes) {
    RoboCache.contextReserve((Context) this, bytes);
  }

  /** Starts the CPU threads now instead of on first use. */
  public void warmUp() {
    RoboCache.contextWarmUp((Context) this);
  }
}
