// Checks times. Padded or packed rows are treated as one long line, which is divided into chunks
// for the threads; the first chunk with a defect is then searched for the defect itself.

#include <algorithm>
#include <atomic>
#include <type_traits>

#include "fuse_problem.h"
#include "runtime/cpu_state.h"
#include "runtime/row_line.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "fuse/check_times.cpp"
#include "runtime/simd_targets.h"

#include "hwy/foreach_target.h"

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace rbc::cpu {
namespace HWY_NAMESPACE {

// Whether no step from times[0] to times[n - 1] is a badStep(), a vector at a time. n > 0.

#if HWY_TARGET == HWY_STATIC_TARGET

template <class Time>
bool stepsAscend(const Time* times, int64_t n) {
  bool bad = false;
  for (int64_t i = 1; i < n; ++i) bad |= badStep(times[i - 1], times[i]);
  return !bad;
}

#else

namespace hn = hwy::HWY_NAMESPACE;

// Lanes whose step is bad. A leading NaN is bad as well: its own step is checked one before.
template <class D, class Time>
HWY_INLINE hn::Mask<D> badSteps(D d, const Time* to) {
  const auto time = hn::LoadU(d, to);
  const auto previous = hn::LoadU(d, to - 1);
  if constexpr (std::is_integral_v<Time>) {
    return hn::Lt(time, previous);
  } else {
    return hn::Not(hn::Le(previous, time));
  }
}

template <class Time>
bool stepsAscend(const Time* times, int64_t n) {
  const hn::ScalableTag<Time> d;
  constexpr int64_t kLanes = static_cast<int64_t>(hn::MaxLanes(hn::ScalableTag<Time>()));
  if (n <= kLanes) {
    bool bad = false;
    for (int64_t i = 1; i < n; ++i) bad |= badStep(times[i - 1], times[i]);
    return !bad;
  }
  auto bad = badSteps(d, times + n - kLanes);  // the end; it may overlap the vectors before
  int64_t i = 1;
  for (; i + 2 * kLanes <= n; i += 2 * kLanes) {
    bad = hn::Or(bad, hn::Or(badSteps(d, times + i), badSteps(d, times + i + kLanes)));
  }
  if (i + kLanes <= n) bad = hn::Or(bad, badSteps(d, times + i));
  return hn::AllFalse(d, bad);
}

#endif

}  // namespace HWY_NAMESPACE
}  // namespace rbc::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rbc::cpu {
namespace {

constexpr int64_t kChunkTimes = 1 << 14;  // about 2 us
constexpr int64_t kMaxChunks = 1 << 20;   // per call: a line with strides of 0 may have 2^63 times
constexpr int64_t kChunksPerThread = 8;   // with fewer, another thread does not pay off

template <class Time>
TimeRow<Time> timesOf(const FuseStream& s, int64_t b) {
  const auto* first = static_cast<const Time*>(s.times) + b * s.times_stride[0] +
                      samplesOf(s, b).begin * s.times_stride[1];
  return {first, s.times_stride[1]};
}

// The index of the first bad step in a piece, or -1.
template <class Time>
int64_t firstBadStep(const TimeRow<Time>& times, const RowPiece& piece) {
  for (int64_t i = piece.begin; i < piece.end; ++i) {
    if (badStep(times[std::max<int64_t>(i - 1, 0)], times[i])) return i;
  }
  return -1;
}

template <class Time>
bool hasBadStep(SimdLevel simd, const TimeRow<Time>& times, const RowPiece& piece) {
  if (times.stride != 1) return firstBadStep(times, piece) >= 0;
  const int64_t before = std::max<int64_t>(piece.begin - 1, 0);
  if (TimeMath<Time>::isNaN(times[before])) return true;
  return !RBC_AT_LEVEL(simd, stepsAscend<Time>)(times.first + before, piece.end - before);
}

void describe(const TimeRow<int64_t>& times, int64_t index, TimesDefect* defect) {
  defect->integer[0] = times[std::max<int64_t>(index - 1, 0)];
  defect->integer[1] = times[index];
}

template <class Real>
void describe(const TimeRow<Real>& times, int64_t index, TimesDefect* defect) {
  defect->real[0] = static_cast<double>(times[std::max<int64_t>(index - 1, 0)]);
  defect->real[1] = static_cast<double>(times[index]);
}

template <class Time>
void findTimeDefect(CpuState& state, const FuseStream& s, int64_t batch, TimesDefect* defect) {
  const bool packed = s.offsets.data != nullptr;
  const bool shared = !packed && s.times_stride[0] == 0 && s.lengths.data == nullptr;
  const int64_t rows = shared ? std::min<int64_t>(batch, 1) : batch;
  const int64_t total = packed ? (rows > 0 ? s.offsets[rows] : 0) : rows * s.samples;
  const RowLine line = {s.lengths, s.offsets, s.samples, rows};
  if (total == 0 || s.times == nullptr) return;
  const int64_t chunk_times = std::max(kChunkTimes, total / kMaxChunks);
  const int64_t chunks = (total - 1) / chunk_times + 1;
  const auto visitChunk = [&](int64_t chunk, auto&& visit) {
    const int64_t begin = chunk * chunk_times;
    return visitPieces(line, begin, begin + std::min(chunk_times, total - begin), visit);
  };

  std::atomic<int64_t> first_bad{chunks};
  const int threads =
      static_cast<int>(std::clamp<int64_t>(chunks / kChunksPerThread, 1, state.pool.threads()));
  state.pool.parallelFor(chunks, threads, [&](int64_t chunk) {
    if (chunk > first_bad.load(std::memory_order_relaxed)) return;
    const bool bad = visitChunk(chunk, [&](const RowPiece& piece) {
      return hasBadStep(state.simd, timesOf<Time>(s, piece.member), piece);
    });
    if (!bad) return;
    int64_t best = first_bad.load(std::memory_order_relaxed);
    while (chunk < best &&
           !first_bad.compare_exchange_weak(best, chunk, std::memory_order_relaxed)) {
    }
  });

  const int64_t chunk = first_bad.load(std::memory_order_relaxed);
  if (chunk == chunks) return;
  visitChunk(chunk, [&](const RowPiece& piece) {
    const TimeRow<Time> times = timesOf<Time>(s, piece.member);
    const int64_t index = firstBadStep(times, piece);
    if (index < 0) return false;
    *defect = {TimesDefect::kTime, piece.member, index, {}, {}};
    describe(times, index, defect);
    return true;
  });
}

size_t bytes(const BackendState&, const TimesProblem&) { return 0; }

// The host has already checked lengths and offsets.
void run(BackendState& state, const TimesProblem& problem, Scratch) {
  const FuseProblem& p = problem.fuse;
  *problem.defect = {};
  visitTime(p.time_dtype, [&](auto time) {
    findTimeDefect<typename decltype(time)::type>(cpuState(state), p.streams[problem.stream],
                                                  p.batch, problem.defect);
  });
}

}  // namespace

extern const Operation<TimesProblem> kCheckTimes = {bytes, run};

}  // namespace rbc::cpu
#endif  // HWY_ONCE
