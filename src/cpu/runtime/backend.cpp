// The CPU backend's table, and its small functions.

#include "backend.h"

#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <vector>

#include "runtime/cpu_state.h"
#include "status.h"

namespace rbc::cpu {
namespace {

// The CPUs that this process may run on.
int usableCpus() {
  constexpr size_t kMaxSets = 64;  // of 1024 CPUs each
  for (size_t sets = 1; sets <= kMaxSets; sets *= 2) {
    std::vector<cpu_set_t> cpus(sets);
    const size_t bytes = sets * sizeof(cpu_set_t);
    if (sched_getaffinity(0, bytes, cpus.data()) == 0)
      return std::max(1, CPU_COUNT_S(bytes, cpus.data()));
  }
  return 1;
}

// The processor's name, if /proc has it.
void readCpuName(char* name, size_t size) {
  std::snprintf(name, size, "CPU");
  std::FILE* file = std::fopen("/proc/cpuinfo", "re");
  if (file == nullptr) return;
  char line[256];
  while (std::fgets(line, sizeof line, file) != nullptr) {
    const char* colon = std::strchr(line, ':');
    if (std::strncmp(line, "model name", 10) != 0 || colon == nullptr) continue;
    const char* text = colon + 1 + std::strspn(colon + 1, " \t");
    std::snprintf(name, size, "%.*s", static_cast<int>(std::strcspn(text, "\n")), text);
    break;
  }
  std::fclose(file);
}

constexpr int kMaxThreads = 1024;

BackendState* open(const rbcContextParams& params) {
  if (params.cuda_stream != nullptr) {
    fail(RBC_STATUS_INVALID_ARGUMENT, "params.cuda_stream: is set, expected null on the CPU");
  }
  const SimdLevel simd = chooseSimd(params.simd);
  const int threads = params.num_threads > 0 ? params.num_threads : usableCpus();
  return new CpuState(std::min(threads, kMaxThreads), simd);
}

void close(BackendState* state) noexcept { delete &cpuState(*state); }

void describe(const BackendState& state, rbcContextInfo* info) {
  const auto& cpu = static_cast<const CpuState&>(state);
  info->num_threads = cpu.pool.threads();
  info->simd = static_cast<int32_t>(cpu.simd);
  info->total_memory_bytes =
      static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  readCpuName(info->device_name, sizeof info->device_name);
}

void warmUp(BackendState& state) {
  ThreadPool& pool = cpuState(state).pool;
  const int wanted = pool.threads() - 1;
  const int started = pool.start();
  if (started < wanted) {
    fail(RBC_STATUS_UNSUPPORTED,
         "threads: only %d of %d worker threads could be started; calls use these and "
         "the calling one",
         started, wanted);
  }
}

bool reaches(const BackendState&, rbcDevice device) {
  return device.type == RBC_DEVICE_CPU || device.type == RBC_DEVICE_CUDA_HOST ||
         device.type == RBC_DEVICE_CUDA_MANAGED;
}

rbcDevice device(const BackendState&) { return {RBC_DEVICE_CPU, 0}; }

// ---- no stream: every call returns when its work is done ----------------------------------------

void setStream(BackendState&, void* stream) {
  if (stream != nullptr)
    fail(RBC_STATUS_INVALID_ARGUMENT, "cuda_stream: is set, expected null on a CPU context");
}

void* stream(const BackendState&) { return nullptr; }
void synchronize(BackendState&) {}
bool capturing(const BackendState&) { return false; }
void useWorkspace(BackendState&) {}

// ---- memory -------------------------------------------------------------------------------------

void* allocate(BackendState&, size_t bytes, void*) {
  void* pointer = nullptr;
  return posix_memalign(&pointer, 256, std::max<size_t>(bytes, 1)) == 0 ? pointer : nullptr;
}

void release(BackendState&, void* pointer, size_t, void*) noexcept { free(pointer); }

}  // namespace

#define OPERATION(Problem, name) extern const Operation<Problem> k##name;
#include "operations.inc"
#undef OPERATION

static const Operations kOperations = {
#define OPERATION(Problem, name) {&k##name},
#include "operations.inc"
#undef OPERATION
    {}};

const Backend kBackend = {
    RBC_BACKEND_CPU, open,         close,  describe,    warmUp,    reaches,
    device,          setStream,    stream, synchronize, capturing, allocate,
    release,         useWorkspace, copy,   nullptr,     nullptr,   &kOperations,
};

}  // namespace rbc::cpu
