// Reads the samples of a thread's channel.
#pragma once

#include "dtype.h"
#include "runtime/aligned_vec.cuh"
#include "statistics/select.h"
#include "statistics_problem.h"

namespace rbc::cuda {
namespace statistics {

// The samples of a group: `count` of them from the first on, in one row or in all.
struct GroupRange {
  int64_t row;
  int64_t begin;
  int64_t count;  // including those that lengths or a mask exclude
};

__device__ __forceinline__ GroupRange rangeOfGroup(const Samples& s, bool per_row, int64_t group) {
  if (per_row) {
    const RowRange range = samplesOf(s, group);
    return {group, range.begin, range.count};
  }
  if (!s.packed()) return {0, 0, s.batch * s.rows};
  const int64_t begin = s.batch > 0 ? clampIndex(s.offsets[0], 0, s.rows) : 0;
  const int64_t end = s.batch > 0 ? clampIndex(s.offsets[s.batch], begin, s.rows) : 0;
  return {0, begin, end - begin};
}

// The same, called by all threads of a block. One of them reads lengths and offsets: another thread
// may be writing them, and threads with different counts would not meet at barriers.
__device__ __forceinline__ GroupRange rangeOfBlock(const Samples& s, bool per_row, int64_t group,
                                                   GroupRange& memory) {
  if (s.offsets.data == nullptr && s.lengths.data == nullptr) {
    return rangeOfGroup(s, per_row, group);
  }
  __syncthreads();  // all have read the previous range
  if (threadIdx.x == 0) memory = rangeOfGroup(s, per_row, group);
  __syncthreads();
  return memory;
}

template <class Number>
struct NotANumber;
template <>
struct NotANumber<float> {
  static __device__ __forceinline__ float value() { return bitCast<float>(0x7fffffffu); }
};
template <>
struct NotANumber<double> {
  static __device__ __forceinline__ double value() {
    return bitCast<double>(0x7fffffffffffffffull);
  }
};

// Samples with one stride, all of them valid.
template <class T>
struct PlainReader {
  using Storage = T;
  using Number = Compute<T>;

  const T* at;  // the first sample
  int64_t stride;
  int64_t count;

  __device__ __forceinline__ PlainReader(const Samples& s, const GroupRange& range, int64_t channel)
      : at(static_cast<const T*>(s.data) + range.row * s.batch_stride +
           range.begin * s.axis[0].stride + channel * s.channel_stride),
        stride(s.axis[0].stride),
        count(range.count) {}

  // x[j] of sample first + j * step. Returns a bit mask of the valid ones; the others are NaN.
  __device__ __forceinline__ uint32_t read(int64_t first, int step, Number (&x)[kBatch]) const {
    const T* p = at + first * stride;
    const int64_t leap = step * stride;
    if (first + (kBatch - 1) * static_cast<int64_t>(step) < count) {
#pragma unroll
      for (int j = 0; j < kBatch; ++j) x[j] = widen(load<T>(p + j * leap));
      return (1u << kBatch) - 1;
    }
    uint32_t valid = 0;
#pragma unroll
    for (int j = 0; j < kBatch; ++j) {
      const bool inside = first + j * static_cast<int64_t>(step) < count;
      x[j] = inside ? widen(load<T>(p + j * leap)) : NotANumber<Number>::value();
      valid |= (inside ? 1u : 0u) << j;
    }
    return valid;
  }

  // One valid sample; else NaN.
  __device__ __forceinline__ Number readOne(int64_t i) const {
    return i < count ? widen(load<T>(at + i * stride)) : NotANumber<Number>::value();
  }
};

template <class Number, class Visitor>
__device__ __forceinline__ void visitStorageOf(DType dtype, Visitor&& visitor) {
  if constexpr (sizeof(Number) == 8) {
    switch (dtype) {
      case DType::I32: return visitor(Tag<int32_t>{});
      case DType::U32: return visitor(Tag<uint32_t>{});
      case DType::I64: return visitor(Tag<int64_t>{});
      case DType::U64: return visitor(Tag<uint64_t>{});
      default: return visitor(Tag<double>{});
    }
  } else {
    switch (dtype) {
      case DType::F16: return visitor(Tag<f16>{});
      case DType::BF16: return visitor(Tag<bf16>{});
      case DType::Bool:
      case DType::U8: return visitor(Tag<uint8_t>{});
      case DType::I8: return visitor(Tag<int8_t>{});
      case DType::I16: return visitor(Tag<int16_t>{});
      case DType::U16: return visitor(Tag<uint16_t>{});
      default: return visitor(Tag<float>{});
    }
  }
}

// Any samples whose numbers are computed in this type.
template <class N>
struct AnyReader {
  using Storage = void;
  using Number = N;

  const Samples& s;
  GroupRange range;
  int64_t channel_offset;
  int64_t mask_offset;
  int64_t count;

  __device__ __forceinline__ AnyReader(const Samples& samples, const GroupRange& r, int64_t channel)
      : s(samples),
        range(r),
        channel_offset(channel * samples.channel_stride),
        mask_offset(samples.maskOffset(channel)),
        count(r.count) {}

  // The position of a sample's value. Returns false if it is not counted.
  __device__ __forceinline__ bool locate(int64_t i, int64_t* offset) const {
    if (i >= count) return false;
    int64_t row = range.row;
    int64_t sample = range.begin + i;
    if (s.batch > 1 && count > s.rows) {  // all rows together
      row = i / s.rows;
      sample = i - row * s.rows;
      if (s.lengths.data != nullptr && sample >= s.lengths[row]) return false;
    } else if (s.lengths.data != nullptr && sample >= s.lengths[row]) {
      return false;
    }
    const SamplePlace place = placeOf(s, row, sample);
    *offset = place.value + channel_offset;
    return s.mask == nullptr || __ldg(s.mask + place.mask + mask_offset) != 0;
  }

  __device__ __forceinline__ uint32_t read(int64_t first, int step, Number (&x)[kBatch]) const {
    int64_t at[kBatch];
#pragma unroll
    for (int j = 0; j < kBatch; ++j) at[j] = first + j * static_cast<int64_t>(step);
    return readAt(at, x);
  }

  // Samples anywhere; all loads are issued together.
  template <int kCount>
  __device__ __forceinline__ uint32_t readAt(const int64_t (&at)[kCount],
                                             Number (&x)[kCount]) const {
    int64_t offset[kCount];
    uint32_t valid = 0;
#pragma unroll
    for (int j = 0; j < kCount; ++j) {
      offset[j] = 0;
      valid |= (locate(at[j], &offset[j]) ? 1u : 0u) << j;
    }
    visitStorageOf<Number>(s.dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      const T* data = static_cast<const T*>(s.data);
#pragma unroll
      for (int j = 0; j < kCount; ++j) {
        x[j] =
            (valid >> j & 1) != 0 ? widen(load<T>(data + offset[j])) : NotANumber<Number>::value();
      }
    });
    return valid;
  }

  __device__ __forceinline__ Number readOne(int64_t i) const {
    int64_t offset = 0;
    Number x = NotANumber<Number>::value();
    if (!locate(i, &offset)) return x;
    visitStorageOf<Number>(s.dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      x = widen(load<T>(static_cast<const T*>(s.data) + offset));
    });
    return x;
  }
};

}  // namespace statistics
}  // namespace rbc::cuda
