// Live fusion as tests call it: rings that destroy themselves, and tensors of the host.
#pragma once

#include <memory>
#include <type_traits>
#include <vector>

#include "support/expect.h"
#include "support/run.h"

namespace live_call {

struct DestroyLive {
  void operator()(rbcLive_t live) const { rbcLiveDestroy(live); }
};
using Live = std::unique_ptr<rbcLive, DestroyLive>;

template <class Time>
rbcDType timeDtype() {
  if constexpr (std::is_same_v<Time, float>) return support::kF32;
  if constexpr (std::is_same_v<Time, double>) return support::kF64;
  return support::kI64;
}

inline rbcTensor hostTensor(const void* data, rbcDType dtype, int32_t ndim, int64_t* shape,
                            int64_t* strides = nullptr) {
  rbcTensor tensor = {};
  tensor.data = const_cast<void*>(data);
  tensor.device = {RBC_DEVICE_CPU, 0};
  tensor.ndim = ndim;
  tensor.dtype = dtype;
  tensor.shape = shape;
  tensor.strides = strides;
  return tensor;
}

inline Live make(const support::Context& context, const std::vector<rbcLiveStream>& streams,
                 const rbcLiveParams& params) {
  rbcLive_t live = nullptr;
  support::require(rbcLiveCreate(context.get(), streams.data(),
                                 static_cast<int32_t>(streams.size()), &params, &live));
  return Live(live);
}

inline rbcLiveCounters countersOf(const Live& live, int32_t stream) {
  rbcLiveCounters counters = rbcLiveCountersInit();
  support::require(rbcLiveGetCounters(live.get(), stream, &counters));
  return counters;
}

}  // namespace live_call
