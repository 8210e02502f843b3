// Reduces the features of a voxel's points to one row.
#pragma once

#include <cstddef>

#include "points/point_rows.h"
#include "points/sum_rows.h"
#include "runtime/cpu_state.h"
#include "voxel_problem.h"

namespace rbc::cpu {

// The destination of a row of features.
struct FeatureRow {
  std::byte* data;
  int64_t stride;  // in elements
};

// Writes rows of any float dtype.
class FeatureReducer {
 public:
  FeatureReducer(const CpuState& state, const PointClouds& points, const Features& features,
                 Reduction mode, DType out);

  // Prefetches a point's row. Must be inlined: GCC considers a function that only prefetches to
  // have no effect, and drops calls to it.
  __attribute__((always_inline)) void prefetch(int32_t point) const {
    const std::byte* row = rows_.data + rows_.offsets[point] * rows_.size;
    __builtin_prefetch(row);
    __builtin_prefetch(row + rows_.last);
  }

  // Reduces all features of `count` points.
  void reduce(const int32_t* points, int64_t count, const FeatureRow& out) const {
    if (sum_rows_ != nullptr && count <= kMaxSummedRows && (out.stride == 1 || features_ == 1)) {
      const SummedRows rows = {reinterpret_cast<const float*>(rows_.data), rows_.offsets, points,
                               count, features_};
      const bool mean = mode_ == Reduction::kMean;
      if (sum_rows_(rows, mean, reinterpret_cast<float*>(out.data))) return;
    }
    reduceAny(points, count, out);
  }
  // Copies the features of some points unchanged; rows are `stride` elements apart.
  void copy(const int32_t* points, int64_t count, const FeatureRow& out, int64_t stride) const {
    copy_(rows_, {points, count, 0, features_}, out, stride);
  }

 private:
  // The features' rows; in bytes, except offsets and stride.
  struct Rows {
    const ThreadPool& pool;
    const std::byte* data;
    PointRows offsets;
    int64_t stride;  // from feature to feature
    int64_t size;    // of a feature
    int64_t last;    // from the first feature to the last
  };
  // Some points and some of their features.
  struct Block {
    const int32_t* points;
    int64_t count;
    int64_t first_feature;
    int64_t features;
  };
  // Reduces into doubles, which hold the results exactly. Returns false, without results, if the
  // call is interrupted.
  using Reduce = bool (*)(const Rows& rows, const Block& block, Reduction mode, double* results);
  using Write = void (*)(const double* results, int64_t count, std::byte* out, int64_t stride);
  using Copy = void (*)(const Rows& rows, const Block& block, const FeatureRow& out,
                        int64_t stride);

  void reduceAny(const int32_t* points, int64_t count, const FeatureRow& out) const;
  template <class In>
  static const In* rowOf(const Rows& rows, const Block& block, int64_t i);
  template <class In>
  static bool sum(const Rows& rows, const Block& block, Reduction mode, double* results);
  template <class In>
  static bool extreme(const Rows& rows, const Block& block, Reduction mode, double* results);
  template <class In, class Out>
  static void copyRows(const Rows& rows, const Block& block, const FeatureRow& out, int64_t stride);
  template <class Out>
  static void write(const double* results, int64_t count, std::byte* out, int64_t stride);

  Rows rows_;
  int64_t features_;
  Reduction mode_;
  int64_t out_size_;
  Reduce reduce_;
  Write write_;
  Copy copy_;
  SumRows sum_rows_ = nullptr;  // from f32 to f32
};

}  // namespace rbc::cpu
