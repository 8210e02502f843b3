// Writes the cells of a grid, counted or marked, to an output of any dtype and strides.
#pragma once

#include "element_of.h"
#include "points/points.cuh"
#include "visit_dtype.h"
#include "voxel_problem.h"

namespace rbc::cuda {

// The destination of the cells of all clouds, in the order of their keys.
struct CellOutput {
  void* data;
  int64_t stride[4];  // cloud, x, y, z
  VoxelCoordsOf places;
  uint64_t empty_bits;
  bool contiguous;

  __device__ int64_t offset(int64_t key) const {
    if (contiguous) return key;
    const VoxelCoords at = places(key);
    return at.cloud * stride[0] + at.x * stride[1] + at.y * stride[2] + at.z * stride[3];
  }
};

inline CellOutput cellOutputOf(const VoxelizeProblem& p) {
  return {p.out.data,
          {p.out.stride[0], p.out.stride[1], p.out.stride[2], p.out.stride[3]},
          VoxelCoordsOf(p.grid),
          p.empty_bits,
          hasCellsInLine(p)};
}

// Writes the cells first .. first + count - 1; the threads of a block work together (or of a grid:
// `thread` of `threads`). Marks are 1, counts any number; 0 becomes the empty value.
template <class Element, class Cell>
__device__ void writeCells(const CellOutput& out, const Cell* cells, int64_t first, int64_t count,
                           int64_t thread, int64_t threads) {
  constexpr int kPerWord = 16 / sizeof(Element);
  const auto empty = elementOf<Element>(out.empty_bits);
  auto* data = static_cast<Element*>(out.data);
  if (out.contiguous && (reinterpret_cast<uintptr_t>(data + first) & 15) == 0) {
    const int64_t words = count / kPerWord;
    for (int64_t w = thread; w < words; w += threads) {
      union {
        Element element[kPerWord];
        uint4 word;
      } vec;
#pragma unroll
      for (int k = 0; k < kPerWord; ++k) {
        const Cell cell = cells[w * kPerWord + k];
        vec.element[k] = cell == 0 ? empty : countAs<Element>(cell);
      }
      __stcs(reinterpret_cast<uint4*>(data + first) + w, vec.word);
    }
    first += words * kPerWord;
    cells += words * kPerWord;
    count -= words * kPerWord;
  }
  for (int64_t i = thread; i < count; i += threads) {
    data[out.offset(first + i)] = cells[i] == 0 ? empty : countAs<Element>(cells[i]);
  }
}

// Calls visitor(Tag<Element>) for the dtypes of occupancy and count.
template <class Visitor>
decltype(auto) visitCellElement(DType dtype, Visitor&& visitor) {
  switch (dtype) {
    case DType::Bool:
    case DType::U8: return visitor(Tag<uint8_t>{});
    case DType::I32: return visitor(Tag<int32_t>{});
    case DType::I64: return visitor(Tag<int64_t>{});
    default: return visitFloat(dtype, visitor);
  }
}

// The same for each of them, until one call fails.
template <class Visitor>
cudaError_t forEachCellElement(Visitor&& visitor) {
  cudaError_t error = cudaSuccess;
  for (const DType dtype : {DType::U8, DType::I32, DType::I64}) {
    if (error == cudaSuccess) error = visitCellElement(dtype, visitor);
  }
  for (const DType dtype : kFloatDTypes) {
    if (error == cudaSuccess) error = visitFloat(dtype, visitor);
  }
  return error;
}

}  // namespace rbc::cuda
