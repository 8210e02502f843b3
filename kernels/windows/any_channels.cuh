// Channels one by one: what is read, copied, subtracted from, normalized and written in any dtype.
#pragma once

#include "element_of.h"
#include "windows/any_memory.cuh"

namespace rbc::cuda {
namespace windows {

// Writes a channel of a row, if there is an output: `x`, or where it has no value the fill value.
template <class Number>
__device__ __forceinline__ void writeChannel(const WindowPart& part, int row, int64_t d, Number x,
                                             bool has_value) {
  const WindowStream& s = part.s;
  if (!has_value) {
    part.memory.valid[row] = false;
    part.memory.whole[row] = false;
  }
  if (s.out.data == nullptr) return;
  const int64_t o = part.first + row;
  const int64_t at = part.window * s.out.stride[0] + o * s.out.stride[1] + d * s.out.stride[2];
  if (has_value) x = finished(s, o, d, x, part.memory.after[row]);
  switch (s.out.dtype) {
#define RBC_CASE(name, storage, code, text)                               \
  case DType::name:                                                       \
    static_cast<storage*>(s.out.data)[at] =                               \
        has_value ? narrow<storage>(x) : elementOf<storage>(s.fill_bits); \
    return;
    RBC_FLOAT_DTYPES(RBC_CASE)
#undef RBC_CASE
    default: return;
  }
}

// Copies channels of integers as they are; neutral ones are 0.
template <class Word>
__device__ __forceinline__ void copyWords(const WindowPart& part, const WindowSegment& segment) {
  const WindowStream& s = part.s;
  for (int k = 0; k < part.count; ++k) {
    const int64_t row = part.memory.places[k].row;
    const Word* const values = static_cast<const Word*>(s.values) + row * s.values_stride[0];
    Word* const out = static_cast<Word*>(s.out.data) + part.window * s.out.stride[0] +
                      (part.first + k) * s.out.stride[1];
    for (int64_t i = laneOfWarp(); i < segment.count; i += kWarp) {
      const int64_t d = segment.out_begin + i;
      auto word = elementOf<Word>(s.fill_bits);
      if (row >= 0) word = values[(segment.begin + i) * s.values_stride[1]];
      if (part.memory.after[k] && isNeutral(s, d)) word = 0;
      out[d * s.out.stride[2]] = word;
    }
  }
}

// Channels of one method, which begin at `first` of the segment: copied, or with references in memory
// less those.
template <class Number>
__device__ __noinline__ void writeChannels(const WindowPart& part, const WindowSegment& segment,
                                           const ChannelSegment& method, int64_t first, int count,
                                           int reference) {
  visitItems(part.count, count, [&](int row, int i) {
    Number x = 0;
    const int64_t channel = segment.begin + first + i;
    bool has_value =
        fetchChannel(part.s, part.memory.places[row], method.method, method.begin, channel, &x);
    if (segment.kind == WindowKind::kSubtract) {
      has_value = has_value && part.memory.referred[reference + i];
      x = subtracted(x, static_cast<Number>(part.memory.reference[reference + i]), segment.inverse);
    }
    writeChannel(part, row, segment.out_begin + first + i, x, has_value);
  });
}

// The channels of a pose that one method has, as f64, of the rows from `first_row` on.
__device__ __noinline__ void stageChannels(const WindowPart& part, const ChannelSegment& method,
                                           int64_t begin, int first, int count, int first_row,
                                           double (&to)[kWarp][kPitch]) {
  visitItems(part.count, count, [&](int row, int i) {
    if (row < first_row) return;
    const bool has_value = fetchChannel(part.s, part.memory.places[row], method.method,
                                        method.begin, begin + first + i, &to[row][first + i]);
    if (!has_value) part.memory.posed[row] = false;
  });
}

}  // namespace windows
}  // namespace rbc::cuda
