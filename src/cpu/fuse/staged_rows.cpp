// Rows in steps, a block of channels at a time: samples to the compute type, the method, shift and
// scale, and to the type of out. The blocks between the steps stay in the L1 cache, and no step
// depends on the types of the others. They are padded, so that the steps in between can use whole
// vectors.

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "fuse/rows.h"
#include "real.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "fuse/staged_rows.cpp"
#include "runtime/simd_targets.h"

#include "hwy/foreach_target.h"

#include "fuse/row_steps-inl.h"
#include "hwy/cache_control.h"
#include "hwy/highway.h"
#include "visit_dtype.h"

HWY_BEFORE_NAMESPACE();
namespace rbc::cpu {
namespace HWY_NAMESPACE {

// The rows of a task that will be needed soon: 2, or for methods that use four also the next one.
// Inline, as GCC drops calls of functions that only prefetch.
HWY_INLINE void prefetchRows(const RowTile& tile, int i, int64_t first_byte, int64_t bytes) {
  const RowTask& task = tile.rows[i];
  if (task.sample == nullptr) return;
  const std::byte* rows[3] = {task.sample, task.right};
  int count = task.w == 0 ? 1 : 2;
  if (count == 2 && takesFour(tile.method) && tile.weights[i].after) {
    rows[count++] = outerRowsOf(tile, i).after;
  }
  for (int k = 0; k < count; ++k) {
    for (int64_t byte = 0; byte < bytes; byte += 64) hwy::Prefetch(rows[k] + first_byte + byte);
  }
}

template <class Number, class Out>
void stagedRowsTo(const RowTile& tile) {
  const bool affine = tile.shift.data != nullptr || tile.scale.data != nullptr;
  const bool four = takesFour(tile.method);
  const bool slerps = tile.method == Method::kSlerp;
  const bool turns = isInTurn(tile.method);
  const int64_t step = kLanes<Wide<Number>> * (slerps ? 4 : 1);
  const int64_t in_size = sizeOf(tile.in);
  const Widen<Number> widen = widenFunction<Number>(tile.in);
  const MethodFunction<Number> method = methodFunction<Number>(tile.method);
  struct Buffers {
    alignas(64) Number samples[4][kBlock];
    alignas(64) Number result[kBlock];
    Affine<Number> normalize;
  };
  Buffers& buffers = *tile.buffers->as<Buffers>();
  Number* result = buffers.result;
  Affine<Number>& normalize = buffers.normalize;
  for (int64_t first = 0; first < tile.channels; first += kBlock) {
    const int64_t count = std::min(kBlock, tile.channels - first);
    const bool whole = count % step == 0;
    if (affine) normalize.read(tile, first, count);
    for (int i = 0; i < tile.count; ++i) {
      const RowTask& row = tile.rows[i];
      prefetchRows(tile, std::min(i + tile.ahead, tile.known - 1), first * in_size,
                   count * in_size);
      Out* out = reinterpret_cast<Out*>(row.out) + first;
      if (row.sample == nullptr) {
        std::fill_n(out, count, fillOf<Out>(tile));
        continue;
      }
      const auto read = [&](const std::byte* from, int sample) {
        return widen(from, first, count, whole, buffers.samples[sample]);
      };
      const Number* values = read(row.sample, 1);
      const Number* const v1 = values;
      const Number* v2 = values;
      bool valid = true;  // certainly valid
      const auto w = static_cast<Number>(row.w);
      if (turns) {
        if (w != 0) v2 = read(row.right, 2);
        const Turn<Number> turn = turnOf<Number>(tile.method, tile.angle_dtype);
        turnBlock(Samples<Number>{{v1, v1, v2, v1}}, w, turn, count, result);
        values = result;
      } else if (w != 0) {
        const Weights<Number> k =
            four ? tile.weights[i].as<Number>() : Weights<Number>{w, {}, false, false};
        v2 = read(row.right, 2);
        Samples<Number> samples = {{v1, v1, v2, v1}};
        if (k.before) samples.v[0] = read(outerRowsOf(tile, i).before, 0);
        if (k.after) samples.v[3] = read(outerRowsOf(tile, i).after, 3);
        if (slerps) {
          valid = slerpBlock(samples, k, count, result);
        } else {
          method(samples, k, count, result);
        }
        values = result;
      } else if (slerps) {
        valid = areRotations(v1, count);
      }
      if (affine) {
        normalize.apply(values, count, result);
        values = result;
      }
      narrowRow(values, count, out, tile.nontemporal && valid);
      if (!valid) fillInvalid(tile, i, v1, v2, count, out);
    }
  }
}

RowsFunction stagedRowsFor(DType in, DType out) {
  return visitFloat(out, [&](auto tag) -> RowsFunction {
    using Out = typename decltype(tag)::type;
    return computesInDouble(in) ? stagedRowsTo<double, Out> : stagedRowsTo<float, Out>;
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace rbc::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rbc::cpu {

RowsFunction stagedRows(SimdLevel level, DType in, DType out) {
  return RBC_AT_LEVEL(level, stagedRowsFor)(in, out);
}

}  // namespace rbc::cpu
#endif  // HWY_ONCE
