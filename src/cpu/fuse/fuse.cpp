// Fusion on the CPU. Queries are divided among the threads; if they are too few, streams and their
// channels as well.

#include <algorithm>
#include <new>

#include "ceil_div.h"
#include "fuse/find_arrivals.h"
#include "fuse/stream_run.h"
#include "fuse_problem.h"
#include "hwy/cache_control.h"
#include "runtime/cpu_state.h"

namespace rbc::cpu {
namespace {

constexpr int64_t kChannelBlock = 4096;

// The cost of finding the samples of a query, in bytes moved.
constexpr int64_t kQueryBytes = 512;
// Work that pays off for one more thread, about 10 us: 20 us on one thread take 10 us on two that
// are awake, and 22.5 us if the second thread sleeps and wakes up too late.
constexpr int64_t kThreadBytes = 1 << 20;
constexpr int64_t kChunkBytes = 128 << 10;
constexpr int64_t kChunksPerThread = 8;
constexpr int64_t kMaxChunkBytes = 16 << 20;  // about 5 ms, between checks for an interrupt
// Larger outputs bypass the caches: 5 to 20 % faster, as their lines need not be read first.
constexpr int64_t kNontemporalBytes = 16 << 20;
// The part of out that all streams write before the next rows: if a cache line has channels of
// several streams, they meet in the cache.
constexpr int64_t kBandBytes = 256 << 10;

// A column is a block of a stream's channels; the last one has the remainder. There is only one if
// a mask depends on all values.
int64_t columnsOf(const FuseProblem& p, const FuseStream& s) {
  const int64_t columns = std::max<int64_t>(1, s.channels / kChannelBlock);
  return columns > 1 && p.valid != nullptr && hasQuaternions(p, s) ? 1 : columns;
}

int64_t columnBegin(const FuseStream& s, int64_t columns, int64_t column) {
  return column == columns ? s.channels : column * kChannelBlock;
}

// Queries first .. last - 1, and columns left .. right - 1 of all streams.
struct Part {
  int64_t first;
  int64_t last;
  int64_t left;
  int64_t right;
};

template <class Time>
void runPart(const Plan& plan, const Part& part, ThreadMemory& memory) {
  const FuseProblem& p = plan.problem;
  const int64_t row_bytes = std::max<int64_t>(p.channels * plan.out_size, 1);
  const int64_t band =
      p.num_streams == 1 ? part.last - part.first : std::max<int64_t>(kBandBytes / row_bytes, 64);
  for (int64_t first = part.first; first < part.last; first += band) {
    int64_t column = 0;
    for (int n = 0; n < p.num_streams; ++n) {
      const FuseStream& s = p.streams[n];
      const int64_t columns = columnsOf(p, s);
      const int64_t left = clampIndex(part.left - column, 0, columns);
      const int64_t right = clampIndex(part.right - column, 0, columns);
      if (left < right) {
        auto* run = new (memory.as<StreamRun<Time>>()) StreamRun<Time>(
            plan, n, {columnBegin(s, columns, left), columnBegin(s, columns, right)});
        run->run(first, std::min(part.last, first + band));
      }
      column += columns;
    }
  }
  if (plan.large) hwy::FlushStream();
}

// Where the i-th of `parts` equal parts of 0 .. count - 1 begins.
int64_t partBegin(int64_t count, int64_t parts, int64_t i) {
  return count / parts * i + std::min(count % parts, i);
}

template <class Time>
void runAll(CpuState& state, const Plan& plan) {
  const FuseProblem& p = plan.problem;
  const int64_t queries = p.batch * p.queries;
  int64_t bytes = 0;
  int64_t columns = 0;
  for (int n = 0; n < p.num_streams; ++n) {
    const FuseStream& s = p.streams[n];
    bytes += queries * (s.channels * (2 * sizeOf(s.values_dtype) + plan.out_size) + kQueryBytes);
    columns += columnsOf(p, s);
  }
  const int64_t threads = std::clamp<int64_t>(bytes / kThreadBytes, 1, state.pool.threads());
  if (threads == 1 && bytes <= kMaxChunkBytes) {
    runPart<Time>(plan, {0, queries, 0, columns}, state.pool.memory());
    return;
  }
  // With few queries, streams and channels are divided as well.
  const int64_t chunks = std::max(std::min(threads * kChunksPerThread, bytes / kChunkBytes),
                                  ceilDiv(bytes, kMaxChunkBytes));
  const int64_t query_parts = std::min(chunks, queries);
  const int64_t column_parts = std::min(ceilDiv(chunks, query_parts), columns);
  state.pool.parallelFor(
      query_parts * column_parts, static_cast<int>(threads), [&](int64_t i, ThreadMemory& memory) {
        const int64_t part = i / column_parts;
        const int64_t side = i % column_parts;
        runPart<Time>(
            plan,
            {partBegin(queries, query_parts, part), partBegin(queries, query_parts, part + 1),
             partBegin(columns, column_parts, side), partBegin(columns, column_parts, side + 1)},
            memory);
      });
}

size_t bytes(const BackendState&, const FuseProblem& p) { return arrivalBytes(p); }

void runWith(CpuState& state, const FuseProblem& p) {
  const int64_t out_size = sizeOf(p.out_dtype);
  const Plan plan = {p, state.simd, out_size,
                     p.batch * p.queries * p.channels * out_size > kNontemporalBytes};
  visitTime(p.time_dtype, [&](auto time) { runAll<typename decltype(time)::type>(state, plan); });
}

void runCausal(CpuState& state, FuseProblem p, Scratch scratch) {
  ArrivalLines lines[kMaxStreams];
  ScratchLayout layout(scratch.data);
  bool in_order[kMaxStreams];
  findArrivals(state, p, &layout, lines, in_order);
  CausalFuse causal = *p.causal;
  causal.lines = lines;
  causal.in_order = in_order;
  p.causal = &causal;
  runWith(state, p);
}

void run(BackendState& backend_state, const FuseProblem& p, Scratch scratch) {
  CpuState& state = cpuState(backend_state);
  if (p.causal == nullptr) {
    runWith(state, p);
  } else {
    runCausal(state, p, scratch);
  }
}

}  // namespace

extern const Operation<FuseProblem> kFuse = {bytes, run};

}  // namespace rbc::cpu
