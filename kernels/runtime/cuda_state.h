// A CUDA context, and the rows with which the kernels' files export their operations.
#pragma once

#include <cuda_runtime_api.h>

#include "guard.h"
#include "operation.h"
#include "runtime/check_cuda.h"
#include "runtime/launch_device.h"
#include "runtime/staging.h"

namespace rbc::cuda {

struct CudaState : BackendState {
  int device = 0;
  cudaStream_t cuda_stream = nullptr;
  bool workspace_used = false;  // on the current stream
  // The last use of the workspace on the previous stream: its next use must wait for it.
  cudaEvent_t event = nullptr;
  bool wait_pending = false;
  // The same within a capture; only the capture's own streams can wait for this event.
  cudaEvent_t captured_event = nullptr;
  unsigned long long pending_capture = 0;  // the id of that capture; 0: none
  LaunchDevice launch = {};
  StagingArea staging;
  uint64_t total_memory = 0;
  char name[sizeof rbcContextInfo{}.device_name] = {};
};

inline CudaState& own(BackendState& state) { return static_cast<CudaState&>(state); }
inline const CudaState& own(const BackendState& state) {
  return static_cast<const CudaState&>(state);
}

// Makes a device current, and restores the previous one at the end.
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

template <class Problem>
size_t noBytes(const BackendState&, const Problem&) {
  return 0;
}

// kBytes(problem, device); CUB reports sizes for the current device.
template <class Problem, size_t (*kBytes)(const Problem&, const LaunchDevice&)>
size_t bytesOn(const BackendState& state, const Problem& problem) {
  const DeviceGuard guard(own(state).device);
  return kBytes(problem, own(state).launch);
}

// kLaunch enqueues everything, and reports its choice. Scratch has the size that the operation
// requested, and is aligned to 256 bytes.
template <class Problem, cudaError_t (*kLaunch)(const Problem&, void* scratch, const LaunchDevice&,
                                                cudaStream_t, LaunchChoice* chosen)>
void launchOn(BackendState& state, const Problem& problem, Scratch scratch) {
  CudaState& cuda = own(state);
  const DeviceGuard guard(cuda.device);
  checkCuda(kLaunch(problem, scratch.data, cuda.launch, cuda.cuda_stream, &cuda.last_launch),
            "the launch");
}

}  // namespace rbc::cuda
