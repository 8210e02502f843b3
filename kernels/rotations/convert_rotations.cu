// Conversion of rotations. A warp takes a tile of them through shared memory, so that global memory is
// read and written in whole words, one after the other; where rotations do not lie so, each thread
// reads or writes its own.

#include <cuda_pipeline_primitives.h>

#include <algorithm>

#include "rotation_problem.h"
#include "runtime/aligned_vec.cuh"
#include "runtime/cuda_state.h"
#include "runtime/launch.h"
#include "runtime/load_kernels.h"
#include "runtime/pdl.cuh"

namespace rbc::cuda {
namespace {

constexpr int kWarp = 32;
constexpr int kThreads = 128;
constexpr int kWarps = kThreads / kWarp;
constexpr int kTile = 2 * kWarp;  // rotations of a warp
constexpr int kWordBytes = 16;
constexpr int kMostBytes = kMostRotationChannels * sizeof(double);

// Representations whose code is one: each pair of these has a kernel of its own, since registers for
// the largest would slow the smallest.
enum class Group { kQuaternion, kRotvec, kMatrix, kRot6d, kEuler };
constexpr int kGroups = 5;

Group groupOf(RotationKind kind) {
  switch (kind) {
    case RotationKind::QuatXyzw:
    case RotationKind::QuatWxyz: return Group::kQuaternion;
    case RotationKind::Rotvec: return Group::kRotvec;
    case RotationKind::Matrix: return Group::kMatrix;
    case RotationKind::Euler: return Group::kEuler;
    default: return Group::kRot6d;
  }
}

// The format, with the compiler told what it may be.
template <Group kGroup>
__device__ __forceinline__ RotationFormat known(RotationFormat format) {
  RotationKind kind = format.kind;
  if constexpr (kGroup == Group::kQuaternion) {
    kind = kind == RotationKind::QuatXyzw ? RotationKind::QuatXyzw : RotationKind::QuatWxyz;
  } else if constexpr (kGroup == Group::kRot6d) {
    kind = kind == RotationKind::Rot6dRows      ? RotationKind::Rot6dRows
           : kind == RotationKind::Rot6dColumns ? RotationKind::Rot6dColumns
                                                : RotationKind::Rot6dInterleaved;
  } else {
    kind = kGroup == Group::kRotvec   ? RotationKind::Rotvec
           : kGroup == Group::kMatrix ? RotationKind::Matrix
                                      : RotationKind::Euler;
  }
  return {kind, format.axes};
}

struct Arguments {
  RotationProblem problem;
  bool words_in;  // whether tiles are whole words, in which they are copied
  bool words_out;
  int32_t in_bytes;  // of a rotation
  int32_t out_bytes;
};

template <class Visitor>
__device__ __forceinline__ void visitStorage(DType dtype, Visitor&& visitor) {
  switch (dtype) {
    case DType::F16: return visitor(Tag<f16>{});
    case DType::BF16: return visitor(Tag<bf16>{});
    case DType::F32: return visitor(Tag<float>{});
    default: return visitor(Tag<double>{});
  }
}

// A tile in shared memory, with one after another rotation.
struct Tile {
  uint4* words;
  int bytes;  // of a rotation
  bool used;  // else they stay in global memory, in any strides
};

// From global memory, which begins with the same tile. Without registers between.
__device__ __forceinline__ void fetch(const Tile& tile, const void* global, int lane) {
  const auto* from = static_cast<const uint4*>(global);
  for (int i = lane; i < kTile * tile.bytes / kWordBytes; i += kWarp) {
    __pipeline_memcpy_async(tile.words + i, from + i, kWordBytes);
  }
  __pipeline_commit();
  __pipeline_wait_prior(0);
}

__device__ __forceinline__ void flush(const Tile& tile, void* global, int lane) {
  auto* to = static_cast<uint4*>(global);
  for (int i = lane; i < kTile * tile.bytes / kWordBytes; i += kWarp) __stcs(to + i, tile.words[i]);
}

template <Group kSource, Group kTarget>
__global__ void __launch_bounds__(kThreads) convert(const __grid_constant__ Arguments a) {
  extern __shared__ uint4 memory[];
  const RotationProblem& p = a.problem;
  const RotationFormat source = known<kSource>(p.source);
  const RotationFormat target = known<kTarget>(p.target);
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  const int in_words = kTile * a.in_bytes / kWordBytes;
  const int out_words = kTile * a.out_bytes / kWordBytes;
  uint4* const own = memory + warp * (in_words + out_words);
  waitForLaunchesAhead();
  const int64_t threads = static_cast<int64_t>(gridDim.x) * kWarps;
  for (int64_t first = (static_cast<int64_t>(blockIdx.x) * kWarps + warp) * kTile; first < p.count;
       first += threads * kTile) {
    const int64_t left = p.count - first;
    const int count = static_cast<int>(min(static_cast<int64_t>(kTile), left));
    const bool whole = count == kTile;
    const Tile in = {own, a.in_bytes, a.words_in && whole};
    const Tile out = {own + in_words, a.out_bytes, a.words_out && whole};
    if (in.used) fetch(in, static_cast<const std::byte*>(p.in.data) + first * a.in_bytes, lane);
    __syncwarp();
#pragma unroll 1
    for (int i = lane; i < count; i += kWarp) {
      const RotationPlace place = in.used && out.used ? RotationPlace{0, 0} : placeOf(p, first + i);
      double rotation[kMostRotationChannels];
      visitStorage(p.in.dtype, [&](auto tag) {
        loadRotation<typename decltype(tag)::type>(
            in.used ? in.words : p.in.data, in.used ? i * channelsOf(source.kind) : place.in,
            in.used ? 1 : p.in.channel_stride, channelsOf(source.kind), rotation);
      });
      convertRotation(source, target, rotation, rotation);
      visitStorage(p.out.dtype, [&](auto tag) {
        storeRotation<typename decltype(tag)::type>(
            rotation, out.used ? out.words : p.out.data,
            out.used ? i * channelsOf(target.kind) : place.out, out.used ? 1 : p.out.channel_stride,
            channelsOf(target.kind));
      });
    }
    __syncwarp();
    if (out.used) flush(out, static_cast<std::byte*>(p.out.data) + first * a.out_bytes, lane);
    __syncwarp();
  }
}

using Kernel = void (*)(Arguments);

template <Group kSource>
constexpr Kernel kFrom[kGroups] = {
    convert<kSource, Group::kQuaternion>, convert<kSource, Group::kRotvec>,
    convert<kSource, Group::kMatrix>, convert<kSource, Group::kRot6d>,
    convert<kSource, Group::kEuler>};

Kernel kernelFor(const RotationProblem& p) {
  const auto target = static_cast<int>(groupOf(p.target.kind));
  switch (groupOf(p.source.kind)) {
    case Group::kQuaternion: return kFrom<Group::kQuaternion>[target];
    case Group::kRotvec: return kFrom<Group::kRotvec>[target];
    case Group::kMatrix: return kFrom<Group::kMatrix>[target];
    case Group::kRot6d: return kFrom<Group::kRot6d>[target];
    default: return kFrom<Group::kEuler>[target];
  }
}

bool inWords(const RotationArray& array, int ndim) {
  return array.compact(ndim) && reinterpret_cast<uintptr_t>(array.data) % kWordBytes == 0;
}

cudaError_t launchConvert(const RotationProblem& p, void*, const LaunchDevice& device,
                          cudaStream_t stream) {
  static_assert(kTile * sizeof(f16) % kWordBytes == 0, "a tile is whole words");
  Arguments arguments = {p, inWords(p.in, p.ndim), inWords(p.out, p.ndim),
                         p.in.channels * sizeOf(p.in.dtype), p.out.channels * sizeOf(p.out.dtype)};
  const int tile_bytes = kTile * (arguments.in_bytes + arguments.out_bytes);
  static_assert(kWarps * kTile * 2 * kMostBytes <= 48 << 10, "shared memory that needs no asking");
  const int64_t tiles = (p.count + kTile - 1) / kTile;
  return launchBlocks(kernelFor(p), &arguments, (tiles + kWarps - 1) / kWarps, kThreads, device,
                      stream, kWarps * tile_bytes);
}

}  // namespace

extern const Operation<RotationProblem> kConvertRotations = {
    noBytes<RotationProblem>, launchOn<RotationProblem, launchConvert>};
cudaError_t loadConvertRotations() {
  return loadKernelsBeside(convert<Group::kQuaternion, Group::kQuaternion>);
}

}  // namespace rbc::cuda
