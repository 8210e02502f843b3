// Which channels of a fusion can be read and written in vectors.
#pragma once

#include "fuse_problem.h"
#include "runtime/suits_vecs.h"

namespace rbc::cuda {

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

}  // namespace rbc::cuda
