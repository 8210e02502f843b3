// Which kernels of whole rows there are, which one suits a problem, and its launch. Each dtype of
// times has a source file of its own, as they take long to compile.
#pragma once

#include "fuse/fuse_rows_kernel.cuh"
#include "fuse/fuse_rows_launch.h"
#include "runtime/launch.h"
#include "runtime/load_kernels.h"
#include "runtime/tiling.h"

namespace rbc::cuda {
namespace rows {

// A unit writes some 16 KB, or 32 KB where a query costs more. But first of all there should be
// some four blocks a multiprocessor: with eight 32,500,250,256 bf16 takes 5.6 instead of 4.1 us.
template <Kind kKind, int kBytes>
TilingLimits limitsOf(const LaunchDevice& device, int streams) {
  const int vectors = kKind == Kind::kLine && kBytes != kSingle ? 1024 : 2048;
  return {kThreads, 32, vectors, device.multiprocessors * 4 / streams};
}

// Whether every row of the stream's channels can be read and written in whole aligned packs.
template <class In, class Out, int kBytes>
bool suitsVecs(const FuseProblem& p, const FuseStream& s) {
  constexpr int kCount = kVecCount<In, Out, kBytes>;
  const auto aligned = [](const void* data, int64_t first, const int64_t(&stride)[3], size_t size) {
    return reinterpret_cast<uintptr_t>(data) % (size * kCount) == 0 && first % kCount == 0 &&
           stride[0] % kCount == 0 && stride[1] % kCount == 0 && stride[2] == 1;
  };
  return s.channels > 0 && s.channels % kCount == 0 &&
         aligned(s.values, 0, s.values_stride, sizeof(In)) &&
         aligned(p.out, s.out_begin, p.out_stride, sizeof(Out));
}

inline bool suitsVecs(const RealArray& array) {
  return array.data == nullptr ||
         (array.stride == 1 && !array.is_64 && reinterpret_cast<uintptr_t>(array.data) % 16 == 0);
}

// The kind that a stream needs.
inline Kind kindOf(const FuseStream& s, Method method) {
  if (takesFour(method)) return Kind::kFourRows;
  const bool affine = s.mean.data != nullptr || s.inv_std.data != nullptr;
  return affine || method == Method::kSlerp || method == Method::kAngle ? Kind::kTwoRows
                                                                        : Kind::kLine;
}

// Which kernels there are: the dtypes that training meets; four rows for one stream alone, or by single
// channels for up to eight; vectors of 8 bytes for lines alone, of up to eight; single channels of one
// stream for lines alone. Each costs some 0.4 seconds of compilation for each architecture.
template <class In, class Out, Kind kKind, int kStreams, int kBytes>
constexpr bool hasKernel() {
  constexpr bool kSame = std::is_same_v<In, Out>;
  constexpr bool kNarrows = std::is_same_v<In, float> && sizeof(Out) < sizeof(In);
  if (kBytes < 16 && kStreams == 1 && (kBytes != kSingle || kKind != Kind::kLine)) return false;
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

// What the task of stream n says of memory and of the rules.
template <class In, class Out, class Time>
void describe(const FuseProblem& p, int n, RowsTask<Time>* task) {
  const FuseStream& s = p.streams[n];
  task->samples = sampleRowsOf<Time, int32_t>(s, paceOf(p, s));
  task->values = batchRows<int32_t>(static_cast<const char*>(s.values), s.values_stride[0],
                                    s.values_stride[1], sizeof(In));
  task->out = batchRows<int32_t>(static_cast<char*>(p.out) + s.out_begin * int64_t{sizeof(Out)},
                                 p.out_stride[0], p.out_stride[1], sizeof(Out));
  uint8_t* mask = p.mask != nullptr ? p.mask + n * p.mask_stride[2] : nullptr;
  task->mask = batchRows<int32_t>(mask, p.mask_stride[0], p.mask_stride[1], 1);
  task->rules = rulesOf<Time>(s, p.segments[s.first_segment].method);
  task->clock_offset = offsetAs<Time>(s.clock_offset);
  task->fill_bits = s.fill_bits;
  task->mean = static_cast<const float*>(s.mean.data);
  task->inv_std = static_cast<const float*>(s.inv_std.data);
}

template <class In, class Out, class Time, Kind kKind, int kStreams, int kBytes>
cudaError_t launch(const FuseProblem& p, const LaunchDevice& device, cudaStream_t stream) {
  const int64_t queries = p.batch * p.queries;
  RowsLaunch<Time, kStreams> arguments;
  arguments.queries = queryRowsOf<Time, int32_t>(p);
  arguments.flat_end = static_cast<int32_t>(queries);
  arguments.per_row = FastDivmod(p.queries);
  int32_t most = 1;  // queries of a unit
  bool alike = true;
  int64_t units = 0;
  for (int n = 0; n < p.num_streams; ++n) {
    RowsTask<Time>& task = arguments.tasks[n];
    const FuseStream& s = p.streams[n];
    describe<In, Out>(p, n, &task);
    const Tiling tiling = tilingOf(queries, s.channels / kVecCount<In, Out, kBytes>,
                                   limitsOf<kKind, kBytes>(device, p.num_streams));
    task.group = tiling.group;
    task.vectors = static_cast<int32_t>(tiling.vectors);
    task.step_queries = static_cast<int32_t>(kThreads / tiling.range);
    task.step_vectors = static_cast<int32_t>(kThreads % tiling.range);
    task.range = FastDivmod(tiling.range);
    task.ranges = FastDivmod(tiling.ranges);
    most = std::max(most, task.group);
    alike &= task.group == arguments.tasks[0].group;
    units += tiling.groups * tiling.ranges;
  }
  const bool in_turns = goesInTurns<kStreams>(p, device, alike, units);
  const int64_t turns = in_turns ? (queries + most - 1) / most : 1;
  units = 0;  // of a turn
  for (int n = 0; n < kStreams; ++n) {
    RowsTask<Time>& task = arguments.tasks[n];
    task.first_unit = INT32_MAX;
    if (n >= p.num_streams) continue;
    task.first_unit = static_cast<int32_t>(units);
    task.groups = most / task.group;
    const int64_t groups = in_turns ? task.groups : (queries + task.group - 1) / task.group;
    units += groups * static_cast<int64_t>(task.ranges.divisor);
  }
  arguments.in_turns = in_turns;
  arguments.per_stream = FastDivmod(units / p.num_streams);
  arguments.even = true;
  for (int n = 0; n < p.num_streams; ++n)
    arguments.even &= int64_t{arguments.tasks[n].first_unit} * p.num_streams == n * units;
  arguments.turns = FastDivmod(units);
  units *= turns;
  return launchBlocks(fuseRowsKernel<In, Out, Time, kKind, kStreams, kBytes>, &arguments, units,
                      kThreads, device, stream);
}

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

template <class Time>
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
        !suitsShortIndexes(p, s) || !suitsVecs(s.mean) || !suitsVecs(s.inv_std)) {
      return nullptr;
    }
    kind = std::max(kind, own);
  }
  return visitFloat(p.streams[0].values_dtype, [&](auto in) {
    return visitFloat(p.out_dtype, [&](auto out) {
      using In = typename decltype(in)::type;
      using Out = typename decltype(out)::type;
      bool whole = true;  // 16 bytes at once
      bool half = true;
      bool single = !quaternions && !(angles && kind == Kind::kFourRows);
      int64_t in_packs = 0;  // channels more than those in none
      for (int n = 0; n < p.num_streams; ++n) {
        const bool packs = suitsVecs<In, Out, 16>(p, p.streams[n]);
        in_packs += packs ? p.streams[n].channels : -p.streams[n].channels;
        whole &= packs;
        half &= suitsVecs<In, Out, 8>(p, p.streams[n]);
        single &= suitsVecs<In, Out, kSingle>(p, p.streams[n]);
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
      if (found == nullptr && single && p.num_streams == 1) {
        found = Kernels<1, kSingle, In, Out, Time>::find(kind);
      }
      if (found == nullptr && single) {
        found = Kernels<kFewStreams, kSingle, In, Out, Time>::find(kind);
      }
      return found;
    });
  });
}

template <class Time>
cudaError_t loadKernels() {
  return loadKernelsBeside(fuseRowsKernel<float, float, Time, Kind::kLine, 1, 16>);
}

}  // namespace rows
}  // namespace rbc::cuda
