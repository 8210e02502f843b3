#include "fuzz/endings.h"

#include <atomic>
#include <cstdlib>
#include <string>
#include <thread>

#include "context.h"  // internal: the period of an interrupt

namespace fuzz {
namespace {

const std::vector<std::string> kArguments = {"context", "accumulator", "other",       "values",
                                             "call",    "live",        "stream_index"};

rbcContextParams cpu(int32_t threads) {
  rbcContextParams params = rbcContextParamsInit();
  params.backend = RBC_BACKEND_CPU;
  params.num_threads = threads;
  return params;
}

// A context whose function is called after each piece of work, and cancels the call the n-th time.
class Ending {
 public:
  explicit Ending(rbcContext_t context) : context_(context) {
    context->state->interrupt.setPeriod(0);
  }
  void at(int64_t poll) {
    left_ = poll;
    rbcContextSetCancelCallback(context_, poll > 0 ? countDown : nullptr, this);
  }

 private:
  static int32_t countDown(void* self) { return --static_cast<Ending*>(self)->left_ == 0 ? 1 : 0; }

  rbcContext_t context_;
  int64_t left_ = 0;
};

void require(rbcStatus_t status, rbcStatus_t expected, const std::string& what) {
  const std::string message = status != RBC_STATUS_SUCCESS ? rbcGetLastError() : "";
  if (status != expected) {
    throw Defect(what + " gave " + rbcStatusName(status) + " \"" + message + "\", expected " +
                 rbcStatusName(expected));
  }
  if (status != RBC_STATUS_SUCCESS) checkMessage(status, message, kArguments, what);
}

// Samples with a stride of 0: any number of them.
struct Samples {
  float value = 0.5f;
  int64_t shape[2];
  int64_t strides[2] = {0, 0};
  rbcTensor tensor;

  Samples(int64_t samples, int64_t channels) : shape{samples, channels} {
    tensor = {&value, {RBC_DEVICE_CPU, 0}, 2, support::kF32, shape, strides, 0};
  }
};

}  // namespace

void endHalfWay(Machine& machine, Call& call, Choices& choices) {
  Machine own("a context whose calls are cancelled", cpu(choices.pick({1, 1, 3})),
              machine.memory());
  call.names.push_back("call");
  const Outcome expected = run(own, call, 0xA5);
  Ending ending(own.context());
  // The first polls belong to the steps that all calls share, the later ones to the work.
  const int64_t poll = int64_t{1} << choices.below(7);
  const auto whole = call.run;
  call.run = [&](rbcContext_t context, const Handles& handles) {
    ending.at(poll);
    const rbcStatus_t status = whole(context, handles);
    ending.at(0);
    return status;
  };
  const Outcome ended = run(own, call, 0xA5);
  call.run = whole;
  const Outcome again = run(own, call, 0xA5);
  const bool failed = ended.status == RBC_STATUS_CANCELLED;
  if (!failed && ended.status != expected.status) report(own, call, "was ended: " + ended.message);
  if (again.status != expected.status || again.message != expected.message) {
    report(own, call, "after a call that was cancelled: " + again.message);
  }
  const bool same = again.output == expected.output && (failed || ended.output == expected.output);
  if (!same && isSpecified(own, call)) report(own, call, "other bits after a call was cancelled");
}

void endAccumulator(Choices& choices) {
  rbcContext_t context = nullptr;
  rbcAccumulator_t accumulator = nullptr;
  rbcAccumulatorParams params = rbcAccumulatorParamsInit();
  params.num_channels = choices.between(1, 3);
  const rbcContextParams one = cpu(1);
  require(rbcContextCreate(&one, &context), RBC_STATUS_SUCCESS, "rbcContextCreate");
  require(rbcAccumulatorCreate(context, &params, &accumulator), RBC_STATUS_SUCCESS,
          "rbcAccumulatorCreate");
  const auto update = [&](int64_t samples) {
    const Samples values(samples, params.num_channels);
    return rbcAccumulatorUpdate(accumulator, &values.tensor, nullptr);
  };
  constexpr int64_t kMost = int64_t{1} << 40;
  require(update(3), RBC_STATUS_SUCCESS, "a first update");
  require(update(kMost), RBC_STATUS_UNSUPPORTED, "samples past the maximum");
  require(update(kMost + 1), RBC_STATUS_UNSUPPORTED, "samples past the maximum of a call");
  Ending ending(context);
  ending.at(1);
  require(update(choices.between(1 << 15, 1 << 16)), RBC_STATUS_CANCELLED,
          "an update that is cancelled");
  ending.at(0);
  require(update(3), RBC_STATUS_INVALID_ARGUMENT, "an accumulator after a cancelled update");
  rbcAccumulatorDestroy(accumulator);
  rbcContextDestroy(context);
}

namespace {

struct Reentrant {
  rbcContext_t context = nullptr;
  rbcStatus_t inner = RBC_STATUS_SUCCESS;

  static void* allocate(void* self, size_t bytes, size_t, void*) {
    auto& own = *static_cast<Reentrant*>(self);
    if (own.context != nullptr) own.inner = rbcContextSynchronize(own.context);
    return std::malloc(bytes);
  }
  static void release(void*, void* pointer, size_t, void*) { std::free(pointer); }
};

}  // namespace

void callFromAllocator() {
  Reentrant reentrant;
  rbcContextParams params = cpu(1);
  params.allocator = {Reentrant::allocate, Reentrant::release, &reentrant};
  rbcContext_t context = nullptr;
  require(rbcContextCreate(&params, &context), RBC_STATUS_SUCCESS, "rbcContextCreate");
  reentrant.context = context;
  require(rbcContextReserve(context, 1000), RBC_STATUS_SUCCESS, "rbcContextReserve");
  require(reentrant.inner, RBC_STATUS_UNSUPPORTED, "a call by an allocator");
  rbcContextDestroy(context);
}

void shareLive(Choices& choices) {
  const rbcContextParams one = cpu(1);
  rbcContext_t context = nullptr;
  rbcLive_t live = nullptr;
  rbcLiveStream stream = rbcLiveStreamInit();
  stream.dtype = support::kF32;
  stream.num_channels = choices.between(1, 100);
  stream.capacity = choices.pick<int64_t>({2, 3, 8, 100});
  stream.late_bound = choices.below(stream.capacity);
  const rbcLiveParams params = rbcLiveParamsInit();
  require(rbcContextCreate(&one, &context), RBC_STATUS_SUCCESS, "rbcContextCreate");
  require(rbcLiveCreate(context, &stream, 1, &params, &live), RBC_STATUS_SUCCESS, "rbcLiveCreate");
  std::atomic<bool> wrong{false};
  const auto work = [&](bool pushes) {
    constexpr int64_t kRows = 200;
    int64_t shape[] = {kRows, stream.num_channels};
    std::vector<double> times(kRows);
    for (int64_t i = 0; i < kRows; ++i) times[static_cast<size_t>(i)] = static_cast<double>(i);
    std::vector<float> rows(static_cast<size_t>(kRows * stream.num_channels));
    const rbcDevice host = {RBC_DEVICE_CPU, 0};
    const rbcTensor t = {times.data(), host, 1, support::kF64, shape, nullptr, 0};
    const rbcTensor v = {rows.data(), host, 2, support::kF32, shape, nullptr, 0};
    for (int n = 0; n < 20; ++n) {
      const rbcStatus_t status = pushes ? rbcLivePush(live, 0, &v, &t, nullptr)
                                        : rbcLiveFuse(live, &t, &v, nullptr, nullptr, nullptr);
      const rbcStatus_t reset = pushes ? rbcLiveReset(live, 0) : RBC_STATUS_SUCCESS;
      for (const rbcStatus_t each : {status, reset}) {
        if (each != RBC_STATUS_SUCCESS && each != RBC_STATUS_UNSUPPORTED) wrong = true;
      }
    }
  };
  std::vector<std::thread> threads;
  for (const bool pushes : {true, true, false}) threads.emplace_back(work, pushes);
  work(false);
  for (std::thread& thread : threads) thread.join();
  require(rbcLiveDestroy(live), RBC_STATUS_SUCCESS, "rbcLiveDestroy");
  rbcContextDestroy(context);
  if (wrong) throw Defect("threads at one live fusion: a call was neither made nor refused");
}

}  // namespace fuzz
