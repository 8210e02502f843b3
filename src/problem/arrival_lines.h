// The minima of arrivals, in workspace: which streams have them, and where they are.
#pragma once

#include <cstddef>
#include <limits>

#include "fuse_problem.h"
#include "scratch_layout.h"
#include "window_problem.h"

namespace rbc {

// Fewer samples are searched as fast one by one, and a few queries are not worth the minima.
inline constexpr int64_t kFewArrivals = int64_t{4} << kArrivalBlockLog2;
inline constexpr int64_t kFewArrivalQueries = 4;

// The lines of a stream whose minima are needed.
struct ArrivalSource {
  Arrivals arrivals;
  const uint8_t* mask;  // null: no sample is missing
  int64_t mask_stride[2];
  int64_t samples;  // of a line
  int64_t lines;    // 0: no minima are needed
};

// Rows of the batch that share arrivals, and which of their samples are missing, have one line.
inline ArrivalSource arrivalSourceOf(const FuseProblem& p, int stream) {
  const FuseStream& s = p.streams[stream];
  ArrivalSource source = {p.causal->arrivals[stream],
                          s.sample_mask,
                          {s.sample_mask_stride[0], s.sample_mask_stride[1]},
                          s.samples,
                          0};
  const bool packed = s.offsets.data != nullptr;
  if (source.arrivals.data == nullptr || s.samples <= kFewArrivals) return source;
  if (p.queries < kFewArrivalQueries && !packed) return source;
  const bool own =
      source.arrivals.stride[0] != 0 || (s.sample_mask != nullptr && source.mask_stride[0] != 0);
  source.lines = own ? p.batch : 1;
  return source;
}

// A search within an episode goes through half of it: minima of all episodes are worth their time
// if there is an element for each.
inline ArrivalSource arrivalSourceOf(const WindowProblem& p, int stream) {
  const WindowStream& s = p.streams[stream];
  ArrivalSource source = {
      p.causal->arrivals[stream], s.sample_mask, {0, s.sample_mask_stride}, s.rows, 0};
  const int64_t episodes = p.causal->episodes;
  if (source.arrivals.data == nullptr || !s.interpolates) return source;
  if (s.num_offsets == 0 || p.windows <= episodes / s.num_offsets) return source;
  if (s.rows / kFewArrivals > episodes) source.lines = 1;
  return source;
}

// Calls visit(stream, source, lines) for each stream; `lines` has no memory without minima, or if
// only the size is needed.
template <class Problem, class Visitor>
void layOutArrivals(const Problem& p, ScratchLayout* layout, Visitor&& visit) {
  for (int n = 0; n < p.num_streams && p.causal != nullptr; ++n) {
    const ArrivalSource source = arrivalSourceOf(p, n);
    ArrivalLines lines;
    if (source.lines > 0) {
      const int64_t line = arrivalMinimaOf(source.samples);
      int64_t bytes = 0;
      if (__builtin_mul_overflow(source.lines, line * sizeOf(p.time_dtype), &bytes)) {
        bytes = std::numeric_limits<int64_t>::max();
      }
      lines = {layout->take<std::byte>(bytes), source.lines > 1 ? line : 0};
    }
    visit(n, source, lines);
  }
}

template <class Problem>
size_t arrivalBytes(const Problem& p) {
  ScratchLayout layout(nullptr);
  layOutArrivals(p, &layout, [](int, const ArrivalSource&, const ArrivalLines&) {});
  return layout.used();
}

}  // namespace rbc
