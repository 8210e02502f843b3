// Chooses the function that computes rows, and defines those that only copy.

#include "fuse/rows.h"
#include "visit_dtype.h"

#include <algorithm>
#include <cstring>

namespace rbc::cpu {
namespace {

// Unchanged samples, including integers.
template <class Word>
void copiedRows(const RowTile& tile) {
  for (int i = 0; i < tile.count; ++i) {
    const RowTask& row = tile.rows[i];
    auto* out = reinterpret_cast<Word*>(row.out);
    if (row.sample == nullptr) {
      std::fill_n(out, tile.channels, fillOf<Word>(tile));
    } else {
      std::memcpy(out, row.sample, static_cast<size_t>(tile.channels) * sizeof(Word));
    }
  }
}

RowsFunction copiedRows(DType dtype) {
  return visitWord(sizeOf(dtype), [](auto tag) -> RowsFunction {
    return copiedRows<typename decltype(tag)::type>;
  });
}

}  // namespace

void Rows::operator()(const RowTile& tile) const {
  if (compacted) {
    throughCompactRows(tile, function);
  } else {
    function(tile);
  }
}

Rows rowsOf(SimdLevel level, const RowsKind& kind) {
  if (!isFloat(kind.out)) return {copiedRows(kind.out), !kind.contiguous};
  const bool direct = kind.method == Method::kLinear || isStep(kind.method);
  if (direct && !kind.affine && isFloat(kind.in)) {
    return {directRows(level, kind.in, kind.out, kind.contiguous), false};
  }
  // Rows of whole cache lines may have to be written past the caches.
  const bool is_short = kind.channels < kShort && kind.channels * sizeOf(kind.out) < 64;
  if (is_short && kind.channels > 0 && !takesFour(kind.method)) {
    return {shortRows(level, kind.in, kind.out), !kind.contiguous};
  }
  return {stagedRows(level, kind.in, kind.out), !kind.contiguous};
}

}  // namespace rbc::cpu
