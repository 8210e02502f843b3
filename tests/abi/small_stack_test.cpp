// Calls from threads with small stacks. docs/abi.md promises which size is enough.
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "fuse_kinds.h"
#include "support/expect.h"
#include "support/random_windows.h"
#include "support/sanitizers.h"
#include "voxelize_kinds.h"

namespace {

using support::Context;
using Call = std::function<rbcStatus_t()>;

constexpr size_t kPage = 4096;
constexpr size_t kPromised = 32 << 10;
constexpr size_t kEnough = 8 * kPromised;  // to measure calls that take more than that

struct StackUse {
  size_t used = 0;   // used by the call, below the thread's first function; 0: it failed
  size_t above = 0;  // by the thread itself: what glibc keeps there, and all libraries' TLS
};

// Runs the call in a thread on `bytes` of stack that inaccessible pages surround.
StackUse stackOf(const Call& call, size_t bytes) {
  struct Run {
    const Call& call;
    const unsigned char* stack;
    size_t bytes;
    std::vector<unsigned char> clean;  // a page that nothing was written to
    StackUse use;
  };
  void* mapped = mmap(nullptr, bytes + 2 * kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(mapped != MAP_FAILED);
  auto* stack = static_cast<unsigned char*>(mapped) + kPage;
  REQUIRE(mprotect(stack, bytes, PROT_READ | PROT_WRITE) == 0);
  std::memset(stack, 0xA5, bytes);
  Run run = {call, stack, bytes, std::vector<unsigned char>(kPage, 0xA5), {}};
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  REQUIRE(pthread_attr_setstack(&attributes, stack, bytes) == 0);
  pthread_t thread;
  const auto body = [](void* argument) -> void* {
    Run& r = *static_cast<Run*>(argument);
    const auto* top = static_cast<const unsigned char*>(__builtin_frame_address(0));
    r.use.above = static_cast<size_t>(r.stack + r.bytes - top);
    if (r.call() == RBC_STATUS_SUCCESS) {
      const unsigned char* deepest = r.stack;
      while (deepest + kPage < top && std::memcmp(deepest, r.clean.data(), kPage) == 0) {
        deepest += kPage;
      }
      r.use.used = static_cast<size_t>(
          top - std::find_if(deepest, top, [](unsigned char byte) { return byte != 0xA5; }));
    }
    return nullptr;
  };
  const int created = pthread_create(&thread, &attributes, body, &run);
  if (created == 0) pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
  munmap(mapped, bytes + 2 * kPage);
  REQUIRE(created == 0);
  return run.use;
}

void checkStack(const std::string& name, const Call& call) {
  const StackUse use = stackOf(call, kEnough);
  CHECK_MESSAGE(use.used > 0, name, " fails: ", std::string(rbcGetLastError()));
  CHECK_MESSAGE(use.used <= kPromised, name, " takes ", use.used, " bytes");
  const size_t small = (kPromised + use.above + kPage - 1) / kPage * kPage;
  // On ARM no thread starts with such a small stack.
  const auto least = static_cast<size_t>(sysconf(_SC_THREAD_STACK_MIN));
  CHECK_MESSAGE(stackOf(call, std::max(small, least)).used > 0, name);
}

}  // namespace

TEST_CASE("small stack: fusion of every kind of stream") {
  if (support::kSanitized) SKIP_BECAUSE("instrumented code takes more stack");
  for (const int threads : {1, 3}) {
    const Context context = support::cpuContext(threads);
    for (const int count : {1, 8, 64}) {
      const fuse_kinds::Arrays arrays(count, 200);
      const fuse_kinds::Call call(context, arrays);
      checkStack(std::to_string(count) + " streams", [&] { return call.run(context); });
    }
  }
}

TEST_CASE("small stack: voxelization of every kind") {
  if (support::kSanitized) SKIP_BECAUSE("instrumented code takes more stack");
  for (const int threads : {1, 3}) {
    const Context context = support::cpuContext(threads);
    for (const voxelize_kinds::Kind& kind : voxelize_kinds::kKinds) {
      const voxelize_kinds::Inputs in(kind);
      const voxelize_kinds::Call call(context, in, kind);
      checkStack(kind.name, [&] { return call.run(context); });
    }
  }
}

TEST_CASE("small stack: windows of every kind, into accumulators too") {
  if (support::kSanitized) SKIP_BECAUSE("instrumented code takes more stack");
  for (const int32_t level : support::simdLevels()) {
    const Context context = support::cpuContext(2, level);
    for (uint64_t seed = 0; seed < 60; ++seed) {
      const support::WindowCall windows =
          support::RandomWindows(seed).make(support::varietyOf(seed), seed % 2 == 0);
      support::PlacedWindows placed(context, windows);
      checkStack("windows, seed " + std::to_string(seed), [&] { return placed.call(context); });
    }
  }
}

TEST_CASE("small stack: resampling by every method, dtype and layout") {
  if (support::kSanitized) SKIP_BECAUSE("instrumented code takes more stack");
  std::vector<support::ResampleCase> cases = support::resampleCases();
  for (support::ResampleCase& c : support::methodCases()) cases.push_back(std::move(c));
  std::vector<Context> contexts;
  for (const int32_t level : support::simdLevels()) {
    contexts.push_back(support::cpuContext(1, level));
  }
  for (const support::ResampleCase& c : cases) {
    const support::ResampleInputs in = support::makeInputs(c);
    for (const Context& context : contexts) {
      size_t deepest = 0;
      const support::ResampleRun run = support::run(context, in, [&](const auto& call) {
        deepest = stackOf(call, kEnough).used;
        return RBC_STATUS_SUCCESS;
      });
      CHECK_MESSAGE(run.status == RBC_STATUS_SUCCESS, c.name);
      CHECK_MESSAGE(deepest <= kPromised, c.name, " takes ", deepest, " bytes");
    }
  }
}
