// Which streams of a fusion a kernel may do together.
#pragma once

#include "fuse/find_sample.cuh"
#include "fuse/fuse_rows_instances.h"
#include "fuse/suits_vecs.h"

namespace rbc::cuda {

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
