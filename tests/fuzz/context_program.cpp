// Contexts: parameters of any kind, and their small functions.
#include <cstring>
#include <type_traits>

#include "fuzz/programs.h"

namespace fuzz {
namespace {

const std::vector<std::string> kArguments = {"context", "params",    "info",      "cuda_stream",
                                             "bytes",   "allocator", "struct_id", "struct_size"};

void* noMemory(void*, size_t, size_t, void*) { return nullptr; }

}  // namespace

void contextProgram(Machine& machine, Choices choices, Transcript& transcript) {
  bool maybe_cuda = false;
  const auto ended = [&](rbcStatus_t status, const char* function) {
    // The available devices are unspecified, and memory does not affect them.
    const bool out_of_memory = status == RBC_STATUS_OUT_OF_MEMORY;
    if (status == RBC_STATUS_NOT_AVAILABLE || (maybe_cuda && !out_of_memory)) return status;
    return transcript.ended(status, function, kArguments);
  };
  rbcContextParams params = rbcContextParamsInit();
  params.backend = RBC_BACKEND_CPU;
  params.num_threads = 1;
  for (int64_t n = choices.below(3); n > 0; --n) {
    switch (choices.below(9)) {
      case 0: params.backend = choices.pick({-1, 3, 99, INT32_MIN}); break;
      case 7: params.backend = choices.pick({RBC_BACKEND_AUTO, RBC_BACKEND_CUDA}); break;
      case 8: params.allocator.alloc = noMemory; break;
      case 1: params.device_id = choices.pick({-1, 1, 7, INT32_MAX}); break;
      case 2: params.num_threads = choices.pick({-1, 0, 2, INT32_MIN}); break;
      case 3: params.simd = choices.pick({-1, 1, 4, INT32_MAX}); break;
      case 4: params.reserved0 = 1; break;
      case 5: params.struct_size = static_cast<uint32_t>(choices.below(80)); break;
      default: params.cuda_stream = &params; break;
    }
  }
  maybe_cuda = params.backend == RBC_BACKEND_AUTO || params.backend == RBC_BACKEND_CUDA;
  if (maybe_cuda) params.cuda_stream = nullptr;  // CUDA would dereference an invalid stream
  // As much memory as struct_size says, and no more.
  const size_t held = std::max<size_t>(params.struct_size, 4);
  std::unique_ptr<uint8_t[]> exact(new uint8_t[held]());
  std::memcpy(exact.get(), &params, std::min(held, sizeof params));
  rbcContext_t context = reinterpret_cast<rbcContext_t>(1);
  const rbcStatus_t status =
      ended(rbcContextCreate(reinterpret_cast<const rbcContextParams*>(exact.get()), &context),
            "rbcContextCreate");
  if (status != RBC_STATUS_SUCCESS && context != nullptr) throw Defect("Create left a handle");

  rbcContext_t asked = choices.chance(90) ? context : nullptr;
  size_t bytes = static_cast<size_t>(choices.below(1 << 16));
  if (choices.chance(10)) bytes = choices.pick<size_t>({SIZE_MAX, SIZE_MAX / 2, size_t{1} << 60});
  ended(rbcContextReserve(asked, bytes), "rbcContextReserve");
  rbcContextInfo info = rbcContextInfoInit();
  info.struct_size = static_cast<uint32_t>(choices.chance(60) ? sizeof info : choices.below(900));
  const size_t room = std::max<size_t>(info.struct_size, 4);
  std::unique_ptr<uint8_t[]> answer(new uint8_t[room]());
  std::memcpy(answer.get(), &info.struct_size, 4);
  ended(rbcContextGetInfo(asked, reinterpret_cast<rbcContextInfo*>(answer.get())),
        "rbcContextGetInfo");
  void* stream = &stream;
  ended(rbcContextGetCudaStream(asked, choices.chance(90) ? &stream : nullptr),
        "rbcContextGetCudaStream");
  const bool other_stream = !choices.chance(80) && !maybe_cuda;
  ended(rbcContextSetCudaStream(asked, other_stream ? &stream : nullptr),
        "rbcContextSetCudaStream");
  ended(rbcContextSynchronize(asked), "rbcContextSynchronize");
  ended(rbcContextSetCancelCallback(asked, nullptr, nullptr), "rbcContextSetCancelCallback");
  if (choices.chance(10)) ended(rbcContextWarmUp(asked), "rbcContextWarmUp");
  ended(rbcContextDestroy(context), "rbcContextDestroy");
  int32_t version = 0;
  ended(rbcGetVersion(&version, choices.chance(50) ? nullptr : &version), "rbcGetVersion");
  transcript.bytes(&version, sizeof version);
  const auto unknown = static_cast<int>(choices.between(-2, 20));
  rbcStatus_t number = 0;
  std::memcpy(&number, &unknown, sizeof number);
  if (std::string(rbcStatusName(number & 15)).empty()) {
    throw Defect("a status without a name");
  }
  alignas(8) uint8_t params_of_any[256] = {};
  const size_t declared = 8 * static_cast<size_t>(choices.between(0, 32));
  const auto id = static_cast<int32_t>(choices.between(-1, 26));
  if (ended(rbcInitParams(id, choices.chance(95) ? params_of_any : nullptr, declared),
            "rbcInitParams") == RBC_STATUS_SUCCESS) {
    transcript.bytes(params_of_any, sizeof params_of_any);
  }
  (void)machine;
}

}  // namespace fuzz
