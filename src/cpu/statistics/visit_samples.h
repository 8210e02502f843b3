// The samples of a row of the batch, run by run: those that lie at one stride.
#pragma once

#include <algorithm>
#include <cstdint>

#include "statistics_problem.h"

namespace rbc::cpu {

// Samples at one stride. The mask's bytes may be null.
struct SampleRun {
  const std::byte* data;  // of the first channel
  const uint8_t* mask;
  int64_t count;
  int64_t stride;  // in elements
  int64_t mask_stride;
};

// Calls visit(SampleRun) for the samples begin .. end - 1 of a row, in order.
template <class Visitor>
void visitRuns(const Samples& s, int64_t row, int64_t begin, int64_t end, Visitor&& visit) {
  const SampleAxis& inner = s.axis[s.axes - 1];
  const int64_t size = sizeOf(s.dtype);
  while (begin < end) {
    const int64_t rest = inner.extent - begin % inner.extent;
    const int64_t count = std::min(end - begin, rest);
    const SamplePlace place = placeOf(s, row, begin);
    visit(SampleRun{static_cast<const std::byte*>(s.data) + place.value * size,
                    s.mask != nullptr ? s.mask + place.mask : nullptr, count, inner.stride,
                    inner.mask_stride});
    begin += count;
  }
}

}  // namespace rbc::cpu
