// robocache_bench: Google Benchmark's arguments, and --seconds=S, the time that each benchmark
// samples for (0.2). `robocache_bench --profile` is for scripts/profile.sh, `--write NAME` for
// peers.py.
//
// Every time is the median of one call. The floor is the bytes that the call must move over the
// bandwidth of a plain copy, measured in the same run. Results are checked before they are timed;
// the exit status tells if one was wrong.

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "backends.h"
#include "measure.h"

namespace {

void addContext() {
  int32_t version = 0;
  robocache::check(rbcGetVersion(&version, nullptr));
  const rbcContextInfo cpu = robocache::Context::cpu().info();
  constexpr const char* kSimd[] = {"auto", "portable", "avx2", "avx512"};
  char text[64];
  std::snprintf(text, sizeof text, "%d.%d.%d", version / 10000, version / 100 % 100, version % 100);
  benchmark::AddCustomContext("robocache", text);
  benchmark::AddCustomContext("cpu", cpu.device_name);
  benchmark::AddCustomContext("cpu_simd", kSimd[cpu.simd]);
  benchmark::AddCustomContext("cpu_threads", std::to_string(cpu.num_threads));
}

// One line a benchmark, in microseconds and GB/s.
class Table : public benchmark::ConsoleReporter {
 public:
  bool ReportContext(const Context& context) override {
    PrintBasicContext(&GetErrorStream(), context);
    std::printf("%-102s %10s %21s %10s %8s %8s %9s %10s %9s\n", "", "us", "p10..p90", "floor us",
                "x floor", "GB/s", "in range", "rows", "Gpoints/s");
    return true;
  }
  void ReportRuns(const std::vector<Run>& runs) override {
    for (const Run& run : runs) {
      if (run.run_type == Run::RT_Aggregate) continue;
      const std::string& name = run.run_name.function_name;
      const auto error = bench::run().errors.find(name);
      if (error != bench::run().errors.end()) {
        std::printf("%-102s FAILED: %s\n", name.c_str(), error->second.c_str());
      } else {
        printLine(name, run);
      }
    }
    std::fflush(stdout);
  }

 private:
  static void printLine(const std::string& name, const Run& run) {
    const auto has = [&](const char* counter) { return run.counters.count(counter) > 0; };
    const auto value = [&](const char* counter) {
      return has(counter) ? run.counters.at(counter).value : 0.0;
    };
    std::printf("%-102s %10.3f %10.3f..%9.3f", name.c_str(), run.GetAdjustedRealTime(),
                value("low_us"), value("high_us"));
    if (has("bytes"))
      std::printf(" %10.3f %8.3f %8.1f", value("floor_us"), value("x_floor"), value("GB/s"));
    if (has("in_range")) std::printf(" %9.3f %10.0f", value("in_range"), value("rows"));
    if (has("p999_us"))
      std::printf("  p99 %.3f  p99.9 %.3f  most %.3f", value("p99_us"), value("p999_us"),
                  value("most_us"));
    if (has("points")) std::printf(" %9.3f", value("points") / run.GetAdjustedRealTime() * 1e-3);
    std::printf("\n");
  }
};

}  // namespace

int main(int argc, char** argv) try {
#if RBC_WITH_CUDA
  if (argc == 2 && std::strcmp(argv[1], "--profile") == 0) return bench::profileCuda();
#endif
  if (argc == 3 && std::strcmp(argv[1], "--write") == 0) return bench::writeCase(argv[2]);
  std::vector<char*> arguments = {argv[0]};
  bool own_table = true;
  constexpr char kSeconds[] = "--seconds=";
  for (int i = 1; i < argc; ++i) {
    if (std::strncmp(argv[i], kSeconds, sizeof kSeconds - 1) == 0) {
      bench::run().seconds = std::atof(argv[i] + sizeof kSeconds - 1);
    } else {
      own_table = own_table && std::strncmp(argv[i], "--benchmark_format", 18) != 0;
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
  Table table;
  benchmark::RunSpecifiedBenchmarks(own_table ? &table : nullptr);
  benchmark::Shutdown();
  for (const auto& [name, error] : bench::run().errors)
    std::fprintf(stderr, "FAILED %s: %s\n", name.c_str(), error.c_str());
  return bench::run().errors.empty() ? 0 : 1;
} catch (const std::exception& error) {
  std::fprintf(stderr, "robocache_bench: %s\n", error.what());
  return 1;
}
