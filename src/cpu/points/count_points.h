// Occupancy and counts on a dense grid.
#pragma once

#include "points/dense_voxels.h"
#include "points/sort_points.h"

namespace rbc::cpu {

// Voxels whose points are counted at once, in counters that stay in the caches.
inline constexpr int kCounterBits = 14;
inline constexpr int64_t kCounters = int64_t{1} << kCounterBits;
struct Counters {
  uint32_t counts[kCounters];
};

// Writes a bucket's voxels. The points are sorted by all but the lowest kCounterBits of their keys.
class PointCounter {
 public:
  PointCounter(const ThreadPool& pool, const VoxelizeProblem& problem, const DenseVoxels& voxels,
               const PointSort& sort);

  void count(int64_t bucket, Counters* counters) const;

 private:
  using Write = void (*)(const PointCounter& counter, const VoxelLine& line,
                         const uint32_t* counts);
  template <class Out>
  static void write(const PointCounter& counter, const VoxelLine& line, const uint32_t* counts);

  const ThreadPool& pool_;
  const DenseVoxels& voxels_;
  const PointSort& sort_;
  uint64_t empty_bits_;
  uint32_t most_;  // 1 for occupancy
  Write write_;
};

}  // namespace rbc::cpu
