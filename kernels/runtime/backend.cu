// The CUDA backend: device, CUDA stream, memory, and the table that core calls.

#include <cstdio>
#include <memory>

#include "backend.h"
#include "fuse/arrival_minima.h"
#include "fuse/fuse_kernels.h"
#include "guard.h"
#include "points/clear_counts.h"
#include "points/group_points.h"
#include "points/reduce_voxels.h"
#include "points/voxel_bins.h"
#include "runtime/copy.h"
#include "runtime/cuda_state.h"
#include "status.h"

namespace rbc::cuda {

// Every operation: its row, and the loader of its kernels.
#define OPERATION(Problem, name)           \
  extern const Operation<Problem> k##name; \
  cudaError_t load##name(const LaunchDevice&);
#include "operations.inc"
#undef OPERATION

namespace {

// ---- life ---------------------------------------------------------------------------------------

void requireDevice(int device) {
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error != cudaSuccess) {
    cudaGetLastError();  // a missing driver is not an error of the program's later calls
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
  cuda->staging.release();
  for (cudaEvent_t event : {cuda->event, cuda->captured_event}) {
    if (event != nullptr && cudaEventDestroy(event) != cudaSuccess) cudaGetLastError();
  }
}

__global__ void nothing() {}

// Depends on the code, which may be older than the device: there, kernels do not wait.
cudaError_t findEarlyLaunches(LaunchDevice* launch) {
  cudaFuncAttributes attributes;
  const cudaError_t error = cudaFuncGetAttributes(&attributes, nothing);
  launch->early_launches = error == cudaSuccess && attributes.ptxVersion >= 90;
  return error;
}

// Loads all kernels, so that no call is slow or blocks because it is the first, and any may be
// captured.
cudaError_t loadKernels(const LaunchDevice& device) {
  for (const auto load : {
#define OPERATION(Problem, name) load##name,
#include "operations.inc"
#undef OPERATION
           loadFuseMixed, loadFuseNarrow, loadVoxelBins}) {
    const cudaError_t error = load(device);
    if (error != cudaSuccess) return error;
  }
  for (const auto load : {loadArrivalMinima, loadClearCounts, loadCopy, loadFuseCausal,
                          loadFuseMissing, loadFuseRows, loadGroupPoints, loadReduceVoxels}) {
    const cudaError_t error = load();
    if (error != cudaSuccess) return error;
  }
  return cudaSuccess;
}

BackendState* open(const rbcContextParams& params) {
  requireDevice(params.device_id);
  auto state = std::make_unique<CudaState>();
  state->device = params.device_id;
  state->cuda_stream = static_cast<cudaStream_t>(params.cuda_stream);
  state->usual_launch.kernel = "cuda";
  const DeviceGuard guard(state->device);
  cudaDeviceProp properties;
  checkCuda(cudaGetDeviceProperties(&properties, state->device), "cudaGetDeviceProperties");
  state->launch.multiprocessors = properties.multiProcessorCount;
  state->launch.compute_capability = properties.major * 10 + properties.minor;
  state->launch.block_memory = static_cast<int>(properties.sharedMemPerBlockOptin);
  state->launch.waits_within = properties.cooperativeLaunch != 0;
  state->total_memory = properties.totalGlobalMem;
  std::snprintf(state->name, sizeof state->name, "%.127s", properties.name);
  const cudaError_t error = findEarlyLaunches(&state->launch);
  if (error == cudaErrorNoKernelImageForDevice || error == cudaErrorInvalidDeviceFunction ||
      error == cudaErrorUnsupportedPtxVersion) {
    cudaGetLastError();
    fail(RBC_STATUS_NOT_AVAILABLE,
         "CUDA: %s (compute capability %d.%d) cannot run this build's kernels: %s", state->name,
         properties.major, properties.minor, cudaGetErrorString(error));
  }
  checkCuda(error, "cudaFuncGetAttributes");
  checkCuda(loadKernels(state->launch), "loading the kernels");
  for (cudaEvent_t* event : {&state->event, &state->captured_event}) {
    const cudaError_t created = cudaEventCreateWithFlags(event, cudaEventDisableTiming);
    if (created == cudaSuccess) continue;
    close(state.release());
    checkCuda(created, "cudaEventCreate");
  }
  return state.release();
}

void describe(const BackendState& state, rbcContextInfo* info) {
  const CudaState& cuda = own(state);
  info->device_id = cuda.device;
  info->compute_capability = cuda.launch.compute_capability;
  info->num_multiprocessors = cuda.launch.multiprocessors;
  info->total_memory_bytes = cuda.total_memory;
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

// The id of the capture that the stream is part of; 0: none.
unsigned long long captureOf(cudaStream_t cuda_stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  unsigned long long number = 0;
  const cudaError_t error = cudaStreamGetCaptureInfo(cuda_stream, &status, &number);
  // The legacy CUDA stream cannot even be queried while another one is captured.
  if (error == cudaErrorStreamCaptureImplicit) {
    cudaGetLastError();
    return ~0ull;
  }
  checkCuda(error, "cudaStreamGetCaptureInfo");
  return status == cudaStreamCaptureStatusNone ? 0 : number;
}

bool isCapturing(cudaStream_t cuda_stream) { return captureOf(cuda_stream) != 0; }

bool capturing(const BackendState& state) {
  const DeviceGuard guard(own(state).device);
  return isCapturing(own(state).cuda_stream);
}

// The wait itself is postponed to the next use of the workspace: a captured stream that never uses
// it must not depend on an external event.
void setStream(BackendState& state, void* cuda_stream) {
  CudaState& cuda = own(state);
  if (cuda.cuda_stream == cuda_stream) return;
  if (cuda.workspace_used) {
    const DeviceGuard guard(cuda.device);
    const unsigned long long capture = captureOf(cuda.cuda_stream);
    // Calls that were captured here did not wait themselves for the work that the event has
    // recorded so far.
    if (capture == 0 && cuda.wait_pending) {
      checkCuda(cudaStreamWaitEvent(cuda.cuda_stream, cuda.event, cudaEventWaitDefault),
                "cudaStreamWaitEvent");
    }
    cudaEvent_t const event = capture != 0 ? cuda.captured_event : cuda.event;
    checkCuda(cudaEventRecord(event, cuda.cuda_stream), "cudaEventRecord");
    cuda.workspace_used = false;
    if (capture != 0) {
      cuda.pending_capture = capture;
    } else {
      cuda.wait_pending = true;
    }
  }
  cuda.cuda_stream = static_cast<cudaStream_t>(cuda_stream);
}

void useWorkspace(BackendState& state) {
  CudaState& cuda = own(state);
  if (cuda.wait_pending || cuda.pending_capture != 0) {
    const DeviceGuard guard(cuda.device);
    const unsigned long long capture = captureOf(cuda.cuda_stream);
    // Captured work does not run yet: work outside of its capture has nothing to wait for.
    if (cuda.pending_capture != 0 && cuda.pending_capture == capture) {
      checkCuda(cudaStreamWaitEvent(cuda.cuda_stream, cuda.captured_event, cudaEventWaitDefault),
                "cudaStreamWaitEvent");
      cuda.pending_capture = 0;
    }
    if (cuda.wait_pending) {
      // A capture cannot wait for work outside of it: its replays and the next call outside wait.
      checkCuda(cudaStreamWaitEvent(cuda.cuda_stream, cuda.event,
                                    capture != 0 ? cudaEventWaitExternal : cudaEventWaitDefault),
                "cudaStreamWaitEvent");
      cuda.wait_pending = capture != 0;
    }
  }
  cuda.workspace_used = true;
}

void* stream(const BackendState& state) { return own(state).cuda_stream; }

void synchronize(BackendState& state) {
  const DeviceGuard guard(own(state).device);
  if (isCapturing(own(state).cuda_stream)) {
    fail(RBC_STATUS_UNSUPPORTED, "stream: is being captured, and cannot be waited for");
  }
  checkCuda(cudaStreamSynchronize(own(state).cuda_stream), "cudaStreamSynchronize");
}

// ---- memory -------------------------------------------------------------------------------------

void* allocate(BackendState& state, size_t bytes, void* cuda_stream) {
  const DeviceGuard guard(own(state).device);
  void* pointer = nullptr;
  const cudaError_t error =
      cudaMallocAsync(&pointer, bytes, static_cast<cudaStream_t>(cuda_stream));
  if (error == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    return nullptr;
  }
  checkCuda(error, "cudaMallocAsync");
  return pointer;
}

void release(BackendState& state, void* pointer, size_t, void* cuda_stream) noexcept {
  int before = own(state).device;
  cudaGetDevice(&before);
  cudaSetDevice(own(state).device);
  // Clears the error: no later call should report it as its own.
  if (cudaFreeAsync(pointer, static_cast<cudaStream_t>(cuda_stream)) != cudaSuccess)
    cudaGetLastError();
  cudaSetDevice(before);
}

bool pin(BackendState& state, const void* memory, size_t bytes) {
  const int device = own(state).device;
  const DeviceGuard guard(device);
  for (const auto attribute :
       {cudaDevAttrHostRegisterReadOnlySupported, cudaDevAttrCanUseHostPointerForRegisteredMem}) {
    int supported = 0;
    checkCuda(cudaDeviceGetAttribute(&supported, attribute, device), "cudaDeviceGetAttribute");
    if (supported == 0) return false;
  }
  const cudaError_t error = cudaHostRegister(
      const_cast<void*>(memory), bytes,
      cudaHostRegisterReadOnly | cudaHostRegisterMapped | cudaHostRegisterPortable);
  if (error != cudaSuccess) cudaGetLastError();
  return error == cudaSuccess;
}

void unpin(const void* memory) noexcept {
  if (cudaHostUnregister(const_cast<void*>(memory)) != cudaSuccess) cudaGetLastError();
}

void copy(BackendState& state, const View& source, const View& destination) {
  CudaState& cuda = own(state);
  const DeviceGuard guard(cuda.device);
  const bool with_host =
      source.device.type == RBC_DEVICE_CPU || destination.device.type == RBC_DEVICE_CPU;
  if (with_host && isCapturing(cuda.cuda_stream)) {
    fail(RBC_STATUS_UNSUPPORTED,
         "stream: is being captured, and a copy with host memory would wait for it");
  }
  if (source.contiguous() && destination.contiguous()) {
    const size_t bytes =
        static_cast<size_t>(source.count) * static_cast<size_t>(sizeOf(source.dtype));
    checkCuda(
        cudaMemcpyAsync(destination.data, source.data, bytes, cudaMemcpyDefault, cuda.cuda_stream),
        "cudaMemcpyAsync");
  } else {
    checkCuda(launchCopy(source, destination, cuda.cuda_stream), "the launch of a copy");
  }
  if (with_host) checkCuda(cudaStreamSynchronize(cuda.cuda_stream), "cudaStreamSynchronize");
}

}  // namespace

const Operations kOperations = {
#define OPERATION(Problem, name) {&k##name},
#include "operations.inc"
#undef OPERATION
    {}};

const Backend kBackend = {
    RBC_BACKEND_CUDA, open,         close,  describe,    warmUp,    reaches,
    device,           setStream,    stream, synchronize, capturing, allocate,
    release,          useWorkspace, copy,   pin,         unpin,     &kOperations,
};

}  // namespace rbc::cuda
