// Rows by steps, a block of channels at a time: samples to the compute type, the method, mean and
// inv_std, and to the type of out. The blocks between the steps stay in the L1 cache, and no step
// knows the types of the others. They are padded, so that the steps between take whole vectors.

#include <algorithm>
#include <cstring>

#include "real.h"
#include "rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "staged_rows.cpp"
#include "simd_targets.h"

#include "hwy/foreach_target.h"

#include "convert-inl.h"
#include "hwy/cache_control.h"
#include "hwy/highway.h"
#include "lanes-inl.h"
#include "methods-inl.h"

HWY_BEFORE_NAMESPACE();
namespace rbc {
namespace HWY_NAMESPACE {

constexpr int64_t kBlock = 512;

// ---- conversions --------------------------------------------------------------------------------

#if HWY_TARGET == HWY_STATIC_TARGET

template <class In>
void widenRow(const In* from, int64_t count, Compute<In>* to) {
  for (int64_t c = 0; c < count; ++c) to[c] = widen(from[c]);
}

template <class Number, class Out>
void narrowRow(const Number* from, int64_t count, Out* to, bool) {
  for (int64_t c = 0; c < count; ++c) to[c] = narrow<Out>(from[c]);
}

#else

template <class In>
void widenRow(const In* from, int64_t count, Compute<In>* to) {
  if constexpr (std::is_integral_v<In>) {
    for (int64_t c = 0; c < count; ++c) to[c] = widen(from[c]);
  } else {
    HWY_NAMESPACE::cover(hn::ScalableTag<Compute<In>>(), count, [&](auto d, int64_t c) HWY_ATTR {
      hn::StoreU(HWY_NAMESPACE::loadWide(d, from + c), d, to + c);
    });
  }
}

template <class Number, class Out>
void narrowRow(const Number* from, int64_t count, Out* to, bool stream) {
  const WidestTag<Number, Out> widest;
  if (stream) {
    HWY_NAMESPACE::cover(widest, count, [&](auto d, int64_t c) HWY_ATTR {
      HWY_NAMESPACE::streamNarrow(d, hn::LoadU(d, from + c), to + c);
    });
  } else {
    HWY_NAMESPACE::cover(widest, count, [&](auto d, int64_t c) HWY_ATTR {
      HWY_NAMESPACE::storeNarrow(d, hn::LoadU(d, from + c), to + c);
    });
  }
}

#endif

// ---- mean and inv_std ---------------------------------------------------------------------------

template <class Number>
struct Affine {
  alignas(64) Number mean[kBlock];
  alignas(64) Number inv_std[kBlock];

  void read(const RowTile& tile, int64_t first, int64_t count) {
    fill(tile.mean, tile.first_channel + first, count, Number(0), mean);
    fill(tile.inv_std, tile.first_channel + first, count, Number(1), inv_std);
  }

  // `to` may be `from`.
  void apply(const Number* from, int64_t count, Number* to) const {
    using V = Wide<Number>;
    fillBlock<V>(count, to, [&](int64_t c) HWY_ATTR {
      return HWY_NAMESPACE::normalized(HWY_NAMESPACE::load<V>(from + c),
                                       HWY_NAMESPACE::load<V>(mean + c),
                                       HWY_NAMESPACE::load<V>(inv_std + c));
    });
  }

 private:
  static void fill(const RealArray& from, int64_t first, int64_t count, Number without,
                   Number* to) {
    if (from.data == nullptr) {
      std::fill_n(to, count, without);
    } else {
      for (int64_t c = 0; c < count; ++c) to[c] = from.at<Number>(first + c);
    }
  }
};

// ---- rows ---------------------------------------------------------------------------------------

// Channels first .. first + count - 1 of a row, in the compute type: in their place, if they are of
// it and whole vectors, else in the buffer.
template <class Number>
using Widen = const Number* (*)(const std::byte* row, int64_t first, int64_t count, bool whole,
                                Number* buffer);

template <class Number, class In>
const Number* widened(const std::byte* row, int64_t first, int64_t count, bool whole,
                      Number* buffer) {
  const In* from = reinterpret_cast<const In*>(row) + first;
  if constexpr (std::is_same_v<In, Number>) {
    if (whole) return from;
  }
  static_cast<void>(whole);
  widenRow(from, count, buffer);
  return buffer;
}

template <class Number>
Widen<Number> widenFunction(DType in) {
  const auto choose = [](auto tag) -> Widen<Number> {
    using In = typename decltype(tag)::type;
    if constexpr (std::is_same_v<Compute<In>, Number>) {
      return widened<Number, In>;
    } else {
      return nullptr;
    }
  };
  return isFloat(in) ? visitFloat(in, choose) : visitInteger(in, choose);
}

// The rows of a task that will be due soon: 2, or for methods that take four also the one after.
// Inline, as GCC drops calls of functions that do nothing but prefetch.
HWY_INLINE void prefetchRows(const RowTile& tile, int i, int64_t first_byte, int64_t bytes) {
  const RowTask& task = tile.rows[i];
  if (task.sample == nullptr) return;
  const std::byte* row = task.sample + first_byte;
  const int rows = task.w == 0 ? 1 : takesFour(tile.method) && tile.weights[i].after ? 3 : 2;
  for (int k = 0; k < rows; ++k, row += tile.sample_bytes) {
    for (int64_t byte = 0; byte < bytes; byte += 64) hwy::Prefetch(row + byte);
  }
}

template <class Number, class Out>
void stagedRowsTo(const RowTile& tile) {
  const bool affine = tile.mean.data != nullptr || tile.inv_std.data != nullptr;
  const bool four = takesFour(tile.method);
  const int64_t step = kLanes<Wide<Number>> * (tile.method == Method::kSlerp ? 4 : 1);
  const int64_t in_size = sizeOf(tile.in);
  const Widen<Number> widen = widenFunction<Number>(tile.in);
  const MethodFunction<Number> method = methodFunction<Number>(tile.method);
  alignas(64) Number buffers[4][kBlock];
  alignas(64) Number result[kBlock];
  Affine<Number> normalize;
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
      const auto read = [&](int64_t sample) {
        return widen(row.sample + (sample - 1) * tile.sample_bytes, first, count, whole,
                     buffers[sample]);
      };
      const Number* values = read(1);
      const auto w = static_cast<Number>(row.w);
      if (w != 0) {
        const Weights<Number> k =
            four ? tile.weights[i].as<Number>() : Weights<Number>{w, {}, false, false};
        Samples<Number> samples = {{values, values, read(2), values}};
        if (k.before) samples.v[0] = read(0);
        if (k.after) samples.v[3] = read(3);
        method(samples, k, count, result);
        values = result;
      }
      if (affine) {
        normalize.apply(values, count, result);
        values = result;
      }
      narrowRow(values, count, out, tile.stream);
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
}  // namespace rbc
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rbc {

RowsFunction stagedRows(SimdLevel level, DType in, DType out) {
#if HWY_ARCH_X86_64
  if (level == SimdLevel::kAvx512) return N_AVX3::stagedRowsFor(in, out);
  if (level == SimdLevel::kAvx2) return N_AVX2::stagedRowsFor(in, out);
#endif
  static_cast<void>(level);
  return HWY_STATIC_DISPATCH(stagedRowsFor)(in, out);
}

}  // namespace rbc
#endif  // HWY_ONCE
