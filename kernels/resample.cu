// Resampling on CUDA.
//
// A warp takes a group of up to 32 consecutive queries of the flattened [B,T] and a range of the
// channels. First each lane finds the tap of one query: one search a query. Then the warp walks the
// group's output, 16 bytes a lane where alignment allows, consecutive lanes on consecutive
// channels, with several loads in flight. Warps share nothing, so that the searches of some overlap
// the loads of others. No barrier, no allocation, one launch.

#include <type_traits>

#include "divider.cuh"
#include "interpolate.h"
#include "locate.h"
#include "real.h"
#include "resample.h"
#include "resample_problem.h"

namespace rbc {
namespace {

constexpr int kWarp = 32;

// Chosen by measurement on an H200, see docs/performance.md.
constexpr int kWarpsPerBlock = 4;  // 8: 2 percent slower where rows are short

// Pairs of rows in flight a lane. f32 gains 8 percent by 2, 16-bit floats lose 3 (registers); 4
// spills.
template <class In>
constexpr int kUnroll = sizeof(In) < 4 ? 1 : 2;

// Blocks that must fit on a multiprocessor, which bounds the registers: as many as fit without
// spills. f32 with f32 times at 8 is 9 percent slower than at 10.
template <class In, class Time, int kCount>
constexpr int kBlocks = (sizeof(In) == 1 && kCount > 1) || (sizeof(In) == 8 && kCount == 1) ? 7
                        : sizeof(In) == 4 && std::is_same_v<Time, float>&& kCount > 1       ? 10
                                                                                            : 8;

// How the work is cut: one warp takes one group of queries times one range of channels.
struct ResampleTiling {
  int group;         // queries a warp: a power of two up to 32
  int64_t groups;    // ceil(B * T / group)
  int64_t vectors;   // of a row of channels
  Divider range;     // vectors of a range; the last range of a row may hold fewer
  Divider ranges;    // of a row
  Divider per_row;   // T
  int step_queries;  // how far 32 items on is: 32 / range
  int step_vectors;  // 32 % range
};

// ---- one vector of channels ---------------------------------------------------------------------

template <class T, int kCount>
struct alignas(sizeof(T) * kCount) Pack {
  T element[kCount];
};

template <int kBytes>
struct Word;
template <>
struct Word<1> {
  using type = unsigned char;
};
template <>
struct Word<2> {
  using type = unsigned short;
};
template <>
struct Word<4> {
  using type = unsigned int;
};
template <>
struct Word<8> {
  using type = uint2;
};
template <>
struct Word<16> {
  using type = uint4;
};

template <class P>
__device__ __forceinline__ P load(const void* address) {
  return bitCast<P>(__ldg(static_cast<const typename Word<sizeof(P)>::type*>(address)));
}

// Outputs are not read again here: let them leave the caches first.
template <class P>
__device__ __forceinline__ void store(void* address, P pack) {
  using W = typename Word<sizeof(P)>::type;
  __stcs(static_cast<W*>(address), bitCast<W>(pack));
}

// Elements to the compute type and back, two at a time where CUDA has an instruction for it.
template <class Out, int kCount, class Number>
__device__ __forceinline__ Pack<Out, kCount> narrowPack(const Number (&values)[kCount]) {
  Pack<Out, kCount> out;
  if constexpr (std::is_same_v<Out, bf16> && std::is_same_v<Number, float> && kCount % 2 == 0) {
#pragma unroll
    for (int i = 0; i < kCount; i += 2) {
      const auto pair = bitCast<uint32_t>(__floats2bfloat162_rn(values[i], values[i + 1]));
      out.element[i].bits = static_cast<uint16_t>(pair);
      out.element[i + 1].bits = static_cast<uint16_t>(pair >> 16);
    }
  } else {
#pragma unroll
    for (int i = 0; i < kCount; ++i) out.element[i] = narrow<Out>(values[i]);
  }
  return out;
}

template <class In, class Out, int kCount, class Weight>
__device__ __forceinline__ Pack<Out, kCount> blend(const Pack<In, kCount>& v0,
                                                   const Pack<In, kCount>& v1, Weight w) {
  if constexpr (std::is_integral_v<In>) {
    return v0;  // integers take samples as they are
  } else {
    Compute<In> values[kCount];
#pragma unroll
    for (int i = 0; i < kCount; ++i)
      values[i] = lerp(widen(v0.element[i]), widen(v1.element[i]), w);
    return narrowPack<Out>(values);
  }
}

// ---- the kernel ---------------------------------------------------------------------------------

// What a warp keeps of a query: where its sample and its output row begin.
template <class In, class Out>
struct Query {
  const In* source;  // null: write the fill value
  Out* target;
  Compute<In> weight;
};

// Index is int32_t where rows and queries are known to be few enough, which saves registers, else
// int64_t.
template <class Time, class Index>
__device__ __forceinline__ Tap tapOfQuery(const ResampleProblem& p, Index b, Index t,
                                          const SampleRange& samples) {
  if (t >= queriesOf(p, b)) return invalidTap();
  const Time q =
      static_cast<const Time*>(p.query_times)[b * p.query_stride[0] + t * p.query_stride[1]];
  const TimeRow<Time, Index> times = {
      static_cast<const Time*>(p.times) + b * p.times_stride[0] + samples.begin * p.times_stride[1],
      static_cast<Index>(p.times_stride[1])};
  Index guess = -1;
  return tapOf(times, static_cast<Index>(samples.count), q, rulesOf<Time>(p), &guess);
}

template <class In, class Out, class Time, class Index>
__device__ __forceinline__ Query<In, Out> findQuery(const ResampleProblem& p, Index b, Index t,
                                                    bool write_mask) {
  const SampleRange samples = samplesOf(p, b);
  const Tap tap = tapOfQuery<Time>(p, b, t, samples);
  if (write_mask) p.mask[b * p.mask_stride[0] + t * p.mask_stride[1]] = tap.mask ? 1 : 0;
  const In* source = nullptr;
  if (tap.index >= 0) {
    source = static_cast<const In*>(p.values) + b * p.values_stride[0] +
             (samples.begin + tap.index) * p.values_stride[1];
  }
  return {source, static_cast<Out*>(p.out) + b * p.out_stride[0] + t * p.out_stride[1],
          static_cast<Compute<In>>(tap.weight)};
}

template <class In, class Out, class Time, int kCount>
__global__ void __launch_bounds__(kWarp* kWarpsPerBlock, kBlocks<In, Time, kCount>)
    resampleKernel(const __grid_constant__ ResampleProblem p,
                   const __grid_constant__ ResampleTiling tiling) {
  using Index = std::conditional_t<kCount == 1, int64_t, int32_t>;
  __shared__ Query<In, Out> block_queries[kWarpsPerBlock][kWarp];
  Query<In, Out>* queries = block_queries[threadIdx.x / kWarp];
  const int lane = threadIdx.x % kWarp;
  constexpr int kRows = kUnroll<In>;
  const auto range = static_cast<int>(tiling.range.divisor);
  const auto ranges = static_cast<Index>(tiling.ranges.divisor);
  const auto flat_end = static_cast<Index>(p.batch * p.queries);
#if __CUDA_ARCH__ >= 900
  cudaGridDependencySynchronize();  // nothing is read or written before the launches ahead are done
#endif

  const Index total = static_cast<Index>(tiling.groups) * ranges;
  const Index warps = static_cast<Index>(gridDim.x) * kWarpsPerBlock;
  for (Index work = static_cast<Index>(blockIdx.x) * kWarpsPerBlock + threadIdx.x / kWarp;
       work < total; work += warps) {
    const Index group = tiling.ranges(work);
    const Index first_vector = (work - group * ranges) * range;
    const Index flat_group = group * tiling.group;
    const Index flat = flat_group + lane;
    if (lane < tiling.group && flat < flat_end) {
      const Index b = tiling.per_row(flat);
      queries[lane] = findQuery<In, Out, Time>(p, b, flat - b * static_cast<Index>(p.queries),
                                               p.mask != nullptr && first_vector == 0);
    }
    __syncwarp();
#if __CUDA_ARCH__ >= 900
    // The next launch may set itself up while this one copies.
    cudaTriggerProgrammaticLaunchCompletion();
#endif

    // The lane's items are (query k, vector v), 32 items apart.
    const Index left = flat_end - flat_group;
    const int count = left < tiling.group ? static_cast<int>(left) : tiling.group;
    const auto vectors = static_cast<Index>(tiling.vectors) - first_vector;
    int k = tiling.range(lane);
    int v = lane - k * range;
    while (k < count) {
      Pack<In, kCount> v0[kRows];
      Pack<In, kCount> v1[kRows];
      Out* target[kRows];
      Compute<In> weight[kRows];
      bool valid[kRows];
#pragma unroll
      for (int u = 0; u < kRows; ++u) {
        target[u] = nullptr;
        if (k < count && v < vectors) {
          const Query<In, Out> query = queries[k];
          const Index channel = (first_vector + v) * kCount;
          valid[u] = query.source != nullptr;
          weight[u] = query.weight;
          target[u] = query.target + channel * (kCount > 1 ? 1 : p.out_stride[2]);
          if (valid[u]) {
            const In* source = query.source + channel * (kCount > 1 ? 1 : p.values_stride[2]);
            v0[u] = load<Pack<In, kCount>>(source);
            v1[u] = v0[u];
            if (query.weight != 0) v1[u] = load<Pack<In, kCount>>(source + p.values_stride[1]);
          }
        }
        k += tiling.step_queries;
        v += tiling.step_vectors;
        if (v >= range) {
          v -= range;
          ++k;
        }
      }
#pragma unroll
      for (int u = 0; u < kRows; ++u) {
        if (target[u] == nullptr) continue;
        Pack<Out, kCount> result;
        if (valid[u]) {
          result = blend<In, Out, kCount>(v0[u], v1[u], weight[u]);
        } else {
          Out fill;
          memcpy(&fill, &p.fill_bits, sizeof fill);
          for (Out& element : result.element) element = fill;
        }
        store(target[u], result);
      }
    }
    __syncwarp();  // the queries are overwritten by the next round
  }
}

// ---- dispatch -----------------------------------------------------------------------------------

template <class In, class Out>
constexpr int kFullCount = 16 /
                           static_cast<int>(sizeof(In) > sizeof(Out) ? sizeof(In) : sizeof(Out));

// Whether every row of channels can be read and written in whole aligned packs, and 32-bit indexes
// suffice.
template <class In, class Out>
bool suitsPacks(const ResampleProblem& p) {
  constexpr int kCount = kFullCount<In, Out>;
  constexpr int64_t kFew = 1 << 30;
  const auto aligned = [](const void* data, const int64_t(&stride)[3], size_t size) {
    return reinterpret_cast<uintptr_t>(data) % (size * kCount) == 0 && stride[0] % kCount == 0 &&
           stride[1] % kCount == 0 && stride[2] == 1;
  };
  const bool few = p.times_stride[1] < kFew && p.times_stride[1] > -kFew && p.samples < kFew &&
                   p.channels < kFew && p.batch < kFew && p.queries < kFew &&
                   p.batch * p.queries < kFew;
  return few && p.channels % kCount == 0 && aligned(p.values, p.values_stride, sizeof(In)) &&
         aligned(p.out, p.out_stride, sizeof(Out));
}

ResampleTiling tilingOf(const ResampleProblem& p, int vector_count, int multiprocessors) {
  const int64_t queries = p.batch * p.queries;
  const int64_t vectors = (p.channels + vector_count - 1) / vector_count;
  // A warp copies some 4 KB: 16 KB costs 3 percent where rows are long. But first of all every
  // multiprocessor wants warps, half a wave of them: 32,500,250,256 bf16 takes 4.7 us, with a
  // whole wave 5.3, with a quarter 5.9.
  const int64_t wanted_warps = static_cast<int64_t>(multiprocessors) * 15;
  int group = kWarp;
  while (group > 4 && group * vectors > 256) group /= 2;
  while (group > 1 && queries / group < wanted_warps) group /= 2;
  const int64_t groups = (queries + group - 1) / group;
  int64_t range = vectors > 0 ? vectors : 1;
  while (range > kWarp &&
         (range > 1024 || groups * ((vectors + range - 1) / range) < wanted_warps)) {
    range = (range + 1) / 2;
  }
  const int64_t ranges = vectors > 0 ? (vectors + range - 1) / range : 1;
  return {group,
          groups,
          vectors,
          Divider(range),
          Divider(ranges),
          Divider(p.queries),
          static_cast<int>(kWarp / range),
          static_cast<int>(kWarp % range)};
}

template <class In, class Out, class Time, int kCount>
cudaError_t launch(const ResampleProblem& p, const LaunchDevice& device, cudaStream_t stream) {
  const ResampleTiling tiling = tilingOf(p, kCount, device.multiprocessors);
  const int64_t warps = tiling.groups * static_cast<int64_t>(tiling.ranges.divisor);
  const int64_t blocks = (warps + kWarpsPerBlock - 1) / kWarpsPerBlock;
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(static_cast<unsigned>(blocks < INT32_MAX ? blocks : INT32_MAX));
  config.blockDim = dim3(kWarp * kWarpsPerBlock);
  config.stream = stream;
  cudaLaunchAttribute overlap = {};
  overlap.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  overlap.val.programmaticStreamSerializationAllowed = 1;
  config.attrs = &overlap;
  config.numAttrs = device.compute_capability >= 90 ? 1 : 0;
  return cudaLaunchKernelEx(&config, resampleKernel<In, Out, Time, kCount>, p, tiling);
}

template <class In, class Out, class Time, int kCount>
cudaError_t loadKernel() {
  cudaFuncAttributes attributes;
  return cudaFuncGetAttributes(&attributes, resampleKernel<In, Out, Time, kCount>);
}

// Calls visitor(Tag<In>, Tag<Out>): every float pair; integers as words of their size.
template <class Visitor>
cudaError_t visitPair(DType in, DType out, Visitor&& visitor) {
  if (isFloat(in)) {
    return visitFloat(in, [&](auto in_tag) {
      return visitFloat(out, [&](auto out_tag) { return visitor(in_tag, out_tag); });
    });
  }
  return visitInteger(in, [&](auto tag) {
    using W = std::make_unsigned_t<typename decltype(tag)::type>;
    return visitor(Tag<W>{}, Tag<W>{});
  });
}

template <class Time>
cudaError_t loadKernels() {
  cudaError_t error = cudaSuccess;
  const auto load_both = [&](auto in_tag, auto out_tag) {
    using In = typename decltype(in_tag)::type;
    using Out = typename decltype(out_tag)::type;
    if (error == cudaSuccess) error = loadKernel<In, Out, Time, kFullCount<In, Out>>();
    if (error == cudaSuccess) error = loadKernel<In, Out, Time, 1>();
    return error;
  };
  for (const DType in : kFloatDTypes) {
    for (const DType out : kFloatDTypes) visitPair(in, out, load_both);
  }
  for (const DType integer : kIntegerDTypes) visitPair(integer, integer, load_both);
  return error;
}

}  // namespace

cudaError_t launchResample(const ResampleProblem& p, const LaunchDevice& device,
                           cudaStream_t stream) {
  return visitTime(p.time_dtype, [&](auto time_tag) {
    return visitPair(p.values_dtype, p.out_dtype, [&](auto in_tag, auto out_tag) {
      using Time = typename decltype(time_tag)::type;
      using In = typename decltype(in_tag)::type;
      using Out = typename decltype(out_tag)::type;
      return suitsPacks<In, Out>(p) ? launch<In, Out, Time, kFullCount<In, Out>>(p, device, stream)
                                    : launch<In, Out, Time, 1>(p, device, stream);
    });
  });
}

cudaError_t loadResample() {
  cudaError_t error = loadKernels<float>();
  if (error == cudaSuccess) error = loadKernels<double>();
  if (error == cudaSuccess) error = loadKernels<int64_t>();
  return error;
}

}  // namespace rbc
