// The text about the kernel of a call, and the calls that RBC_LOG prints.
#include "launch_choice.h"

#include <doctest/doctest.h>
#include <stdlib.h>
#include <unistd.h>

#include <cstdio>
#include <string>

#include "dtype.h"
#include "robocache/robocache.hpp"
#include "support/run.h"

namespace {

using rbc::LaunchChoice;
using rbc::LogLevel;

LaunchChoice general() {
  LaunchChoice choice;
  choice.kernel = "fuse_any";
  choice.form = "few streams";
  choice.grid = 32;
  choice.threads = 128;
  choice.shared_bytes = 16;
  choice.general = true;
  choice.because = {"fuse_mixed", "times: stride {}, expected 1", "streams", 2, 3};
  return choice;
}

std::string textOf(const LaunchChoice& choice, size_t size = 256) {
  std::string text(size, 'x');
  rbc::writeLaunch("fuse", choice, text.data(), size);
  return text.c_str();
}

// The text that work() writes to stderr.
template <class Work>
std::string printedBy(const Work& work) {
  std::FILE* file = std::tmpfile();
  REQUIRE(file != nullptr);
  std::fflush(stderr);
  const int before = dup(2);
  REQUIRE(dup2(fileno(file), 2) == 2);
  work();
  std::fflush(stderr);
  REQUIRE(dup2(before, 2) == 2);
  close(before);
  std::string text(4096, '\0');
  std::rewind(file);
  text.resize(std::fread(text.data(), 1, text.size(), file));
  std::fclose(file);
  return text;
}

// RBC_LOG for a scope.
class LogVariable {
 public:
  explicit LogVariable(const char* value) { setenv("RBC_LOG", value, 1); }
  ~LogVariable() { unsetenv("RBC_LOG"); }
};

}  // namespace

TEST_CASE("launch: the line has the kernel, its launch and the condition of a faster one") {
  LaunchChoice choice = general();
  CHECK(textOf(choice) ==
        "fuse: fuse_any (few streams), grid 32 x 128, shared 16 bytes; not fuse_mixed: "
        "streams[2].times: stride 3, expected 1");
  choice.because = {"fuse_rows", "values: {dtype}, not {dtype} or {}", nullptr, 0,
                    static_cast<int64_t>(rbc::DType::I16)};
  const std::string number = std::to_string(choice.because.found);
  CHECK(textOf(choice) ==
        "fuse: fuse_any (few streams), grid 32 x 128, shared 16 bytes; not fuse_rows: values: "
        "int16, not int16 or " +
            number);
  choice.because = {};
  choice.form = "";
  CHECK(textOf(choice) == "fuse: fuse_any, grid 32 x 128, shared 16 bytes");
  choice.grid = 0;
  CHECK(textOf(choice) == "fuse: fuse_any, threads 128");
  CHECK(textOf(LaunchChoice{}) == "fuse: nothing to do");
}

TEST_CASE("launch: a line is cut to its memory, and empty before the first call") {
  for (size_t size = 1; size < 120; ++size) {
    const std::string whole = textOf(general());
    CHECK(textOf(general(), size) == whole.substr(0, size - 1));
  }
  char text[4] = "xxx";
  rbc::writeLaunch(nullptr, LaunchChoice{}, text, sizeof text);
  CHECK(std::string(text).empty());
}

TEST_CASE("log: RBC_LOG prints all calls, only general kernels, or nothing") {
  LaunchChoice fast = general();
  fast.general = false;
  const auto lines = [&](LogLevel level) {
    return printedBy([&] {
      rbc::logLaunch(level, "fuse", general());
      rbc::logLaunch(level, "fuse", fast);
    });
  };
  const std::string line = "robocache: " + textOf(general()) + "\n";
  CHECK(lines(LogLevel::kKernels) == line + line);
  CHECK(lines(LogLevel::kSlow) == line);
  CHECK(lines(LogLevel::kNone).empty());

  unsetenv("RBC_LOG");
  CHECK(rbc::logLevel() == LogLevel::kNone);
  CHECK((LogVariable("kernels"), rbc::logLevel()) == LogLevel::kKernels);
  CHECK((LogVariable("slow"), rbc::logLevel()) == LogLevel::kSlow);
  CHECK((LogVariable("KERNELS"), rbc::logLevel()) == LogLevel::kNone);
}

TEST_CASE("log: a context prints each operation that succeeds, and its info has the last one") {
  float values[] = {1, 2};
  double times[] = {0, 1};
  float out[2] = {};
  robocache::Tensor in(values, {2, 1});
  const auto call = [&](const support::Context& context, int64_t queries) {
    const robocache::Tensor query_times(times, {queries}), written(out, {queries, 1});
    return rbcResample(context.get(), in.get(), robocache::Tensor(times, {2}).get(),
                       query_times.get(), written.get(), nullptr, nullptr);
  };
  support::Context context;
  {
    const LogVariable variable("kernels");
    context = support::cpuContext(1, RBC_SIMD_PORTABLE);
  }
  CHECK(std::string(support::infoOf(context).last_launch).empty());
  const std::string printed = printedBy([&] {
    CHECK(call(context, 1) == RBC_STATUS_SUCCESS);
    CHECK(rbcResample(context.get(), in.get(), nullptr, nullptr, nullptr, nullptr, nullptr) ==
          RBC_STATUS_INVALID_ARGUMENT);
  });
  CHECK(printed == "robocache: resample: cpu (portable), threads 1\n");
  CHECK(std::string(support::infoOf(context).last_launch) == "resample: cpu (portable), threads 1");
  const support::Context silent = support::cpuContext(1, RBC_SIMD_PORTABLE);
  CHECK(printedBy([&] { CHECK(call(silent, 1) == RBC_STATUS_SUCCESS); }).empty());
}
