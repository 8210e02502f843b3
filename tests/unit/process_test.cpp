// Forks and threads.
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "support/expect.h"
#include "support/run.h"
#include "support/sanitizers.h"

namespace {

using support::Context;
using support::ResampleCase;
using support::ResampleInputs;
using support::ResampleOutput;

// Large enough that a context divides it among its threads.
ResampleInputs largeInputs() {
  ResampleCase c;
  c.batch = 6;
  c.samples = 500;
  c.queries = 500;
  c.channels = 96;
  return support::makeInputs(c);
}

bool gives(const Context& context, const ResampleInputs& in, const ResampleOutput& expected) {
  return support::run(context, in).output == expected;
}

// ThreadSanitizer does not support threads that a forked child starts.
constexpr bool kCanFork = !support::kThreadSanitizer;
// AddressSanitizer does not release its allocator's locks in a child: a thread that the child lacks
// may hold one forever.
constexpr bool kCanForkAmongThreads = !support::kSanitized;

// Reads a number of /proc/self/status, by a format with its name.
int ofThisProcess(const char* format) {
  int number = 0;
  if (FILE* file = std::fopen("/proc/self/status", "r")) {
    char text[256];
    while (std::fgets(text, sizeof text, file) != nullptr) std::sscanf(text, format, &number);
    std::fclose(file);
  }
  return number;
}

int threadCount() { return ofThisProcess("Threads: %d"); }

// Runs `body` in a forked child; its result, or -1 if the child crashed or hung.
template <class Body>
int inChild(Body&& body) {
  const pid_t child = fork();
  if (child == 0) {
    int result = 100;
    try {
      result = body();
    } catch (...) {
    }
    _exit(result);
  }
  if (child < 0) return -1;
  for (int i = 0; i < 6000; ++i) {  // a minute
    int status = 0;
    if (waitpid(child, &status, WNOHANG) == child)
      return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  return -1;
}

// Makes new threads of this process request stacks of this size, which may exceed the memory.
class StackSize {
 public:
  explicit StackSize(size_t bytes) {
    pthread_getattr_default_np(&before_);
    pthread_attr_t changed;
    pthread_getattr_default_np(&changed);
    pthread_attr_setstacksize(&changed, bytes);
    pthread_setattr_default_np(&changed);
    pthread_attr_destroy(&changed);
  }
  ~StackSize() {
    pthread_setattr_default_np(&before_);
    pthread_attr_destroy(&before_);
  }

 private:
  pthread_attr_t before_;
};

// Limits this process to this much more address space than it has now.
class RoomFor {
 public:
  explicit RoomFor(size_t bytes) {
    getrlimit(RLIMIT_AS, &before_);
    rlimit changed = before_;
    changed.rlim_cur = (static_cast<rlim_t>(ofThisProcess("VmSize: %d")) << 10) + bytes;
    setrlimit(RLIMIT_AS, &changed);
  }
  ~RoomFor() { setrlimit(RLIMIT_AS, &before_); }

 private:
  rlimit before_;
};

}  // namespace

TEST_CASE("fork: a child uses CPU contexts, its parent's and its own") {
  if (!kCanFork) SKIP_BECAUSE("ThreadSanitizer cannot follow threads of a forked child");
  const ResampleInputs in = largeInputs();
  const Context used = support::cpuContext(4);
  const Context unused = support::cpuContext(4);
  support::require(rbcContextWarmUp(used.get()));
  const ResampleOutput expected = support::run(used, in).output;
  REQUIRE(support::firstError(in, expected) == "");
  const auto everything = [&] {
    if (!gives(used, in, expected)) return 1;
    if (!gives(unused, in, expected)) return 2;
    if (!gives(support::cpuContext(4), in, expected)) return 3;
    if (!gives(support::cpuContext(1), in, expected)) return 4;
    return 0;
  };
  CHECK(inChild(everything) == 0);
  CHECK(inChild([&] {
          if (everything() != 0) return 10;
          return inChild(everything);  // a grandchild
        }) == 0);
  CHECK(inChild([&] {
          if (!gives(used, in, expected)) return 1;
          return threadCount() > 1 ? 0 : 2;  // the parent's threads are gone, new ones replace them
        }) == 0);
  CHECK(everything() == 0);  // and the parent can continue
}

TEST_CASE("fork: a child may destroy its parent's contexts, used there or not") {
  if (!kCanFork) SKIP_BECAUSE("ThreadSanitizer cannot follow threads of a forked child");
  const ResampleInputs in = largeInputs();
  const Context used = support::cpuContext(4);
  const Context unused = support::cpuContext(4);
  const ResampleOutput expected = support::run(used, in).output;
  CHECK(gives(unused, in, expected));
  CHECK(inChild([&] {
          if (!gives(used, in, expected)) return 1;
          if (rbcContextDestroy(used.get()) != RBC_STATUS_SUCCESS) return 2;
          return rbcContextDestroy(unused.get()) == RBC_STATUS_SUCCESS ? 0 : 3;
        }) == 0);
  CHECK(gives(used, in, expected));
}

TEST_CASE("fork: while other threads are in calls") {
  if (!kCanForkAmongThreads) SKIP_BECAUSE("a sanitizer's own threads and locks do not survive it");
  const ResampleInputs in = largeInputs();
  const ResampleOutput expected = support::run(support::cpuContext(1), in).output;
  std::atomic<bool> stop{false};
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([&] {
      const Context context = support::cpuContext(2);
      while (!stop) wrong += gives(context, in, expected) ? 0 : 1;
    });
  }
  for (int i = 0; i < 10; ++i) {
    CHECK(inChild([&] { return gives(support::cpuContext(2), in, expected) ? 0 : 1; }) == 0);
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
}

TEST_CASE("fork: a CUDA context is refused in the child, with a message that says why") {
  std::string why;
  const Context cuda = support::cudaContext(&why);
  if (cuda == nullptr) SKIP_BECAUSE(why);
  const ResampleInputs in = largeInputs();
  const ResampleOutput expected = support::run(cuda, in).output;
  rbcContext_t handle = cuda.get();
  CHECK(inChild([&] {
          rbcContextInfo info = rbcContextInfoInit();
          if (rbcContextGetInfo(handle, &info) != RBC_STATUS_NOT_AVAILABLE) return 1;
          if (!support::tells(rbcGetLastError(), {"context:", "fork"})) return 2;
          if (rbcContextSynchronize(handle) != RBC_STATUS_NOT_AVAILABLE) return 3;
          if (!gives(support::cpuContext(2), in, expected)) return 4;
          return 0;
        }) == 0);
  CHECK(gives(cuda, in, expected));
}

namespace {

// Random cases, and their results with one thread.
struct Runs {
  Runs(uint64_t first_seed, uint64_t count) {
    for (uint64_t n = 0; n < count; ++n) {
      add(support::makeInputs(support::randomResampleCase(first_seed + n)));
    }
  }
  void add(ResampleInputs in) {
    inputs.push_back(std::move(in));
    expected.push_back(support::run(context, inputs.back()).output);
  }

  Context context = support::cpuContext(1);
  std::vector<ResampleInputs> inputs;
  std::vector<ResampleOutput> expected;
};

}  // namespace

TEST_CASE("threads: contexts are independent") {
  Runs runs(5000, 12);
  runs.add(largeInputs());
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int k = 0; k < 4; ++k) {
    threads.emplace_back([&, k] {
      for (int round = 0; round < 3; ++round) {
        const Context own = support::cpuContext(k + 1);
        for (size_t i = 0; i < runs.inputs.size(); ++i)
          wrong += gives(own, runs.inputs[i], runs.expected[i]) ? 0 : 1;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
}

TEST_CASE("threads: 64 contexts in 64 threads, some with their own threads") {
  Runs runs(6000, 8);
  std::thread([] {}).join();  // ThreadSanitizer starts an additional one with the first
  const int before = threadCount();
  std::atomic<int> ready{0};
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int k = 0; k < 64; ++k) {
    threads.emplace_back([&, k] {
      const Context own = support::cpuContext(1 + k % 3);
      for (++ready; ready < 64;) std::this_thread::yield();  // all of them exist at once
      for (size_t i = 0; i < runs.inputs.size(); ++i) {
        const size_t index = (i + static_cast<size_t>(k)) % runs.inputs.size();
        wrong += gives(own, runs.inputs[index], runs.expected[index]) ? 0 : 1;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
  CHECK(threadCount() <= before);
}

TEST_CASE("threads: one context may be handed from thread to thread") {
  const ResampleInputs in = largeInputs();
  const Context context = support::cpuContext(3);
  const ResampleOutput expected = support::run(context, in).output;
  for (int i = 0; i < 4; ++i) {
    bool right = false;
    std::thread([&] { right = gives(context, in, expected); }).join();
    CHECK(right);
  }
}

TEST_CASE("threads: contexts come and go without leaving threads behind") {
  const ResampleInputs in = largeInputs();
  support::run(support::cpuContext(4), in);
  const int before = threadCount();
  for (int i = 0; i < 20; ++i) support::run(support::cpuContext(4), in);
  CHECK(threadCount() <= before);
}

TEST_CASE("threads: a warm-up that starts none says so, calls work, and a later one starts them") {
  if (support::kSanitized) SKIP_BECAUSE("a sanitizer makes the stacks of threads");
  const ResampleInputs in = largeInputs();
  const ResampleOutput expected = support::run(support::cpuContext(1), in).output;
  const Context context = support::cpuContext(4);
  const int before = threadCount();
  {
    const StackSize more_than_there_is(size_t{1} << 47);
    for (int i = 0; i < 2; ++i) {
      CHECK_FAILS(rbcContextWarmUp(context.get()), RBC_STATUS_UNSUPPORTED,
                  "threads: ", "0 of 3 worker threads could be started");
    }
    CHECK(gives(context, in, expected));
    CHECK(threadCount() == before);
    CHECK_SUCCEEDS(rbcContextWarmUp(support::cpuContext(1).get()));  // needs no other thread
  }
  CHECK_SUCCEEDS(rbcContextWarmUp(context.get()));
  CHECK(threadCount() == before + 3);
  CHECK_SUCCEEDS(rbcContextWarmUp(context.get()));
  CHECK(threadCount() == before + 3);
  CHECK(gives(context, in, expected));
}

TEST_CASE("threads: a warm-up that starts some says how many, and a later one starts the rest") {
  if (support::kSanitized) SKIP_BECAUSE("a sanitizer makes the stacks of threads");
  const ResampleInputs in = largeInputs();
  const ResampleOutput expected = support::run(support::cpuContext(1), in).output;
  const Context context = support::cpuContext(9);
  {
    const RoomFor little(size_t{1} << 30);
    constexpr size_t kMore = size_t{16} << 30;
    void* more = mmap(nullptr, kMore, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (more != MAP_FAILED) {
      munmap(more, kMore);
      SKIP_BECAUSE("nothing holds a process to its limit of memory here, as under QEMU");
    }
  }
  const int before = threadCount();
  rbcStatus_t status = RBC_STATUS_SUCCESS;
  int started = 0;
  {
    const StackSize large(size_t{1} << 30);
    const RoomFor a_few((size_t{9} << 30) / 2);
    status = rbcContextWarmUp(context.get());
    started = threadCount() - before;
  }
  CHECK(started > 0);  // 3 or 4; malloc's arenas need memory as well
  CHECK(started < 8);
  CHECK(status == RBC_STATUS_UNSUPPORTED);
  const std::string expected_text =
      std::to_string(started) + " of 8 worker threads could be started";
  CHECK_MESSAGE(support::tells(rbcGetLastError(), {expected_text.c_str()}),
                std::string(rbcGetLastError()));
  CHECK(gives(context, in, expected));
  CHECK(threadCount() == before + started);  // a call does not try again
  CHECK_SUCCEEDS(rbcContextWarmUp(context.get()));
  CHECK(threadCount() == before + 8);
  CHECK(gives(context, in, expected));
}
