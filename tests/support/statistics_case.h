// Cases of rbcStatistics: parameters, arrays, and expected results.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "robocache/statistics.h"
#include "voxel_run.h"

namespace support {

enum class Numbers { kNormal, kFar, kSpike, kTiny, kEqual, kTwo, kZeros, kWide, kNotFinite, kHuge };
enum class Batch { kNone, kPadded, kLengths, kPacked, kImages };

struct StatisticsCase {
  uint64_t seed = 0;
  rbcDType dtype = kF32;
  Numbers numbers = Numbers::kNormal;
  Batch batch = Batch::kNone;
  int64_t rows = 1;  // of the batch
  int64_t samples = 10;
  int64_t channels = 3;
  Layout layout = Layout::kContiguous;
  Layout out_layout = Layout::kContiguous;
  Flush flush = Flush::kEnd;
  bool per_row = false;
  bool masked = false;
  int32_t ddof = 0;
  std::vector<double> levels = {0.01, 0.1, 0.5, 0.9, 0.99};
  std::set<std::string> without;  // omitted outputs
};

std::string describe(const StatisticsCase& c);

struct StatisticsInputs {
  StatisticsCase c;
  Array values;
  Array mask;
  Array lengths;
  Array offsets;
  std::vector<std::vector<std::vector<double>>> groups;  // [group, channel]: counted values

  std::vector<OutputSpec> outputs() const;
};

// As the library must read it: 64-bit integers rounded to f64.
double valueOf(rbcDType dtype, uint64_t bits);

StatisticsInputs inputsOf(const StatisticsCase& c);

class PlacedStatistics {
 public:
  PlacedStatistics(const Context& context, const StatisticsInputs& in)
      : PlacedStatistics(context, in, infoOf(context).backend == RBC_BACKEND_CUDA) {}
  PlacedStatistics(const PlacedStatistics&) = delete;

  rbcStatus_t call(const Context& context) const {
    return rbcStatistics(context.get(), values_.get(), &result_, &params_);
  }
  size_t workspaceSize(const Context& context) const;
  VoxelOutput fetch(const Context& context, bool* stray_writes) {
    return outputs_.fetch(context, stray_writes);
  }

 private:
  PlacedStatistics(const Context& context, const StatisticsInputs& in, bool cuda);

  Placed values_;
  PlacedOutputs outputs_;
  std::vector<double> levels_;
  int64_t extent_;
  std::optional<Placed> mask_;
  std::optional<Placed> lengths_;
  std::optional<Placed> offsets_;
  rbcTensor levels_tensor_ = {};
  rbcStatisticsParams params_ = rbcStatisticsParamsInit();
  rbcStatisticsOutputs result_ = rbcStatisticsOutputsInit();
};

inline PlacedStatistics placedOf(const Context& context, const StatisticsInputs& in) {
  return PlacedStatistics(context, in);
}

std::string firstError(const StatisticsInputs& in, const VoxelOutput& output);

}  // namespace support
