// Normalization and limits of a stream, once a call: by channel, in the compute type.
#pragma once

#include "scratch_layout.h"
#include "window_problem.h"
#include "windows/finish_rows.h"

namespace rbc::cpu {

// Arrays [rows, channels]; null where there is nothing to do.
struct StreamConstants {
  void* shift = nullptr;
  void* scale = nullptr;
  void* bias = nullptr;
  void* low = nullptr;
  void* high = nullptr;
  int64_t step = 0;  // from offset to offset: 0, or the channels

  // Of offset o, from channel d on.
  template <class Number>
  RowConstants<Number> at(int64_t o, int64_t d) const {
    const auto array = [&](const void* all) {
      return all != nullptr ? static_cast<const Number*>(all) + o * step + d : nullptr;
    };
    return {array(shift), array(scale), array(bias), array(low), array(high)};
  }
};

// Takes their memory, which may be none.
StreamConstants constantsOf(const WindowStream& stream, ScratchLayout* layout);

// Fills it.
void fill(const WindowStream& stream, const StreamConstants& constants);

}  // namespace rbc::cpu
