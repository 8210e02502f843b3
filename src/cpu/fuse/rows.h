// The inner part of fusion: computes rows of channels, once the samples of a query are known.
#pragma once

#include <cstddef>

#include "dtype.h"
#include "element_of.h"
#include "fuse_problem.h"
#include "runtime/simd.h"

namespace rbc::cpu {

// One query's answer: the row `sample` unchanged if w is 0, else the method's result for it and the
// rows around it.
struct RowTask {
  const std::byte* sample;  // null: write the fill value
  const std::byte* right;   // the neighbour; `sample` itself if w is 0
  std::byte* out;
  double w;
};

// The rows next to these two, for methods that take four.
struct OuterRows {
  const std::byte* before;
  const std::byte* after;
};

inline constexpr int kMaxRows = 64;

// Memory for the steps between a sample and its row of out.
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
  const Weights<double>* weights;  // per row, if the method takes four
  const OuterRows* outer;          // per row, or null if all rows are evenly spaced
  int count;                       // at most kMaxRows
  int known;                       // `count`, or more if later rows are known already
  int ahead;                       // how many rows before their use to prefetch them
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
  bool* invalid;  // per row: set if it has an invalid quaternion; may be null
  RowBuffers* buffers;
};

// The fill value as an element of out.
template <class Out>
Out fillOf(const RowTile& tile) {
  return elementOf<Out>(tile.fill_bits);
}

// The outer rows of row i, whose w is not 0, as far as its weights say that they exist.
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
  bool affine;  // has shift or scale
  int64_t channels;
  bool contiguous;  // in_stride and out_stride are 1, or there is one channel
};

// A function for the rows of a kind.
struct Rows {
  RowsFunction function;
  bool compacted;  // the tile is strided, but the function needs contiguous rows

  void operator()(const RowTile& tile) const;
};

Rows rowsOf(SimdLevel level, const RowsKind& kind);

// ---- the functions that rowsOf() chooses from ---------------------------------------------------

// Linear and the methods that copy a sample, from float to float without shift and scale.
RowsFunction directRows(SimdLevel level, DType in, DType out, bool contiguous);

// All other kinds with a float result, in steps: to the compute type, the method, shift and scale,
// to the type of out. Contiguous.
RowsFunction stagedRows(SimdLevel level, DType in, DType out);

// The same for rows of fewer than kShort channels, with methods of two samples.
inline constexpr int64_t kShort = 16;
RowsFunction shortRows(SimdLevel level, DType in, DType out);

// Runs a contiguous function on a strided tile.
void throughCompactRows(const RowTile& tile, RowsFunction function);

}  // namespace rbc::cpu
