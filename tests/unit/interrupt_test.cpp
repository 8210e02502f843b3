// Copies that are cancelled halfway, at each of their polls, and threads that wait for others. The
// tests of each operation cancel its calls: see interrupted_call.h.
#include "interrupt.h"

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "guard.h"
#include "robocache/robocache.h"
#include "support/expect.h"
#include "support/interrupted_call.h"
#include "thread_pool.h"

namespace {

using support::checkInterrupts;
using support::kF32;

// Copies columns, which are not compact.
class Copying : public support::LongCall {
 public:
  Copying() {
    for (int64_t i = 0; i < kRows * 4; ++i) source_.as<float>()[i] = static_cast<float>(i);
    outputs_.emplace_back(kF32, std::vector<int64_t>{kRows, 2});
  }

 private:
  static constexpr int64_t kRows = 600000;

  rbcStatus_t call(rbcContext_t context) override {
    int64_t shape[2] = {kRows, 2};
    int64_t strides[2] = {4, 2};
    rbcTensor source = source_.tensor();
    source.shape = shape;
    source.strides = strides;
    const rbcTensor out = outputs_[0].tensor();
    return rbcTensorCopy(context, &source, &out);
  }

  support::CallMemory source_{kF32, {kRows, 4}};
};

}  // namespace

TEST_CASE("interrupt: copies") { checkInterrupts(Copying()); }
TEST_CASE("interrupt: a thread without work polls while it waits for the others") {
  rbc::Interrupt interrupt;
  interrupt.setPeriod(0);
  std::atomic<int> polls{0};
  interrupt.set(
      [](void* count) -> int32_t { return ++*static_cast<std::atomic<int>*>(count) == 3; }, &polls);
  rbc::ThreadPool pool(2, interrupt);
  REQUIRE(pool.start() == 1);
  interrupt.beginCall();
  const auto caller = std::this_thread::get_id();
  std::atomic<bool> joined{false};
  const auto body = [&](int64_t) {
    if (std::this_thread::get_id() == caller) {
      while (!joined) std::this_thread::yield();
      return;
    }
    joined = true;
    const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!interrupt.stopped() && std::chrono::steady_clock::now() < patience) {
      std::this_thread::yield();
    }
  };
  CHECK_FAILS(rbc::guard([&] { pool.parallelFor(2, 2, body); }), RBC_STATUS_CANCELLED, "call");
  CHECK(polls == 3);
  interrupt.beginCall();
  std::atomic<int> done{0};
  pool.parallelFor(3, 2, [&](int64_t) { ++done; });
  CHECK(done == 3);
}
