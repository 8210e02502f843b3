// Launchers of a read of the samples.
#pragma once

#include <cuda_runtime_api.h>
#include <algorithm>

#include "ceil_div.h"
#include "runtime/launch_device.h"
#include "statistics_problem.h"

namespace rbc::cuda {
namespace statistics {

// ---- How a read of the samples is shared out.

struct Found;

// Blocks of a multiprocessor: as many as have room for the registers that they need.
template <class Number>
constexpr int blocksOfPass() {
  return sizeof(Number) == 8 ? 2 : 3;
}

struct PassPlan {
  int32_t width;   // channels of a block
  int32_t phases;  // samples that its threads read at a time
  int64_t chunks;  // of channels
  int64_t parts;   // of a group's samples
  int64_t groups;

  RBC_HD int64_t units() const { return groups * chunks * parts; }
};

struct PassArguments {
  Samples samples;
  bool per_row;
  PassPlan plan;
  Moments* moments;      // group, channel
  const void* brackets;  // Brackets<Number>: group, channel
  Found* found;          // group, channel
  void* kept;            // numbers
};

// Neighbouring threads read what lies close together: channels of a sample, or samples of a channel.
// `wave` blocks run at a time.
inline PassPlan planPass(const Samples& s, int64_t groups, int64_t wave, int threads,
                         int most_width, int batch) {
  PassPlan plan = {};
  plan.groups = groups;
  const auto magnitude = [](int64_t x) { return x < 0 ? -x : x; };
  const int64_t sample_stride = magnitude(s.axis[s.axes - 1].stride);
  if (s.channels > 1 && magnitude(s.channel_stride) > sample_stride && sample_stride != 0) {
    plan.width = 1;
  } else {
    // As few chunks of channels as leave few threads without any.
    int64_t best = 0;
    int64_t chunks = ceilDiv(s.channels, most_width);
    while (chunks <= s.channels) {
      const int64_t width = ceilDiv(s.channels, chunks);
      if (width < 24 && plan.width != 0) break;
      const int64_t busy = threads / width * s.channels * 1000 / chunks;  // of 1000 per thread
      if (busy > best + best / 16) {
        best = busy;
        plan.width = static_cast<int32_t>(width);
      }
      if (width == 1) break;
      chunks = ceilDiv(s.channels, width - 1);  // the fewest that are narrower
    }
  }
  plan.phases = threads / plan.width;
  plan.chunks = ceilDiv(s.channels, plan.width);
  const int64_t most = s.packed() || groups > 1 ? s.rows : s.batch * s.rows;
  const int64_t tiles = ceilDiv(most, int64_t{plan.phases} * batch);
  const int64_t wanted = ceilDiv(wave, std::max<int64_t>(groups * plan.chunks, 1));
  plan.parts = std::max<int64_t>(std::min(wanted, tiles / 2), 1);
  return plan;
}

enum class PassKind { kMoments, kMomentsAndKeep, kKeep };

// Fills in the plan.
cudaError_t launchPass(PassKind kind, PassArguments arguments, int64_t groups,
                       const LaunchDevice& device, cudaStream_t cuda_stream);

cudaError_t loadPassFloat();
cudaError_t loadPassAnyFloat();
cudaError_t loadPassHalf();
cudaError_t loadPassDouble();

// One in each file, that they compile side by side.
cudaError_t launchPassFloat(PassKind kind, PassArguments& arguments, int64_t blocks,
                            const LaunchDevice& device, cudaStream_t cuda_stream);
cudaError_t launchPassAnyFloat(PassKind kind, PassArguments& arguments, int64_t blocks,
                               const LaunchDevice& device, cudaStream_t cuda_stream);
cudaError_t launchPassHalf(PassKind kind, PassArguments& arguments, int64_t blocks,
                           const LaunchDevice& device, cudaStream_t cuda_stream);
cudaError_t launchPassDouble(PassKind kind, PassArguments& arguments, int64_t blocks,
                             const LaunchDevice& device, cudaStream_t cuda_stream);

}  // namespace statistics

}  // namespace rbc::cuda
