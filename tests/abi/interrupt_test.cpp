// rbcContextSetCancelCallback over time: which thread calls the function, when, and the state after
// a call that was ended.
#include <chrono>
#include <cstring>
#include <thread>
#include <vector>

#include "support/expect.h"
#include "support/run.h"

namespace {

using support::Context;
using support::kF32;
using support::kF64;

struct Asked {
  int64_t polls = 0;
  int64_t last = INT64_MAX;  // the poll that ends the call
  std::thread::id thread = {};
  rbcContext_t context = nullptr;  // to be called meanwhile
  rbcStatus_t same = RBC_STATUS_SUCCESS;
  rbcStatus_t other = RBC_STATUS_INTERNAL;
};

rbcStatus_t resampleThree(rbcContext_t context, float* out) {
  double times[] = {0, 1, 2};
  float values[] = {0, 10, 20};
  double queries[] = {0.5, 1, 1.5};
  int64_t rows = 3;
  int64_t shape[] = {3, 1};
  const rbcDevice cpu = {RBC_DEVICE_CPU, 0};
  const rbcTensor v = {values, cpu, 2, kF32, shape, nullptr, 0};
  const rbcTensor t = {times, cpu, 1, kF64, &rows, nullptr, 0};
  const rbcTensor q = {queries, cpu, 1, kF64, &rows, nullptr, 0};
  const rbcTensor o = {out, cpu, 2, kF32, shape, nullptr, 0};
  return rbcResample(context, &v, &t, &q, &o, nullptr, nullptr);
}

int32_t ask(void* user_data) {
  auto& asked = *static_cast<Asked*>(user_data);
  asked.thread = std::this_thread::get_id();
  if (++asked.polls == 1 && asked.context != nullptr) {
    float out[3];
    asked.same = resampleThree(asked.context, out);
    asked.other = resampleThree(support::cpuContext(1).get(), out);
  }
  return asked.polls >= asked.last ? 7 : 0;
}

// Verifies 2^44 times, of one place in memory: hours of work.
rbcStatus_t endlessCall(rbcContext_t context) {
  double time = 0;
  float value = 0;
  float out = -1;
  int64_t many = int64_t{1} << 44;
  int64_t one = 1;
  int64_t values_shape[] = {many, 1};
  int64_t zeros[] = {0, 0};
  int64_t out_shape[] = {1, 1};
  const rbcDevice cpu = {RBC_DEVICE_CPU, 0};
  const rbcTensor v = {&value, cpu, 2, kF32, values_shape, zeros, 0};
  const rbcTensor t = {&time, cpu, 1, kF64, &many, zeros, 0};
  const rbcTensor q = {&time, cpu, 1, kF64, &one, nullptr, 0};
  const rbcTensor o = {&out, cpu, 2, kF32, out_shape, nullptr, 0};
  rbcResampleParams params = rbcResampleParamsInit();
  params.flags = RBC_FLAG_CHECK_TIMES;
  return rbcResample(context, &v, &t, &q, &o, nullptr, &params);
}

void checkWorks(const Context& context) {
  float out[3] = {};
  CHECK_SUCCEEDS(resampleThree(context.get(), out));
  CHECK(out[0] == 5);
  CHECK(out[1] == 10);
  CHECK(out[2] == 15);
}

}  // namespace

TEST_CASE(
    "interrupt: a long call ends soon after its function requests it, and the context still "
    "works") {
  for (const int threads : {1, 3}) {
    const Context context = support::cpuContext(threads);
    Asked asked;
    asked.last = 3;
    asked.context = context.get();
    CHECK_SUCCEEDS(rbcContextSetCancelCallback(context.get(), ask, &asked));
    const auto begin = std::chrono::steady_clock::now();
    CHECK_FAILS(endlessCall(context.get()), RBC_STATUS_CANCELLED, "rbcContextSetCancelCallback");
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
    CHECK(asked.polls == 3);
    CHECK(seconds.count() >= 0.1);  // about every 50 ms
    CHECK(seconds.count() < 10);    // on any busy machine
    const bool by_caller = asked.thread == std::this_thread::get_id();
    CHECK(by_caller);
    CHECK(asked.same == RBC_STATUS_UNSUPPORTED);
    CHECK(asked.other == RBC_STATUS_SUCCESS);
    checkWorks(context);
    CHECK(asked.polls == 3);  // a short call does not poll
    CHECK_FAILS(endlessCall(context.get()), RBC_STATUS_CANCELLED, "ended");
    CHECK(asked.polls == 4);
    CHECK_SUCCEEDS(rbcContextSetCancelCallback(context.get(), nullptr, nullptr));
    checkWorks(context);
  }
}

TEST_CASE("interrupt: needs a context") {
  CHECK_FAILS(rbcContextSetCancelCallback(nullptr, ask, nullptr), RBC_STATUS_INVALID_ARGUMENT,
              "context", "null");
}
