// Rows of a few channels in steps, many rows side by side in a block: a single row would fill only
// part of a vector, and each step would cost a call per row.

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "fuse/rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "fuse/short_rows.cpp"
#include "runtime/simd_targets.h"

#include "hwy/foreach_target.h"

#include "fuse/row_steps-inl.h"
#include "hwy/highway.h"
#include "visit_dtype.h"

HWY_BEFORE_NAMESPACE();
namespace rbc::cpu {
namespace HWY_NAMESPACE {

// ---- methods, with a separate weight for each element -------------------------------------------

template <class Number>
struct Pairs {
  const Number* v1;
  const Number* v2;
  const Number* w;  // for each element, or for each quaternion
};

template <class Number>
void linearPairs(const Pairs<Number>& p, int64_t count, Number* to) {
  using V = Wide<Number>;
  fillBlock<V>(count, to, [&](int64_t c) HWY_ATTR {
    return HWY_NAMESPACE::lerp(HWY_NAMESPACE::load<V>(p.v1 + c), HWY_NAMESPACE::load<V>(p.v2 + c),
                               HWY_NAMESPACE::load<V>(p.w + c));
  });
}

template <class Number>
void anglePairs(const Pairs<Number>& p, int64_t count, Number* to) {
  using V = Wide<Number>;
  fillBlock<V>(count, to, [&](int64_t c) HWY_ATTR {
    return HWY_NAMESPACE::lerpAngle(HWY_NAMESPACE::load<V>(p.v1 + c),
                                    HWY_NAMESPACE::load<V>(p.v2 + c),
                                    HWY_NAMESPACE::load<V>(p.w + c));
  });
}

template <class Number>
void turnPairs(const Pairs<Number>& p, const Turn<Number>& turn, int64_t count, Number* to) {
  using V = Wide<Number>;
  fillBlock<V>(count, to, [&](int64_t c) HWY_ATTR {
    return HWY_NAMESPACE::lerpInTurn(HWY_NAMESPACE::load<V>(p.v1 + c),
                                     HWY_NAMESPACE::load<V>(p.v2 + c),
                                     HWY_NAMESPACE::load<V>(p.w + c), turn);
  });
}

// Returns areRotations() of both samples.
template <class Number>
bool slerpPairs(const Pairs<Number>& p, int64_t count, Number* to) {
  using V = Wide<Number>;
  bool sure = true;
  for (int64_t c = 0; c < count; c += 4 * kLanes<V>) {
    V q1[4];
    V q2[4];
    V q[4];
    HWY_NAMESPACE::loadQuaternions(p.v1 + c, q1);
    HWY_NAMESPACE::loadQuaternions(p.v2 + c, q2);
    HWY_NAMESPACE::slerp(q1, q2, HWY_NAMESPACE::load<V>(p.w + c / 4), q);
    HWY_NAMESPACE::storeQuaternions(q, to + c);
    sure &= HWY_NAMESPACE::areRotations(q1, q2, count - c);
  }
  return sure;
}

// Returns whether all are certainly valid.
template <class Number>
bool blendPairs(const RowTile& tile, const Pairs<Number>& p, int64_t count, Number* to) {
  if (isInTurn(tile.method)) {
    turnPairs(p, turnOf<Number>(tile.method, tile.angle_dtype), count, to);
    return true;
  }
  switch (tile.method) {
    case Method::kSlerp: return slerpPairs(p, count, to);
    case Method::kAngle: anglePairs(p, count, to); return true;
    default: linearPairs(p, count, to); return true;
  }
}

// ---- rows ---------------------------------------------------------------------------------------

// Copies at most one or two hundred bytes, a word at a time; the last two words may overlap.
HWY_INLINE void copyFew(const std::byte* from, int64_t bytes, std::byte* to) {
  const auto ends = [&](auto word) {
    constexpr int64_t kWord = sizeof word;
    for (int64_t at = 0; at + kWord < bytes; at += kWord) std::memcpy(to + at, from + at, kWord);
    std::memcpy(to + bytes - kWord, from + bytes - kWord, kWord);
  };
  struct Words {
    uint64_t word[2];
  };
  if (bytes >= 16) {
    ends(Words{});
  } else if (bytes >= 8) {
    ends(uint64_t{});
  } else if (bytes >= 4) {
    ends(uint32_t{});
  } else if (bytes >= 2) {
    ends(uint16_t{});
  } else {
    *to = *from;
  }
}

template <class Number, class Out>
void shortRowsTo(const RowTile& tile) {
  using V = Wide<Number>;
  const bool affine = tile.shift.data != nullptr || tile.scale.data != nullptr;
  const bool step = isStep(tile.method);
  const bool turns = isInTurn(tile.method);
  const int64_t channels = tile.channels;
  const int64_t in_bytes = channels * sizeOf(tile.in);
  const int64_t out_bytes = channels * static_cast<int64_t>(sizeof(Out));
  const int64_t weights = tile.method == Method::kSlerp ? channels / 4 : channels;  // per row
  const int64_t most = kBlock / channels;
  const Widen<Number> widen = widenFunction<Number>(tile.in);
  struct Buffers {
    alignas(64) std::byte raw[2][kBlock * sizeof(Number)];
    alignas(64) Number v1[kBlock];
    alignas(64) Number v2[kBlock];
    alignas(64) Number w[kBlock + kLanes<V>];
    alignas(64) Number result[kBlock];
    alignas(64) Out out[kBlock];
    Affine<Number> normalize;
  };
  auto& [raw, v1, v2, w, result, out, normalize] = *tile.buffers->as<Buffers>();
  if (affine) {
    normalize.read(tile, 0, channels);
    normalize.repeat(channels, std::min<int64_t>(most, tile.count) * channels);
  }
  for (int first = 0; first < tile.count;) {
    const RowTask* rows[kMaxRows];
    int64_t count = 0;  // of rows in the block
    bool blends = false;
    for (; first < tile.count && count < most; ++first) {
      const RowTask& row = tile.rows[first];
      if (row.sample == nullptr) {
        std::fill_n(reinterpret_cast<Out*>(row.out), channels, fillOf<Out>(tile));
        continue;
      }
      copyFew(row.sample, in_bytes, raw[0] + count * in_bytes);
      if (!step) {
        const auto own = static_cast<Number>(row.w);  // 0 also if row.w only rounds to 0
        copyFew(own != 0 ? row.right : row.sample, in_bytes, raw[1] + count * in_bytes);
        // In whole vectors: the next row overwrites the excess.
        fillBlock<V>(weights, w + count * weights, [&](int64_t) HWY_ATTR { return V(own); });
        blends |= own != 0 || turns;
      }
      rows[count++] = &row;
    }
    const int64_t elements = count * channels;
    const Number* const left = widen(raw[0], 0, elements, true, v1);
    const Number* right = left;
    const Number* values = left;
    bool valid = true;  // certainly valid
    if (blends) {
      right = widen(raw[1], 0, elements, true, v2);
      valid = blendPairs<Number>(tile, {left, right, w}, elements, result);
      for (int64_t i = 0; i < count && !turns; ++i) {  // unchanged samples
        if (w[i * weights] == 0) {
          std::copy_n(values + i * channels, channels, result + i * channels);
        }
      }
      values = result;
    } else if (tile.method == Method::kSlerp) {
      valid = areRotations(left, elements);
    }
    if (affine) {
      normalize.apply(values, elements, result);
      values = result;
    }
    narrowRow(values, elements, out, false);
    for (int64_t i = 0; i < count && !valid; ++i) {
      const int64_t at = i * channels;
      fillInvalid(tile, static_cast<int>(rows[i] - tile.rows), left + at, right + at, channels,
                  out + at);
    }
    for (int64_t i = 0; i < count; ++i) {
      copyFew(reinterpret_cast<const std::byte*>(out) + i * out_bytes, out_bytes, rows[i]->out);
    }
  }
}

RowsFunction shortRowsFor(DType in, DType out) {
  return visitFloat(out, [&](auto tag) -> RowsFunction {
    using Out = typename decltype(tag)::type;
    return computesInDouble(in) ? shortRowsTo<double, Out> : shortRowsTo<float, Out>;
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace rbc::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rbc::cpu {

RowsFunction shortRows(SimdLevel level, DType in, DType out) {
  return RBC_AT_LEVEL(level, shortRowsFor)(in, out);
}

}  // namespace rbc::cpu
#endif  // HWY_ONCE
