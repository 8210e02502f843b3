// The inner part of fusion: rows of channels, once the samples that answer a query are known.
#pragma once

#include <cstddef>

#include "dtype.h"
#include "element_of.h"
#include "fuse_problem.h"
#include "runtime/simd.h"

namespace rbc::cpu {

// One query's answer: the row `sample` as it is if w is 0, else what the method makes of it and of
// the rows around it.
struct RowTask {
  const std::byte* sample;  // null: write the fill value
  const std::byte* right;   // the neighbour; `sample` itself if w is 0
  std::byte* out;
  double w;
};

// The rows beside these two, for methods that take four.
struct OuterRows {
  const std::byte* before;
  const std::byte* after;
};

inline constexpr int kMaxRows = 64;

// Room for the steps between a sample and its row of out, whoever computes it.
struct RowBuffers {
  alignas(64) std::byte bytes[44 << 10];

  template <class T>
  T* as() {
    static_assert(sizeof(T) <= sizeof bytes && alignof(T) <= 64);
    return reinterpret_cast<T*>(bytes);
  }
};

// Some channels of a stream, of one method, for some queries.
struct RowTile {
  const RowTask* rows;
  const Weights<double>* weights;  // of each row, where the method takes four
  const OuterRows* outer;  // likewise; null: each is as far from its neighbour as the others
  int count;               // kMaxRows at most
  int known;               // `count`, or more: rows that will be due next
  int ahead;               // how many rows before their use to prefetch them
  bool nontemporal;  // write past the caches; all rows of out are aligned and whole cache lines
  Method method;
  DType in;
  DType out;
  DType angle_dtype;  // FuseProblem's
  int64_t channels;
  int64_t in_stride;  // from channel to channel, in elements
  int64_t out_stride;
  uint64_t fill_bits;
  int64_t first_channel;  // into shift and scale
  RealArray shift;
  RealArray scale;
  bool* invalid;  // of each row: set where it has a quaternion that is none; may be null
  RowBuffers* buffers;
};

// The fill value as an element of out.
template <class Out>
Out fillOf(const RowTile& tile) {
  return elementOf<Out>(tile.fill_bits);
}

// Of row i, whose w is not 0: as far as its weights say that they have a place.
inline OuterRows outerRowsOf(const RowTile& tile, int i) {
  if (tile.outer != nullptr) return tile.outer[i];
  const RowTask& row = tile.rows[i];
  const ptrdiff_t step = row.right - row.sample;
  return {row.sample - step, row.right + step};
}

using RowsFunction = void (*)(const RowTile& tile);

struct RowsKind {
  DType in;
  DType out;
  Method method;
  bool affine;  // shift or scale is given
  int64_t channels;
  bool contiguous;  // in_stride and out_stride are 1, or there is one channel
};

// What computes the rows of a kind.
struct Rows {
  RowsFunction function;
  bool compacted;  // the tile is strided, but the function's must not be

  void operator()(const RowTile& tile) const;
};

Rows rowsOf(SimdLevel level, const RowsKind& kind);

// ---- what rowsOf() chooses from -----------------------------------------------------------------

// Linear and the methods that take a sample, from float to float without shift and scale.
RowsFunction directRows(SimdLevel level, DType in, DType out, bool contiguous);

// Everything else that ends in a float, by steps: to the compute type, the method, shift and
// scale, to the type of out. Contiguous.
RowsFunction stagedRows(SimdLevel level, DType in, DType out);

// The same for rows of fewer than kShort channels, by methods of two samples.
inline constexpr int64_t kShort = 16;
RowsFunction shortRows(SimdLevel level, DType in, DType out);

// Has a contiguous function compute a strided tile.
void throughCompactRows(const RowTile& tile, RowsFunction function);

}  // namespace rbc::cpu
