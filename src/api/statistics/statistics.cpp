// rbcStatistics: the arguments of a call as a StatisticsProblem.

#include "robocache/statistics.h"

#include <cinttypes>

#include "fuse/sample_builder.h"
#include "params.h"
#include "runtime/dtype_checks.h"
#include "status.h"

namespace rbc {

template <>
inline constexpr KnownFlags kKnownFlags<rbcStatisticsParams> = {RBC_STATISTICS_FLAG_PER_ROW,
                                                                "0 or RBC_STATISTICS_FLAG_PER_ROW"};

namespace {

constexpr int64_t kMaxResults = int64_t{1} << 56;

struct StatisticsArguments {
  const rbcTensor* values;
  const rbcStatisticsOutputs* outputs;
  const rbcStatisticsParams* params;
};

class StatisticsCall : public SampleBuilder {
 public:
  static constexpr const char* kOperation = "statistics";

  StatisticsCall(const rbcContext& context, const StatisticsArguments& call);
  const StatisticsProblem& problem() const { return problem_; }
  // Outputs are written even without samples.
  bool empty() const { return problem_.groups() * problem_.samples.channels == 0; }

 private:
  Output<2> output(const rbcOutput* tensor, const char* name, DType dtype);
  Output<3> quantiles(const rbcOutput* tensor);

  StatisticsProblem problem_ = {};
};

StatisticsCall::StatisticsCall(const rbcContext& context, const StatisticsArguments& call)
    : SampleBuilder(context, problem_.samples) {
  const rbcStatisticsParams params = readParams(call.params, rbcStatisticsParamsInit(), "params");
  if (call.outputs == nullptr) fail(RBC_STATUS_INVALID_ARGUMENT, "outputs: is null");
  const rbcStatisticsOutputs outputs =
      readParams(call.outputs, rbcStatisticsOutputsInit(), "outputs");
  StatisticsProblem& p = problem_;
  p.ddof = checkedDdof(params.ddof);
  p.num_levels = readLevels(params.levels, p.levels);
  p.per_row = (params.flags & RBC_STATISTICS_FLAG_PER_ROW) != 0;
  addSamples({call.values, params.lengths, params.batch_offsets, params.sample_mask}, p.per_row);
  if (p.per_row && !batched()) {
    fail(RBC_STATUS_INVALID_ARGUMENT,
         "flags: RBC_STATISTICS_FLAG_PER_ROW is set, expected values [B,S,D] or batch_offsets");
  }
  int64_t results = 0;
  if (__builtin_mul_overflow(p.groups(), p.samples.channels, &results) || results > kMaxResults) {
    fail(RBC_STATUS_SHAPE_MISMATCH,
         "values: %" PRId64 " groups of %" PRId64 " channels are more than 2^56 results",
         p.groups(), p.samples.channels);
  }
  p.count = output(outputs.count, "count", DType::I64);
  p.nonfinite = output(outputs.nonfinite, "nonfinite", DType::I64);
  p.min = output(outputs.min, "min", DType::F64);
  p.max = output(outputs.max, "max", DType::F64);
  p.mean = output(outputs.mean, "mean", DType::F64);
  p.std = output(outputs.std, "std", DType::F64);
  if (outputs.quantiles != nullptr && params.levels == nullptr) {
    fail(RBC_STATUS_INVALID_ARGUMENT, "quantiles: is set, expected null without levels");
  }
  p.quantiles = quantiles(outputs.quantiles);
  if (p.quantiles.data == nullptr) p.num_levels = 0;
}

Output<2> StatisticsCall::output(const rbcOutput* tensor, const char* name, DType dtype) {
  if (tensor == nullptr) return {};
  const View& view = operands.out(tensor, name);
  const int64_t shape[] = {problem_.groups(), problem_.samples.channels};
  const int first = problem_.per_row ? 0 : 1;
  requireShape(view, name, 2 - first, shape + first);
  requireDType(view, name, dtype);
  return {view.data, {first == 0 ? view.strides[0] : 0, view.strides[1 - first]}, dtype};
}

Output<3> StatisticsCall::quantiles(const rbcOutput* tensor) {
  if (tensor == nullptr) return {};
  const View& view = operands.out(tensor, "quantiles");
  const int64_t shape[] = {problem_.groups(), problem_.num_levels, problem_.samples.channels};
  const int first = problem_.per_row ? 0 : 1;
  requireShape(view, "quantiles", 3 - first, shape + first);
  requireDType(view, "quantiles", DType::F64);
  return {view.data,
          {first == 0 ? view.strides[0] : 0, view.strides[1 - first], view.strides[2 - first]},
          view.dtype};
}

}  // namespace
}  // namespace rbc

rbcStatus_t rbcStatistics(rbcContext_t context, const rbcTensor* values,
                          const rbcStatisticsOutputs* outputs, const rbcStatisticsParams* params) {
  return rbc::runCall<rbc::StatisticsCall>(context,
                                           rbc::StatisticsArguments{values, outputs, params});
}

rbcStatus_t rbcStatisticsWorkspaceSize(rbcContext_t context, const rbcTensor* values,
                                       const rbcStatisticsOutputs* outputs,
                                       const rbcStatisticsParams* params, size_t* bytes) {
  return rbc::sizeCall<rbc::StatisticsCall>(
      context, rbc::StatisticsArguments{values, outputs, params}, bytes);
}
