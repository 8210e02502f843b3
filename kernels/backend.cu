// The CUDA backend: device, stream, memory, and the table that core calls.

#include <cstdio>
#include <memory>

#include "backend.h"
#include "check_times.h"
#include "clear_counts.h"
#include "copy.h"
#include "cuda_error.h"
#include "fuse.h"
#include "fuse_rows.h"
#include "group_points.h"
#include "reduce_voxels.h"
#include "tsdf.h"
#include "voxel_bins.h"
#include "voxelize.h"
#include "voxelize_sparse.h"

namespace rbc::cuda {
namespace {

struct CudaState : BackendState {
  int device = 0;
  cudaStream_t stream = nullptr;
  cudaEvent_t event = nullptr;  // the last use of the workspace on the stream before
  bool workspace_used = false;  // on the current stream
  bool wait_pending = false;    // the workspace's next use has to wait for the event
  LaunchDevice launch = {};
  uint64_t total_memory = 0;
  char name[sizeof rbcContextInfo{}.device_name] = {};
};

CudaState& own(BackendState& state) { return static_cast<CudaState&>(state); }
const CudaState& own(const BackendState& state) { return static_cast<const CudaState&>(state); }

// Makes a device current, and the one before again at the end.
class DeviceGuard {
 public:
  explicit DeviceGuard(int device) {
    checkCuda(cudaGetDevice(&before_), "cudaGetDevice");
    if (before_ == device) return;
    checkCuda(cudaSetDevice(device), "cudaSetDevice");
    changed_ = true;
  }
  ~DeviceGuard() {
    if (changed_) cudaSetDevice(before_);
  }
  DeviceGuard(const DeviceGuard&) = delete;
  DeviceGuard& operator=(const DeviceGuard&) = delete;

 private:
  int before_ = 0;
  bool changed_ = false;
};

// ---- life ---------------------------------------------------------------------------------------

void requireDevice(int device) {
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error != cudaSuccess) {
    cudaGetLastError();  // a missing driver is no error of the program's later calls
    fail(RBC_STATUS_NOT_AVAILABLE, "CUDA: no usable driver: %s (%s)", cudaGetErrorString(error),
         cudaGetErrorName(error));
  }
  if (device >= count) {
    fail(RBC_STATUS_NOT_AVAILABLE, "CUDA: device %d is not there, this machine has %d", device,
         count);
  }
}

void close(BackendState* state) noexcept {
  std::unique_ptr<CudaState> cuda(&own(*state));
  if (cuda->event != nullptr && cudaEventDestroy(cuda->event) != cudaSuccess) cudaGetLastError();
}

__global__ void nothing() {}

// By the code, which may be older than the device: there, kernels do not wait.
cudaError_t findOverlap(LaunchDevice* launch) {
  cudaFuncAttributes attributes;
  const cudaError_t error = cudaFuncGetAttributes(&attributes, nothing);
  launch->overlaps = error == cudaSuccess && attributes.ptxVersion >= 90;
  return error;
}

// All of them, so that no call is slow or waits for being the first, and any may be captured.
cudaError_t loadKernels(const LaunchDevice& device) {
  for (const auto load :
       {loadCheckTimes, loadClearCounts, loadCopy, loadFuse, loadFuseRows, loadGroupPoints,
        loadReduceVoxels, loadTsdf, loadVoxelize, loadVoxelizeSparse}) {
    const cudaError_t error = load();
    if (error != cudaSuccess) return error;
  }
  return loadVoxelBins(device);
}

BackendState* open(const rbcContextParams& params) {
  requireDevice(params.device_id);
  auto state = std::make_unique<CudaState>();
  state->device = params.device_id;
  state->stream = static_cast<cudaStream_t>(params.stream);
  const DeviceGuard guard(state->device);
  cudaDeviceProp properties;
  checkCuda(cudaGetDeviceProperties(&properties, state->device), "cudaGetDeviceProperties");
  state->launch.multiprocessors = properties.multiProcessorCount;
  state->launch.compute_capability = properties.major * 10 + properties.minor;
  state->launch.block_memory = static_cast<int>(properties.sharedMemPerBlockOptin);
  state->total_memory = properties.totalGlobalMem;
  std::snprintf(state->name, sizeof state->name, "%.127s", properties.name);
  const cudaError_t error = findOverlap(&state->launch);
  if (error == cudaErrorNoKernelImageForDevice || error == cudaErrorInvalidDeviceFunction ||
      error == cudaErrorUnsupportedPtxVersion) {
    cudaGetLastError();
    fail(RBC_STATUS_NOT_AVAILABLE,
         "CUDA: %s (compute capability %d.%d) cannot run this build's kernels: %s", state->name,
         properties.major, properties.minor, cudaGetErrorString(error));
  }
  checkCuda(error, "cudaFuncGetAttributes");
  checkCuda(loadKernels(state->launch), "loading the kernels");
  checkCuda(cudaEventCreateWithFlags(&state->event, cudaEventDisableTiming), "cudaEventCreate");
  return state.release();
}

void describe(const BackendState& state, rbcContextInfo* info) {
  const CudaState& cuda = own(state);
  info->device_id = cuda.device;
  info->compute_capability = cuda.launch.compute_capability;
  info->num_multiprocessors = cuda.launch.multiprocessors;
  info->total_memory = cuda.total_memory;
  std::snprintf(info->device_name, sizeof info->device_name, "%s", cuda.name);
}

void warmUp(BackendState&) {}  // open() has loaded the kernels

bool reaches(const BackendState& state, rbcDevice device) {
  switch (device.type) {
    case RBC_DEVICE_CUDA: return device.id == own(state).device;
    case RBC_DEVICE_CUDA_HOST:
    case RBC_DEVICE_CUDA_MANAGED: return true;
    default: return false;
  }
}

rbcDevice device(const BackendState& state) { return {RBC_DEVICE_CUDA, own(state).device}; }

// ---- streams ------------------------------------------------------------------------------------

bool isCapturing(cudaStream_t stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  const cudaError_t error = cudaStreamIsCapturing(stream, &status);
  // The legacy stream cannot even be asked while another stream is captured.
  if (error == cudaErrorStreamCaptureImplicit) {
    cudaGetLastError();
    return true;
  }
  checkCuda(error, "cudaStreamIsCapturing");
  return status != cudaStreamCaptureStatusNone;
}

bool capturing(const BackendState& state) {
  const DeviceGuard guard(own(state).device);
  return isCapturing(own(state).stream);
}

// The wait itself is left to the next use of the workspace: a stream in capture that never uses it
// must not depend on an event from outside.
void setStream(BackendState& state, void* stream) {
  CudaState& cuda = own(state);
  if (cuda.stream == stream) return;
  if (cuda.workspace_used) {
    const DeviceGuard guard(cuda.device);
    checkCuda(cudaEventRecord(cuda.event, cuda.stream), "cudaEventRecord");
    cuda.workspace_used = false;
    cuda.wait_pending = true;
  }
  cuda.stream = static_cast<cudaStream_t>(stream);
}

void useWorkspace(BackendState& state) {
  CudaState& cuda = own(state);
  if (cuda.wait_pending) {
    const DeviceGuard guard(cuda.device);
    // A capture cannot wait for work outside of it: its replays do, and the next call that runs.
    const bool captured = isCapturing(cuda.stream);
    checkCuda(cudaStreamWaitEvent(cuda.stream, cuda.event,
                                  captured ? cudaEventWaitExternal : cudaEventWaitDefault),
              "cudaStreamWaitEvent");
    if (captured) return;
    cuda.wait_pending = false;
  }
  cuda.workspace_used = true;
}

void* stream(const BackendState& state) { return own(state).stream; }

void synchronize(BackendState& state) {
  const DeviceGuard guard(own(state).device);
  if (isCapturing(own(state).stream)) {
    fail(RBC_STATUS_UNSUPPORTED, "stream: is being captured, and cannot be waited for");
  }
  checkCuda(cudaStreamSynchronize(own(state).stream), "cudaStreamSynchronize");
}

// ---- memory -------------------------------------------------------------------------------------

void* allocate(BackendState& state, size_t bytes, void* stream) {
  const DeviceGuard guard(own(state).device);
  void* pointer = nullptr;
  const cudaError_t error = cudaMallocAsync(&pointer, bytes, static_cast<cudaStream_t>(stream));
  if (error == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    return nullptr;
  }
  checkCuda(error, "cudaMallocAsync");
  return pointer;
}

void release(BackendState& state, void* pointer, size_t, void* stream) noexcept {
  int before = 0;
  cudaGetDevice(&before);
  cudaSetDevice(own(state).device);
  // Nobody is told of a failure: no later call should take it for its own.
  if (cudaFreeAsync(pointer, static_cast<cudaStream_t>(stream)) != cudaSuccess) cudaGetLastError();
  cudaSetDevice(before);
}

void copy(BackendState& state, const View& source, const View& destination) {
  CudaState& cuda = own(state);
  const DeviceGuard guard(cuda.device);
  const bool with_host =
      source.device.type == RBC_DEVICE_CPU || destination.device.type == RBC_DEVICE_CPU;
  if (with_host && isCapturing(cuda.stream)) {
    fail(RBC_STATUS_UNSUPPORTED,
         "stream: is being captured, and a copy with host memory would wait for it");
  }
  if (source.contiguous() && destination.contiguous()) {
    const size_t bytes =
        static_cast<size_t>(source.count) * static_cast<size_t>(sizeOf(source.dtype));
    checkCuda(cudaMemcpyAsync(destination.data, source.data, bytes, cudaMemcpyDefault, cuda.stream),
              "cudaMemcpyAsync");
  } else {
    checkCuda(launchCopy(source, destination, cuda.stream), "the launch of a copy");
  }
  if (with_host) checkCuda(cudaStreamSynchronize(cuda.stream), "cudaStreamSynchronize");
}

// ---- operations ---------------------------------------------------------------------------------

struct CheckScratch {
  unsigned long long keys[kCheckTimesKeys];
  TimesDefect defect;
};

size_t checkTimesBytes() { return sizeof(CheckScratch); }

void checkTimes(BackendState& state, const FuseProblem& problem, int stream, Scratch scratch,
                TimesDefect* defect) {
  CudaState& cuda = own(state);
  const DeviceGuard guard(cuda.device);
  auto* memory = static_cast<CheckScratch*>(scratch.data);
  checkCuda(launchCheckTimes(problem, problem.streams[stream], memory->keys, &memory->defect,
                             cuda.stream),
            "the launch of a check");
  checkCuda(
      cudaMemcpyAsync(defect, &memory->defect, sizeof *defect, cudaMemcpyDeviceToHost, cuda.stream),
      "cudaMemcpyAsync");
  checkCuda(cudaStreamSynchronize(cuda.stream), "cudaStreamSynchronize");
  cuda.workspace_used = false;  // all of it is over: no later stream has to wait for this one
}

void fuse(BackendState& state, const FuseProblem& problem) {
  const CudaState& cuda = own(state);
  const DeviceGuard guard(cuda.device);
  const FuseLauncher rows = rowsLauncherOf(problem);
  checkCuda((rows != nullptr ? rows : launchFuse)(problem, cuda.launch, cuda.stream), "the launch");
}

// CUB tells sizes for the current device.
size_t voxelizeBytes(const BackendState& state, const VoxelizeProblem& problem) {
  const DeviceGuard guard(own(state).device);
  return voxelizeScratchBytes(problem, own(state).launch);
}

void voxelize(BackendState& state, const VoxelizeProblem& problem, Scratch scratch) {
  const CudaState& cuda = own(state);
  const DeviceGuard guard(cuda.device);
  checkCuda(launchVoxelize(problem, scratch.data, cuda.launch, cuda.stream), "the launch");
}

size_t voxelizeSparseBytes(const BackendState& state, const SparseProblem& problem) {
  const DeviceGuard guard(own(state).device);
  return voxelizeSparseScratchBytes(problem, own(state).launch);
}

void voxelizeSparse(BackendState& state, const SparseProblem& problem, Scratch scratch) {
  const CudaState& cuda = own(state);
  const DeviceGuard guard(cuda.device);
  checkCuda(launchVoxelizeSparse(problem, scratch.data, cuda.launch, cuda.stream), "the launch");
}

size_t tsdfBytes(const BackendState&, const TsdfProblem& problem) {
  return tsdfScratchBytes(problem);
}

void tsdf(BackendState& state, const TsdfProblem& problem, Scratch scratch) {
  const CudaState& cuda = own(state);
  const DeviceGuard guard(cuda.device);
  checkCuda(launchTsdf(problem, scratch.data, cuda.launch, cuda.stream), "the launch");
}

}  // namespace

const Backend kBackend = {
    RBC_BACKEND_CUDA, open,         close,
    describe,         warmUp,       reaches,
    device,           setStream,    stream,
    synchronize,      capturing,    allocate,
    release,          useWorkspace, copy,
    checkTimesBytes,  checkTimes,   fuse,
    voxelizeBytes,    voxelize,     voxelizeSparseBytes,
    voxelizeSparse,   tsdfBytes,    tsdf,
};

}  // namespace rbc::cuda
