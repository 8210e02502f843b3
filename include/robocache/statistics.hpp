// Exact statistics of recordings. See robocache.hpp.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "context.hpp"
#include "statistics.h"

ROBOCACHE_NAMESPACE_BEGIN

// The options of statistics. The tensors are optional.
struct StatisticsOptions {
  bool per_row = false;           // of each row of the batch by itself
  int32_t ddof = 0;               // or 1
  std::vector<double> levels;     // of the quantiles
  std::optional<Tensor> lengths;  // [B] i32 or i64: valid samples of padded rows
  std::optional<Tensor> offsets;  // [B+1] i32 or i64: the rows of packed values
  std::optional<Tensor> mask;     // values' shape without D: bool or u8; 0 leaves a sample out
};

// What statistics writes: [D], per row [B,D]; those that are left out are not computed.
struct StatisticsResult {
  std::optional<Tensor> count;      // i64: finite values
  std::optional<Tensor> nonfinite;  // i64: the others
  std::optional<Tensor> min;        // f64, as all that follow
  std::optional<Tensor> max;
  std::optional<Tensor> mean;
  std::optional<Tensor> std;
  std::optional<Tensor> quantiles;  // [Q,D] or [B,Q,D]
};

namespace detail {

inline rbcStatisticsResult rawResult(Call* call, const StatisticsResult& result) {
  rbcStatisticsResult raw = rbcStatisticsResultInit();
  raw.count = call->out(result.count, "count");
  raw.nonfinite = call->out(result.nonfinite, "nonfinite");
  raw.min = call->out(result.min, "min");
  raw.max = call->out(result.max, "max");
  raw.mean = call->out(result.mean, "mean");
  raw.std = call->out(result.std, "std");
  raw.quantiles = call->out(result.quantiles, "quantiles");
  return raw;
}

}  // namespace detail

// Exact statistics of each channel.
//
//   values  [B,S,D]; [S,D] without batch; [N,D] packed, with offsets; [B,...,D], such as images
//
// See rbcStatistics for dtypes, rules and errors. Asynchronous on CUDA, as resample.
template <class Errors = DefaultErrors>
Returned<Errors, void> statistics(const Context& context, const Tensor& values,
                                  const StatisticsResult& result,
                                  const StatisticsOptions& options = {}) {
  detail::Call call;
  const Tensor levels(options.levels);
  rbcStatisticsParams params = rbcStatisticsParamsInit();
  params.flags = options.per_row ? RBC_STATISTICS_PER_ROW : 0;
  params.ddof = options.ddof;
  params.levels = options.levels.empty() ? nullptr : levels.get();
  params.lengths = call.in(options.lengths, "lengths");
  params.offsets = call.in(options.offsets, "offsets");
  params.mask = call.in(options.mask, "mask");
  const rbcStatisticsResult raw = detail::rawResult(&call, result);
  return call.make<Errors>(rbcStatistics, context.get(), call.in(values, "values"), &params, &raw);
}

// The options of an accumulator's update. The tensors are optional.
struct StatisticsUpdateOptions {
  std::optional<Tensor> lengths;  // as for statistics
  std::optional<Tensor> offsets;
  std::optional<Tensor> mask;
};

// Statistics of data that come in pieces: see rbcStatisticsAccumulator_t. It belongs to the context
// that it is made with, which has to live as long as it is used. Movable.
class StatisticsAccumulator {
 public:
  // See rbcStatisticsAccumulatorCreate.
  template <class Errors = DefaultErrors>
  static Returned<Errors, StatisticsAccumulator> create(const Context& context, int64_t channels,
                                                        const std::vector<double>& levels = {},
                                                        int32_t ddof = 0) {
    const Tensor tensor(levels);
    rbcStatisticsAccumulatorParams params = rbcStatisticsAccumulatorParamsInit();
    params.channels = channels;
    params.levels = levels.empty() ? nullptr : tensor.get();
    params.ddof = ddof;
    rbcStatisticsAccumulator_t made = nullptr;
    const rbcStatus_t status = rbcStatisticsAccumulatorCreate(context.get(), &params, &made);
    return Errors::tell(detail::done(status, StatisticsAccumulator(context.get(), made)));
  }
  // Of exported bytes.
  template <class Errors = DefaultErrors>
  static Returned<Errors, StatisticsAccumulator> fromBytes(const Context& context,
                                                           const std::vector<uint8_t>& bytes) {
    rbcStatisticsAccumulator_t made = nullptr;
    const rbcStatus_t status =
        rbcStatisticsAccumulatorImport(context.get(), bytes.data(), bytes.size(), &made);
    return Errors::tell(detail::done(status, StatisticsAccumulator(context.get(), made)));
  }

  // For the C interface; null if it was moved from.
  rbcStatisticsAccumulator_t get() const noexcept { return accumulator_.get(); }

  // Adds samples.
  template <class Errors = DefaultErrors>
  Returned<Errors, void> update(const Tensor& values, const StatisticsUpdateOptions& options = {}) {
    detail::Call call;
    rbcStatisticsUpdateParams params = rbcStatisticsUpdateParamsInit();
    params.lengths = call.in(options.lengths, "lengths");
    params.offsets = call.in(options.offsets, "offsets");
    params.mask = call.in(options.mask, "mask");
    return call.make<Errors>(rbcStatisticsAccumulatorUpdate, context_, get(),
                             call.in(values, "values"), &params);
  }
  // Adds the samples of another one of the context.
  template <class Errors = DefaultErrors>
  Returned<Errors, void> merge(const StatisticsAccumulator& other) {
    return check<Errors>(rbcStatisticsAccumulatorMerge(context_, get(), other.get()));
  }
  // Ends a pass over the data; whether the quantiles need one more over the same.
  template <class Errors = DefaultErrors>
  Returned<Errors, bool> nextPass() {
    int32_t more = 0;
    const rbcStatus_t status = rbcStatisticsAccumulatorNextPass(context_, get(), &more);
    return Errors::tell(detail::done(status, more != 0));
  }
  // Writes the statistics so far into tensors of the host.
  template <class Errors = DefaultErrors>
  Returned<Errors, void> result(const StatisticsResult& result) const {
    detail::Call call;
    const rbcStatisticsResult raw = detail::rawResult(&call, result);
    return call.make<Errors>(rbcStatisticsAccumulatorResult, context_, get(), &raw);
  }
  // The state, for fromBytes in any process, on any device and machine.
  template <class Errors = DefaultErrors>
  Returned<Errors, std::vector<uint8_t>> toBytes() const {
    size_t size = 0;
    std::vector<uint8_t> bytes;
    rbcStatus_t status = rbcStatisticsAccumulatorExport(context_, get(), nullptr, 0, &size);
    if (status == RBC_STATUS_SUCCESS) {
      bytes.resize(size);
      status = rbcStatisticsAccumulatorExport(context_, get(), bytes.data(), size, &size);
    }
    return Errors::tell(detail::done(status, std::move(bytes)));
  }

 private:
  struct Destroy {
    void operator()(rbcStatisticsAccumulator_t accumulator) const noexcept {
      rbcStatisticsAccumulatorDestroy(accumulator);
    }
  };

  StatisticsAccumulator(rbcContext_t context, rbcStatisticsAccumulator_t accumulator) noexcept
      : context_(context), accumulator_(accumulator) {}

  rbcContext_t context_;
  std::unique_ptr<rbcStatisticsAccumulator, Destroy> accumulator_;
};

ROBOCACHE_NAMESPACE_END
