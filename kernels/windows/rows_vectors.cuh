// Vectors of channels, from rows to rows. Lanes keep to a vector and go from row to row, so that what
// belongs to channels - the factors of the normalization, the row that is subtracted - is read once.
#pragma once

#include "interpolate.h"
#include "slerp.h"
#include "windows/rows_find.cuh"

namespace rbc::cuda {
namespace windows {

// What is subtracted from neighbouring channels; 0 where nothing is.
struct Subtrahends {
  float of[4];
  uint32_t bad;  // a bit of each channel whose reference has no value
  bool all;      // all references of the window have values
};

// ---- what belongs to a lane's channels ------------------------------------------------------------

// Factor number i of a task.
template <int kCount>
__device__ __forceinline__ void loadFactor(const RowsTask& task, int i, const void* factor,
                                           int channel, float otherwise, float (&to)[kCount]) {
#pragma unroll
  for (float& x : to) x = otherwise;
  if (factor == nullptr) return;
  if (kCount <= 4 && (task.wide_factors >> i & 1) != 0) {
    const double* const from = static_cast<const double*>(factor) + channel;
#pragma unroll
    for (int k = 0; k < kCount; ++k) to[k] = static_cast<float>(from[k]);
  } else {
    using Vec = AlignedVec<float, kCount>;
    const auto vec = loadPlain<Vec>(static_cast<const float*>(factor) + channel);
#pragma unroll
    for (int k = 0; k < kCount; ++k) to[k] = vec.element[k];
  }
}

template <int kCount>
struct LaneFactors {
  static constexpr bool kLimits = kCount <= 4;

  float shift[kCount];
  float scale[kCount];
  float bias[kCount];
  float low[kLimits ? kCount : 1];
  float high[kLimits ? kCount : 1];

  __device__ __forceinline__ void load(const RowsTask& task, uint32_t flags, int channel) {
    if ((flags & kNormalizes) != 0) {
      loadFactor(task, 0, task.shift, channel, 0, shift);
      loadFactor(task, 1, task.scale, channel, 1, scale);
      loadFactor(task, 2, task.bias, channel, -0.0f, bias);
    }
    if (kLimits && (flags & kClips) != 0) {
      loadFactor(task, 3, task.low, channel, -INFINITY, low);
      loadFactor(task, 4, task.high, channel, INFINITY, high);
    }
  }

  // As finished() of window_problem.h.
  __device__ __forceinline__ void apply(uint32_t flags, float (&x)[kCount]) const {
    if ((flags & kNormalizes) != 0) {
#pragma unroll
      for (int i = 0; i < kCount; ++i) x[i] = normalized(x[i], shift[i], scale[i], bias[i]);
    }
    if constexpr (kLimits) {
      if ((flags & kClips) == 0) return;
#pragma unroll
      for (int i = 0; i < kCount; ++i) x[i] = clipped(x[i], low[i], high[i]);
    }
  }
};

// ---- vectors as words -----------------------------------------------------------------------------

// Pairs of 16-bit floats are words: taken apart and put together as elements they cost more.
template <class In, int kCount>
__device__ __forceinline__ void widenVec(const AlignedVec<In, kCount>& vec, float (&x)[kCount]) {
  if constexpr (std::is_same_v<In, bf16> && kCount % 2 == 0) {
    struct Pairs {
      uint32_t of[kCount / 2];
    };
    const auto pairs = bitCast<Pairs>(vec);
#pragma unroll
    for (int i = 0; i < kCount; i += 2) {
      x[i] = bitCast<float>(pairs.of[i / 2] << 16);
      x[i + 1] = bitCast<float>(pairs.of[i / 2] & 0xffff0000u);
    }
  } else {
#pragma unroll
    for (int i = 0; i < kCount; ++i) x[i] = widen(vec.element[i]);
  }
}

template <class Out, int kCount>
__device__ __forceinline__ AlignedVec<Out, kCount> narrowWords(const float (&x)[kCount]) {
  if constexpr (std::is_same_v<Out, bf16> && kCount % 2 == 0) {
    struct Pairs {
      uint32_t of[kCount / 2];
    };
    Pairs pairs;
#pragma unroll
    for (int i = 0; i < kCount; i += 2) {
      pairs.of[i / 2] = bitCast<uint32_t>(__floats2bfloat162_rn(x[i], x[i + 1]));
    }
    return bitCast<AlignedVec<Out, kCount>>(pairs);
  } else {
    return narrowVec<Out>(x);
  }
}

// ---- rows -----------------------------------------------------------------------------------------

// A lane's part of a unit: a vector of every `step`-th row from the first on.
struct LanePart {
  int first;
  int vector;
  int step;
  int count;  // of the unit's rows; 0: the lane is idle
};

// Elements of two rows, or one, become a vector's numbers. False: a quaternion is none.
template <RowsKind kKind, class In, int kCount>
__device__ __forceinline__ bool blendVecs(const AlignedVec<In, kCount>& left,
                                          const AlignedVec<In, kCount>& right, float weight,
                                          uint32_t flags, float (&x)[kCount]) {
  widenVec(left, x);
  if constexpr (kKind != RowsKind::kCopy) {
    float y[kCount];
    widenVec(right, y);
    if constexpr (kKind == RowsKind::kQuaternion) {
      if (!(isRotation(x) & isRotation(y))) return false;
      if (weight != 0) slerp(x, y, weight, x);
    } else if (weight != 0) {
#pragma unroll
      for (int i = 0; i < kCount; ++i) {
        x[i] = (flags & kAngles) != 0 ? lerpAngle(x[i], y[i], weight) : lerp(x[i], y[i], weight);
      }
    }
  }
  return true;
}

// Returns whether all rows have values. `*lost` gets a bit of each row where the lane's quaternion is
// none.
template <RowsKind kKind, class In, class Out, int kCount>
__device__ __forceinline__ bool moveRows(WarpRows& rows, const LanePart& lane, uint32_t flags,
                                         const LaneFactors<kCount>& factors,
                                         const Subtrahends& subtrahends, uint32_t* lost) {
  using Raw = AlignedVec<In, kCount>;
  using Result = AlignedVec<Out, kCount>;
  constexpr bool kTwo = kKind != RowsKind::kCopy;
  constexpr int kOwnItems = kKind == RowsKind::kQuaternion ? 1 : kTwo ? 2 : kItems;
  bool complete = true;
  for (int first = lane.first; first < lane.count; first += kOwnItems * lane.step) {
    Raw raw[kOwnItems];
    Raw right[kTwo ? kOwnItems : 1];
    RowSlot slot[kOwnItems];
    RowBlend blend[kTwo ? kOwnItems : 1];
#pragma unroll
    for (int u = 0; u < kOwnItems; ++u) {  // past the end the last once more: cheaper than a branch
      const int k = min(first + u * lane.step, lane.count - 1);
      slot[u] = rows.slots[k];
      slot[u].target = stepped(slot[u].target, lane.vector, int32_t{sizeof(Result)});
      if constexpr (kTwo) blend[u] = rows.blends[k];
    }
#pragma unroll
    for (int u = 0; u < kOwnItems; ++u) {
      if (slot[u].source == nullptr) continue;
      const char* const source = stepped(slot[u].source, lane.vector, int32_t{sizeof(Raw)});
      raw[u] = load<Raw>(source);
      if constexpr (kTwo) right[u] = load<Raw>(source + blend[u].ahead);
    }
#pragma unroll
    for (int u = 0; u < kOwnItems; ++u) {
      const bool has_value = slot[u].source != nullptr;
      complete = complete & has_value;
      float x[kCount];
      bool is_one = true;
      if constexpr (kTwo) {
        is_one = blendVecs<kKind>(raw[u], right[u], blend[u].weight, flags, x);
      } else {
        widenVec(raw[u], x);
      }
      if constexpr (kCount <= 4) {
        if ((flags & kSubtracts) != 0) {
#pragma unroll
          for (int i = 0; i < kCount; ++i) x[i] = x[i] - subtrahends.of[i];
        }
      }
      factors.apply(flags, x);
      const Result result = narrowWords<Out>(x);
      const int k = first + u * lane.step;
      if constexpr (kKind == RowsKind::kQuaternion) {
        if (has_value & !is_one & (k < lane.count)) {
          *lost |= 1u << k;
          rows.none[k] = true;
        }
      }
      if (has_value & (k < lane.count)) store(slot[u].target, result);
    }
  }
  return complete;
}

}  // namespace windows
}  // namespace rbc::cuda
