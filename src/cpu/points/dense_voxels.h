// The voxels of a dense output in the order of its memory.
#pragma once

#include <cstddef>
#include <cstring>

#include "points/point_keys.h"
#include "voxel_problem.h"

namespace rbc::cpu {

// Voxels begin .. begin + count - 1 by their keys, which lie `stride` bytes apart.
struct VoxelLine {
  int64_t begin;
  int64_t count;
  std::byte* data;
  int64_t stride;
};

// Where a key's voxel lies in memory. Of two axes the one of the larger stride comes first in the
// keys, so that keys that follow each other are close together whatever the output's layout.
class DenseVoxels {
 public:
  explicit DenseVoxels(const VoxelizeProblem& p);

  const KeySpace& space() const { return space_; }

  // The longest line from the voxel `begin` on that ends before `end`.
  VoxelLine lineAt(int64_t begin, int64_t end) const;

  // Writes the empty value to all features of the voxels begin .. end - 1.
  void clear(int64_t begin, int64_t end) const {
    while (begin < end) {
      const VoxelLine line = lineAt(begin, end);
      clear_(*this, line.data, line.count);
      begin += line.count;
    }
  }

 private:
  using Clear = void (*)(const DenseVoxels& voxels, std::byte* data, int64_t count);

  // The next smaller dimension; merged with the last if they adjoin.
  void addDimension(int64_t extent, int64_t stride);
  template <class Word>
  static void clear(const DenseVoxels& voxels, std::byte* data, int64_t count);

  KeySpace space_;
  std::byte* data_;
  int64_t size_;  // of an element
  int64_t features_;
  int64_t feature_stride_;
  uint64_t empty_bits_;
  Clear clear_;
  int dims_ = 0;
  int64_t extent_[4] = {1, 1, 1, 1};
  int64_t stride_[4] = {0, 0, 0, 0};
};

// Goes through the voxels begin .. end - 1, in order.
class DenseCursor {
 public:
  DenseCursor(const DenseVoxels& voxels, int64_t begin, int64_t end)
      : voxels_(voxels), line_(voxels.lineAt(begin, end)), end_(end) {}

  // Where the voxel lies.
  std::byte* moveTo(int64_t key) {
    while (key - line_.begin >= line_.count) {
      line_ = voxels_.lineAt(line_.begin + line_.count, end_);
    }
    return line_.data + (key - line_.begin) * line_.stride;
  }

 private:
  const DenseVoxels& voxels_;
  VoxelLine line_;
  int64_t end_;
};

}  // namespace rbc::cpu
