// How window_run.cpp writes a panel to out: normalized, and neutral or filled where it has to be.
#pragma once

#include <algorithm>
#include <cstring>

#include "element_of.h"
#include "real.h"
#include "windows/panel_fetch.h"

namespace rbc::cpu {

inline void moveElements(const std::byte* from, std::byte* to, int size, int64_t to_stride,
                         int64_t count) {
  visitWord(size, [&](auto tag) {
    using Word = typename decltype(tag)::type;
    for (int64_t i = 0; i < count; ++i) {
      std::memcpy(to + i * to_stride * size, from + i * size, sizeof(Word));
    }
  });
}

template <class Time, class Number>
void WindowRun<Time, Number>::finish(const Tile& tile) {
  const Panel& panel = memory_.panel;
  const bool fetched = rows_ != nullptr;
  FinishTile<Number> rows = {};
  const std::byte* sources[kTileRows];
  for (int i = 0; i < tile.count; ++i) {
    const bool has_row = s_.interpolates || memory_.sources[i] != nullptr;
    sources[i] = !has_row  ? nullptr
                 : fetched ? reinterpret_cast<const std::byte*>(rows_ + i * rows_step_)
                           : memory_.sources[i] + panel.in_begin * s_.values_stride[1] * in_size_;
  }
  rows.rows = sources;
  if (has_reference_) rows.reference = reinterpret_cast<const Number*>(memory_.reference);
  const StreamConstants& constants = plan_.constants[number_];
  rows.constants = constants.at<Number>(tile.first, panel.out_begin);
  rows.constants_step = constants.step;
  rows.count = tile.count;
  rows.channels = panel.out_count;
  rows.fill_bits = s_.fill_bits;
  const FinishFunction<Number> finish_rows = finishFunction<Number>(
      plan_.simd, fetched ? kDTypeOf<Number> : s_.values_dtype, s_.out.dtype);
  if (s_.out.stride[2] == 1 || panel.out_count == 1) {
    rows.out = outAt(tile.first, panel.out_begin);
    rows.out_step = s_.out.stride[1] * out_size_;
    finish_rows(rows);
    return;
  }
  const bool in_transformed = rows_ == reinterpret_cast<const Number*>(memory_.transformed);
  rows.out = reinterpret_cast<std::byte*>(in_transformed ? memory_.fetched : memory_.transformed);
  rows.out_step = panel.out_count * out_size_;
  finish_rows(rows);
  for (int i = 0; i < tile.count; ++i) {
    moveElements(rows.out + i * rows.out_step, outAt(tile.first + i, panel.out_begin),
                 static_cast<int>(out_size_), s_.out.stride[2], panel.out_count);
  }
}

template <class Time, class Number>
void WindowRun<Time, Number>::writeNeutral(const Tile& tile) {
  const Panel& panel = memory_.panel;
  for (int i = 0; i < tile.count; ++i) {
    if (!after_[i] || (!s_.interpolates && memory_.sources[i] == nullptr)) continue;
    const int64_t o = tile.first + i;
    for (int64_t d = panel.out_begin; d < panel.out_begin + panel.out_count; ++d) {
      if (!isNeutral(s_, d)) continue;
      if (!isFloat(s_.out.dtype)) {
        std::memset(outAt(o, d), 0, static_cast<size_t>(out_size_));
        continue;
      }
      const Number x = neutralAt<Number>(s_, o, d);
      visitFloat(s_.out.dtype, [&](auto tag) {
        const auto element = narrow<typename decltype(tag)::type>(x);
        std::memcpy(outAt(o, d), &element, sizeof element);
      });
    }
  }
}

template <class Time, class Number>
void WindowRun<Time, Number>::fillInvalid(const Tile& tile) {
  const Panel& panel = memory_.panel;
  for (int i = 0; i < tile.count; ++i) {
    if (has_value_[i]) continue;
    for (int64_t d = 0; d < panel.out_count; ++d) {
      if (memory_.invalid[i * panel.out_count + d] == 0) continue;
      std::memcpy(outAt(tile.first + i, panel.out_begin + d), &s_.fill_bits,
                  static_cast<size_t>(out_size_));
    }
  }
}

}  // namespace rbc::cpu
