// Fusion on CUDA where rows are alike: streams of one float dtype, each by methods of one kind, in
// rows that whole aligned packs of channels make up, or single channels where most make up none. It
// is the case of training batches; fuse.cu does the rest. What is known at compile time here -
// dtypes, the kind of method - leaves registers for more warps, and those hide the latency of the
// memory: fuse.cu takes 1.3 times as long.
//
// A block takes a group of up to 128 consecutive queries of the flattened [B,T] and a range of a
// stream's channels. First each thread finds the tap of one query: one search a query. Then the
// block walks the group's output, 16 bytes a thread, consecutive threads on consecutive channels,
// with several loads in flight that never wait for each other. No allocation, one launch.

#include <algorithm>
#include <type_traits>

#include "divider.cuh"
#include "find_tap.cuh"
#include "fuse_rows.h"
#include "interpolate.h"
#include "launch.h"
#include "launch_order.cuh"
#include "load_kernels.h"
#include "packs.cuh"
#include "slerp.h"
#include "tiling.h"

namespace rbc {
namespace {

// Chosen by measurement on an H200, see docs/performance.md.
constexpr int kThreads = 128;

// Streams of a launch: arguments travel with it, so a few get a small struct.
constexpr int kFewStreams = 8;
constexpr int kManyStreams = 64;
static_assert(kManyStreams == kMostStreams);

// Methods whose kernels are alike.
enum class Kind {
  kLine,      // a sample, or a line between two
  kTwoRows,   // any formula of two samples, and normalization
  kFourRows,  // any formula of four samples, and normalization
};

// Vectors in flight a thread. Lines of 16-bit floats, one stream: 1024,500,250,256 bf16 takes 94.9 us
// with 4, 95.7 with 3, 101.4 with 2; but of several streams two are better (B=512: 87.7 us, not 90).
// With 3 f32 takes 4 to 10 % longer. Of single channels more fit.
template <Kind kKind, class In, int kCount, int kStreams>
RBC_HD constexpr int vectorsInFlight() {
  if (kKind == Kind::kFourRows) return 1;
  if (kCount == 1) return sizeof(In) <= 4 ? 4 : 2;
  return kKind == Kind::kLine && kStreams == 1 && sizeof(In) == 2 ? 4 : 2;
}

// Blocks that must fit on a multiprocessor, which bounds the registers: as many as fit without
// spills. Of four rows eight, not seven: cubic takes 114 instead of 122 us, pchip 162 instead of 171.
template <Kind kKind>
constexpr int kBlocks = kKind == Kind::kTwoRows ? 7 : 8;

// A unit writes some 16 KB, or 32 KB where a query costs more. But first of all there should be
// some four blocks a multiprocessor: with eight 32,500,250,256 bf16 takes 5.6 instead of 4.1 us.
template <Kind kKind>
TilingLimits limitsOf(const LaunchDevice& device, int streams) {
  return {kThreads, 32, kKind == Kind::kLine ? 1024 : 2048, device.multiprocessors * 4 / streams};
}

// ---- arguments ----------------------------------------------------------------------------------

struct RowsTask {
  FuseStream stream;
  Method method;
  int32_t first_unit;    // of a turn
  int32_t groups;        // of queries in a turn
  int32_t group;         // queries of a unit
  int32_t vectors;       // of a row
  float pace;            // for prefetchTimes()
  int32_t step_queries;  // how far a block's next items are: kThreads / range
  int32_t step_vectors;  // kThreads % range
  Divider range;         // vectors of a unit
  Divider ranges;        // of a row
};

template <int kStreams>
struct RowsLaunch {
  FuseProblem problem;
  Divider per_row;  // queries
  Divider turns;    // units of a turn
  bool in_turns;    // more than one
  RowsTask tasks[kStreams];
};

// ---- methods ------------------------------------------------------------------------------------

// Channels of a vector: kBytes of the larger dtype, but one at least.
template <class In, class Out, int kBytes>
constexpr int kPackCount = std::max(kBytes / static_cast<int>(std::max(sizeof(In), sizeof(Out))),
                                    1);

// The kBytes of kernels for any rows whose channels are neighbours.
constexpr int kSingle = 1;

template <class Number, Kind kKind>
struct QueryWeight {
  Number w;
};
template <class Number>
struct QueryWeight<Number, Kind::kFourRows> : Weights<Number> {};

// What a block keeps of a query: where its sample and its output row begin.
template <class In, class Out, Kind kKind>
struct Query {
  const In* source;  // null: write the fill value
  Out* target;
  QueryWeight<Compute<In>, kKind> weight;
};

// The rows of values that make one of the output.
template <class P, Kind kKind>
struct RowPacks {
  P v1;
  P v2;
};
template <class P>
struct RowPacks<P, Kind::kFourRows> {
  P v0;
  P v1;
  P v2;
  P v3;
};

template <Kind kKind, class P, class In, class Out>
__device__ __forceinline__ void loadRows(const Query<In, Out, kKind>& query, int channel,
                                         int64_t step, RowPacks<P, kKind>* rows) {
  // No load waits for another: where a row is not needed, one that is loaded anyway stands for it.
  const In* source = query.source + channel;
  const int64_t ahead = query.weight.w != 0 ? step : 0;
  rows->v1 = load<P>(source);
  rows->v2 = load<P>(source + ahead);
  if constexpr (kKind == Kind::kFourRows) {
    rows->v0 = load<P>(source - (query.weight.before ? ahead : 0));
    rows->v3 = load<P>(source + (query.weight.after ? 2 * ahead : 0));
  }
}

template <class In, class Number, int kCount>
__device__ __forceinline__ void blend(const RowPacks<Pack<In, kCount>, Kind::kLine>& rows, Method,
                                      const QueryWeight<Number, Kind::kLine>& weight,
                                      Number (&out)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    const Number v1 = widen(rows.v1.element[i]);
    out[i] = weight.w == 0 ? v1 : lerp(v1, widen(rows.v2.element[i]), weight.w);
  }
}

template <class In, class Number, int kCount>
__device__ __forceinline__ void blend(const RowPacks<Pack<In, kCount>, Kind::kTwoRows>& rows,
                                      Method method,
                                      const QueryWeight<Number, Kind::kTwoRows>& weight,
                                      Number (&out)[kCount]) {
  const Number w = weight.w;
  if (w == 0) {
#pragma unroll
    for (int i = 0; i < kCount; ++i) out[i] = widen(rows.v1.element[i]);
  } else if (kCount % 4 == 0 && method == Method::kSlerp) {
#pragma unroll
    for (int i = 0; i + 4 <= kCount; i += 4) {
      Number q1[4];
      Number q2[4];
      Number q[4];
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        q1[j] = widen(rows.v1.element[i + j]);
        q2[j] = widen(rows.v2.element[i + j]);
      }
      slerp(q1, q2, w, q);
#pragma unroll
      for (int j = 0; j < 4; ++j) out[i + j] = q[j];
    }
  } else if (method == Method::kAngle) {
#pragma unroll
    for (int i = 0; i < kCount; ++i)
      out[i] = lerpAngle(widen(rows.v1.element[i]), widen(rows.v2.element[i]), w);
  } else {
#pragma unroll
    for (int i = 0; i < kCount; ++i)
      out[i] = lerp(widen(rows.v1.element[i]), widen(rows.v2.element[i]), w);
  }
}

template <class In, class Number, int kCount>
__device__ __forceinline__ void blend(const RowPacks<Pack<In, kCount>, Kind::kFourRows>& rows,
                                      Method method,
                                      const QueryWeight<Number, Kind::kFourRows>& weight,
                                      Number (&out)[kCount]) {
  const auto each = [&](auto formula) {
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      out[i] = formula(widen(rows.v0.element[i]), widen(rows.v1.element[i]),
                       widen(rows.v2.element[i]), widen(rows.v3.element[i]));
    }
  };
  if (weight.w == 0) {
    each([](Number, Number v1, Number, Number) { return v1; });
  } else if (method == Method::kCubic) {
    each([&](Number v0, Number v1, Number v2, Number v3) { return cubic(v0, v1, v2, v3, weight); });
  } else if (weight.before & weight.after) {
    each([&](Number v0, Number v1, Number v2, Number v3) {
      return pchipInside(v0, v1, v2, v3, weight);
    });
  } else {
    // Of two samples it is a line: that of the streams which take no more.
    each([&](Number v0, Number v1, Number v2, Number v3) {
      return pchipAtEnd(v0, v1, v2, v3, weight);
    });
  }
}

template <class Number, int kCount>
__device__ __forceinline__ void normalize(const FuseStream& s, int channel,
                                          Number (&values)[kCount]) {
  using P = Pack<float, kCount>;
  P mean = {};
  P inv_std;
#pragma unroll
  for (int i = 0; i < kCount; ++i) inv_std.element[i] = 1;
  if (s.mean.data != nullptr) mean = load<P>(static_cast<const float*>(s.mean.data) + channel);
  if (s.inv_std.data != nullptr)
    inv_std = load<P>(static_cast<const float*>(s.inv_std.data) + channel);
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    values[i] = normalized(values[i], static_cast<Number>(mean.element[i]),
                           static_cast<Number>(inv_std.element[i]));
  }
}

// ---- the kernel ---------------------------------------------------------------------------------

template <class In, class Out, class Time, Kind kKind>
__device__ __forceinline__ Query<In, Out, kKind> findQuery(const FuseProblem& p,
                                                           const RowsTask& task, int32_t b,
                                                           int32_t t, uint8_t* mask) {
  const FuseStream& s = task.stream;
  const Method method = task.method;
  const QueryTime<Time> query = queryAt<Time>(p, s, b, t);
  prefetchTimes<Time>(s, b, t, task.pace);
  const RowRange samples = samplesOf(s, b);
  const auto times = timesOf<Time>(s, b, samples);
  int32_t guess = -1;
  const Tap tap = findTap(times, samples.count, query, rulesOf<Time>(s, method), &guess);
  if (mask != nullptr) mask[b * p.mask_stride[0] + t * p.mask_stride[1]] = tap.mask ? 1 : 0;
  const In* source = nullptr;
  if (tap.index >= 0) {
    source = static_cast<const In*>(s.values) + b * s.values_stride[0] +
             (samples.begin + tap.index) * s.values_stride[1];
  }
  Out* target = static_cast<Out*>(p.out) + b * p.out_stride[0] + t * p.out_stride[1] + s.out_begin;
  if constexpr (kKind == Kind::kFourRows) {
    const auto n = static_cast<int32_t>(samples.count);
    return {source, target, {weightsOf(method, times, n, tap).template as<Compute<In>>()}};
  } else {
    return {source, target, {static_cast<Compute<In>>(tap.weight)}};
  }
}

// The stream that a unit of a turn belongs to. Tasks that are not there begin past all units.
template <int kStreams>
__device__ __forceinline__ int streamOf(const RowsLaunch<kStreams>& launch, int32_t unit) {
  int n = 0;
  if constexpr (kStreams <= kFewStreams) {
#pragma unroll
    for (int i = 1; i < kStreams; ++i) n += unit >= launch.tasks[i].first_unit ? 1 : 0;
  } else {
#pragma unroll
    for (int step = kStreams / 2; step > 0; step /= 2) {
      if (unit >= launch.tasks[n + step].first_unit) n += step;
    }
  }
  return n;
}

template <class In, class Out, class Time, Kind kKind, int kStreams, int kBytes>
__global__ void __launch_bounds__(kThreads, kBlocks<kKind>)
    fuseRowsKernel(const __grid_constant__ RowsLaunch<kStreams> launch) {
  constexpr int kCount = kPackCount<In, Out, kBytes>;
  constexpr int kPairs = vectorsInFlight<kKind, In, kCount, kStreams>();
  __shared__ Query<In, Out, kKind> queries[kThreads];
  const auto thread = static_cast<int>(threadIdx.x);
  const FuseProblem& p = launch.problem;
  const auto flat_end = static_cast<int32_t>(p.batch * p.queries);
  waitForLaunchesAhead();  // nothing is read or written before the launches ahead are done

  // A unit and no more: a loop over units would keep in registers what all of them share, so that
  // two blocks fewer fit on a multiprocessor.
  auto unit = static_cast<int32_t>(blockIdx.x);
  int32_t turn = 0;
  if (kStreams > 1 && launch.in_turns) {
    turn = launch.turns(unit);
    unit -= turn * static_cast<int32_t>(launch.turns.divisor);
  }
  const int n = streamOf(launch, unit);
  const RowsTask& task = launch.tasks[n];
  const FuseStream& s = task.stream;
  const auto range = static_cast<int>(task.range.divisor);
  const int32_t own = unit - task.first_unit;
  const int32_t group = task.ranges(own);
  const int32_t first_vector = (own - group * static_cast<int32_t>(task.ranges.divisor)) * range;
  const int32_t flat_group = (turn * task.groups + group) * task.group;
  const int32_t flat = flat_group + thread;
  if (thread < task.group && flat < flat_end) {
    const int32_t b = launch.per_row(flat);
    uint8_t* mask =
        p.mask != nullptr && first_vector == 0 ? p.mask + n * p.mask_stride[2] : nullptr;
    queries[thread] = findQuery<In, Out, Time, kKind>(
        p, task, b, flat - b * static_cast<int32_t>(p.queries), mask);
  }
  __syncthreads();
  letNextLaunchBegin();

  // The thread's items are (query k, vector v), as many apart as there are threads.
  const int32_t left = flat_end - flat_group;
  const int count = left < task.group ? left : task.group;
  const int32_t vectors = task.vectors - first_vector;
  const bool affine = s.mean.data != nullptr || s.inv_std.data != nullptr;
  int k = task.range(thread);
  int v = thread - k * range;
  while (k < count) {
    RowPacks<Pack<In, kCount>, kKind> rows[kPairs];
    Out* target[kPairs];
    QueryWeight<Compute<In>, kKind> weight[kPairs];
    bool valid[kPairs];
    int channel[kPairs];
#pragma unroll
    for (int u = 0; u < kPairs; ++u) {
      target[u] = nullptr;
      if (k < count && v < vectors) {
        const Query<In, Out, kKind> query = queries[k];
        channel[u] = (first_vector + v) * kCount;
        valid[u] = query.source != nullptr;
        weight[u] = query.weight;
        target[u] = query.target + channel[u];
        if (valid[u]) loadRows<kKind>(query, channel[u], s.values_stride[1], &rows[u]);
      }
      k += task.step_queries;
      v += task.step_vectors;
      if (v >= range) {
        v -= range;
        ++k;
      }
    }
#pragma unroll
    for (int u = 0; u < kPairs; ++u) {
      if (target[u] == nullptr) continue;
      Pack<Out, kCount> result;
      if (valid[u]) {
        Compute<In> values[kCount];
        blend(rows[u], task.method, weight[u], values);
        if (kKind != Kind::kLine && affine) normalize(s, channel[u], values);
        result = narrowPack<Out>(values);
      } else {
        Out fill;
        memcpy(&fill, &s.fill_bits, sizeof fill);
        for (Out& element : result.element) element = fill;
      }
      store(target[u], result);
    }
  }
}

// ---- dispatch -----------------------------------------------------------------------------------

// Whether every row of the stream's channels can be read and written in whole aligned packs.
template <class In, class Out, int kBytes>
bool suitsPacks(const FuseProblem& p, const FuseStream& s) {
  constexpr int kCount = kPackCount<In, Out, kBytes>;
  const auto aligned = [](const void* data, int64_t first, const int64_t(&stride)[3], size_t size) {
    return reinterpret_cast<uintptr_t>(data) % (size * kCount) == 0 && first % kCount == 0 &&
           stride[0] % kCount == 0 && stride[1] % kCount == 0 && stride[2] == 1;
  };
  return s.channels > 0 && s.channels % kCount == 0 &&
         aligned(s.values, 0, s.values_stride, sizeof(In)) &&
         aligned(p.out, s.out_begin, p.out_stride, sizeof(Out));
}

bool suitsPacks(const RealArray& array) {
  return array.data == nullptr ||
         (array.stride == 1 && !array.is_64 && reinterpret_cast<uintptr_t>(array.data) % 16 == 0);
}

// The kind that a stream needs.
Kind kindOf(const FuseStream& s, Method method) {
  if (takesFour(method)) return Kind::kFourRows;
  const bool affine = s.mean.data != nullptr || s.inv_std.data != nullptr;
  return affine || method == Method::kSlerp || method == Method::kAngle ? Kind::kTwoRows
                                                                        : Kind::kLine;
}

// Which kernels there are: the dtypes that training meets; four rows for one stream alone, or by single
// channels for up to eight; vectors of 8 bytes for lines alone, of up to eight. Each costs a fifth of a
// second of compilation for each architecture.
template <class In, class Out, Kind kKind, int kStreams, int kBytes>
constexpr bool hasKernel() {
  constexpr bool kSame = std::is_same_v<In, Out>;
  constexpr bool kNarrows = std::is_same_v<In, float> && sizeof(Out) < sizeof(In);
  if (kBytes < 16 && kStreams == 1) return false;
  if (kStreams == kManyStreams && kKind == Kind::kFourRows) return false;
  if (kBytes == 8 && (kKind != Kind::kLine || sizeof(In) == 8)) return false;
  if constexpr (kKind == Kind::kLine) {
    return kSame || kNarrows || (std::is_same_v<Out, float> && !kSame);
  } else {
    return (kSame || kNarrows) && sizeof(In) <= 4 &&
           (kKind == Kind::kTwoRows || kStreams == 1 || kBytes == kSingle);
  }
}

// Whether units go by queries, all streams in turn, instead of stream by stream. What is written side by
// side leaves the cache as one: 16 streams of 4 channels take 53 us, not 85, and
// B=512: 150x512, 500x64, 1000x16 82, not 87. But the longest units should come first where there are
// few: B=256 takes 31 us in turns, 29 stream by stream.
template <int kStreams>
bool goesInTurns(const FuseProblem& p, const LaunchDevice& device, bool alike, int64_t units) {
  constexpr int kManyUnits = 32;  // to a multiprocessor
  if (p.num_streams == 1) return false;
  return kStreams == kManyStreams || alike || units > int64_t{kManyUnits} * device.multiprocessors;
}

template <class In, class Out, class Time, Kind kKind, int kStreams, int kBytes>
cudaError_t launch(const FuseProblem& p, const LaunchDevice& device, cudaStream_t stream) {
  RowsLaunch<kStreams> arguments;
  arguments.problem = p;
  arguments.per_row = Divider(p.queries);
  const int64_t queries = p.batch * p.queries;
  int32_t most = 1;  // queries of a unit
  bool alike = true;
  int64_t units = 0;
  for (int n = 0; n < p.num_streams; ++n) {
    RowsTask& task = arguments.tasks[n];
    const FuseStream& s = task.stream = p.streams[n];
    const Tiling tiling = tilingOf(queries, s.channels / kPackCount<In, Out, kBytes>,
                                   limitsOf<kKind>(device, p.num_streams));
    task.method = p.segments[s.first_segment].method;
    task.group = tiling.group;
    task.vectors = static_cast<int32_t>(tiling.vectors);
    task.pace = paceOf(p, s);
    task.step_queries = static_cast<int32_t>(kThreads / tiling.range);
    task.step_vectors = static_cast<int32_t>(kThreads % tiling.range);
    task.range = Divider(tiling.range);
    task.ranges = Divider(tiling.ranges);
    most = std::max(most, task.group);
    alike &= task.group == arguments.tasks[0].group;
    units += tiling.groups * tiling.ranges;
  }
  const bool in_turns = goesInTurns<kStreams>(p, device, alike, units);
  const int64_t turns = in_turns ? (queries + most - 1) / most : 1;
  units = 0;  // of a turn
  for (int n = 0; n < kStreams; ++n) {
    RowsTask& task = arguments.tasks[n];
    task.first_unit = INT32_MAX;
    if (n >= p.num_streams) continue;
    task.first_unit = static_cast<int32_t>(units);
    task.groups = most / task.group;
    const int64_t groups = in_turns ? task.groups : (queries + task.group - 1) / task.group;
    units += groups * static_cast<int64_t>(task.ranges.divisor);
  }
  arguments.in_turns = in_turns;
  arguments.turns = Divider(units);
  units *= turns;
  return launchBlocks(fuseRowsKernel<In, Out, Time, kKind, kStreams, kBytes>, &arguments, units,
                      kThreads, device, stream);
}

// Calls visitor(Tag<In>, Tag<Out>, Tag<Time>).
template <class Visitor>
decltype(auto) visitTypes(DType in, DType out, DType time, Visitor&& visitor) {
  return visitFloat(in, [&](auto in_tag) {
    return visitFloat(out, [&](auto out_tag) {
      return visitTime(time, [&](auto time_tag) { return visitor(in_tag, out_tag, time_tag); });
    });
  });
}

using Launcher = cudaError_t (*)(const FuseProblem&, const LaunchDevice&, cudaStream_t);

template <int kStreams, int kBytes, class In, class Out, class Time>
struct Kernels {
  template <Kind kKind>
  static constexpr bool kHas = hasKernel<In, Out, kKind, kStreams, kBytes>();

  // Null, if there is none.
  static Launcher find(Kind kind) {
    if constexpr (kHas<Kind::kLine>) {
      if (kind == Kind::kLine) return launch<In, Out, Time, Kind::kLine, kStreams, kBytes>;
    }
    if constexpr (kHas<Kind::kTwoRows>) {
      if (kind == Kind::kTwoRows) return launch<In, Out, Time, Kind::kTwoRows, kStreams, kBytes>;
    }
    if constexpr (kHas<Kind::kFourRows>) {
      if (kind == Kind::kFourRows) return launch<In, Out, Time, Kind::kFourRows, kStreams, kBytes>;
    }
    return nullptr;
  }
};

// The launcher of the problem's kernel, or null if there is none.
Launcher launcherOf(const FuseProblem& p) {
  if (!isFloat(p.out_dtype) || !isFloat(p.streams[0].values_dtype)) return nullptr;
  Kind kind = Kind::kLine;  // of all streams: kTwoRows includes kLine
  bool quaternions = false;
  bool angles = false;
  for (int n = 0; n < p.num_streams; ++n) {
    const FuseStream& s = p.streams[n];
    const Method method = p.segments[s.first_segment].method;
    const Kind own = kindOf(s, method);
    quaternions |= method == Method::kSlerp;
    angles |= method == Method::kAngle;
    if (s.num_segments != 1 || s.values_dtype != p.streams[0].values_dtype ||
        !suitsShortIndexes(p, s) || !suitsPacks(s.mean) || !suitsPacks(s.inv_std)) {
      return nullptr;
    }
    kind = std::max(kind, own);
  }
  return visitTypes(
      p.streams[0].values_dtype, p.out_dtype, p.time_dtype, [&](auto in, auto out, auto time) {
        using In = typename decltype(in)::type;
        using Out = typename decltype(out)::type;
        using Time = typename decltype(time)::type;
        bool whole = true;  // 16 bytes at once
        bool half = true;
        bool single = !quaternions && !(angles && kind == Kind::kFourRows);
        int64_t in_packs = 0;  // channels more than those in none
        for (int n = 0; n < p.num_streams; ++n) {
          const bool packs = suitsPacks<In, Out, 16>(p, p.streams[n]);
          in_packs += packs ? p.streams[n].channels : -p.streams[n].channels;
          whole &= packs;
          half &= suitsPacks<In, Out, 8>(p, p.streams[n]);
          single &= suitsPacks<In, Out, kSingle>(p, p.streams[n]);
        }
        single &= in_packs <= 0;  // else fuse.cu, which takes each stream by the packs that it has
        Launcher found = nullptr;
        if (p.num_streams > kFewStreams) {
          if (whole) return Kernels<kManyStreams, 16, In, Out, Time>::find(kind);
          return single ? Kernels<kManyStreams, kSingle, In, Out, Time>::find(kind) : nullptr;
        }
        if (whole) {
          found = p.num_streams == 1 ? Kernels<1, 16, In, Out, Time>::find(kind)
                                     : Kernels<kFewStreams, 16, In, Out, Time>::find(kind);
        } else if (half) {
          found = Kernels<kFewStreams, 8, In, Out, Time>::find(kind);
        }
        if (found == nullptr && single) {
          found = Kernels<kFewStreams, kSingle, In, Out, Time>::find(kind);
        }
        return found;
      });
}

}  // namespace

bool suitsRows(const FuseProblem& p) { return launcherOf(p) != nullptr; }

cudaError_t launchFuseRows(const FuseProblem& p, const LaunchDevice& device, cudaStream_t stream) {
  return launcherOf(p)(p, device, stream);
}

cudaError_t loadFuseRows() {
  return loadKernelsBeside(fuseRowsKernel<float, float, float, Kind::kLine, 1, 16>);
}

}  // namespace rbc
