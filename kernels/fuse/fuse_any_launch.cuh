// The launch of the kernel of any fusion, in one of its forms.
#pragma once

#include <algorithm>
#include <type_traits>

#include "fuse/fuse_any_kernel.cuh"
#include "fuse/suits_vecs.h"
#include "runtime/launch.h"
#include "runtime/tiling.h"

namespace rbc::cuda {
namespace any {

// Channels of a vector of the segment; 1 or a quaternion's where it has none. Methods other than linear
// and the steps do without: wide rows of them alone are fuse_rows.cu's.
inline int vecCount(const FuseProblem& p, const FuseStream& s, const ChannelSegment& segment,
                    bool* in_vecs) {
  const bool is_line = segment.method == Method::kLinear || isStep(segment.method);
  const int count = s.values_dtype == DType::F64 ? 2 : 16 / sizeOf(p.out_dtype);  // kVecCount
  *in_vecs =
      isFloat(s.values_dtype) && isFloat(p.out_dtype) && is_line && suitsVecs(p, s, segment, count);
  if (*in_vecs) return count;
  return segment.method == Method::kSlerp ? 4 : 1;
}

template <class Form>
void describe(const FuseProblem& p, int multiprocessors, FuseLaunch<Form>* launch) {
  launch->problem = p;
  launch->per_row = FastDivmod(p.queries);
  launch->units = 0;
  for (int n = 0; n < p.num_streams; ++n) {
    StreamTask& task = launch->streams[n];
    const FuseStream& s = task.stream = p.streams[n];
    task.value_bytes = sizeOf(s.values_dtype);
    task.out_bytes = sizeOf(p.out_dtype);
    task.pace = paceOf(p, s);
    task.in_double = computesInDouble(s.values_dtype);
    task.affine_in_vecs = suitsVecs(s.mean) && suitsVecs(s.inv_std);
    task.vectors = 0;
    for (int i = s.first_segment; i < s.first_segment + s.num_segments; ++i) {
      const ChannelSegment& segment = p.segments[i];
      bool in_vecs;
      const int count = vecCount(p, s, segment, &in_vecs);
      launch->segments[i] = {segment.begin, task.vectors, segment.method, count, in_vecs};
      task.vectors += segment.count / count;
      task.affine_in_vecs &= segment.begin % 4 == 0;
    }
    const Tiling tiling = tilingOf(p.batch * p.queries, task.vectors,
                                   {kWarp, 4, 256, multiprocessors * 15 / p.num_streams});
    task.first_unit = launch->units;
    task.range = tiling.range;
    task.ranges = FastDivmod(tiling.ranges);
    task.group = tiling.group;
    task.mask_of_ranges = tiling.ranges > 1 && hasQuaternions(p, s);
    launch->units += tiling.groups * tiling.ranges;
  }
}

template <class Out, class Form>
cudaError_t launch(const FuseProblem& p, const LaunchDevice& device, cudaStream_t cuda_stream) {
  FuseLaunch<Form> arguments;
  describe(p, device.multiprocessors, &arguments);
  const int64_t blocks = ceilDiv(arguments.units, kWarpsPerBlock);
  return launchBlocks(fuseKernel<Out, Form>, &arguments, blocks, kWarp * kWarpsPerBlock, device,
                      cuda_stream);
}

// Calls visitor(Tag<Out>).
template <class Visitor>
decltype(auto) visitOut(DType out, Visitor&& visitor) {
  return isFloat(out) ? visitFloat(out, visitor) : visitor(Tag<Words>{});
}

}  // namespace any
}  // namespace rbc::cuda
