#include "fuzz/cuda_shim.h"

#include <cuda_runtime_api.h>

#include <cstring>

namespace {

int64_t fail_at = 0;
int64_t made = 0;
const char* who = nullptr;
cudaError_t pending = cudaSuccess;  // returned by cudaGetLastError, as after a real failure

bool fails(const char* function, cudaError_t error) {
  if (++made != fail_at) return false;
  who = function;
  pending = error;
  return true;
}

// The error of functions that allocate: out of memory.
cudaError_t errorOf(const char* function) {
  const bool allocates =
      std::strstr(function, "Malloc") != nullptr || std::strstr(function, "Alloc") != nullptr;
  return allocates ? cudaErrorMemoryAllocation : cudaErrorUnknown;
}

}  // namespace

void cuda_shim::failAt(int64_t n) {
  fail_at = n;
  made = 0;
  who = nullptr;
  pending = cudaSuccess;
}

int64_t cuda_shim::calls() { return made; }

const char* cuda_shim::failed() { return who; }

// A function that fails does nothing.
#define RBC_SHIM(function, parameters, arguments)                         \
  cudaError_t __real_##function parameters;                               \
  cudaError_t __wrap_##function parameters {                              \
    const cudaError_t error = errorOf(#function);                         \
    return fails(#function, error) ? error : __real_##function arguments; \
  }

// A function that releases something does so, and fails.
#define RBC_SHIM_OF_RELEASE(function, parameters, arguments)              \
  cudaError_t __real_##function parameters;                               \
  cudaError_t __wrap_##function parameters {                              \
    const cudaError_t error = __real_##function arguments;                \
    return fails(#function, cudaErrorUnknown) ? cudaErrorUnknown : error; \
  }

extern "C" {

// CMakeLists.txt parses the names.
RBC_SHIM(cudaGetDeviceCount, (int* count), (count))
RBC_SHIM(cudaGetDevice, (int* device), (device))
RBC_SHIM(cudaSetDevice, (int device), (device))
RBC_SHIM(cudaGetDeviceProperties, (cudaDeviceProp * properties, int device), (properties, device))
RBC_SHIM(cudaDeviceGetAttribute, (int* value, cudaDeviceAttr attribute, int device),
         (value, attribute, device))
RBC_SHIM(cudaFuncGetAttributes, (cudaFuncAttributes * attributes, const void* kernel),
         (attributes, kernel))
RBC_SHIM(cudaFuncSetAttribute, (const void* kernel, cudaFuncAttribute attribute, int value),
         (kernel, attribute, value))
RBC_SHIM(cudaGetFuncBySymbol, (cudaFunction_t * function, const void* kernel), (function, kernel))
RBC_SHIM(cudaGetDriverEntryPointByVersion,
         (const char* symbol, void** function, unsigned version, unsigned long long flags,
          cudaDriverEntryPointQueryResult* found),
         (symbol, function, version, flags, found))
RBC_SHIM(cudaOccupancyMaxActiveBlocksPerMultiprocessor,
         (int* blocks, const void* kernel, int threads, size_t shared_bytes),
         (blocks, kernel, threads, shared_bytes))
RBC_SHIM(cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags,
         (int* blocks, const void* kernel, int threads, size_t shared_bytes, unsigned flags),
         (blocks, kernel, threads, shared_bytes, flags))
RBC_SHIM(cudaLaunchKernelExC,
         (const cudaLaunchConfig_t* config, const void* kernel, void** arguments),
         (config, kernel, arguments))
RBC_SHIM(__cudaLaunchKernel,
         (cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments, size_t shared_bytes,
          cudaStream_t stream),
         (kernel, grid, block, arguments, shared_bytes, stream))
RBC_SHIM(cudaMemcpyAsync,
         (void* to, const void* from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream),
         (to, from, bytes, kind, stream))
RBC_SHIM(cudaMemsetAsync, (void* to, int byte, size_t bytes, cudaStream_t stream),
         (to, byte, bytes, stream))
RBC_SHIM(cudaMallocAsync, (void** pointer, size_t bytes, cudaStream_t stream),
         (pointer, bytes, stream))
RBC_SHIM_OF_RELEASE(cudaFreeAsync, (void* pointer, cudaStream_t stream), (pointer, stream))
RBC_SHIM(cudaHostAlloc, (void** pointer, size_t bytes, unsigned flags), (pointer, bytes, flags))
RBC_SHIM_OF_RELEASE(cudaFreeHost, (void* pointer), (pointer))
RBC_SHIM(cudaHostRegister, (void* memory, size_t bytes, unsigned flags), (memory, bytes, flags))
RBC_SHIM_OF_RELEASE(cudaHostUnregister, (void* memory), (memory))
RBC_SHIM(cudaEventQuery, (cudaEvent_t event), (event))
RBC_SHIM(cudaEventSynchronize, (cudaEvent_t event), (event))
RBC_SHIM(cudaEventCreateWithFlags, (cudaEvent_t * event, unsigned flags), (event, flags))
RBC_SHIM(cudaEventRecord, (cudaEvent_t event, cudaStream_t stream), (event, stream))
RBC_SHIM_OF_RELEASE(cudaEventDestroy, (cudaEvent_t event), (event))
RBC_SHIM(cudaStreamCreateWithFlags, (cudaStream_t * stream, unsigned flags), (stream, flags))
RBC_SHIM_OF_RELEASE(cudaStreamDestroy, (cudaStream_t stream), (stream))
RBC_SHIM(cudaStreamSynchronize, (cudaStream_t stream), (stream))
RBC_SHIM(cudaStreamWaitEvent, (cudaStream_t stream, cudaEvent_t event, unsigned flags),
         (stream, event, flags))
RBC_SHIM(cudaStreamGetCaptureInfo,
         (cudaStream_t stream, cudaStreamCaptureStatus* status, unsigned long long* id,
          cudaGraph_t* graph, const cudaGraphNode_t** nodes, const cudaGraphEdgeData** edges,
          size_t* count),
         (stream, status, id, graph, nodes, edges, count))

cudaError_t __real_cudaGetLastError(void);
cudaError_t __wrap_cudaGetLastError(void) {
  const cudaError_t error = pending;
  pending = cudaSuccess;
  return error != cudaSuccess ? error : __real_cudaGetLastError();
}

cudaError_t __real_cudaPeekAtLastError(void);
cudaError_t __wrap_cudaPeekAtLastError(void) {
  return pending != cudaSuccess ? pending : __real_cudaPeekAtLastError();
}

}  // extern "C"
