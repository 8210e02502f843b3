// Exact statistics of recordings. See robocache.hpp.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
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
  bool per_row = false;               // separately for each row of the batch
  int32_t ddof = 0;                   // the variance is divided by n - ddof; 0 or 1
  std::vector<double> levels;         // of the quantiles, 0 .. 1
  std::optional<Tensor> lengths;      // [B] i32 or i64: valid samples of padded rows
  std::optional<Tensor> sample_mask;  // the shape of values without D, bool or u8; 0 skips a sample
  std::optional<Tensor> batch_offsets;  // [B+1] i32 or i64: the rows of packed values
};

// The outputs of statistics: [D], or [B,D] per row. A tensor that is not set is not computed.
struct StatisticsOutputs {
  std::optional<Tensor> count;      // i64: finite values
  std::optional<Tensor> nonfinite;  // i64: NaN and infinities
  std::optional<Tensor> min;        // f64, also the following ones
  std::optional<Tensor> max;
  std::optional<Tensor> mean;
  std::optional<Tensor> std;
  std::optional<Tensor> quantiles;  // [Q,D] or [B,Q,D]
};

namespace detail {

inline rbcStatisticsOutputs rawOutputs(Call* call, const StatisticsOutputs& outputs) {
  rbcStatisticsOutputs raw = rbcStatisticsOutputsInit();
  raw.count = call->out(outputs.count, "count");
  raw.nonfinite = call->out(outputs.nonfinite, "nonfinite");
  raw.min = call->out(outputs.min, "min");
  raw.max = call->out(outputs.max, "max");
  raw.mean = call->out(outputs.mean, "mean");
  raw.std = call->out(outputs.std, "std");
  raw.quantiles = call->out(outputs.quantiles, "quantiles");
  return raw;
}

// Returns finish(call, arguments of rbcStatistics...).
template <class Finish>
auto statistics(const Finish& finish, const Context& context, const Tensor& values,
                const StatisticsOutputs& outputs, const StatisticsOptions& options) {
  Call call;
  const Tensor levels(options.levels);
  rbcStatisticsParams params = rbcStatisticsParamsInit();
  params.flags = options.per_row ? RBC_STATISTICS_FLAG_PER_ROW : 0;
  params.ddof = options.ddof;
  params.levels = options.levels.empty() ? nullptr : levels.get();
  params.lengths = call.in(options.lengths, "lengths");
  params.batch_offsets = call.in(options.batch_offsets, "batch_offsets");
  params.sample_mask = call.in(options.sample_mask, "sample_mask");
  const rbcStatisticsOutputs raw = rawOutputs(&call, outputs);
  return finish(call, context.get(), call.in(values, "values"), &raw, &params);
}

}  // namespace detail

// Computes exact statistics of each channel.
//
//   values  [B,S,D]; [S,D] without batch; [N,D] packed, with batch_offsets; [B,...,D], such as
//           images
//
// See rbcStatistics for dtypes, rules and errors. Asynchronous on CUDA, as resample.
template <class Errors = DefaultErrors>
Returned<Errors, void> statistics(const Context& context, const Tensor& values,
                                  const StatisticsOutputs& outputs,
                                  const StatisticsOptions& options = {}) {
  return detail::statistics(detail::run<Errors>(rbcStatistics), context, values, outputs, options);
}

// Returns the workspace size in bytes of this call of statistics, for Context::reserve.
template <class Errors = DefaultErrors>
Returned<Errors, size_t> statisticsWorkspaceSize(const Context& context, const Tensor& values,
                                                 const StatisticsOutputs& outputs,
                                                 const StatisticsOptions& options = {}) {
  return detail::statistics(detail::measure<Errors>(rbcStatisticsWorkspaceSize), context, values,
                            outputs, options);
}

// The options of an accumulator's update. The tensors are optional.
struct AccumulatorUpdateOptions {
  std::optional<Tensor> lengths;  // as for statistics
  std::optional<Tensor> sample_mask;
  std::optional<Tensor> batch_offsets;
};

// The options of an accumulator.
struct AccumulatorOptions {
  std::vector<double> levels = {};  // of quantiles, 0 .. 1
  int32_t ddof = 0;                 // 0 or 1, as for statistics
  int32_t bucket_bits = 0;          // 8 to 20; 0: 16
  std::optional<rbcDType> dtype;    // of all values; not set: the dtype of the first update
};

// Statistics of data that arrives in pieces: see rbcAccumulator_t. It keeps its context alive.
// Movable.
class Accumulator {
 public:
  // Creates an empty accumulator: see rbcAccumulatorCreate.
  template <class Errors = DefaultErrors>
  static Returned<Errors, Accumulator> create(const Context& context, int64_t num_channels,
                                              const AccumulatorOptions& options = {}) {
    const Tensor levels(options.levels);
    rbcAccumulatorParams params = rbcAccumulatorParamsInit();
    params.num_channels = num_channels;
    params.levels = options.levels.empty() ? nullptr : levels.get();
    params.ddof = options.ddof;
    params.bucket_bits = options.bucket_bits;
    if (options.dtype) params.dtype = *options.dtype;
    rbcAccumulator_t made = nullptr;
    const rbcStatus_t status = rbcAccumulatorCreate(context.get(), &params, &made);
    return Errors::report(detail::done(status, Accumulator(made)));
  }
  // Creates an accumulator from the bytes of toBytes(). Synchronizes.
  template <class Errors = DefaultErrors>
  static Returned<Errors, Accumulator> fromBytes(const Context& context,
                                                 const std::vector<uint8_t>& bytes) {
    rbcAccumulator_t made = nullptr;
    const rbcStatus_t status =
        rbcAccumulatorImport(context.get(), bytes.data(), bytes.size(), &made);
    return Errors::report(detail::done(status, Accumulator(made)));
  }

  // The handle for the C interface; null if this object was moved from.
  rbcAccumulator_t get() const noexcept { return accumulator_.get(); }

  // Adds samples: see rbcAccumulatorUpdate.
  template <class Errors = DefaultErrors>
  Returned<Errors, void> update(const Tensor& values,
                                const AccumulatorUpdateOptions& options = {}) {
    return finishUpdate(detail::run<Errors>(rbcAccumulatorUpdate), values, options);
  }
  // Returns the workspace size in bytes of this update, for Context::reserve.
  template <class Errors = DefaultErrors>
  Returned<Errors, size_t> updateWorkspaceSize(const Tensor& values,
                                               const AccumulatorUpdateOptions& options = {}) {
    return finishUpdate(detail::measure<Errors>(rbcAccumulatorUpdateWorkspaceSize), values,
                        options);
  }
  // Adds the samples of another accumulator of the same context.
  template <class Errors = DefaultErrors>
  Returned<Errors, void> merge(const Accumulator& other) {
    return check<Errors>(rbcAccumulatorMerge(get(), other.get()));
  }
  // Ends a pass over the data. Returns whether the quantiles need another pass over the same data.
  // Synchronizes.
  template <class Errors = DefaultErrors>
  Returned<Errors, bool> nextPass() {
    int32_t more = 0;
    const rbcStatus_t status = rbcAccumulatorNextPass(get(), &more);
    return Errors::report(detail::done(status, more != 0));
  }
  // Writes the statistics so far into tensors in host memory. Synchronizes.
  template <class Errors = DefaultErrors>
  Returned<Errors, void> result(const StatisticsOutputs& outputs) const {
    detail::Call call;
    const rbcStatisticsOutputs raw = detail::rawOutputs(&call, outputs);
    return call.make<Errors>(rbcAccumulatorGetResult, get(), &raw);
  }
  // Returns the number of channels, the pass and the settings.
  template <class Errors = DefaultErrors>
  Returned<Errors, rbcAccumulatorInfo> info() const {
    rbcAccumulatorInfo info = rbcAccumulatorInfoInit();
    const rbcStatus_t status = rbcAccumulatorGetInfo(get(), &info);
    return Errors::report(detail::done(status, info));
  }
  // Returns the levels of the quantiles.
  template <class Errors = DefaultErrors>
  Returned<Errors, std::vector<double>> levels() const {
    rbcAccumulatorInfo info = rbcAccumulatorInfoInit();
    std::vector<double> levels;
    rbcStatus_t status = rbcAccumulatorGetInfo(get(), &info);
    if (status == RBC_STATUS_SUCCESS) {
      levels.resize(static_cast<size_t>(info.num_levels));
      status = rbcAccumulatorGetLevels(get(), levels.data(), levels.size());
    }
    return Errors::report(detail::done(status, std::move(levels)));
  }
  // Returns the state, for fromBytes() in any process, on any device and machine. Synchronizes.
  template <class Errors = DefaultErrors>
  Returned<Errors, std::vector<uint8_t>> toBytes() const {
    size_t size = 0;
    std::vector<uint8_t> bytes;
    rbcStatus_t status = rbcAccumulatorExport(get(), nullptr, 0, &size);
    if (status == RBC_STATUS_SUCCESS) {
      bytes.resize(size);
      status = rbcAccumulatorExport(get(), bytes.data(), size, &size);
    }
    return Errors::report(detail::done(status, std::move(bytes)));
  }

 private:
  struct Destroy {
    void operator()(rbcAccumulator_t accumulator) const noexcept {
      rbcAccumulatorDestroy(accumulator);
    }
  };

  template <class Finish>
  auto finishUpdate(const Finish& finish, const Tensor& values,
                    const AccumulatorUpdateOptions& options) {
    detail::Call call;
    rbcAccumulatorUpdateParams params = rbcAccumulatorUpdateParamsInit();
    params.lengths = call.in(options.lengths, "lengths");
    params.batch_offsets = call.in(options.batch_offsets, "batch_offsets");
    params.sample_mask = call.in(options.sample_mask, "sample_mask");
    return finish(call, get(), call.in(values, "values"), &params);
  }

  explicit Accumulator(rbcAccumulator_t accumulator) noexcept : accumulator_(accumulator) {}

  std::unique_ptr<rbcAccumulator, Destroy> accumulator_;
};

ROBOCACHE_NAMESPACE_END
