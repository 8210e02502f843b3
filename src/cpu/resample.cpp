// Resampling on the CPU. Queries are cut into chunks for the threads, and a chunk into tiles: first
// the samples that answer a tile's queries are found, then their rows of channels are computed.

#include <algorithm>
#include <cstddef>

#include "cpu_state.h"
#include "hwy/cache_control.h"
#include "resample_problem.h"
#include "resample_rows.h"
#include "tap_finder.h"

namespace rbc {
namespace {

constexpr int kTileQueries = 64;
constexpr int64_t kChannelBlock = 4096;

// What finding the samples of a query costs, as bytes moved.
constexpr int64_t kQueryBytes = 512;
// Work that is worth one more thread, some 10 us: 20 us on one thread take 10 on two that are
// awake, and 22.5 where the second sleeps and comes too late.
constexpr int64_t kThreadBytes = 1 << 20;
constexpr int64_t kChunkBytes = 128 << 10;
constexpr int64_t kChunksPerThread = 8;
// Larger outputs go past the caches: 5 to 20 % faster, as their lines need not be read first.
constexpr int64_t kStreamBytes = 16 << 20;

struct Plan {
  const ResampleProblem& problem;
  RowsFunction rows;
  int64_t in_size;  // bytes of an element
  int64_t out_size;
  bool stream;
};

// Queries first .. last - 1, counted through the whole batch, and some of their channels.
struct Part {
  int64_t first;
  int64_t last;
  int64_t channel;
  int64_t channels;
};

// Some 4 KiB under way: cold rows of 512 bytes take half the time, rows of 1 KiB in L3 two thirds.
// Beyond 32 KiB a row's first lines would be gone again when it is due.
int rowsAhead(int64_t row_bytes) {
  if (row_bytes > 32 << 10) return 0;
  return static_cast<int>(std::clamp<int64_t>((4 << 10) / std::max<int64_t>(row_bytes, 1), 1, 16));
}

// Rows of the output on their way to be computed.
struct TileBuffer {
  TileBuffer(const Plan& plan, const Part& part)
      : tile{rows,
             0,
             rowsAhead(part.channels * plan.in_size),
             plan.stream,
             part.channels,
             plan.problem.values_stride[2],
             plan.problem.out_stride[2],
             plan.problem.fill_bits} {}

  RowTask rows[kTileQueries];
  RowTile tile;
};

// Queries first .. last - 1 of row b against its samples, whose times are given.
template <class Time, class Row>
void resampleRow(const Plan& plan, const Part& part, const Row& times, const SampleRange& samples,
                 int64_t b, int64_t first, int64_t last, TileBuffer* buffer) {
  const ResampleProblem& p = plan.problem;
  const int64_t sample_bytes = p.values_stride[1] * plan.in_size;
  const int64_t query_bytes = p.out_stride[1] * plan.out_size;
  const auto* values = static_cast<const std::byte*>(p.values) + samples.begin * sample_bytes +
                       (b * p.values_stride[0] + part.channel * p.values_stride[2]) * plan.in_size;
  auto* out = static_cast<std::byte*>(p.out) +
              (b * p.out_stride[0] + part.channel * p.out_stride[2]) * plan.out_size;
  uint8_t* mask = p.mask != nullptr && part.channel == 0 ? p.mask + b * p.mask_stride[0] : nullptr;
  const TimeRow<Time> queries = {static_cast<const Time*>(p.query_times) + b * p.query_stride[0],
                                 p.query_stride[1]};
  const int64_t valid = queriesOf(p, b);

  TapFinder<Time, Row> find(times, samples.count, rulesOf<Time>(p));
  while (first < last) {
    int count = buffer->tile.count;
    const int64_t end = std::min(last, first + kTileQueries - count);
    for (int64_t t = first; t < end; ++t) {
      const Tap tap = t < valid ? find(queries[t]) : invalidTap();
      if (mask != nullptr) mask[t * p.mask_stride[1]] = tap.mask;
      const std::byte* left = tap.index < 0 ? nullptr : values + tap.index * sample_bytes;
      const std::byte* right = tap.weight == 0 ? left : left + sample_bytes;
      buffer->rows[count++] = {left, right, out + t * query_bytes, tap.weight};
    }
    buffer->tile.count = count;
    if (count == kTileQueries) {
      plan.rows(buffer->tile);
      buffer->tile.count = 0;
    }
    first = end;
  }
}

template <class Time>
void resamplePart(const Plan& plan, const Part& part) {
  const ResampleProblem& p = plan.problem;
  TileBuffer buffer(plan, part);
  for (int64_t at = part.first; at < part.last;) {
    const int64_t b = at / p.queries;
    const int64_t first = at - b * p.queries;
    const int64_t last = std::min(p.queries, first + part.last - at);
    const SampleRange range = samplesOf(p, b);
    const int64_t stride = p.times_stride[1];
    const auto* times =
        static_cast<const Time*>(p.times) + b * p.times_stride[0] + range.begin * stride;
    if (stride == 1) {
      resampleRow<Time>(plan, part, times, range, b, first, last, &buffer);
    } else {
      resampleRow<Time>(plan, part, TimeRow<Time>{times, stride}, range, b, first, last, &buffer);
    }
    at += last - first;
  }
  plan.rows(buffer.tile);
  if (plan.stream) hwy::FlushStream();
}

int64_t divideUp(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Where the i-th of `parts` even parts of 0 .. count - 1 begins.
int64_t partBegin(int64_t count, int64_t parts, int64_t i) {
  return count / parts * i + std::min(count % parts, i);
}

template <class Time>
void resampleAll(CpuState& state, const Plan& plan) {
  const ResampleProblem& p = plan.problem;
  const int64_t queries = p.batch * p.queries;
  const int64_t bytes = queries * (p.channels * (2 * plan.in_size + plan.out_size) + kQueryBytes);
  const int64_t threads = std::clamp<int64_t>(bytes / kThreadBytes, 1, state.pool.threads());
  if (threads == 1) {
    resamplePart<Time>(plan, {0, queries, 0, p.channels});
    return;
  }
  // A few long rows are cut by channels as well.
  const int64_t chunks = std::min(threads * kChunksPerThread, bytes / kChunkBytes);
  const int64_t query_parts = std::min(chunks, queries);
  const int64_t blocks = std::max<int64_t>(1, p.channels / kChannelBlock);
  const int64_t channel_parts = std::min(divideUp(chunks, query_parts), blocks);
  const auto channelBegin = [&](int64_t part) {
    return part == channel_parts ? p.channels
                                 : partBegin(blocks, channel_parts, part) * kChannelBlock;
  };
  state.pool.parallelFor(query_parts * channel_parts, static_cast<int>(threads), [&](int64_t i) {
    const int64_t part = i / channel_parts;
    const int64_t channel = channelBegin(i % channel_parts);
    resamplePart<Time>(
        plan, {partBegin(queries, query_parts, part), partBegin(queries, query_parts, part + 1),
               channel, channelBegin(i % channel_parts + 1) - channel});
  });
}

// Streaming stores must fill whole cache lines: where rows begin within a line, they make the whole
// take twice as long.
bool streams(const ResampleProblem& p, bool contiguous, int64_t out_size) {
  constexpr int64_t kLine = 64;
  const auto whole = [&](int64_t elements) { return elements * out_size % kLine == 0; };
  return contiguous && p.batch * p.queries * p.channels * out_size > kStreamBytes &&
         reinterpret_cast<uintptr_t>(p.out) % kLine == 0 && whole(p.channels) &&
         whole(p.out_stride[0]) && whole(p.out_stride[1]);
}

}  // namespace

void resampleOnCpu(BackendState& backend_state, const ResampleProblem& p) {
  CpuState& state = cpuState(backend_state);
  const bool contiguous = p.channels == 1 || (p.values_stride[2] == 1 && p.out_stride[2] == 1);
  const int64_t out_size = sizeOf(p.out_dtype);
  const Plan plan = {p, rowsFunction(state.simd, {p.values_dtype, p.out_dtype, contiguous}),
                     sizeOf(p.values_dtype), out_size, streams(p, contiguous, out_size)};
  visitTime(p.time_dtype,
            [&](auto time) { resampleAll<typename decltype(time)::type>(state, plan); });
}

}  // namespace rbc
