#include "fuse/arrival_lines.h"

#include <algorithm>
#include <limits>
#include <type_traits>

#include "ceil_div.h"
#include "scratch_layout.h"

namespace rbc::cpu {
namespace {

constexpr int64_t kBlock = int64_t{1} << kArrivalBlockLog2;

// Fewer samples are searched as fast one by one, and a few queries are not worth the minima.
constexpr int64_t kFewSamples = 4 * kBlock;
constexpr int64_t kFewQueries = 4;

// The number of lines whose minima are needed: rows of the batch that share arrivals have one.
int64_t linesOf(const FuseProblem& p, int stream) {
  if (p.causal == nullptr || p.causal->arrivals[stream].data == nullptr) return 0;
  const FuseStream& s = p.streams[stream];
  const bool packed = s.offsets.data != nullptr;
  if (s.samples <= kFewSamples || (p.queries < kFewQueries && !packed)) return 0;
  return p.causal->arrivals[stream].stride[0] != 0 ? p.batch : 1;
}

template <class Time>
constexpr Time kNever = std::numeric_limits<Time>::has_infinity
                            ? std::numeric_limits<Time>::infinity()
                            : std::numeric_limits<Time>::max();

// NaN does not count: what never arrives is skipped.
template <class Row>
auto leastOf(const Row& row, int64_t begin, int64_t end) {
  auto least = kNever<std::decay_t<decltype(row[0])>>;
  for (int64_t i = begin; i < end; ++i) least = row[i] < least ? row[i] : least;
  return least;
}

// The minima of `count` numbers in blocks first, first + 1, ... last - 1.
template <class Time>
void findBlocks(const TimeRow<Time>& row, int64_t count, int64_t first, int64_t last, Time* to) {
  for (int64_t k = first; k < last; ++k) {
    to[k] = leastOf(row, k * kBlock, std::min(count, (k + 1) * kBlock));
  }
}

template <class Time>
void findLines(CpuState& state, const FuseProblem& p, int stream, int64_t lines, Time* memory) {
  constexpr int64_t kPiece = 1024;  // blocks, between checks for an interrupt
  const FuseStream& s = p.streams[stream];
  const Arrivals& arrivals = p.causal->arrivals[stream];
  const int64_t line = arrivalMinimaOf(s.samples);
  const int64_t blocks = ArrivalMinima<Time>::blocksOf(s.samples, 1);
  const int64_t pieces = ceilDiv(blocks, kPiece);
  const int64_t threads = std::clamp<int64_t>(lines * blocks / kPiece, 1, state.pool.threads());
  state.pool.parallelFor(lines * pieces, static_cast<int>(threads), [&](int64_t i) {
    const int64_t b = i / pieces;
    const int64_t first = i % pieces * kPiece;
    const auto* row = static_cast<const Time*>(arrivals.data) + b * arrivals.stride[0];
    findBlocks<Time>({row, arrivals.stride[1]}, s.samples, first, std::min(blocks, first + kPiece),
                     memory + b * line);
  });
  for (int64_t b = 0; b < lines; ++b) {
    Time* below = memory + b * line;
    for (int64_t count = blocks; count > 1;) {
      const int64_t above = ArrivalMinima<Time>::blocksOf(count, 1);
      findBlocks<Time>({below, 1}, count, 0, above, below + count);
      below += count;
      count = above;
    }
  }
}

// Calls visit(stream, lines, memory) for the streams with minima.
template <class Visitor>
size_t layOut(const FuseProblem& p, void* memory, Visitor&& visit) {
  ScratchLayout layout(memory);
  if (p.causal == nullptr) return 0;
  for (int n = 0; n < p.num_streams; ++n) {
    const int64_t lines = linesOf(p, n);
    if (lines == 0) continue;
    int64_t bytes = 0;
    const int64_t line = arrivalMinimaOf(p.streams[n].samples) * sizeOf(p.time_dtype);
    if (__builtin_mul_overflow(lines, line, &bytes)) bytes = std::numeric_limits<int64_t>::max();
    visit(n, lines, layout.take<std::byte>(bytes));
  }
  return layout.used();
}

}  // namespace

size_t arrivalBytes(const FuseProblem& p) {
  return layOut(p, nullptr, [](int, int64_t, std::byte*) {});
}

void findArrivalLines(CpuState& state, const FuseProblem& p, Scratch scratch,
                      ArrivalLines* arrivals) {
  layOut(p, scratch.data, [&](int n, int64_t lines, std::byte* memory) {
    arrivals[n] = {memory, lines > 1 ? arrivalMinimaOf(p.streams[n].samples) : 0};
    visitTime(p.time_dtype, [&](auto tag) {
      using Time = typename decltype(tag)::type;
      findLines(state, p, n, lines, reinterpret_cast<Time*>(memory));
    });
  });
}

}  // namespace rbc::cpu
