// rbcStatistics, rbcTensorCopy and rbcTensorGetInfo.
#include <algorithm>
#include <cstring>

#include "fuzz/bind.h"
#include "fuzz/calls.h"
#include "fuzz/fill.h"
#include "fuzz/machine.h"
#include "statistics/large_group.h"

namespace fuzz {
namespace {

// Makes the sample for brackets unlike the other values, so that quantiles must be searched for.
void mislead(Call& call, Tensor& values, double lure) {
  const int64_t channels = values.extent(values.raw.ndim - 1);
  const int64_t samples = channels > 0 ? values.count() / channels : 0;
  if (samples == 0) return;
  const int64_t size = rbc::cpu::sampleSize(samples);
  std::vector<bool> chosen(static_cast<size_t>(samples));
  for (int64_t i = 0; i < size; ++i) {
    chosen[static_cast<size_t>(rbc::cpu::samplePlace(i, size, samples))] = true;
  }
  fillWhere(call, values, lure,
            [&](int64_t n) { return chosen[static_cast<size_t>(n / channels)]; });
}

}  // namespace

static std::unique_ptr<Call> makeStatistics(Choices& choices) {
  auto call = std::make_unique<Call>("rbcStatistics");
  const int64_t kind = choices.below(4);  // [S,D], [B,S,D], packed, [B,...,D]
  const int64_t batch = kind == 0 ? 1 : choices.chance(8) ? 0 : choices.between(1, 4);
  // Large groups use a different algorithm for quantiles.
  const bool large = kind < 2 && choices.chance(2);
  const int64_t samples = large ? choices.between(5000, 40000) : anyExtent(choices, 60);
  const int64_t channels = large ? choices.between(1, 2) : anyExtent(choices, 6);
  std::vector<int64_t> rows = {samples};
  if (kind == 1 || kind == 3) rows.insert(rows.begin(), batch);
  if (kind == 3) rows.push_back(choices.below(4));
  if (kind == 3 && choices.chance(30)) rows.push_back(choices.between(1, 2));
  const bool integers = choices.chance(35);
  const rbcDType dtype = integers ? choices.pick(support::kIntegerDTypes) : anyFloat(choices);
  std::vector<int64_t> shape = rows;
  shape.push_back(channels);
  Tensor* values = call->add(choices, "values", dtype, shape, Role::kInput);
  if (large && !integers && choices.chance(50)) {  // many values share a bracket
    fillIntegers(*call, *values, choices, 0, choices.pick({1, 3, 100, 10000}));
  } else if (integers || choices.chance(20)) {
    fillBits(*call, *values, choices);
  } else {
    fillReals(*call, *values, choices, -1, choices.pick({1.0, 1.0, 1e-6, 1e6}));
  }

  rbcStatisticsParams params = rbcStatisticsParamsInit();
  const bool per_row = kind != 0 && choices.chance(40);
  if (per_row) params.flags = RBC_STATISTICS_FLAG_PER_ROW;
  params.ddof = static_cast<int32_t>(choices.below(2));
  if (kind == 2) {
    Tensor* t = call->add(choices, "batch_offsets", anyIndex(choices), {batch + 1}, Role::kInput);
    fillOffsets(*call, *t, choices, samples);
    params.batch_offsets = t->hold();
  } else if (kind == 1 && choices.chance(40)) {
    Tensor* t = call->add(choices, "lengths", anyIndex(choices), {batch}, Role::kInput);
    fillIntegers(*call, *t, choices, 0, samples);
    params.lengths = t->hold();
  }
  if (choices.chance(30)) {
    Tensor* t = call->add(choices, "sample_mask", anyFlag(choices), rows, Role::kInput);
    fillMask(*call, *t, choices);
    params.sample_mask = t->hold();
  }
  const int64_t levels = choices.chance(60) ? choices.below(choices.chance(5) ? 65 : 6) : 0;
  if (levels > 0) {
    Tensor* t = call->add(choices, "levels", support::kF64, {levels}, Role::kInput, Where::kHost);
    fillReals(*call, *t, choices, 0, 1);
    if (choices.chance(80)) fillConstant(*call, *t, choices.pick({0.0, 0.5, 1.0, 0.99, 1.0 / 3}));
    params.levels = t->hold();
  }
  rbcStatisticsOutputs result = rbcStatisticsOutputsInit();
  const auto output = [&](const char* name, rbcDType type, bool quantiles = false) {
    std::vector<int64_t> of;
    if (per_row) of.push_back(batch);
    if (quantiles) of.push_back(levels);
    of.push_back(channels);
    return call->add(choices, name, type, of, Role::kOutput)->hold();
  };
  if (choices.chance(70)) result.count = output("count", support::kI64);
  if (choices.chance(50)) result.nonfinite = output("nonfinite", support::kI64);
  if (choices.chance(50)) result.min = output("min", support::kF64);
  if (choices.chance(50)) result.max = output("max", support::kF64);
  if (choices.chance(50)) result.mean = output("mean", support::kF64);
  if (choices.chance(50)) result.std = output("std", support::kF64);
  if (levels > 0 && choices.chance(90)) {
    result.quantiles = output("quantiles", support::kF64, true);
  }
  Struct* p = call->add("rbcStatisticsParams", &params);
  Struct* r = call->add("rbcStatisticsOutputs", &result);
  // Not with more, since each quantile is then searched for with several passes over all values.
  if (!integers && samples > 4096 && choices.chance(60) && values->count() < 1 << 17) {
    mislead(*call, *values, choices.pick({-1.0, 1.0}) * choices.pick({5.0, 1e4}));
  }
  Operation<rbcStatistics, rbcStatisticsWorkspaceSize>::bind(call.get(), values, r, p);
  return call;
}
const Maker kStatistics(8, makeStatistics);

static std::unique_ptr<Call> makeTensorCopy(Choices& choices) {
  auto call = std::make_unique<Call>("rbcTensorCopy");
  std::vector<int64_t> shape(static_cast<size_t>(choices.below(6)));
  for (int64_t& extent : shape) extent = choices.chance(5) ? 0 : choices.between(1, 6);
  const rbcDType dtype =
      choices.chance(50) ? choices.pick(support::kIntegerDTypes) : anyFloat(choices);
  Tensor* source = call->add(choices, "source", dtype, shape, Role::kInput);
  fillBits(*call, *source, choices);
  Tensor* destination = call->add(choices, "destination", dtype, shape, Role::kOutput);
  call->run = [=](rbcContext_t context, const Handles&) {
    return rbcTensorCopy(context, source->get(), destination->get());
  };
  return call;
}
const Maker kTensorCopy(11, makeTensorCopy);

static std::unique_ptr<Call> makeTensorNormalize(Choices& choices) {
  auto call = std::make_unique<Call>("rbcTensorGetInfo");
  std::vector<int64_t> shape(static_cast<size_t>(choices.below(9)));
  for (int64_t& extent : shape) extent = choices.below(4);
  const rbcDType dtype =
      choices.chance(50) ? choices.pick(support::kIntegerDTypes) : anyFloat(choices);
  Tensor* tensor = call->add(choices, "tensor", dtype, shape, Role::kInput);
  call->run = [=](rbcContext_t, const Handles&) {
    rbcTensorInfo info = rbcTensorInfoInit();
    std::memset(info.shape, 0x3C, sizeof info.shape);
    const rbcTensorInfo before = info;
    const rbcStatus_t status = rbcTensorGetInfo(tensor->get(), &info);
    if (status != RBC_STATUS_SUCCESS && std::memcmp(&info, &before, sizeof info) != 0) {
      throw Defect("rbcTensorGetInfo: an error wrote to info");
    }
    return status;
  };
  return call;
}
const Maker kTensorNormalize(12, makeTensorNormalize);

}  // namespace fuzz
