#include "runtime/load_kernels.h"

#include <cuda.h>
#include <cudaTypedefs.h>
#include <cuda_runtime.h>

#include <vector>

namespace rbc::cuda {
namespace {

// A function of the driver, which is not linked: the library must load on machines without a
// driver.
template <class Function>
Function driverFunction(const char* name, unsigned version) {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
#if CUDART_VERSION >= 12050
  const cudaError_t error =
      cudaGetDriverEntryPointByVersion(name, &function, version, cudaEnableDefault, &found);
#else
  static_cast<void>(version);
  const cudaError_t error = cudaGetDriverEntryPoint(name, &function, cudaEnableDefault, &found);
#endif
  if (error != cudaSuccess || found != cudaDriverEntryPointSuccess) {
    cudaGetLastError();
    return nullptr;
  }
  return reinterpret_cast<Function>(function);
}

struct Driver {
  PFN_cuFuncGetModule_v11000 module_of;
  PFN_cuModuleGetFunctionCount_v12040 count;
  PFN_cuModuleEnumerateFunctions_v12040 list;
  PFN_cuFuncLoad_v12040 load;

  Driver()
      : module_of(driverFunction<PFN_cuFuncGetModule_v11000>("cuFuncGetModule", 11000)),
        count(
            driverFunction<PFN_cuModuleGetFunctionCount_v12040>("cuModuleGetFunctionCount", 12040)),
        list(driverFunction<PFN_cuModuleEnumerateFunctions_v12040>("cuModuleEnumerateFunctions",
                                                                   12040)),
        load(driverFunction<PFN_cuFuncLoad_v12040>("cuFuncLoad", 12040)) {}

  bool complete() const {
    return module_of != nullptr && count != nullptr && list != nullptr && load != nullptr;
  }
};

}  // namespace

cudaError_t loadKernelsBeside(const void* kernel) {
  cudaFunction_t function = nullptr;
  const cudaError_t error = cudaGetFuncBySymbol(&function, kernel);  // fails if it cannot run here
  static const Driver driver;
  if (error != cudaSuccess || !driver.complete()) return error;
  CUmodule module = nullptr;
  unsigned count = 0;
  CUresult result = driver.module_of(&module, function);
  if (result == CUDA_SUCCESS) result = driver.count(&count, module);
  std::vector<CUfunction> functions(count);
  if (result == CUDA_SUCCESS && count > 0) result = driver.list(functions.data(), count, module);
  for (const CUfunction each : functions) {
    if (result == CUDA_SUCCESS) result = driver.load(each);
  }
  return static_cast<cudaError_t>(result);  // the runtime uses the driver's error codes
}

}  // namespace rbc::cuda
