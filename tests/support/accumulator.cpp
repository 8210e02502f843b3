// The calls of accumulators that tests make.
#include "support/accumulator.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace support {

Accumulator makeAccumulator(const Context& context, int64_t channels, std::vector<double> levels,
                            int32_t bucket_bits, int32_t ddof) {
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

Bytes exported(const Accumulator& accumulator) {
  size_t size = 0;
  require(
      rbcStatisticsAccumulatorExport(accumulator.context(), accumulator.get(), nullptr, 0, &size));
  Bytes bytes(size);
  require(rbcStatisticsAccumulatorExport(accumulator.context(), accumulator.get(), bytes.data(),
                                         size, &size));
  return bytes;
}

Accumulator imported(const Context& context, const Bytes& bytes) {
  rbcStatisticsAccumulator_t made = nullptr;
  require(rbcStatisticsAccumulatorImport(context.get(), bytes.data(), bytes.size(), &made));
  return Accumulator(context.get(), made);
}

bool nextPass(const Accumulator& accumulator) {
  int32_t more = -1;
  require(rbcStatisticsAccumulatorNextPass(accumulator.context(), accumulator.get(), &more));
  return more == 1;
}

rbcStatus_t update(const Context& context, const Accumulator& accumulator, const Array& values) {
  const bool cuda = infoOf(context).backend == RBC_BACKEND_CUDA;
  const Placed placed(context, values, cuda);
  const rbcStatus_t status = rbcStatisticsAccumulatorUpdate(
      accumulator.context(), accumulator.get(), placed.get(), nullptr);
  require(rbcContextSynchronize(context.get()));
  return status;
}

AccumulatorResult resultOf(const Accumulator& accumulator) {
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
