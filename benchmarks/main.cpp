// robocache_bench: Google Benchmark's arguments, and --seconds=S, the sampling time of each
// benchmark (0.2). `robocache_bench --profile` is for scripts/profile.sh, `--write NAME` for
// peers.py.
//
// Every time is the median per call. The floor is the bytes that the call must move, divided by the
// bandwidth of a plain copy in the same run. Results are checked before timing; the exit status is
// nonzero if one was wrong.

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <string>
#include <vector>

#include "backends.h"
#include "measure.h"

namespace {

void addContext() {
  int32_t version = 0;
  robocache::check(rbcGetVersion(&version, nullptr));
  const rbcContextInfo cpu = robocache::Context::cpu().info();
  char text[64];
  std::snprintf(text, sizeof text, "%d.%d.%d", version / 10000, version / 100 % 100, version % 100);
  benchmark::AddCustomContext("robocache", text);
  benchmark::AddCustomContext("cpu", cpu.device_name);
  benchmark::AddCustomContext("cpu_simd", bench::kSimdNames[cpu.simd]);
  benchmark::AddCustomContext("cpu_threads", std::to_string(cpu.num_threads));
}

}  // namespace

int main(int argc, char** argv) try {
#if RBC_WITH_CUDA
  if (argc == 2 && std::strcmp(argv[1], "--profile") == 0) return bench::profileCuda();
#endif
  if (argc == 3 && std::strcmp(argv[1], "--write") == 0) return bench::writeCase(argv[2]);
  char tabular[] = "--benchmark_counters_tabular=true";
  std::vector<char*> arguments = {argv[0], tabular};
  constexpr char kSeconds[] = "--seconds=";
  for (int i = 1; i < argc; ++i) {
    if (std::strncmp(argv[i], kSeconds, sizeof kSeconds - 1) == 0) {
      bench::run().seconds = std::atof(argv[i] + sizeof kSeconds - 1);
    } else {
      arguments.push_back(argv[i]);
    }
  }
  int count = static_cast<int>(arguments.size());
  arguments.push_back(nullptr);
  benchmark::Initialize(&count, arguments.data());
  if (benchmark::ReportUnrecognizedArguments(count, arguments.data())) return 2;
  addContext();
  bench::addCpuBenchmarks();
  bench::addCallBenchmarks();
#if RBC_WITH_CUDA
  bench::addCudaBenchmarks();
#endif
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  for (const auto& [name, error] : bench::run().errors)
    std::fprintf(stderr, "FAILED %s: %s\n", name.c_str(), error.c_str());
  return bench::run().errors.empty() ? 0 : 1;
} catch (const std::exception& error) {
  std::fprintf(stderr, "robocache_bench: %s\n", error.what());
  return 1;
}
