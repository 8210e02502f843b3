// Conversion of rotations. A warp moves a tile of them through shared memory, so that global memory
// is read and written in whole consecutive words; if rotations are not contiguous, each thread
// reads and writes its own. Each warp has one tile: other warps of the multiprocessor run
// meanwhile. Persistent warps that request their next tile ahead gained nothing.

#include <cuda_pipeline_primitives.h>

#include <algorithm>
#include <numeric>

#include "dtype.h"
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
constexpr int kMaxTurns = 8;  // of a warp over the rotations of its tile
constexpr int kWordBytes = 16;
constexpr int kMaxBytes = kMaxRotationChannels * sizeof(double);

// Representations that share code: each pair of these has a separate kernel, since registers for
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

// The format; the compiler learns which kinds are possible.
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
  bool words_in;  // whether tiles are whole words and are copied as words
  bool words_out;
  int32_t in_bytes;  // per rotation
  int32_t out_bytes;
  int32_t tile;  // rotations per warp
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

// Copies a tile from global memory into shared memory, without registers in between.
__device__ __forceinline__ void fetch(uint4* tile, const void* global, int words, int lane) {
  const auto* from = static_cast<const uint4*>(global);
#pragma unroll 4
  for (int i = lane; i < words; i += kWarp) __pipeline_memcpy_async(tile + i, from + i, kWordBytes);
  __pipeline_commit();
  __pipeline_wait_prior(0);
}

__device__ __forceinline__ void flush(const uint4* tile, void* global, int words, int lane) {
  auto* to = static_cast<uint4*>(global);
#pragma unroll 4
  for (int i = lane; i < words; i += kWarp) __stcs(to + i, tile[i]);
}

// The widest words that divide a rotation in a tile: with these, lanes have few bank conflicts.
template <class Storage, int kChannels, int kBytes = sizeof(Storage)>
using TileWord = AlignedVec<Storage, std::gcd(kBytes* kChannels, kWordBytes) / kBytes>;

template <class Storage, int kChannels>
__device__ __forceinline__ void readTile(const uint4* tile, int i,
                                         double (&to)[kMaxRotationChannels]) {
  using Vec = TileWord<Storage, kChannels>;
  using W = typename Word<sizeof(Vec)>::type;
  constexpr int kEach = sizeof(Vec) / sizeof(Storage);
  const auto* from = reinterpret_cast<const W*>(tile) + i * (kChannels / kEach);
#pragma unroll
  for (int j = 0; j < kChannels / kEach; ++j) {
    const auto vec = bitCast<Vec>(from[j]);
#pragma unroll
    for (int k = 0; k < kEach; ++k) to[j * kEach + k] = widen(vec.element[k]);
  }
}

template <class Storage, int kChannels>
__device__ __forceinline__ void writeTile(const double (&from)[kMaxRotationChannels], uint4* tile,
                                          int i) {
  using Vec = TileWord<Storage, kChannels>;
  using W = typename Word<sizeof(Vec)>::type;
  constexpr int kEach = sizeof(Vec) / sizeof(Storage);
  using Number = std::conditional_t<sizeof(Storage) == 2, float, double>;
  Number values[kChannels];
  if constexpr (sizeof(Storage) == 2) {
    allToOdd<Storage>(from, values);
  } else {
#pragma unroll
    for (int k = 0; k < kChannels; ++k) values[k] = from[k];
  }
  auto* to = reinterpret_cast<W*>(tile) + i * (kChannels / kEach);
#pragma unroll
  for (int j = 0; j < kChannels / kEach; ++j) {
    Number each[kEach];
#pragma unroll
    for (int k = 0; k < kEach; ++k) each[k] = values[j * kEach + k];
    to[j] = bitCast<W>(narrowVec<Storage>(each));
  }
}

template <Group kGroup>
constexpr int kChannelsOf = kGroup == Group::kQuaternion ? 4
                            : kGroup == Group::kMatrix   ? 9
                            : kGroup == Group::kRot6d    ? 6
                                                         : 3;

// Pairs with a separate loop for tiles of f32, without branches on dtypes: those that take little
// time per rotation. The others would take long to compile.
template <Group kSource, Group kTarget>
constexpr bool kOwnLoop =
    (kSource == Group::kQuaternion || kSource == Group::kRot6d) && kTarget
                                                                       != Group::kRotvec&& kTarget
                                                                       != Group::kEuler;

template <Group kSource, Group kTarget>
__device__ __forceinline__ void convertF32(const Arguments& a, const uint4* in, uint4* out,
                                           int lane) {
  const RotationFormat source = known<kSource>(a.problem.source);
  const RotationFormat target = known<kTarget>(a.problem.target);
#pragma unroll 1
  for (int i = lane; i < a.tile; i += kWarp) {
    double rotation[kMaxRotationChannels];
    readTile<float, kChannelsOf<kSource>>(in, i, rotation);
    convertRotation(source, target, rotation, rotation, true);
    writeTile<float, kChannelsOf<kTarget>>(rotation, out, i);
  }
}

// For any dtypes, in shared memory or not.
template <Group kSource, Group kTarget>
__device__ __forceinline__ void convertAny(const Arguments& a, const uint4* in, uint4* out,
                                           bool tile_in, bool tile_out, int64_t first, int count,
                                           int lane) {
  const RotationProblem& p = a.problem;
  const RotationFormat source = known<kSource>(p.source);
  const RotationFormat target = known<kTarget>(p.target);
#pragma unroll 1
  for (int i = lane; i < count; i += kWarp) {
    const RotationPlace place = tile_in && tile_out ? RotationPlace{0, 0} : placeOf(p, first + i);
    double rotation[kMaxRotationChannels];
    visitStorage(p.in.dtype, [&](auto tag) {
      using Storage = typename decltype(tag)::type;
      if (tile_in) return readTile<Storage, kChannelsOf<kSource>>(in, i, rotation);
      loadRotation<Storage>(p.in.data, place.in, p.in.channel_stride, kChannelsOf<kSource>,
                            rotation);
    });
    convertRotation(source, target, rotation, rotation, p.in.dtype != DType::F64);
    visitStorage(p.out.dtype, [&](auto tag) {
      using Storage = typename decltype(tag)::type;
      if (tile_out) return writeTile<Storage, kChannelsOf<kTarget>>(rotation, out, i);
      storeRotation<Storage>(rotation, p.out.data, place.out, p.out.channel_stride,
                             kChannelsOf<kTarget>);
    });
  }
}

template <Group kSource, Group kTarget>
__global__ void __launch_bounds__(kThreads, 4) convert(const __grid_constant__ Arguments a) {
  extern __shared__ uint4 memory[];
  const RotationProblem& p = a.problem;
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  const int in_words = a.tile * a.in_bytes / kWordBytes;
  const int out_words = a.tile * a.out_bytes / kWordBytes;
  uint4* const in = memory + warp * (in_words + out_words);
  uint4* const out = in + in_words;
  const int64_t first = (static_cast<int64_t>(blockIdx.x) * kWarps + warp) * a.tile;
  if (first >= p.count) return;
  const bool whole = first + a.tile <= p.count;
  const bool tile_in = a.words_in && whole;
  const bool tile_out = a.words_out && whole;
  waitForLaunchesAhead();
  if (tile_in) {
    fetch(in, static_cast<const std::byte*>(p.in.data) + first * a.in_bytes, in_words, lane);
  }
  __syncwarp();
  const int count = whole ? a.tile : static_cast<int>(p.count - first);
  const bool f32 = p.in.dtype == DType::F32 && p.out.dtype == DType::F32;
  if constexpr (kOwnLoop<kSource, kTarget>) {
    if (tile_in && tile_out && f32) {
      convertF32<kSource, kTarget>(a, in, out, lane);
    } else {
      convertAny<kSource, kTarget>(a, in, out, tile_in, tile_out, first, count, lane);
    }
  } else {
    convertAny<kSource, kTarget>(a, in, out, tile_in, tile_out, first, count, lane);
  }
  __syncwarp();
  if (tile_out) {
    flush(out, static_cast<std::byte*>(p.out.data) + first * a.out_bytes, out_words, lane);
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

// Number of rotations per tile. Many, since starting a warp takes as long as several rotations; but
// few enough that multiprocessors are full of warps, regarding shared memory and the number of
// rotations.
int tileFor(int64_t count, int bytes, const LaunchDevice& device) {
  constexpr int kBlockBytes = 24 << 10;
  constexpr int kWarpsEach = 32;
  const int most = std::clamp(kBlockBytes / (kWarps * bytes * kWarp), 2, kMaxTurns);
  const int64_t warps = static_cast<int64_t>(device.multiprocessors) * kWarpsEach;
  return static_cast<int>(blocksFor(count, warps * kWarp, most)) * kWarp;
}

cudaError_t launchConvert(const RotationProblem& p, void*, const LaunchDevice& device,
                          cudaStream_t stream, LaunchChoice* chosen) {
  static_assert(kWarp * sizeof(f16) % kWordBytes == 0, "a tile is whole words");
  static_assert(kWarps * 2 * kWarp * 2 * kMaxBytes <= 48 << 10,
                "shared memory that needs no asking");
  const int in_bytes = p.in.channels * sizeOf(p.in.dtype);
  const int out_bytes = p.out.channels * sizeOf(p.out.dtype);
  const int tile = tileFor(p.count, in_bytes + out_bytes, device);
  Arguments arguments = {p,   inWords(p.in, p.ndim), inWords(p.out, p.ndim), in_bytes, out_bytes,
                         tile};
  const int64_t blocks = ceilDiv(p.count, kWarps * tile);
  const int shared_bytes = kWarps * tile * (in_bytes + out_bytes);
  *chosen = onlyKernel("convert_rotations", blocks, kThreads, shared_bytes);
  return launchBlocks(kernelFor(p), &arguments, blocks, kThreads, device, stream, shared_bytes);
}

}  // namespace

extern const Operation<RotationProblem> kConvertRotations = {
    noBytes<RotationProblem>, launchOn<RotationProblem, launchConvert>};
cudaError_t loadConvertRotations(const LaunchDevice&) {
  return loadKernelsBeside(convert<Group::kQuaternion, Group::kQuaternion>);
}

}  // namespace rbc::cuda
