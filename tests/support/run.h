// Runs cases through the C interface, on the CPU and, where there is one, on a GPU.
#pragma once

#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "cases.h"
#include "reference.h"
#include "robocache/robocache.h"

namespace support {

struct DestroyContext {
  void operator()(rbcContext_t context) const { rbcContextDestroy(context); }
};
struct DestroyTensor {
  void operator()(rbcOwnedTensor_t tensor) const { rbcTensorDestroy(tensor); }
};
using Context = std::unique_ptr<rbcContext, DestroyContext>;
using OwnedTensor = std::unique_ptr<rbcOwnedTensor, DestroyTensor>;

// For calls that a test takes for granted.
inline void require(rbcStatus_t status) {
  if (status != RBC_STATUS_SUCCESS) {
    throw std::runtime_error(std::string(rbcStatusName(status)) + ": " + rbcGetLastError());
  }
}

inline Context makeContext(const rbcContextParams& params) {
  rbcContext_t context = nullptr;
  require(rbcContextCreate(&params, &context));
  return Context(context);
}

inline Context cpuContext(int32_t threads = 0, int32_t simd = RBC_SIMD_AUTO) {
  rbcContextParams params = rbcContextParamsInit();
  params.backend = RBC_BACKEND_CPU;
  params.num_threads = threads;
  params.simd = simd;
  return makeContext(params);
}

// Null, with the reason, where CUDA cannot be used.
inline Context cudaContext(std::string* why = nullptr) {
  rbcContextParams params = rbcContextParamsInit();
  params.backend = RBC_BACKEND_CUDA;
  rbcContext_t context = nullptr;
  if (rbcContextCreate(&params, &context) != RBC_STATUS_SUCCESS && why != nullptr)
    *why = rbcGetLastError();
  return Context(context);
}

inline rbcContextInfo infoOf(const Context& context) {
  rbcContextInfo info = rbcContextInfoInit();
  require(rbcContextGetInfo(context.get(), &info));
  return info;
}

// The levels that this machine has.
inline std::vector<int32_t> simdLevels() {
  std::vector<int32_t> levels;
  const int32_t best = infoOf(cpuContext()).simd;
  for (int32_t level = RBC_SIMD_PORTABLE; level <= best; ++level) levels.push_back(level);
  return levels;
}

// ---- tensors where a context wants them ---------------------------------------------------------

// An array's storage on a context's device: the array's own memory on the CPU, a copy on CUDA.
class Placed {
 public:
  Placed(const Context& context, const Array& array, bool cuda) {
    if (!cuda) {
      tensor_ = array.tensor();
      return;
    }
    const auto bytes = static_cast<int64_t>(array.memory().bytes());
    const int64_t total = bytes + 2 * kGuard;
    rbcOwnedTensor_t owned = nullptr;
    require(rbcTensorCreate(context.get(), kU8, 1, &total, &owned));
    storage_.reset(owned);
    std::vector<uint8_t> image(static_cast<size_t>(total), kPoison);
    if (bytes > 0)
      std::memcpy(image.data() + kGuard, array.memory().data(), static_cast<size_t>(bytes));
    transfer(context, image, true);
    rbcTensor view = {};
    require(rbcTensorGetView(owned, 1, &view));
    tensor_ = array.tensorAt(static_cast<std::byte*>(view.data) + kGuard, view.device);
  }

  const rbcTensor* get() const { return &tensor_; }

  // Brings what is on the device back to the array. False if the guard zones were written.
  bool fetch(const Context& context, Array& array) const {
    if (storage_ == nullptr) return true;
    const size_t bytes = array.memory().bytes();
    std::vector<uint8_t> image(bytes + 2 * kGuard);
    transfer(context, image, false);
    if (bytes > 0) std::memcpy(array.memory().data(), image.data() + kGuard, bytes);
    const auto* first = reinterpret_cast<const std::byte*>(image.data());
    return Array::isPoison(first, kGuard) && Array::isPoison(first + kGuard + bytes, kGuard);
  }

 private:
  static constexpr int64_t kGuard = 256;

  void transfer(const Context& context, std::vector<uint8_t>& image, bool to_device) const {
    rbcTensor device = {};
    require(rbcTensorGetView(storage_.get(), 1, &device));
    int64_t extent = static_cast<int64_t>(image.size());
    const rbcTensor host = {image.data(), {RBC_DEVICE_CPU, 0}, 1, kU8, &extent, nullptr, 0};
    require(rbcTensorCopy(context.get(), to_device ? &host : &device, to_device ? &device : &host));
  }

  OwnedTensor storage_;
  rbcTensor tensor_ = {};
};

// ---- one call -----------------------------------------------------------------------------------

inline rbcResampleParams paramsOf(const ResampleCase& c) {
  const double unit = same(c.times, kI64) ? detail::kPeriod * 1e9 : detail::kPeriod;
  rbcResampleParams params = rbcResampleParamsInit();
  params.flags = c.check_times ? RBC_CHECK_TIMES : 0;
  params.method = c.method;
  params.bounds = c.bounds;
  params.fill_value = c.fill_value;
  params.max_gap = c.max_gap * unit;
  params.tolerance = c.tolerance * unit;
  return params;
}

struct ResampleRun {
  rbcStatus_t status = RBC_STATUS_SUCCESS;
  std::string message;
  ResampleOutput output;
  bool stray_writes = false;  // outside the elements of out and mask
};

// `around` is given the call, to make it and return its status.
template <class Around>
ResampleRun run(const Context& context, const ResampleInputs& in, Around&& around) {
  const bool cuda = infoOf(context).backend == RBC_BACKEND_CUDA;
  const ResampleCase& c = in.c;
  Array out = in.makeOut();
  Array mask = in.makeMask();
  const Placed values(context, in.values, cuda);
  const Placed times(context, in.times, cuda);
  const Placed query_times(context, in.query_times, cuda);
  const Placed lengths(context, in.lengths, cuda);
  const Placed query_lengths(context, in.query_lengths, cuda);
  const Placed offsets(context, in.offsets, cuda);
  const Placed placed_out(context, out, cuda);
  const Placed placed_mask(context, mask, cuda);
  rbcResampleParams params = paramsOf(c);
  if (c.lengths) params.lengths = lengths.get();
  if (c.query_lengths) params.query_lengths = query_lengths.get();
  if (c.packed) params.offsets = offsets.get();

  ResampleRun result;
  result.status = around([&] {
    return rbcResample(context.get(), values.get(), times.get(), query_times.get(),
                       placed_out.get(), c.mask ? placed_mask.get() : nullptr, &params);
  });
  if (result.status != RBC_STATUS_SUCCESS) result.message = rbcGetLastError();
  require(rbcContextSynchronize(context.get()));
  const bool guards = placed_out.fetch(context, out) && placed_mask.fetch(context, mask);
  result.stray_writes =
      !guards || !out.gapsArePoison() || (c.mask ? !mask.gapsArePoison() : !mask.untouched());
  result.output.out = out.elements();
  if (c.mask) result.output.mask = mask.elements();
  return result;
}

inline ResampleRun run(const Context& context, const ResampleInputs& in) {
  return run(context, in, [](auto&& call) { return call(); });
}

}  // namespace support
