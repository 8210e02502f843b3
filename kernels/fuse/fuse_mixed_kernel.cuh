// Fusion of narrow streams that differ in dtype or in method, on CUDA.
//
// A block processes one stream of one recording. It copies the stream's times and values into
// shared memory, whole rows at once. There each thread searches the sample of one query, once for
// all segments of channels, and puts the result into a row of its warp's tile, which the warp then
// writes together.
#pragma once

#include "element_of.h"
#include "fuse/angle_in_turn.cuh"
#include "fuse/find_sample.cuh"
#include "fuse/shared_recordings.cuh"
#include "interpolate.h"
#include "real.h"
#include "runtime/aligned_vec.cuh"
#include "runtime/fast_divmod.h"
#include "runtime/pdl.cuh"
#include "runtime/shared_memory.cuh"
#include "slerp.h"

namespace rbc::cuda {
namespace mixed_streams {

// ---- The arguments of the kernel of mixed streams.

// Channels of a stream that share a method.
template <class Time>
struct Segment {
  Rules<Time> rules;
  int32_t begin;
  int32_t end;
};

template <class Time>
struct Task {
  SampleRows<int32_t> samples;
  BatchRows<const char, int32_t> values;
  BatchRows<char, int32_t> out;      // starting at the stream's first channel
  BatchRows<uint8_t, int32_t> mask;  // its column; null data: no mask
  RealArray shift;
  RealArray scale;
  Time clock_offset;
  uint64_t fill_bits;
  DType dtype;
  bool has_affine;
  int32_t size;  // of an element of values, in bytes
  int32_t channels;
  FastDivmod across;  // lanes per row that is written
  int32_t first_segment;
  int32_t end_segment;
  // Offsets in shared memory, in bytes; times are at 0.
  int32_t values_at;
  int32_t affine_at;
  int32_t tiles_at;
};

template <class Time>
struct Launch {
  QueryRows<int32_t> queries;
  int32_t most;       // queries per recording
  int32_t part;       // per block
  FastDivmod blocks;  // per stream
  FastDivmod parts;   // per recording
  Task<Time> tasks[kStreams];
  Segment<Time> segments[kSegments];
};

template <class Time>
using Position = SamplePosition<Time, int32_t>;

// A recording's samples of one stream, in shared memory.
template <class Time>
struct Samples {
  const Time* times;
  const char* values;
  int32_t count;
  int32_t left;  // timesLeftOf(count)
};

// A copy of a row into a block's shared memory, in progress. With hardware support one thread
// requests all of it except the ends; otherwise each thread copies some words.
template <class Element>
struct Arrival {
  CopyRow<Element> row;
  uint64_t* barrier;

  __device__ __forceinline__ void begin() const {
    const auto thread = static_cast<int>(threadIdx.x);
#if __CUDA_ARCH__ >= 900
    if (thread == 0) {
      expectBytes(barrier, row.body);
      if (row.body > 0) {
        copyInBulk(row.to + row.head, row.from + row.head, row.body, barrier);
      }
    }
#else
    row.copyWords(thread, static_cast<int>(blockDim.x));
#endif
    row.copyEnds(thread);
    __pipeline_commit();
  }

  // Called by all threads; `later` rows have been started after it.
  template <int kLater>
  __device__ __forceinline__ void wait() const {
    __pipeline_wait_prior(kLater);
    __syncthreads();
#if __CUDA_ARCH__ >= 900
    awaitBytes(barrier, 0);
#endif
  }
};

// How channels are read: f32, or any dtype that is computed in f32.
struct ReadFloats {
  static constexpr int32_t size = sizeof(float);

  __device__ __forceinline__ ReadFloats(DType, int32_t) {}
  __device__ __forceinline__ float operator()(const char* value) const {
    return *reinterpret_cast<const float*>(value);
  }
};
struct ReadAny {
  DType dtype;
  int32_t size;  // in bytes

  __device__ __forceinline__ ReadAny(DType values_dtype, int32_t bytes)
      : dtype(values_dtype), size(bytes) {}
  __device__ __forceinline__ float operator()(const char* value) const {
    switch (dtype) {
#define RBC_CASE(name, storage, code, text)                   \
  case DType::name:                                           \
    if constexpr (std::is_same_v<Compute<storage>, float>) {  \
      return widen(*reinterpret_cast<const storage*>(value)); \
    }                                                         \
    break;
      RBC_DTYPES(RBC_CASE)
#undef RBC_CASE
    }
    return 0;
  }
};

// The work of a thread on a stream: one query.
template <class Read, class Out, class Time>
struct Answer {
  const Task<Time>& task;
  const Samples<Time>& samples;
  const Affine* affine;
  Out* row;  // in the tile
  Read read;

  __device__ __forceinline__ void fill(const Segment<Time>& segment) const {
    const auto fill_value = elementOf<Out>(task.fill_bits);
    for (int32_t c = segment.begin; c < segment.end; ++c) row[c] = fill_value;
  }

  __device__ __forceinline__ void put(int32_t c, float value) const {
    if (task.has_affine) {
      const Affine factors = affine[c];
      value = normalized(value, factors.shift, factors.scale);
    }
    row[c] = narrow<Out>(value);
  }

  // Where the rows around a position are.
  struct Around {
    const char* at;
    int32_t right;  // in bytes; 0: only the sample itself is used
  };
  __device__ __forceinline__ Around around(const Position<Time>& position, float w) const {
    const int32_t bytes = task.channels * read.size;
    return {samples.values + position.index * bytes, w != 0 ? bytes : 0};
  }

  // Writes each channel by a formula of two samples.
  template <class Formula>
  __device__ __forceinline__ void putLines(const Segment<Time>& segment,
                                           const Position<Time>& position, Formula formula) const {
    const auto w = static_cast<float>(position.weight);
    const Around rows = around(position, w);
#pragma unroll 2
    for (int32_t c = segment.begin; c < segment.end; ++c) {
      const char* const at = rows.at + c * read.size;
      const float v1 = read(at);
      const float v2 = read(at + rows.right);
      put(c, w == 0 ? v1 : formula(v1, v2, w));
    }
  }

  // The same for a formula of four samples.
  template <class Formula>
  __device__ __forceinline__ void putCurves(const Segment<Time>& segment,
                                            const Position<Time>& position, Formula formula) const {
    const Weights<float> k = weightsOf(segment.rules.method, samples.times, samples.count, position)
                                 .template as<float>();
    const Around rows = around(position, k.w);
    for (int32_t c = segment.begin; c < segment.end; ++c) {
      const char* const at = rows.at + c * read.size;
      const float v1 = read(at);
      if (k.w == 0) {
        put(c, v1);
        continue;
      }
      const float v2 = read(at + rows.right);
      const float v0 = k.before ? read(at - rows.right) : v1;
      const float v3 = k.after ? read(at + 2 * rows.right) : v1;
      put(c, formula(v0, v1, v2, v3, k));
    }
  }

  // Angles in a turn.
  __device__ __forceinline__ void putAngles(const Segment<Time>& segment,
                                            const Position<Time>& position) const {
    const auto w = static_cast<float>(position.weight);
    const Around rows = around(position, w);
    const DType angle_dtype = task.has_affine ? DType::F64 : kDTypeOf<Out>;
#pragma unroll 1
    for (int32_t c = segment.begin; c < segment.end; ++c) {
      const char* const at = rows.at + c * read.size;
      const float v1 = read(at);
      const float v2 = read(at + rows.right);
      put(c, angleInTurn(v1, v2, w, segment.rules.method, angle_dtype));
    }
  }

  // Returns whether all quaternions are rotations.
  __device__ __forceinline__ bool putQuaternions(const Segment<Time>& segment,
                                                 const Position<Time>& position) const {
    const auto w = static_cast<float>(position.weight);
    const Around rows = around(position, w);
    bool all = true;
    for (int32_t c = segment.begin; c < segment.end; c += 4) {
      float q1[4];
      float q2[4];  // q1, if w is 0
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const char* const at = rows.at + (c + i) * read.size;
        q1[i] = read(at);
        q2[i] = read(at + rows.right);
      }
      const bool rotations = isRotation(q1) & isRotation(q2);
      all &= rotations;
      if (w != 0) slerp(q1, q2, w, q1);
      const auto fill_value = elementOf<Out>(task.fill_bits);
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        if (rotations) {
          put(c + i, q1[i]);
        } else {
          row[c + i] = fill_value;
        }
      }
    }
    return all;
  }

  // Writes a segment's channels. Returns whether the query is valid.
  __device__ __forceinline__ bool putSegment(const Segment<Time>& segment,
                                             const Position<Time>& position) const {
    if (position.index < 0) {
      fill(segment);
      return false;
    }
    switch (segment.rules.method) {
      case Method::kSlerp: return putQuaternions(segment, position) & position.mask;
      case Method::kAngle:
        putLines(segment, position, [](float a, float b, float w) { return lerpAngle(a, b, w); });
        break;
      case Method::kCubic:
        putCurves(segment, position,
                  [](float a, float b, float c, float d, const Weights<float>& k) {
                    return cubic(a, b, c, d, k);
                  });
        break;
      case Method::kPchip:
        putCurves(segment, position,
                  [](float a, float b, float c, float d, const Weights<float>& k) {
                    return pchip(a, b, c, d, k);
                  });
        break;
      default:
        if (isInTurn(segment.rules.method)) {
          putAngles(segment, position);
        } else {
          putLines(segment, position, [](float a, float b, float w) { return lerp(a, b, w); });
        }
    }
    return position.mask;
  }
};

// A query and the samples around it.
template <class Time>
struct Found {
  Time q;
  Ends<Time> ends;
  Bracket<Time, int32_t> bracket;
  bool outside;

  // is_query is false for threads after the last query; without samples, no query has a result.
  __device__ __forceinline__ Found(const Samples<Time>& samples, Time query, bool is_query)
      : q(query), ends{}, bracket{-1, query, query}, outside(false) {
    if (!is_query) return;
    const int32_t n = samples.count;
    ends = {samples.times[0], samples.times[n - 1]};
    outside = isOutside(ends, q);
    const Time queries[] = {q};
    int32_t last[1];
    lastBefore(samples.times, n, samples.left, queries, last);
    const int32_t i = last[0];
    bracket = {i, samples.times[i], samples.times[min(i + 1, n - 1)]};
  }

  __device__ __forceinline__ Position<Time> positionBy(const Rules<Time>& rules,
                                                       const Samples<Time>& samples) const {
    if (bracket.i < 0) return Position<Time>::none();
    if (outside) {
      return positionOutside(samples.times, samples.count, ends, q, rules, AllSamples());
    }
    return positionIn(bracket, samples.count, q, rules);
  }
};

// Writes the rows of a warp's tile to the output: a lane has one channel, or every 32nd, of some
// rows.
template <class Out>
__device__ __forceinline__ void writeRows(const Out* tile, const FastDivmod& across,
                                          int32_t channels, char* out, int32_t step, int32_t rows) {
  const auto lane = static_cast<int32_t>(threadIdx.x % kWarp);
  const int32_t turn = across(kWarp);  // rows at a time
  const int32_t first = across(lane);
  if (first >= turn) return;  // too few lanes are left for another row
  const int32_t pitch = pitchOf(channels);
  for (int32_t c = lane - first * static_cast<int32_t>(across.divisor); c < channels; c += kWarp) {
    const Out* from = tile + first * pitch + c;
    char* to = stepped(stepped(out, first, step), c, int32_t{sizeof(Out)});
#pragma unroll 4
    for (int32_t row = first; row < rows; row += turn) {
      store(to, AlignedVec<Out, 1>{{*from}});
      from += turn * pitch;
      to = stepped(to, turn, step);
    }
  }
}

// A block's queries of a stream, `begin` to `end`; those from `queries` on do not exist.
template <class Read, class Out, class Time>
__device__ __forceinline__ void answerAll(const Launch<Time>& launch, const Task<Time>& task,
                                          const Samples<Time>& samples,
                                          const Arrival<uint8_t>& values, char* shared, int32_t b,
                                          int32_t begin, int32_t end) {
  const auto thread = static_cast<int32_t>(threadIdx.x);
  const auto threads = static_cast<int32_t>(blockDim.x);
  int32_t queries = end;
  if (launch.queries.lengths.data != nullptr) {
    queries = static_cast<int32_t>(clampIndex(launch.queries.lengths[b], 0, end));
  }
  if (samples.count == 0) queries = 0;
  const auto query = [&](int32_t t) {
    return t < queries ? *reinterpret_cast<const Time*>(launch.queries.times.at(b, t)) : Time(0);
  };
  Time q = query(begin + thread);
  const auto* const affine = reinterpret_cast<const Affine*>(shared + task.affine_at);
  const int32_t pitch = pitchOf(task.channels);
  auto* const tile =
      reinterpret_cast<Out*>(shared + task.tiles_at) + thread / kWarp * kWarp * pitch;
  const Answer<Read, Out, Time> answer = {task, samples, affine, tile + thread % kWarp * pitch,
                                          Read(task.dtype, task.size)};
  char* const out = task.out.at(b, 0);
  for (int32_t first = begin; first < end; first += threads) {
    const int32_t t = first + thread;
    const Found<Time> found(samples, TimeMath<Time>::shifted(q, task.clock_offset), t < queries);
    q = query(t + threads);
    if (first == begin) {
      values.wait<0>();
      letNextLaunchBegin();
    }
    bool mask = true;
    for (int32_t i = task.first_segment; i < task.end_segment; ++i) {
      const Segment<Time>& segment = launch.segments[i];
      mask &= answer.putSegment(segment, found.positionBy(segment.rules, samples));
    }
    if (task.mask.data != nullptr && t < end) *task.mask.at(b, t) = mask ? 1 : 0;
    __syncwarp();
    const int32_t of_warp = t - thread % kWarp;
    writeRows(tile, task.across, task.channels, stepped(out, of_warp, task.out.step), task.out.step,
              min(end - of_warp, kWarp));
    __syncwarp();
  }
}

template <class Out, class Time>
__global__ void __launch_bounds__(kMostThreads, kBlocksWanted)
    fuseMixedKernel(const __grid_constant__ Launch<Time> launch) {
  extern __shared__ __align__(kWordBytes) char shared[];
  const auto unit = static_cast<int32_t>(blockIdx.x);
  const int32_t stream = launch.blocks(unit);
  const int32_t block = unit - stream * static_cast<int32_t>(launch.blocks.divisor);
  const int32_t b = launch.parts(block);
  const int32_t begin = (block - b * static_cast<int32_t>(launch.parts.divisor)) * launch.part;
  const int32_t end = min(begin + launch.part, launch.most);
  const Task<Time>& task = launch.tasks[stream];
#if __CUDA_ARCH__ >= 900
  __shared__ uint64_t barriers[2];
  if (threadIdx.x == 0) {
    initArrivals(&barriers[0]);
    initArrivals(&barriers[1]);
  }
  __syncthreads();
#else
  uint64_t* const barriers = nullptr;
#endif
  waitForLaunchesAhead();

  const Recording<Time, int32_t> recording = recordingOf<Time>(task.samples, b);
  const Arrival<Time> times = {{recording.times.first, recording.count, shared}, &barriers[0]};
  const Arrival<uint8_t> values = {
      {task.values.at(b, recording.begin), recording.count * task.channels * task.size,
       shared + task.values_at},
      &barriers[1]};
  times.begin();
  values.begin();
  if (task.has_affine) {
    auto* const affine = reinterpret_cast<Affine*>(shared + task.affine_at);
    for (auto c = static_cast<int32_t>(threadIdx.x); c < task.channels; c += blockDim.x) {
      affine[c] = {task.shift.data != nullptr ? task.shift.template at<float>(c) : 0.0f,
                   task.scale.data != nullptr ? task.scale.template at<float>(c) : 1.0f};
    }
  }
  times.template wait<1>();
  const Samples<Time> samples = {times.row.row(), reinterpret_cast<const char*>(values.row.row()),
                                 recording.count, timesLeftOf(recording.count)};
  if (task.dtype == DType::F32) {
    answerAll<ReadFloats, Out>(launch, task, samples, values, shared, b, begin, end);
  } else {
    answerAll<ReadAny, Out>(launch, task, samples, values, shared, b, begin, end);
  }
}

}  // namespace mixed_streams

}  // namespace rbc::cuda
