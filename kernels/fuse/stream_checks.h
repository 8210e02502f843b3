// Requirements of the fusion kernels: short indices, aligned vectors, similar streams.
#pragma once

#include "fuse/fuse_rows_instances.h"
#include "fuse_problem.h"
#include "runtime/suits_vecs.h"

namespace rbc::cuda {

// ---- Extents and strides ------------------------------------------------------------------------

// Samples per query, an argument of prefetchTimes(); 0: prefetching does not help. If a sample has
// many queries, its times are in the caches soon enough.
inline float paceOf(const FuseProblem& p, const FuseStream& s) {
  constexpr int64_t kMaxQueries = 64;
  if (s.offsets.data != nullptr || (p.queries - 1) / kMaxQueries >= s.samples) return 0;
  return static_cast<float>(s.samples) / static_cast<float>(p.queries);
}

// Whether Index may be int32_t, with a margin.
inline bool suitsShortIndexes(const FuseProblem& p, const FuseStream& s) {
  constexpr int64_t kFew = 1 << 30;
  const auto short_step = [](int64_t stride, int64_t size) {
    return stride < kFew / size && stride > -kFew / size;
  };
  return short_step(s.times_stride[1], sizeOf(p.time_dtype)) &&
         short_step(p.query_stride[1], sizeOf(p.time_dtype)) &&
         short_step(s.values_stride[1], sizeOf(s.values_dtype)) &&
         short_step(p.out_stride[1], sizeOf(p.out_dtype)) && short_step(p.valid_stride[1], 1) &&
         short_step(s.sample_mask_stride[1], 1) && s.samples < kFew && p.channels < kFew &&
         p.batch < kFew && p.queries < kFew && p.batch * p.queries < kFew;
}

// ---- Whether channels can be read and written in vectors ----------------------------------------

// Whether the rows of a segment, both of values and of out, suit vectors of `count` channels.
inline bool suitsVecs(const FuseProblem& p, const FuseStream& s, const ChannelSegment& segment,
                      int count) {
  const auto rows = [&](const void* data, int64_t first, const int64_t(&stride)[3], DType dtype) {
    const int64_t size = sizeOf(dtype);
    return stride[2] == 1 && suitsVecs(static_cast<const char*>(data) + first * size,
                                       {stride[0], stride[1]}, size, count);
  };
  return isMultiple(segment.count, count) &&
         rows(s.values, segment.begin, s.values_stride, s.values_dtype) &&
         rows(p.out, s.out_begin + segment.begin, p.out_stride, p.out_dtype);
}

// Whether shift or scale suits vectors of four.
inline bool suitsVecs(const RealArray& array) {
  return array.data == nullptr ||
         (array.stride == 1 && !array.is_64 && suitsVecs(array.data, {0}, sizeof(float), 4));
}

// ---- Whether a kernel can process streams together ----------------------------------------------

// The kind that a stream needs.
inline rows::Kind kindOf(const FuseStream& s, Method method) {
  if (takesFour(method)) return rows::Kind::kFourRows;
  if (method == Method::kSlerp) return rows::Kind::kQuaternions;
  const bool affine = s.shift.data != nullptr || s.scale.data != nullptr;
  return affine || isAngle(method) ? rows::Kind::kTwoRows : rows::Kind::kLine;
}

// For the dtypes of the streams' values and of out; kNumDTypePairs if there are no kernels.
inline int dtypePairOf(const FuseProblem& p) {
  int pair = 0;
  while (pair < rows::kNumDTypePairs && (rows::kDTypePairs[pair].in != p.streams[0].values_dtype ||
                                         rows::kDTypePairs[pair].out != p.out_dtype)) {
    ++pair;
  }
  return pair;
}

}  // namespace rbc::cuda
