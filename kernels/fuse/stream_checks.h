// What the kernels of fusion require of streams: vectors that are aligned, streams that are alike.
#pragma once

#include "fuse/find_sample.cuh"
#include "fuse/fuse_rows_instances.h"
#include "fuse_problem.h"
#include "runtime/suits_vecs.h"

namespace rbc::cuda {

// ---- Which channels of a fusion can be read and written in vectors.

// Whether the rows of a segment can, both of values and of out, in vectors of `count` channels.
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

// Whether mean or inv_std can, in vectors of four.
inline bool suitsVecs(const RealArray& array) {
  return array.data == nullptr ||
         (array.stride == 1 && !array.is_64 && suitsVecs(array.data, {0}, sizeof(float), 4));
}

// ---- Which streams of a fusion a kernel may do together.

// The kind that a stream needs.
inline rows::Kind kindOf(const FuseStream& s, Method method) {
  if (takesFour(method)) return rows::Kind::kFourRows;
  if (method == Method::kSlerp) return rows::Kind::kQuaternions;
  const bool affine = s.mean.data != nullptr || s.inv_std.data != nullptr;
  return affine || isAngle(method) ? rows::Kind::kTwoRows : rows::Kind::kLine;
}

// Whether the stream's kernel may be that of all.
inline bool isAlike(const FuseProblem& p, const FuseStream& s) {
  return s.num_segments == 1 && s.values_dtype == p.streams[0].values_dtype &&
         suitsShortIndexes(p, s) && suitsVecs(s.mean) && suitsVecs(s.inv_std);
}

// Of the values of the streams, and of out; kNumDTypePairs where there are no kernels.
inline int dtypePairOf(const FuseProblem& p) {
  int pair = 0;
  while (pair < rows::kNumDTypePairs && (rows::kDTypePairs[pair].in != p.streams[0].values_dtype ||
                                         rows::kDTypePairs[pair].out != p.out_dtype)) {
    ++pair;
  }
  return pair;
}

}  // namespace rbc::cuda
