#include "points/sparse_rows.h"

#include <cstring>

namespace rbc::cpu {
namespace {

// Sets all bytes of the elements, as many at once as adjoin.
void setBytes(std::byte* data, const int64_t* extent, const int64_t* stride, int rank, int64_t size,
              int byte) {
  int64_t run = 1;
  int outer = rank;
  while (outer > 0 && (extent[outer - 1] == 1 || stride[outer - 1] == run)) run *= extent[--outer];
  if (outer == 0) {
    std::memset(data, byte, static_cast<size_t>(run * size));
    return;
  }
  for (int64_t i = 0; i < extent[0]; ++i) {
    setBytes(data + i * stride[0] * size, extent + 1, stride + 1, rank - 1, size, byte);
  }
}

// Of an output's rows from `begin` on, extent[0] of them.
template <int Rank>
void setRows(const Output<Rank>& out, int64_t begin, const int64_t (&extent)[Rank], int byte) {
  if (out.data == nullptr) return;
  const int64_t size = sizeOf(out.dtype);
  setBytes(static_cast<std::byte*>(out.data) + begin * out.stride[0] * size, extent, out.stride,
           Rank, size, byte);
}

// An output that is not wanted has no dtype, and any will do.
template <int Rank>
DType floatOf(const Output<Rank>& out) {
  return out.data != nullptr ? out.dtype : DType::F32;
}

}  // namespace

SparseRows::SparseRows(const CpuState& state, const SparseProblem& p)
    : pool_(state.pool),
      p_(p),
      reduced_(state, p.points, p.features, p.reduce, floatOf(p.reduced)),
      grouped_(state, p.points, p.features, p.reduce, floatOf(p.grouped)),
      points_(p.points, p.point_to_voxel.stride[0], p.point_to_voxel.stride[1]) {}

void SparseRows::write(int64_t row, const PointGroup& group) const {
  writeCoords(row, coordsOf(p_.grid, group.key));
  writeCount(row, counted(group));
  if (p_.reduced.data != nullptr) reduced_.reduce(group.points, group.count, reducedAt(row));
  if (p_.grouped.data != nullptr) {
    const int64_t given = counted(group);
    const int64_t rest[] = {p_.max_points - given, p_.features.count};
    grouped_.copy(group.points, given, groupedAt(row, 0), p_.grouped.stride[1]);
    if (rest[0] > 0) {
      setBytes(groupedAt(row, given).data, rest, p_.grouped.stride + 1, 2, sizeOf(p_.grouped.dtype),
               0);
    }
  }
}

void SparseRows::writePoints(int64_t row, const PointGroup& group) const {
  if (p_.point_to_voxel.data == nullptr) return;
  for (int64_t i = 0; i < group.count && !pool_.stopsAt(i); ++i) writePoint(group.points[i], row);
}

void SparseRows::clear(int64_t begin, int64_t end) const {
  constexpr int kMinusOne = 0xFF;  // every byte of it; zeros of any dtype are bytes of 0
  const int64_t count = end - begin;
  setRows<2>(p_.coords, begin, {count, 4}, kMinusOne);
  setRows<1>(p_.counts, begin, {count}, 0);
  setRows<2>(p_.reduced, begin, {count, p_.features.count}, 0);
  setRows<3>(p_.grouped, begin, {count, p_.max_points, p_.features.count}, 0);
}

void SparseRows::clearPoints(int64_t begin, int64_t end) const {
  for (int64_t i = begin; i < end; ++i) writePoint(static_cast<int32_t>(i), -1);
}

void SparseRows::writeCoords(int64_t row, const VoxelCoords& place) const {
  auto* coords = static_cast<int32_t*>(p_.coords.data) + row * p_.coords.stride[0];
  const int64_t stride = p_.coords.stride[1];
  coords[0] = static_cast<int32_t>(place.cloud);
  coords[stride] = static_cast<int32_t>(place.x);
  coords[2 * stride] = static_cast<int32_t>(place.y);
  coords[3 * stride] = static_cast<int32_t>(place.z);
}

void SparseRows::writeCount(int64_t row, int64_t count) const {
  if (p_.counts.data == nullptr) return;
  static_cast<int32_t*>(p_.counts.data)[row * p_.counts.stride[0]] = static_cast<int32_t>(count);
}

void SparseRows::writePoint(int32_t point, int64_t row) const {
  const int64_t at = points_[point];
  if (p_.point_to_voxel.dtype == DType::I64) {
    static_cast<int64_t*>(p_.point_to_voxel.data)[at] = row;
  } else {
    static_cast<int32_t*>(p_.point_to_voxel.data)[at] = static_cast<int32_t>(row);
  }
}

FeatureRow SparseRows::reducedAt(int64_t row) const {
  const Output<2>& out = p_.reduced;
  return {static_cast<std::byte*>(out.data) + row * out.stride[0] * sizeOf(out.dtype),
          out.stride[1]};
}

FeatureRow SparseRows::groupedAt(int64_t row, int64_t i) const {
  const Output<3>& out = p_.grouped;
  return {static_cast<std::byte*>(out.data) +
              (row * out.stride[0] + i * out.stride[1]) * sizeOf(out.dtype),
          out.stride[2]};
}

}  // namespace rbc::cpu
