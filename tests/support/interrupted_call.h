// Calls that are cancelled halfway, at each of their polls: they fail with CANCELLED, and the next
// call on the context gives its usual bits. An operation describes a long call to checkInterrupts.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "context.h"
#include "dtypes.h"
#include "expect.h"
#include "interrupt.h"
#include "run.h"
#include "sanitizers.h"

namespace support {

// Compact, and zero until a call writes it.
class CallMemory {
 public:
  CallMemory(rbcDType dtype, std::vector<int64_t> shape) : shape_(std::move(shape)), dtype_(dtype) {
    int64_t count = 1;
    for (const int64_t extent : shape_) count *= extent;
    bytes_.resize(static_cast<size_t>(count * dtype.bits / 8));
  }

  rbcTensor tensor() {
    return {bytes_.data(),
            {RBC_DEVICE_CPU, 0},
            static_cast<int32_t>(shape_.size()),
            dtype_,
            shape_.data(),
            nullptr,
            0};
  }
  template <class T>
  T* as() {
    return reinterpret_cast<T*>(bytes_.data());
  }
  void clear() { std::fill(bytes_.begin(), bytes_.end(), uint8_t{0}); }
  const std::vector<uint8_t>& bytes() const { return bytes_; }

 private:
  std::vector<uint8_t> bytes_;
  std::vector<int64_t> shape_;
  rbcDType dtype_;
};

// A call with several pieces of work on one thread.
class LongCall {
 public:
  virtual ~LongCall() = default;

  std::vector<std::vector<uint8_t>> run(const Context& context, rbcStatus_t* status) {
    for (CallMemory& output : outputs_) output.clear();
    *status = call(context.get());
    std::vector<std::vector<uint8_t>> results;
    for (const CallMemory& output : outputs_) results.push_back(output.bytes());
    return results;
  }

 protected:
  virtual rbcStatus_t call(rbcContext_t context) = 0;
  std::vector<CallMemory> outputs_;
};

inline int32_t countDown(void* left) { return --*static_cast<int64_t*>(left) == 0 ? 1 : 0; }

// Cancels the call at its first poll, at its second and so on, until it no longer polls. Returns
// the number of cancelled calls.
inline int64_t interruptEverywhere(LongCall& call, int threads) {
  const Context context = cpuContext(threads);
  rbcStatus_t status = RBC_STATUS_SUCCESS;
  const auto expected = call.run(context, &status);
  REQUIRE(status == RBC_STATUS_SUCCESS);
  context->state->interrupt.setPeriod(0);
  int64_t ended = 0;
  for (int64_t poll = 1;; poll += 1 + (kSanitized ? poll : poll / 4)) {
    int64_t left = poll;
    require(rbcContextSetCancelCallback(context.get(), countDown, &left));
    call.run(context, &status);
    if (left > 0) {
      CHECK(status == RBC_STATUS_SUCCESS);
      return ended;
    }
    ++ended;
    CHECK(status == RBC_STATUS_CANCELLED);
    CHECK(std::string(rbcGetLastError()).find("rbcContextSetCancelCallback") != std::string::npos);
    left = INT64_MAX;
    const bool same = call.run(context, &status) == expected;
    CHECK_MESSAGE(same, "after the end at poll ", poll);
    CHECK(status == RBC_STATUS_SUCCESS);
  }
}

inline void checkInterrupts(LongCall&& call) {
  if (!kThreadSanitizer) CHECK(interruptEverywhere(call, 1) >= 2);
  interruptEverywhere(call, 3);
}

}  // namespace support
