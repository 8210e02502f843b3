// Fusion on CUDA: any streams, every method, one launch.
//
// The streams' work is laid end to end and cut into units; a warp takes one: a group of up to 32
// consecutive queries of the flattened [B,T] and a range of one stream's channels. First each lane
// finds the position of one query, then the warp walks the group's output, consecutive lanes on
// consecutive channels, 16 bytes a lane where alignment allows. What differs between streams and
// segments of channels - dtypes, methods - is the same for the whole warp, so the branches on it
// cost little.

#include <algorithm>
#include <type_traits>

#include "fuse/find_sample.cuh"
#include "fuse/fuse_rows.h"
#include "fuse_problem.h"
#include "interpolate.h"
#include "runtime/aligned_vec.cuh"
#include "runtime/cuda_state.h"
#include "runtime/fast_divmod.cuh"
#include "runtime/launch.h"
#include "runtime/load_kernels.h"
#include "runtime/pdl.cuh"
#include "runtime/tiling.h"
#include "slerp.h"

namespace rbc::cuda {
namespace {

constexpr int kWarp = 32;
constexpr int kWarpsPerBlock = 4;

// Blocks that must fit on a multiprocessor, which bounds the registers: as many as fit without
// spills, which nvcc makes on sm_100 where there are six and long indexes.
template <class Form>
constexpr int blocksThatFit() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 1000 && __CUDA_ARCH__ < 1100
  return Form::kDoubles ? 5 : 6;
#else
  return 6;
#endif
}

// Channels of one method, as vectors: what a lane takes at once.
struct SegmentTask {
  int64_t begin;         // its first channel
  int64_t first_vector;  // among the stream's
  Method method;
  int32_t count;  // channels of a vector
  bool packed;    // a vector is an aligned pack
};

struct StreamTask {
  FuseStream stream;
  int64_t first_unit;
  int64_t vectors;
  int64_t range;      // vectors of a unit
  FastDivmod ranges;  // of a row
  int32_t group;      // queries of a unit
  int32_t value_bytes;
  int32_t out_bytes;
  float pace;      // for prefetchTimes()
  bool in_double;  // computed so
  bool packed_affine;
};

// What a kernel is made for. Arguments travel with the launch, so a few streams get a small struct;
// and without doubles and long indexes it has registers left.
struct FewFloats {
  static constexpr int kStreams = 8;
  static constexpr int kSegments = 32;
  static constexpr bool kDoubles = false;
  using Index = int32_t;  // of recordings, samples and queries
};
struct Few {
  static constexpr int kStreams = 8;
  static constexpr int kSegments = 32;
  static constexpr bool kDoubles = true;
  using Index = int64_t;
};
struct Many {
  static constexpr int kStreams = kMaxStreams;
  static constexpr int kSegments = kMaxSegments;
  static constexpr bool kDoubles = true;
  using Index = int64_t;
};

template <class Form>
struct FuseLaunch {
  FuseProblem problem;
  FastDivmod per_row;  // queries
  int64_t units;
  StreamTask streams[Form::kStreams];
  SegmentTask segments[Form::kSegments];
};

// ---- taps ---------------------------------------------------------------------------------------

// What a warp keeps of a query: where its sample and its output begin, at the unit's first channel.
template <class Number>
struct Query {
  const char* source;  // null: write the fill value
  char* target;
  Weights<Number> weights;
};

// Room for either kind.
template <bool kDoubles>
union QuerySlot {
  Query<float> in_float;
  Query<double> in_double;
};
template <>
union QuerySlot<false> {
  Query<float> in_float;
};

// What a lane keeps of its query from segment to segment: in shared memory, for the registers.
template <class Index>
struct QueryState {
  Index b;
  Index t;
  Index guess;  // at its sample
  bool mask;
};

// Writes the slot of a query for the channels from `channel` on, and returns its mask.
template <class Time, bool kDoubles, class Index>
__device__ __forceinline__ bool findQuery(const FuseProblem& p, const StreamTask& task,
                                          Method method, int64_t channel, QueryState<Index>* query,
                                          QuerySlot<kDoubles>* slot) {
  const FuseStream& s = task.stream;
  const Index b = query->b;
  const Index t = query->t;
  const auto rows = sampleRowsOf<Time, Index>(s, task.pace);
  if (query->guess < 0) prefetchTimes(rows, b, t);
  const auto samples = recordingOf<Time>(rows, b);
  const auto position =
      findSample(queryRowsOf<Time, Index>(p), b, t, offsetAs<Time>(s.clock_offset), samples,
                 rulesOf<Time>(s, method), &query->guess);
  const char* source = nullptr;
  if (position.index >= 0) {
    const auto values = batchRows<Index>(static_cast<const char*>(s.values), s.values_stride[0],
                                         s.values_stride[1], task.value_bytes);
    source = values.at(b, samples.begin + position.index) +
             channel * s.values_stride[2] * task.value_bytes;
  }
  const auto out =
      batchRows<Index>(static_cast<char*>(p.out), p.out_stride[0], p.out_stride[1], task.out_bytes);
  char* target = out.at(b, t) + (s.out_begin + channel) * p.out_stride[2] * task.out_bytes;
  const Weights<double> weights = weightsOf(method, samples.times, samples.count, position);
  if constexpr (kDoubles) {
    if (task.in_double) {
      slot->in_double = {source, target, weights};
      return position.mask;
    }
  }
  slot->in_float = {source, target, weights.as<float>()};
  return position.mask;
}

template <bool kDoubles, class Index>
__device__ __forceinline__ bool findQuery(const FuseProblem& p, const StreamTask& task,
                                          Method method, int64_t channel, QueryState<Index>* query,
                                          QuerySlot<kDoubles>* slot) {
  switch (p.time_dtype) {
    case DType::F32: return findQuery<float>(p, task, method, channel, query, slot);
    case DType::F64: return findQuery<double>(p, task, method, channel, query, slot);
    default: return findQuery<int64_t>(p, task, method, channel, query, slot);
  }
}

// ---- the walk -----------------------------------------------------------------------------------

// A warp's part of one segment: `count` queries times `width` vectors.
template <bool kDoubles>
struct Part {
  const FuseProblem& problem;
  const StreamTask& task;
  const QuerySlot<kDoubles>* slots;
  int64_t channel;  // the first
  int count;
  int width;
};

// Calls visit(query, v) for the lane's items, 32 apart.
template <class Number, bool kDoubles, class Visitor>
__device__ __forceinline__ void visitItems(const Part<kDoubles>& part, Visitor&& visit) {
  const auto lane = static_cast<int>(threadIdx.x % kWarp);
  const int width = part.width;
  const int step_queries = kWarp / width;
  const int step_vectors = kWarp - step_queries * width;
  int k = lane / width;
  int v = lane - k * width;
  while (k < part.count) {
    visit(reinterpret_cast<const Query<Number>&>(part.slots[k]), v);
    k += step_queries;
    v += step_vectors;
    if (v >= width) {
      v -= width;
      ++k;
    }
  }
}

// ---- access to channels -------------------------------------------------------------------------

// kElements neighbouring channels at once.
template <class In, class Out, int kElements>
struct PackedAccess {
  using Number = Compute<In>;
  using Raw = AlignedVec<In, kElements>;
  static constexpr int kCount = kElements;

  template <bool kDoubles>
  __device__ __forceinline__ explicit PackedAccess(const Part<kDoubles>&) {}

  __device__ __forceinline__ Raw read(const char* row, int v) const {
    return load<Raw>(row + v * static_cast<int>(sizeof(Raw)));
  }
  static __device__ __forceinline__ Number number(const Raw& raw, int i) {
    return widen(raw.element[i]);
  }
  __device__ __forceinline__ void write(char* row, int v,
                                        const AlignedVec<Out, kCount>& pack) const {
    store(row + v * static_cast<int>(sizeof pack), pack);
  }
};

// A channel of a known dtype and any stride.
template <class In, class Out>
struct SingleAccess {
  using Number = Compute<In>;
  using Raw = AlignedVec<In, 1>;
  static constexpr int kCount = 1;

  template <bool kDoubles>
  __device__ __forceinline__ explicit SingleAccess(const Part<kDoubles>& part)
      : in_step(part.task.stream.values_stride[2] * static_cast<int>(sizeof(In))),
        out_step(part.problem.out_stride[2] * static_cast<int>(sizeof(Out))) {}

  __device__ __forceinline__ Raw read(const char* row, int v) const {
    return load<Raw>(row + v * in_step);
  }
  static __device__ __forceinline__ Number number(const Raw& raw, int) {
    return widen(raw.element[0]);
  }
  __device__ __forceinline__ void write(char* row, int v, const AlignedVec<Out, 1>& pack) const {
    store(row + v * out_step, pack);
  }

  const int64_t in_step;  // from channel to channel, in bytes
  const int64_t out_step;
};

// Channels of any dtype that is computed in a type, one by one.
template <class ComputeType, class Out, int kElements>
struct AnyAccess {
  using Number = ComputeType;
  struct Raw {
    Number element[kElements];
  };
  static constexpr int kCount = kElements;

  template <bool kDoubles>
  __device__ __forceinline__ explicit AnyAccess(const Part<kDoubles>& part)
      : dtype(part.task.stream.values_dtype),
        in_step(part.task.stream.values_stride[2] * part.task.value_bytes),
        out_step(part.problem.out_stride[2] * static_cast<int>(sizeof(Out))) {}

  __device__ __forceinline__ Raw read(const char* row, int v) const {
    Raw raw;
#pragma unroll
    for (int i = 0; i < kCount; ++i) raw.element[i] = readOne(row + (v * kCount + i) * in_step);
    return raw;
  }
  static __device__ __forceinline__ Number number(const Raw& raw, int i) { return raw.element[i]; }
  __device__ __forceinline__ void write(char* row, int v,
                                        const AlignedVec<Out, kCount>& pack) const {
#pragma unroll
    for (int i = 0; i < kCount; ++i)
      store(row + (v * kCount + i) * out_step, AlignedVec<Out, 1>{{pack.element[i]}});
  }

 private:
  __device__ __forceinline__ Number readOne(const char* at) const {
    switch (dtype) {
#define RBC_CASE(name, storage, code, text)                      \
  case DType::name:                                              \
    if constexpr (std::is_same_v<Compute<storage>, Number>) {    \
      return widen(load<AlignedVec<storage, 1>>(at).element[0]); \
    }                                                            \
    break;
      RBC_DTYPES(RBC_CASE)
#undef RBC_CASE
    }
    return Number(0);
  }

  const DType dtype;
  const int64_t in_step;
  const int64_t out_step;
};

// ---- methods ------------------------------------------------------------------------------------

// A sample as it is.
template <class Access>
__device__ __forceinline__ void take(const typename Access::Raw& raw,
                                     typename Access::Number (&out)[Access::kCount]) {
#pragma unroll
  for (int i = 0; i < Access::kCount; ++i) out[i] = Access::number(raw, i);
}

template <Method kMethod, class Access, class Number>
__device__ __forceinline__ void interpolate(const Access& access, const Query<Number>& query,
                                            int64_t step, int v, Number (&out)[Access::kCount]) {
  constexpr int kCount = Access::kCount;
  const Weights<Number>& k = query.weights;
  const char* source = query.source;
  // No load waits for another: where a row is not needed, one that is loaded anyway stands for it.
  const int64_t ahead = k.w != 0 ? step : 0;
  const auto v1 = access.read(source, v);
  const auto v2 = access.read(source + ahead, v);
  if constexpr (kMethod == Method::kCubic || kMethod == Method::kPchip) {
    const auto v0 = access.read(source - (k.before ? ahead : 0), v);
    const auto v3 = access.read(source + (k.after ? 2 * ahead : 0), v);
    if (k.w == 0) return take<Access>(v1, out);
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      const Number a0 = Access::number(v0, i);
      const Number a1 = Access::number(v1, i);
      const Number a2 = Access::number(v2, i);
      const Number a3 = Access::number(v3, i);
      out[i] = kMethod == Method::kCubic ? cubic(a0, a1, a2, a3, k) : pchip(a0, a1, a2, a3, k);
    }
  } else if constexpr (kMethod == Method::kSlerp) {
    if (k.w == 0) return take<Access>(v1, out);
    Number q1[4];
    Number q2[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      q1[i] = Access::number(v1, i);
      q2[i] = Access::number(v2, i);
    }
    slerp(q1, q2, k.w, out);
  } else {
    if (k.w == 0) return take<Access>(v1, out);
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      const Number a1 = Access::number(v1, i);
      const Number a2 = Access::number(v2, i);
      out[i] = kMethod == Method::kAngle ? lerpAngle(a1, a2, k.w) : lerp(a1, a2, k.w);
    }
  }
}

template <int kCount, class Number>
__device__ __forceinline__ void normalize(const StreamTask& task, int64_t channel,
                                          Number (&values)[kCount]) {
  const RealArray& mean = task.stream.mean;
  const RealArray& inv_std = task.stream.inv_std;
  if (kCount > 1 && task.packed_affine) {
    using P = AlignedVec<float, kCount>;
    P center = {};
    if (mean.data != nullptr) center = load<P>(static_cast<const float*>(mean.data) + channel);
    P scale;
#pragma unroll
    for (int i = 0; i < kCount; ++i) scale.element[i] = 1;
    if (inv_std.data != nullptr) scale = load<P>(static_cast<const float*>(inv_std.data) + channel);
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      values[i] = normalized(values[i], static_cast<Number>(center.element[i]),
                             static_cast<Number>(scale.element[i]));
    }
    return;
  }
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    values[i] =
        normalized(values[i], mean.data != nullptr ? mean.at<Number>(channel + i) : Number(0),
                   inv_std.data != nullptr ? inv_std.at<Number>(channel + i) : Number(1));
  }
}

template <class Out>
__device__ __forceinline__ Out fillOf(const FuseStream& s) {
  Out fill;
  memcpy(&fill, &s.fill_bits, sizeof fill);
  return fill;
}

template <Method kMethod, class Access, class Out, bool kDoubles>
__device__ __forceinline__ void writeBy(const Part<kDoubles>& part) {
  using Number = typename Access::Number;
  constexpr int kCount = Access::kCount;
  const FuseStream& s = part.task.stream;
  const Access access(part);
  const int64_t step = s.values_stride[1] * part.task.value_bytes;
  const bool affine = s.mean.data != nullptr || s.inv_std.data != nullptr;
  visitItems<Number>(part, [&](const Query<Number>& query, int v) {
    AlignedVec<Out, kCount> result;
    if (query.source != nullptr) {
      Number values[kCount];
      interpolate<kMethod>(access, query, step, v, values);
      if (affine) normalize<kCount>(part.task, part.channel + v * kCount, values);
      result = narrowPack<Out>(values);
    } else {
#pragma unroll
      for (int i = 0; i < kCount; ++i) result.element[i] = fillOf<Out>(s);
    }
    access.write(query.target, v, result);
  });
}

// Floats of a lane: 16 bytes of out. Doubles: two, for the registers.
template <class In, class Out>
constexpr int kVecCount = sizeof(In) == 8 ? 2 : 16 / static_cast<int>(sizeof(Out));

// Linear and the steps, of floats.
template <class In, class Out, bool kDoubles>
__device__ __forceinline__ void writeLines(const Part<kDoubles>& part, bool packed) {
  if (packed) {
    writeBy<Method::kLinear, PackedAccess<In, Out, kVecCount<In, Out>>, Out>(part);
  } else {
    writeBy<Method::kLinear, SingleAccess<In, Out>, Out>(part);
  }
}

// Any method, of any dtype.
template <class Number, class Out, bool kDoubles>
__device__ __forceinline__ void writeAny(const Part<kDoubles>& part, Method method) {
  using Channel = AnyAccess<Number, Out, 1>;
  using Quaternion = AnyAccess<Number, Out, 4>;
  switch (method) {
    case Method::kCubic: return writeBy<Method::kCubic, Channel, Out>(part);
    case Method::kPchip: return writeBy<Method::kPchip, Channel, Out>(part);
    case Method::kAngle: return writeBy<Method::kAngle, Channel, Out>(part);
    case Method::kSlerp: return writeBy<Method::kSlerp, Quaternion, Out>(part);
    default: return writeBy<Method::kLinear, Channel, Out>(part);
  }
}

// Integers that stay what they are.
template <class Word, bool kDoubles>
__device__ __forceinline__ void copyWords(const Part<kDoubles>& part) {
  const FuseStream& s = part.task.stream;
  const int64_t in_step = s.values_stride[2] * part.task.value_bytes;
  const int64_t out_step = part.problem.out_stride[2] * static_cast<int>(sizeof(Word));
  visitItems<float>(part, [&](const Query<float>& query, int v) {
    AlignedVec<Word, 1> word = {{fillOf<Word>(s)}};
    if (query.source != nullptr) word = load<AlignedVec<Word, 1>>(query.source + v * in_step);
    store(query.target + v * out_step, word);
  });
}

// What the output of integers is called as a type: words of any size.
struct Words {};

template <class Out, bool kDoubles>
__device__ __forceinline__ void writeSegment(const Part<kDoubles>& part, Method method,
                                             bool packed) {
  if constexpr (std::is_same_v<Out, Words>) {
    switch (part.task.out_bytes) {
      case 1: return copyWords<uint8_t>(part);
      case 2: return copyWords<uint16_t>(part);
      case 4: return copyWords<uint32_t>(part);
      default: return copyWords<uint64_t>(part);
    }
  } else {
    if (method == Method::kLinear || isStep(method)) {
      switch (part.task.stream.values_dtype) {
#define RBC_CASE(name, storage, code, text)                              \
  case DType::name:                                                      \
    if constexpr (kDoubles || std::is_same_v<Compute<storage>, float>) { \
      return writeLines<storage, Out>(part, packed);                     \
    }                                                                    \
    break;
        RBC_FLOAT_DTYPES(RBC_CASE)
#undef RBC_CASE
        default: break;
      }
    }
    if (!kDoubles || !part.task.in_double) return writeAny<float, Out>(part, method);
    if constexpr (kDoubles) writeAny<double, Out>(part, method);
  }
}

// ---- the kernel ---------------------------------------------------------------------------------

// The stream that a unit belongs to.
template <class Form>
__device__ __forceinline__ int streamOf(const FuseLaunch<Form>& launch, int64_t unit) {
  int low = 0;
  int high = launch.problem.num_streams;
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    (launch.streams[middle].first_unit <= unit ? low : high) = middle;
  }
  return low;
}

template <class Out, class Form>
__device__ __forceinline__ void doUnit(const FuseLaunch<Form>& launch, int64_t unit,
                                       QuerySlot<Form::kDoubles>* slots,
                                       QueryState<typename Form::Index>* states) {
  using Index = typename Form::Index;
  const auto lane = static_cast<int>(threadIdx.x % kWarp);
  const FuseProblem& p = launch.problem;
  const int n = streamOf(launch, unit);
  const StreamTask& task = launch.streams[n];
  const int64_t own = unit - task.first_unit;
  const int64_t group = task.ranges(own);
  const int64_t first = (own - group * static_cast<int64_t>(task.ranges.divisor)) * task.range;
  const int64_t end = first + task.range < task.vectors ? first + task.range : task.vectors;
  const int64_t flat = group * task.group + lane;
  const int64_t left = p.batch * p.queries - group * task.group;
  const int count = left < task.group ? static_cast<int>(left) : task.group;
  const bool writes_mask = p.mask != nullptr && first == 0;
  QueryState<Index>& query = states[lane];
  query.b = launch.per_row(static_cast<Index>(flat));
  query.t = static_cast<Index>(flat) - query.b * static_cast<Index>(p.queries);
  query.guess = -1;
  query.mask = true;

  const int end_segment = task.stream.first_segment + task.stream.num_segments;
  for (int i = task.stream.first_segment; i < end_segment; ++i) {
    const SegmentTask& segment = launch.segments[i];
    const int64_t own_end =
        i + 1 < end_segment ? launch.segments[i + 1].first_vector : task.vectors;
    const int64_t from = first > segment.first_vector ? first : segment.first_vector;
    const int64_t to = end < own_end ? end : own_end;
    if (from >= to && !writes_mask) continue;
    const int64_t channel = segment.begin + (from - segment.first_vector) * segment.count;
    if (lane < count) {
      query.mask &=
          findQuery<Form::kDoubles>(p, task, segment.method, channel, &query, &slots[lane]);
    }
    __syncwarp();
    letNextLaunchBegin();
    if (from < to) {
      const Part<Form::kDoubles> part = {p,       task,  slots,
                                         channel, count, static_cast<int>(to - from)};
      writeSegment<Out>(part, segment.method, segment.packed);
    }
    __syncwarp();  // the slots are overwritten by the next round
  }
  if (writes_mask && lane < count) {
    p.mask[query.b * p.mask_stride[0] + query.t * p.mask_stride[1] + n * p.mask_stride[2]] =
        query.mask ? 1 : 0;
  }
}

template <class Out, class Form>
__global__ void __launch_bounds__(kWarp* kWarpsPerBlock, blocksThatFit<Form>())
    fuseKernel(const __grid_constant__ FuseLaunch<Form> launch) {
  __shared__ QuerySlot<Form::kDoubles> block_slots[kWarpsPerBlock][kWarp];
  __shared__ QueryState<typename Form::Index> block_states[kWarpsPerBlock][kWarp];
  const auto warp = static_cast<int>(threadIdx.x / kWarp);
  waitForLaunchesAhead();  // nothing is read or written before the launches ahead are done
  const int64_t warps = static_cast<int64_t>(gridDim.x) * kWarpsPerBlock;
  for (int64_t unit = static_cast<int64_t>(blockIdx.x) * kWarpsPerBlock + warp; unit < launch.units;
       unit += warps) {
    doUnit<Out>(launch, unit, block_slots[warp], block_states[warp]);
  }
}

// ---- dispatch -----------------------------------------------------------------------------------

// How many channels a pack has: the kernel's kVecCount.
int packCount(DType in, DType out) { return in == DType::F64 ? 2 : 16 / sizeOf(out); }

// Whether the segment's rows can be read and written in whole aligned packs of `count` channels.
// Methods other than linear and the steps do without: wide rows of them alone are fuse_rows.cu's.
bool suitsVecs(const FuseProblem& p, const FuseStream& s, const ChannelSegment& segment,
               int count) {
  if (!isFloat(s.values_dtype) || !isFloat(p.out_dtype)) return false;
  if (segment.method != Method::kLinear && !isStep(segment.method)) return false;
  const auto aligned = [&](const void* data, int64_t first, const int64_t(&stride)[3], int size) {
    const int64_t bytes = std::min(16, size * count);
    return (reinterpret_cast<uintptr_t>(data) + static_cast<uint64_t>(first * size)) %
                   static_cast<uint64_t>(bytes) ==
               0 &&
           stride[0] * size % bytes == 0 && stride[1] * size % bytes == 0 && stride[2] == 1;
  };
  return segment.count % count == 0 &&
         aligned(s.values, segment.begin, s.values_stride, sizeOf(s.values_dtype)) &&
         aligned(p.out, s.out_begin + segment.begin, p.out_stride, sizeOf(p.out_dtype));
}

bool suitsVecs(const RealArray& array) {
  return array.data == nullptr ||
         (array.stride == 1 && !array.is_64 && reinterpret_cast<uintptr_t>(array.data) % 16 == 0);
}

template <class Form>
void describe(const FuseProblem& p, int multiprocessors, FuseLaunch<Form>* launch) {
  launch->problem = p;
  launch->per_row = FastDivmod(p.queries);
  launch->units = 0;
  for (int n = 0; n < p.num_streams; ++n) {
    StreamTask& task = launch->streams[n];
    const FuseStream& s = task.stream = p.streams[n];
    task.value_bytes = sizeOf(s.values_dtype);
    task.out_bytes = sizeOf(p.out_dtype);
    task.pace = paceOf(p, s);
    task.in_double = computesInDouble(s.values_dtype);
    task.packed_affine = suitsVecs(s.mean) && suitsVecs(s.inv_std);
    task.vectors = 0;
    for (int i = s.first_segment; i < s.first_segment + s.num_segments; ++i) {
      const ChannelSegment& segment = p.segments[i];
      const int pack = packCount(s.values_dtype, p.out_dtype);
      const bool packed = suitsVecs(p, s, segment, pack);
      const int count = packed ? pack : segment.method == Method::kSlerp ? 4 : 1;
      launch->segments[i] = {segment.begin, task.vectors, segment.method, count, packed};
      task.vectors += segment.count / count;
      task.packed_affine &= segment.begin % 4 == 0;
    }
    const Tiling tiling = tilingOf(p.batch * p.queries, task.vectors,
                                   {kWarp, 4, 256, multiprocessors * 15 / p.num_streams});
    task.first_unit = launch->units;
    task.range = tiling.range;
    task.ranges = FastDivmod(tiling.ranges);
    task.group = tiling.group;
    launch->units += tiling.groups * tiling.ranges;
  }
}

template <class Out, class Form>
cudaError_t launch(const FuseProblem& p, const LaunchDevice& device, cudaStream_t stream) {
  FuseLaunch<Form> arguments;
  describe(p, device.multiprocessors, &arguments);
  const int64_t blocks = (arguments.units + kWarpsPerBlock - 1) / kWarpsPerBlock;
  return launchBlocks(fuseKernel<Out, Form>, &arguments, blocks, kWarp * kWarpsPerBlock, device,
                      stream);
}

// Calls visitor(Tag<Out>).
template <class Visitor>
decltype(auto) visitOut(DType out, Visitor&& visitor) {
  return isFloat(out) ? visitFloat(out, visitor) : visitor(Tag<Words>{});
}

cudaError_t launchAny(const FuseProblem& p, const LaunchDevice& device, cudaStream_t stream) {
  const bool few = p.num_streams <= Few::kStreams && p.num_segments <= Few::kSegments;
  bool doubles = false;
  bool short_indexes = true;
  for (int n = 0; n < p.num_streams; ++n) {
    doubles |= computesInDouble(p.streams[n].values_dtype);
    short_indexes &= suitsShortIndexes(p, p.streams[n]);
  }
  return visitOut(p.out_dtype, [&](auto tag) {
    using Out = typename decltype(tag)::type;
    if constexpr (!std::is_same_v<Out, Words>) {
      if (few && !doubles && short_indexes) return launch<Out, FewFloats>(p, device, stream);
      if (few) return launch<Out, Few>(p, device, stream);
    }
    return launch<Out, Many>(p, device, stream);
  });
}

// By the kernel of whole rows where there is one for the problem.
cudaError_t launchFuse(const FuseProblem& p, void*, const LaunchDevice& device,
                       cudaStream_t stream) {
  const FuseLauncher rows = rowsLauncherOf(p);
  return (rows != nullptr ? rows : launchAny)(p, device, stream);
}

}  // namespace

extern const Operation<FuseProblem> kFuse = {noBytes, launchOn<FuseProblem, launchFuse>};
cudaError_t loadFuse() { return loadKernelsBeside(fuseKernel<Words, Many>); }

}  // namespace rbc::cuda
