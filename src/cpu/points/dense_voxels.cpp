#include "points/dense_voxels.h"

#include <algorithm>
#include <cstddef>
#include <cstdlib>

#include "element_of.h"
#include "visit_dtype.h"

namespace rbc::cpu {

// Before its use: Clang 14 forgets to instantiate what a generic lambda names ahead of its body.
template <class Word>
void DenseVoxels::clear(const DenseVoxels& voxels, std::byte* data, int64_t count) {
  const auto word = elementOf<Word>(voxels.empty_bits_);
  auto* out = reinterpret_cast<Word*>(data);
  const int64_t features = voxels.features_;
  const int64_t stride = voxels.stride_[std::max(voxels.dims_ - 1, 0)];
  if (stride == features && (features == 1 || voxels.feature_stride_ == 1)) {
    std::fill_n(out, count * features, word);
    return;
  }
  for (int64_t i = 0; i < count; ++i) {
    for (int64_t f = 0; f < features; ++f) out[i * stride + f * voxels.feature_stride_] = word;
  }
}

DenseVoxels::DenseVoxels(const VoxelizeProblem& p)
    : space_{p.points, {}, {0, 1, 2}},
      data_(static_cast<std::byte*>(p.out.data)),
      size_(sizeOf(p.out.dtype)),
      features_(p.features.count),
      feature_stride_(p.out.stride[4]),
      empty_bits_(p.empty_bits) {
  const int64_t* strides = p.out.stride + 1;
  std::sort(space_.columns, space_.columns + 3,
            [&](int a, int b) { return std::abs(strides[a]) > std::abs(strides[b]); });
  addDimension(p.points.clouds, p.out.stride[0]);
  for (int i = 0; i < 3; ++i) {
    const int axis = space_.columns[i];
    space_.grid.origin[i] = p.grid.origin[axis];
    space_.grid.voxel_size[i] = p.grid.voxel_size[axis];
    space_.grid.shape[i] = p.grid.shape[axis];
    addDimension(p.grid.shape[axis], strides[axis]);
  }
  clear_ = visitWord(sizeOf(p.out.dtype),
                     [](auto tag) -> Clear { return clear<typename decltype(tag)::type>; });
}

void DenseVoxels::addDimension(int64_t extent, int64_t stride) {
  if (extent == 1) return;
  if (dims_ > 0 && stride_[dims_ - 1] == stride * extent) {
    extent_[dims_ - 1] *= extent;
    stride_[dims_ - 1] = stride;
  } else {
    extent_[dims_] = extent;
    stride_[dims_++] = stride;
  }
}

VoxelLine DenseVoxels::lineAt(int64_t begin, int64_t end) const {
  const int last = std::max(dims_ - 1, 0);
  int64_t offset = 0;
  int64_t rest = begin;
  for (int i = last; i >= 0; --i) {
    offset += rest % extent_[i] * stride_[i];
    rest /= extent_[i];
  }
  const int64_t count = std::min(end - begin, extent_[last] - begin % extent_[last]);
  return {begin, count, data_ + offset * size_, stride_[last] * size_};
}

}  // namespace rbc::cpu
