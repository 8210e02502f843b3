// Accumulators of statistics for tests: objects, and their results as vectors.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "robocache/statistics.h"
#include "run.h"
#include "statistics_reference.h"

namespace support {

// An accumulator, and the context that it belongs to.
class Accumulator {
 public:
  Accumulator() = default;
  Accumulator(rbcContext_t context, rbcStatisticsAccumulator_t accumulator)
      : context_(context), accumulator_(accumulator) {}
  Accumulator(Accumulator&& other) noexcept
      : context_(other.context_), accumulator_(std::exchange(other.accumulator_, nullptr)) {}
  Accumulator& operator=(Accumulator&&) = delete;
  ~Accumulator() { rbcStatisticsAccumulatorDestroy(accumulator_); }

  rbcStatisticsAccumulator_t get() const { return accumulator_; }
  rbcContext_t context() const { return context_; }

 private:
  rbcContext_t context_ = nullptr;
  rbcStatisticsAccumulator_t accumulator_ = nullptr;
};
using Bytes = std::vector<uint8_t>;

inline constexpr rbcDevice kHostDevice = {RBC_DEVICE_CPU, 0};

inline rbcTensor vectorTensor(const void* data, rbcDType dtype, int64_t* extent) {
  return {const_cast<void*>(data), kHostDevice, 1, dtype, extent, nullptr, 0};
}

inline Accumulator makeAccumulator(const Context& context, int64_t channels,
                                   std::vector<double> levels, int32_t bucket_bits = 0,
                                   int32_t ddof = 0) {
  auto extent = static_cast<int64_t>(levels.size());
  const rbcTensor tensor = vectorTensor(levels.data(), kF64, &extent);
  rbcStatisticsAccumulatorParams params = rbcStatisticsAccumulatorParamsInit();
  params.channels = channels;
  params.levels = levels.empty() ? nullptr : &tensor;
  params.bucket_bits = bucket_bits;
  params.ddof = ddof;
  rbcStatisticsAccumulator_t made = nullptr;
  require(rbcStatisticsAccumulatorCreate(context.get(), &params, &made));
  return Accumulator(context.get(), made);
}

inline Bytes exported(const Accumulator& accumulator) {
  size_t size = 0;
  require(
      rbcStatisticsAccumulatorExport(accumulator.context(), accumulator.get(), nullptr, 0, &size));
  Bytes bytes(size);
  require(rbcStatisticsAccumulatorExport(accumulator.context(), accumulator.get(), bytes.data(),
                                         size, &size));
  return bytes;
}

inline Accumulator imported(const Context& context, const Bytes& bytes) {
  rbcStatisticsAccumulator_t made = nullptr;
  require(rbcStatisticsAccumulatorImport(context.get(), bytes.data(), bytes.size(), &made));
  return Accumulator(context.get(), made);
}

inline bool nextPass(const Accumulator& accumulator) {
  int32_t more = -1;
  require(rbcStatisticsAccumulatorNextPass(accumulator.context(), accumulator.get(), &more));
  return more == 1;
}

// On the context's device.
inline rbcStatus_t update(const Context& context, const Accumulator& accumulator,
                          const Array& values) {
  const bool cuda = infoOf(context).backend == RBC_BACKEND_CUDA;
  const Placed placed(context, values, cuda);
  const rbcStatus_t status = rbcStatisticsAccumulatorUpdate(
      accumulator.context(), accumulator.get(), placed.get(), nullptr);
  require(rbcContextSynchronize(context.get()));
  return status;
}

struct AccumulatorResult {
  std::vector<int64_t> count, nonfinite;
  std::vector<double> min, max, mean, std, quantiles;  // the last [level, channel]
  rbcStatus_t status;
};

inline AccumulatorResult resultOf(const Accumulator& accumulator) {
  rbcStatisticsAccumulatorInfo info = rbcStatisticsAccumulatorInfoInit();
  require(rbcStatisticsAccumulatorGetInfo(accumulator.get(), &info));
  int64_t shape[] = {info.num_levels, info.channels};
  const auto channels = static_cast<size_t>(info.channels);
  AccumulatorResult r;
  for (auto* counts : {&r.count, &r.nonfinite}) counts->resize(channels);
  for (auto* numbers : {&r.min, &r.max, &r.mean, &r.std}) numbers->resize(channels);
  r.quantiles.resize(channels * static_cast<size_t>(info.num_levels));
  const rbcTensor count = vectorTensor(r.count.data(), kI64, shape + 1);
  const rbcTensor nonfinite = vectorTensor(r.nonfinite.data(), kI64, shape + 1);
  const rbcTensor min = vectorTensor(r.min.data(), kF64, shape + 1);
  const rbcTensor max = vectorTensor(r.max.data(), kF64, shape + 1);
  const rbcTensor mean = vectorTensor(r.mean.data(), kF64, shape + 1);
  const rbcTensor std = vectorTensor(r.std.data(), kF64, shape + 1);
  rbcTensor quantiles = vectorTensor(r.quantiles.data(), kF64, shape);
  quantiles.ndim = 2;
  rbcStatisticsResult result = rbcStatisticsResultInit();
  result.count = &count;
  result.nonfinite = &nonfinite;
  result.min = &min;
  result.max = &max;
  result.mean = &mean;
  result.std = &std;
  result.quantiles = &quantiles;
  r.status = rbcStatisticsAccumulatorResult(accumulator.context(), accumulator.get(), &result);
  return r;
}

}  // namespace support
