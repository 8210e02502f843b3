// One context in several threads at once: the second call is refused, and no state is damaged.
#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <stdexcept>
#include <thread>

#include "robocache/robocache.h"
#include "support/accumulator.h"
#include "support/expect.h"
#include "support/run.h"
#include "support/sanitizers.h"

namespace {

using support::Context;

// An allocator whose first request waits until it is released: its call is certainly in progress.
struct Gate {
  std::mutex mutex;
  std::condition_variable changed;
  bool entered = false;
  bool open = false;

  static void* allocate(void* self, size_t bytes, size_t, void*) {
    Gate& gate = *static_cast<Gate*>(self);
    std::unique_lock<std::mutex> lock(gate.mutex);
    gate.entered = true;
    gate.changed.notify_all();
    gate.changed.wait(lock, [&] { return gate.open; });
    return std::malloc(bytes);
  }
  static void release(void*, void* pointer, size_t, void*) { std::free(pointer); }

  void close() {
    const std::lock_guard<std::mutex> lock(mutex);
    entered = open = false;
  }
  void waitUntilEntered() {
    std::unique_lock<std::mutex> lock(mutex);
    changed.wait(lock, [&] { return entered; });
  }
  void letGo() {
    const std::lock_guard<std::mutex> lock(mutex);
    open = true;
    changed.notify_all();
  }
};

}  // namespace

TEST_CASE("shared context: every function is refused while another thread is in a call") {
  Gate gate;
  rbcContextParams params = rbcContextParamsInit();
  params.backend = RBC_BACKEND_CPU;
  params.num_threads = 2;
  params.allocator = {Gate::allocate, Gate::release, &gate};
  const Context owner = support::makeContext(params);
  rbcContext_t context = owner.get();
  rbcStatus_t status = RBC_STATUS_INTERNAL;
  std::thread other([&] { status = rbcContextReserve(context, 1 << 20); });
  gate.waitUntilEntered();

  rbcContextInfo info = rbcContextInfoInit();
  void* stream = nullptr;
  size_t bytes = 0;
  rbcOwnedTensor_t tensor = nullptr;
  const int64_t shape[] = {1};
  const std::function<rbcStatus_t()> calls[] = {
      [&] { return rbcContextReserve(context, 1); },
      [&] { return rbcContextSetCudaStream(context, nullptr); },
      [&] { return rbcContextGetCudaStream(context, &stream); },
      [&] { return rbcContextSynchronize(context); },
      [&] { return rbcContextWarmUp(context); },
      [&] { return rbcContextGetInfo(context, &info); },
      [&] { return rbcContextDestroy(context); },
      [&] { return rbcOwnedTensorCreate(context, support::kF32, 1, shape, nullptr, &tensor); },
      [&] { return rbcTensorCopy(context, nullptr, nullptr); },
      [&] { return rbcResample(context, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr); },
      [&] {
        return rbcResampleWorkspaceSize(context, nullptr, nullptr, nullptr, nullptr, nullptr,
                                        nullptr, &bytes);
      },
      [&] { return rbcFuse(context, nullptr, 0, nullptr, nullptr, nullptr, nullptr); },
      [&] {
        return rbcFuseWorkspaceSize(context, nullptr, 0, nullptr, nullptr, nullptr, nullptr,
                                    &bytes);
      },
      [&] { return rbcVoxelize(context, nullptr, nullptr, nullptr, nullptr, nullptr); },
      [&] {
        return rbcVoxelizeWorkspaceSize(context, nullptr, nullptr, nullptr, nullptr, nullptr,
                                        &bytes);
      },
      [&] { return rbcVoxelizeSparse(context, nullptr, nullptr, nullptr, nullptr); },
      [&] {
        return rbcVoxelizeSparseWorkspaceSize(context, nullptr, nullptr, nullptr, nullptr, &bytes);
      },
      [&] {
        return rbcVoxelizeTsdf(context, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr);
      },
      [&] {
        return rbcVoxelizeTsdfWorkspaceSize(context, nullptr, nullptr, nullptr, nullptr, nullptr,
                                            nullptr, &bytes);
      },
  };
  int number = 0;
  for (const auto& call : calls) {
    CAPTURE(number);
    CHECK_FAILS(call(), RBC_STATUS_UNSUPPORTED, "context:", "in use by another thread");
    ++number;
  }
  gate.letGo();
  other.join();
  CHECK(status == RBC_STATUS_SUCCESS);
  CHECK_SUCCEEDS(rbcContextReserve(context, 1 << 21));
  CHECK_SUCCEEDS(rbcContextGetInfo(context, &info));
}

TEST_CASE("shared context: an accumulator that a call is using is refused") {
  Gate gate;
  gate.open = true;
  rbcContextParams params = rbcContextParamsInit();
  params.backend = RBC_BACKEND_CPU;
  params.num_threads = 1;
  params.allocator = {Gate::allocate, Gate::release, &gate};
  const Context owner = support::makeContext(params);
  const support::Array values = support::arrayOf(support::kF32, {2, 1}, {0, 0x3f800000});
  rbcAccumulatorParams kind = rbcAccumulatorParamsInit();
  double level = 0.5;
  int64_t one = 1;
  const rbcTensor levels = support::vectorTensor(&level, support::kF64, &one);
  kind.num_channels = 1;
  kind.levels = &levels;
  rbcAccumulator_t used = nullptr;
  rbcAccumulator_t idle = nullptr;
  CHECK_SUCCEEDS(rbcAccumulatorCreate(owner.get(), &kind, &used));
  CHECK_SUCCEEDS(rbcAccumulatorCreate(owner.get(), &kind, &idle));
  const rbcTensor samples = values.tensor();
  CHECK_SUCCEEDS(rbcAccumulatorUpdate(used, &samples, nullptr));

  gate.close();
  int32_t more = 0;
  rbcStatus_t status = RBC_STATUS_INTERNAL;
  std::thread other([&] { status = rbcAccumulatorNextPass(used, &more); });
  gate.waitUntilEntered();
  rbcAccumulatorInfo info = rbcAccumulatorInfoInit();
  for (int i = 0; i < 2; ++i) {
    CHECK_FAILS(rbcAccumulatorDestroy(used), RBC_STATUS_UNSUPPORTED,
                "accumulator:", "in use by another thread");
    CHECK_FAILS(rbcAccumulatorGetInfo(used, &info), RBC_STATUS_UNSUPPORTED,
                "accumulator:", "in use by another thread");
    CHECK_FAILS(rbcAccumulatorUpdate(used, &samples, nullptr), RBC_STATUS_UNSUPPORTED,
                "context:", "in use by another thread");
  }
  CHECK_SUCCEEDS(rbcAccumulatorGetInfo(idle, &info));
  CHECK_SUCCEEDS(rbcAccumulatorDestroy(idle));
  gate.letGo();
  other.join();
  CHECK(status == RBC_STATUS_SUCCESS);
  CHECK(more == 1);
  CHECK_SUCCEEDS(rbcAccumulatorGetInfo(used, &info));
  CHECK(info.current_pass == 2);
  CHECK_FAILS(rbcAccumulatorMerge(used, used), RBC_STATUS_INVALID_ARGUMENT,
              "is the accumulator itself");
  CHECK_SUCCEEDS(rbcAccumulatorUpdate(used, &samples, nullptr));
  CHECK_SUCCEEDS(rbcAccumulatorDestroy(used));
}

TEST_CASE("shared context: calls of four threads succeed or are refused") {
  support::ResampleCase c;
  c.batch = 6;
  c.samples = 500;
  c.queries = 500;
  c.channels = 96;
  c.lengths = true;
  const support::ResampleInputs in = support::makeInputs(c);
  const support::ResampleOutput expected = support::run(support::cpuContext(1), in).output;
  const Context context = support::cpuContext(3);
  std::atomic<int> right{0};
  std::atomic<int> wrong{0};
  const auto work = [&] {
    for (int i = 0; i < (support::kThreadSanitizer ? 40 : 200); ++i) {
      try {
        const support::ResampleRun run = support::run(context, in);
        const bool refused = run.status == RBC_STATUS_UNSUPPORTED;
        (refused || run.output == expected ? right : wrong).fetch_add(1);
      } catch (const std::runtime_error&) {  // other calls of `run` on the context
      }
    }
  };
  std::thread threads[] = {std::thread(work), std::thread(work), std::thread(work)};
  work();
  for (std::thread& thread : threads) thread.join();
  CHECK(right > 0);
  CHECK(wrong == 0);
  CHECK((support::run(context, in).output == expected));
}
