// The library uses the values that it verified, even if the caller's memory changes meanwhile. Each
// struct is at the end of its page, and another thread changes one field between two values that
// are both harmless.
#include <atomic>
#include <cstring>
#include <thread>

#include "abi/fuse_call.h"
#include "support/accumulator.h"
#include "support/sanitizers.h"

namespace {

// Flips a field until it goes out of scope.
template <class T>
class Flips {
 public:
  Flips(T* field, T one, T other)
      : thread_([=]() mutable {
          while (!stop_) {
            __atomic_store(field, &other, __ATOMIC_RELAXED);
            __atomic_store(field, &one, __ATOMIC_RELAXED);
          }
        }) {}
  ~Flips() {
    stop_ = true;
    thread_.join();
  }

 private:
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

// Calls of the sanitizers' builds take longer, so that a field changes more often during each.
constexpr int kCalls = support::kSanitized ? 25'000 : 100'000;

// Every call succeeds or is refused; both happen if two cores are free.
template <class Call>
void callOften(Call&& call) {
  for (int i = 0; i < kCalls; ++i) {
    const rbcStatus_t status = call();
    if (status == RBC_STATUS_SUCCESS) continue;
    const bool refused =
        status == RBC_STATUS_INVALID_ARGUMENT || status == RBC_STATUS_SHAPE_MISMATCH;
    if (!refused) FAIL(support::nameOf(status));
  }
}

// A copy that ends at an inaccessible page.
template <class T>
T* atPageEnd(const support::GuardedMemory& memory, const T* from) {
  std::memcpy(memory.data(), from, memory.bytes());
  return reinterpret_cast<T*>(memory.data());
}

#define SKIP_UNDER_TSAN()                                            \
  do {                                                               \
    if (support::kThreadSanitizer) SKIP_BECAUSE("races on purpose"); \
  } while (false)

}  // namespace

TEST_CASE("single reads: the size of a stream") {
  SKIP_UNDER_TSAN();
  fuse_call::Call call;
  const support::GuardedMemory memory(sizeof call.streams, support::Flush::kEnd);
  auto* const streams = atPageEnd(memory, call.streams);
  call.used_streams = streams;
  constexpr uint32_t kSize = sizeof(rbcFuseStream);
  // The first element's size is the stride of all. With the larger one, the next element's size is
  // among the bytes that must be zero.
  for (const int n : {0, 1, 2}) {
    const Flips<uint32_t> flips(&streams[n].struct_size, kSize, 4096);
    callOften([&] { return call.workspace(); });
  }
  std::memcpy(memory.data(), call.streams, sizeof call.streams);
  CHECK_SUCCEEDS(call.run());
  call.checkOutputs();
}

TEST_CASE("single reads: the size of parameters") {
  SKIP_UNDER_TSAN();
  struct {
    rbcFuseParams known = rbcFuseParamsInit();
    uint64_t other = 1;  // the bytes after the struct
  } params;
  const support::GuardedMemory memory(sizeof params, support::Flush::kEnd);
  auto* const given = &atPageEnd(memory, &params)->known;
  fuse_call::Call call;
  const Flips<uint32_t> flips(&given->struct_size, sizeof(rbcFuseParams), 65536);
  callOften([&] {
    size_t bytes = 0;
    return rbcFuseWorkspaceSize(support::refusingContext().get(), call.streams, call.num_streams,
                                call.used_queries, call.used_out, call.used_mask, given, &bytes);
  });
}

TEST_CASE("single reads: the rank and the data of a tensor") {
  SKIP_UNDER_TSAN();
  float value = 0;
  const support::GuardedMemory memory(sizeof(int64_t), support::Flush::kEnd);
  auto* const extent = reinterpret_cast<int64_t*>(memory.data());
  *extent = 1;
  rbcTensor tensor = {&value, {RBC_DEVICE_CPU, 0}, 1, support::kF32, extent, nullptr, 0};
  rbcTensorInfo info = rbcTensorInfoInit();
  {
    const Flips<int32_t> flips(&tensor.ndim, 1, 100'000);
    callOften([&] { return rbcTensorGetInfo(&tensor, &info); });
  }
  bool same = true;
  {
    const Flips<void*> flips(&tensor.data, &value, nullptr);
    callOften([&] {
      const rbcStatus_t status = rbcTensorGetInfo(&tensor, &info);
      same &= status != RBC_STATUS_SUCCESS || info.data == &value;
      return status;
    });
  }
  CHECK(same);
  {
    // An extent that overflows, and 1: the count and range of one must not be used with the other.
    const Flips<int64_t> flips(extent, 1, int64_t{1} << 40);
    callOften([&] {
      const rbcStatus_t status = rbcTensorGetInfo(&tensor, &info);
      same &= status != RBC_STATUS_SUCCESS ||
              (info.num_elements == info.shape[0] && info.num_bytes == 4 * info.shape[0]);
      return status;
    });
  }
  CHECK(same);
}

TEST_CASE("single reads: a group of channels") {
  SKIP_UNDER_TSAN();
  fuse_call::Call call;
  rbcChannelGroup group = {0, 2, RBC_METHOD_LINEAR, 0, 0, 0, 0};
  call.stream_params[2].groups = &group;
  call.stream_params[2].num_groups = 1;
  const Flips<int32_t> flips(&group.method, RBC_METHOD_LINEAR, 1 << 20);
  callOften([&] { return call.run(); });
}

TEST_CASE("single reads: an index of rows") {
  SKIP_UNDER_TSAN();
  const support::GuardedMemory memory(sizeof(float), support::Flush::kEnd);
  float out = 0;
  int64_t index = 0;
  int64_t one[] = {1, 1};
  constexpr rbcDevice kHost = {RBC_DEVICE_CPU, 0};
  const rbcTensor values = {memory.data(), kHost, 2, support::kF32, one, nullptr, 0};
  const rbcTensor indices = {&index, kHost, 1, support::kI64, one, nullptr, 0};
  const rbcTensor taken = {&out, kHost, 2, support::kF32, one, nullptr, 0};
  const support::Context context = support::cpuContext(1);
  for (const int64_t other : {int64_t{1} << 40, int64_t{-2}}) {
    const Flips<int64_t> flips(&index, 0, other);
    callOften([&] { return rbcTakeRows(context.get(), &values, &indices, &taken, nullptr); });
  }
}

TEST_CASE("single reads: a level of quantiles") {
  SKIP_UNDER_TSAN();
  double level = 0.5;
  int64_t one = 1;
  const rbcTensor levels = support::vectorTensor(&level, support::kF64, &one);
  rbcAccumulatorParams params = rbcAccumulatorParamsInit();
  params.num_channels = 1;
  params.levels = &levels;
  params.bucket_bits = 8;
  const support::Context context = support::cpuContext(1);
  bool same = true;
  const Flips<double> flips(&level, 0.5, 1e300);
  callOften([&] {
    rbcAccumulator_t accumulator = nullptr;
    const rbcStatus_t status = rbcAccumulatorCreate(context.get(), &params, &accumulator);
    if (accumulator != nullptr) {
      double kept = 0;
      rbcAccumulatorGetLevels(accumulator, &kept, 1);
      same &= kept == 0.5;
    }
    rbcAccumulatorDestroy(accumulator);
    return status;
  });
  CHECK(same);
}
