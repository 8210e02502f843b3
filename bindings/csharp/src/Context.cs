using System;

namespace RoboCache {

public partial class Context {
  /// <summary>Creates a context on CUDA if a device is usable, else on the CPU.</summary>
  public static Context Auto() {
    return Create(null);
  }

  /// <summary>Creates a context on the CPU.</summary>
  /// <param name="numThreads">The threads that a call may use; 0: as many as CPUs.</param>
  public static Context Cpu(int numThreads = 0) {
    using (ContextParams parameters = new ContextParams()) {
      parameters.Backend = Rbc.BackendCpu;
      parameters.NumThreads = numThreads;
      return Create(parameters);
    }
  }

  /// <summary>Creates a context on a GPU. Calls enqueue their work and return.</summary>
  /// <param name="deviceId">The CUDA device.</param>
  /// <param name="stream">The first cudaStream_t; zero: the legacy default stream.</param>
  public static Context Cuda(int deviceId = 0, IntPtr stream = default(IntPtr)) {
    using (ContextParams parameters = new ContextParams()) {
      parameters.Backend = Rbc.BackendCuda;
      parameters.DeviceId = deviceId;
      parameters.CudaStream = stream;
      return Create(parameters);
    }
  }

  /// <summary>Creates a context; null: the defaults.</summary>
  public static Context Create(ContextParams parameters) {
    Context context;
    Rbc.ContextCreate(parameters, out context);
    return context;
  }

  /// <summary>The backend, the device, threads and memory, and why CUDA is not used.</summary>
  public ContextInfo Info {
    get {
      ContextInfo info = new ContextInfo();
      Rbc.ContextGetInfo(this, info);
      return info;
    }
  }

  /// <summary>The cudaStream_t that calls enqueue on; zero: the legacy default stream.</summary>
  public IntPtr Stream {
    get {
      IntPtr stream;
      Rbc.ContextGetCudaStream(this, out stream);
      return stream;
    }
    set { Rbc.ContextSetCudaStream(this, value); }
  }

  /// <summary>Waits until all enqueued work is done, and throws its errors.</summary>
  public void Synchronize() {
    Rbc.ContextSynchronize(this);
  }

  /// <summary>Copies between tensors of the same shape and dtype, also across devices.</summary>
  public void Copy(Tensor source, Tensor destination) {
    Rbc.TensorCopy(this, source, destination);
  }
}

}
