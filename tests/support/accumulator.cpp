// Calls of accumulators, for tests.
#include "support/accumulator.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace support {

Accumulator makeAccumulator(const Context& context, int64_t channels, std::vector<double> levels,
                            int32_t bucket_bits, int32_t ddof) {
  auto extent = static_cast<int64_t>(levels.size());
  const rbcTensor tensor = vectorTensor(levels.data(), kF64, &extent);
  rbcAccumulatorParams params = rbcAccumulatorParamsInit();
  params.num_channels = channels;
  params.levels = levels.empty() ? nullptr : &tensor;
  params.bucket_bits = bucket_bits;
  params.ddof = ddof;
  rbcAccumulator_t made = nullptr;
  require(rbcAccumulatorCreate(context.get(), &params, &made));
  return Accumulator(made);
}

Bytes exported(const Accumulator& accumulator) {
  size_t size = 0;
  require(rbcAccumulatorExport(accumulator.get(), nullptr, 0, &size));
  Bytes bytes(size);
  require(rbcAccumulatorExport(accumulator.get(), bytes.data(), size, &size));
  return bytes;
}

Accumulator imported(const Context& context, const Bytes& bytes) {
  rbcAccumulator_t made = nullptr;
  require(rbcAccumulatorImport(context.get(), bytes.data(), bytes.size(), &made));
  return Accumulator(made);
}

bool nextPass(const Accumulator& accumulator) {
  int32_t more = -1;
  require(rbcAccumulatorNextPass(accumulator.get(), &more));
  return more == 1;
}

rbcStatus_t update(const Context& context, const Accumulator& accumulator, const Array& values) {
  const bool cuda = infoOf(context).backend == RBC_BACKEND_CUDA;
  const Placed placed(context, values, cuda);
  const rbcStatus_t status = rbcAccumulatorUpdate(accumulator.get(), placed.get(), nullptr);
  require(rbcContextSynchronize(context.get()));
  return status;
}

AccumulatorResult resultOf(const Accumulator& accumulator) {
  rbcAccumulatorInfo info = rbcAccumulatorInfoInit();
  require(rbcAccumulatorGetInfo(accumulator.get(), &info));
  int64_t shape[] = {info.num_levels, info.num_channels};
  const auto channels = static_cast<size_t>(info.num_channels);
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
  rbcStatisticsOutputs result = rbcStatisticsOutputsInit();
  result.count = &count;
  result.nonfinite = &nonfinite;
  result.min = &min;
  result.max = &max;
  result.mean = &mean;
  result.std = &std;
  result.quantiles = &quantiles;
  r.status = rbcAccumulatorGetResult(accumulator.get(), &result);
  return r;
}

}  // namespace support
