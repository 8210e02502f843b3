#include "fuse/find_arrivals.h"

#include <algorithm>
#include <atomic>
#include <type_traits>

#include "ceil_div.h"

namespace rbc::cpu {
namespace {

constexpr int64_t kBlock = int64_t{1} << kArrivalBlockLog2;

// The arrivals of a line's samples; those that are missing never arrive.
template <class Time>
struct ArrivalRow {
  TimeRow<Time> arrivals;
  ValidSamples<int64_t> valid;
  Time operator[](int64_t i) const { return valid.counts(i) ? arrivals[i] : kNeverArrives<Time>; }
};

// The minima of `count` numbers in blocks first, first + 1, ... last - 1. NaN does not count.
template <class Row, class Time>
void findBlocks(const Row& row, int64_t count, int64_t first, int64_t last, Time* to) {
  for (int64_t k = first; k < last; ++k) {
    const int64_t end = std::min(count, (k + 1) * kBlock);
    Time least = kNeverArrives<Time>;
    for (int64_t i = k * kBlock; i < end; ++i) {
      const Time own = row[i];
      least = own < least ? own : least;
    }
    to[k] = least;
  }
}

template <class Time>
void findLines(CpuState& state, const ArrivalSource& source, const ArrivalLines& lines) {
  constexpr int64_t kPiece = 1024;  // blocks, between checks for an interrupt
  auto* const memory = static_cast<Time*>(lines.minima);
  const int64_t blocks = ArrivalMinima<Time>::blocksOf(source.samples, 1);
  const int64_t pieces = ceilDiv(blocks, kPiece);
  const int64_t threads =
      std::clamp<int64_t>(source.lines * blocks / kPiece, 1, state.pool.threads());
  state.pool.parallelFor(source.lines * pieces, static_cast<int>(threads), [&](int64_t i) {
    const int64_t b = i / pieces;
    const int64_t first = i % pieces * kPiece;
    const auto find = [&](const auto& row) {
      findBlocks(row, source.samples, first, std::min(blocks, first + kPiece),
                 memory + b * lines.line);
    };
    const TimeRow<Time> row = {
        static_cast<const Time*>(source.arrivals.data) + b * source.arrivals.stride[0],
        source.arrivals.stride[1]};
    if (source.mask == nullptr) {
      find(row);
    } else {
      find(ArrivalRow<Time>{row, {source.mask + b * source.mask_stride[0], source.mask_stride[1]}});
    }
  });
  for (int64_t b = 0; b < source.lines; ++b) {
    Time* below = memory + b * lines.line;
    for (int64_t count = blocks; count > 1;) {
      const int64_t above = ArrivalMinima<Time>::blocksOf(count, 1);
      findBlocks(TimeRow<Time>{below, 1}, count, 0, above, below + count);
      below += count;
      count = above;
    }
  }
}

// Whether the arrivals of samples first .. last - 1 of a row ascend, beginning with the one before
// them. NaN does not. Samples that are missing do not count.
template <class Time>
bool ascend(const TimeRow<Time>& arrivals, const ValidSamples<int64_t>& valid, int64_t first,
            int64_t last) {
  if (valid.first == nullptr) {
    bool all = first > 0 || first >= last || arrivals[first] == arrivals[first];
    for (int64_t i = std::max<int64_t>(first, 1); i < last; ++i) {
      all &= arrivals[i - 1] <= arrivals[i];
    }
    return all;
  }
  Time before = LastArrivals<Time, ValidSamples<int64_t>>{arrivals, valid}[first - 1];
  for (int64_t i = valid.from(first, last); i < last; i = valid.from(i + 1, last)) {
    if (!(before <= arrivals[i])) return false;
    before = arrivals[i];
  }
  return true;
}

template <class Time>
bool areInOrder(CpuState& state, const FuseProblem& p, int n) {
  constexpr int64_t kPiece = 64 << 10;  // samples, between checks for an interrupt
  const FuseStream& s = p.streams[n];
  const Arrivals& arrivals = p.causal->arrivals[n];
  const int64_t pieces = std::max<int64_t>(ceilDiv(s.samples, kPiece), 1);
  std::atomic<bool> all{true};
  const int64_t threads =
      std::clamp<int64_t>(p.batch * s.samples / kPiece, 1, state.pool.threads());
  state.pool.parallelFor(p.batch * pieces, static_cast<int>(threads), [&](int64_t i) {
    if (!all.load(std::memory_order_relaxed)) return;
    const int64_t b = i / pieces;
    const RowRange samples = samplesOf(s, b);
    const int64_t first = i % pieces * kPiece;
    const int64_t last = std::min(samples.count, first + kPiece);
    if (first >= last) return;
    const TimeRow<Time> row = {static_cast<const Time*>(arrivals.data) + b * arrivals.stride[0] +
                                   samples.begin * arrivals.stride[1],
                               arrivals.stride[1]};
    if (!ascend(row, s.validOf(samples, b), first, last)) {
      all.store(false, std::memory_order_relaxed);
    }
  });
  return all.load(std::memory_order_relaxed);
}

}  // namespace

template <class Problem>
void findArrivals(CpuState& state, const Problem& p, ScratchLayout* layout, ArrivalLines* lines,
                  bool* in_order) {
  layOutArrivals(p, layout, [&](int n, const ArrivalSource& source, const ArrivalLines& found) {
    lines[n] = found;
    if constexpr (std::is_same_v<Problem, FuseProblem>) {
      in_order[n] = source.arrivals.data == nullptr;
      if (in_order[n]) return;
      if (source.lines > 0 || p.streams[n].samples <= kFewArrivals) {
        visitTime(p.time_dtype, [&](auto tag) {
          in_order[n] = areInOrder<typename decltype(tag)::type>(state, p, n);
        });
        if (in_order[n]) return;
      }
    }
    if (source.lines == 0) return;
    visitTime(p.time_dtype,
              [&](auto tag) { findLines<typename decltype(tag)::type>(state, source, found); });
  });
}

template void findArrivals(CpuState&, const FuseProblem&, ScratchLayout*, ArrivalLines*, bool*);
template void findArrivals(CpuState&, const WindowProblem&, ScratchLayout*, ArrivalLines*, bool*);

}  // namespace rbc::cpu
