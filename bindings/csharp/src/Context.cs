using System;

namespace RoboCache {

/// <summary>
/// One device and one stream at a time, with the threads and the workspace that operations use. Any
/// number of contexts may be used from any threads, one thread a context at a time.
/// </summary>
public partial class Context {
  /// <summary>Creates a context of CUDA if a device is usable, else of the CPU.</summary>
  public static Context Auto() {
    return Create(null);
  }

  /// <summary>Creates a context of the CPU.</summary>
  /// <param name="numThreads">The threads that a call may use; 0: the process's CPUs.</param>
  public static Context Cpu(int numThreads = 0) {
    using (ContextParams parameters = new ContextParams()) {
      parameters.Backend = Rbc.BackendCpu;
      parameters.NumThreads = numThreads;
      return Create(parameters);
    }
  }

  /// <summary>Creates a context of a GPU, where a call enqueues and returns.</summary>
  /// <param name="deviceId">The CUDA device.</param>
  /// <param name="stream">The first cudaStream_t; zero: the legacy default stream.</param>
  public static Context Cuda(int deviceId = 0, IntPtr stream = default(IntPtr)) {
    using (ContextParams parameters = new ContextParams()) {
      parameters.Backend = Rbc.BackendCuda;
      parameters.DeviceId = deviceId;
      parameters.Stream = stream;
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
      Rbc.ContextGetStream(this, out stream);
      return stream;
    }
    set { Rbc.ContextSetStream(this, value); }
  }

  /// <summary>Waits until all that was enqueued is done, and reports what went wrong.</summary>
  public void Synchronize() {
    Rbc.ContextSynchronize(this);
  }

  /// <summary>Copies elements, of one shape and dtype, between devices too.</summary>
  public void Copy(Tensor source, Tensor destination) {
    Rbc.TensorCopy(this, source, destination);
  }

  /// <summary>Resamples trajectories at their own times onto query times: resample.h.</summary>
  /// <param name="values">[B,S,D], or [S,D] without batch.</param>
  /// <param name="times">[B,S] or [S], ascending: float, double or long.</param>
  /// <param name="queryTimes">[B,T] or [T], in any order.</param>
  /// <param name="output">[B,T,D] or [T,D], written whole.</param>
  /// <param name="mask">[B,T] or [T] of bool or byte; null: not wanted.</param>
  /// <param name="parameters">Null: linear, and the edge samples outside.</param>
  public void Resample(Tensor values, Tensor times, Tensor queryTimes, Tensor output,
                       Tensor mask = null, ResampleParams parameters = null) {
    Rbc.Resample(this, values, times, queryTimes, output, mask, parameters);
  }

  /// <summary>Resamples streams of different rates onto one clock: fuse.h.</summary>
  /// <param name="streams">Up to 64, all with a batch or all without.</param>
  /// <param name="queryTimes">[B,T] or [T], in any order.</param>
  /// <param name="output">[B,T,sum D] or [T,sum D] of a float type, written whole.</param>
  /// <param name="mask">[B,T,N] or [T,N] of bool or byte; null: not wanted.</param>
  /// <param name="parameters">Null: defaults.</param>
  public void Fuse(FuseStream[] streams, Tensor queryTimes, Tensor output, Tensor mask = null,
                   FuseParams parameters = null) {
    Rbc.Fuse(this, streams, queryTimes, output, mask, parameters);
  }

  /// <summary>Reduces point clouds to a dense grid: voxelize.h.</summary>
  /// <param name="points">[B,N,C], or [N,C] without batch; x, y, z come first.</param>
  /// <param name="output">[B,X,Y,Z], with features [B,X,Y,Z,F]; without batch no B.</param>
  /// <param name="parameters">The grid and the mode.</param>
  /// <param name="features">[B,N,F] or [N,F]; null: the columns of points.</param>
  /// <param name="dropped">[B] or [] of long: the points in no voxel; null: not wanted.</param>
  public void Voxelize(Tensor points, Tensor output, VoxelizeParams parameters,
                       Tensor features = null, Tensor dropped = null) {
    Rbc.Voxelize(this, points, features, output, dropped, parameters);
  }

  /// <summary>Reduces point clouds to a list of the voxels that hold a point: voxelize.h.</summary>
  /// <param name="points">[B,N,C], or [N,C] without batch; x, y, z come first.</param>
  /// <param name="voxels">What to write.</param>
  /// <param name="parameters">The grid, the reduction and the order.</param>
  /// <param name="features">[B,N,F] or [N,F]; null: the columns of points.</param>
  public void VoxelizeSparse(Tensor points, SparseVoxels voxels, VoxelizeSparseParams parameters,
                             Tensor features = null) {
    Rbc.VoxelizeSparse(this, points, features, voxels, parameters);
  }

  /// <summary>Integrates point clouds into a field of signed distances: tsdf.h.</summary>
  /// <param name="points">[B,N,C], or [N,C] without batch; x, y, z come first.</param>
  /// <param name="sensors">[B,3] or [3]: where each cloud was seen from.</param>
  /// <param name="tsdf">[X,Y,Z] of float, read and written.</param>
  /// <param name="weight">[X,Y,Z] of float, read and written; 0: not observed yet.</param>
  /// <param name="parameters">The grid and the truncation.</param>
  /// <param name="dropped">[B] or [] of long: the points without effect; null: not wanted.</param>
  public void VoxelizeTsdf(Tensor points, Tensor sensors, Tensor tsdf, Tensor weight,
                           TsdfParams parameters, Tensor dropped = null) {
    Rbc.VoxelizeTsdf(this, points, sensors, tsdf, weight, dropped, parameters);
  }
}

}
