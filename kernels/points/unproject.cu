// Depth images into clouds: a block a tile of pixels. The points of each tile are counted first; then
// every block adds up the tiles before its own, and writes its points and its part of what is behind.

#include "runtime/cuda_state.h"
#include "runtime/fast_divmod.cuh"
#include "runtime/launch.h"
#include "runtime/load_kernels.h"
#include "runtime/pdl.cuh"
#include "scratch_layout.h"
#include "unproject_problem.h"

namespace rbc::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;
constexpr int kTurns = 8;  // pixels of a thread
constexpr int kTile = kThreads * kTurns;

template <class Number>
struct Arguments {
  UnprojectProblem problem;
  DepthRules<Number> rules;
  int64_t pixels;  // of an image that are looked at
  int64_t tiles;   // of an image
  FastDivmod per_image;
  FastDivmod per_row;
  int32_t* counts;  // by image and tile
  bool in_line;     // all pixels of an image are looked at, and lie one after the other
  bool is_small;    // the numbers of pixels, rows and columns are below 2^31
};

template <class Number, class Depth>
struct Tile {
  const Arguments<Number>& a;
  int64_t image;
  int64_t tile;

  __device__ explicit Tile(const Arguments<Number>& arguments) : a(arguments) {
    image = a.per_image(static_cast<int64_t>(blockIdx.x));
    tile = static_cast<int64_t>(blockIdx.x) - image * a.tiles;
  }

  // By all threads of the block. One thread would wait for one number after the other.
  __device__ void loadCamera(Pinhole<Number>* camera) const {
    if (threadIdx.x < kCameraNumbers) {
      readCameraNumber(a.problem, image, static_cast<int>(threadIdx.x), camera);
    }
    __syncthreads();
  }

  __device__ int64_t pixel(int turn) const {
    return tile * kTile + turn * kThreads + static_cast<int64_t>(threadIdx.x);
  }

  // Index is int32_t where that counts the image's pixels: products of 64 bits take 1 % longer.
  template <class Index>
  struct Place {
    Index row;
    Index column;
  };
  template <class Index>
  __device__ Place<Index> place(int64_t pixel) const {
    const auto i = static_cast<Index>(pixel);
    const auto line = static_cast<Index>(a.per_row(i));
    const auto step = static_cast<Index>(a.problem.step);
    return {line * step, (i - line * static_cast<Index>(a.problem.columns())) * step};
  }

  // Of a thread's pixels, in turns: all of them are on their way at once.
  __device__ void fetch(Depth (&depths)[kTurns]) const {
    const UnprojectProblem& p = a.problem;
    const auto* image_depth = static_cast<const Depth*>(p.depth.data) + image * p.depth.stride[0];
#pragma unroll
    for (int turn = 0; turn < kTurns; ++turn) depths[turn] = Depth{};
    if (a.in_line) {
#pragma unroll
      for (int turn = 0; turn < kTurns; ++turn) {
        if (pixel(turn) < a.pixels) depths[turn] = image_depth[pixel(turn)];
      }
      return;
    }
#pragma unroll
    for (int turn = 0; turn < kTurns; ++turn) {
      if (pixel(turn) >= a.pixels) continue;
      const Place<int64_t> at = place<int64_t>(pixel(turn));
      depths[turn] = image_depth[at.row * p.depth.stride[1] + at.column * p.depth.stride[2]];
    }
  }

  // Whether a thread's pixel is a point, and which.
  __device__ bool look(const Pinhole<Number>& camera, Depth depth, int turn,
                       Number (&point)[3]) const {
    if (pixel(turn) >= a.pixels) return false;
    return a.is_small ? lookAt<int32_t>(camera, depth, turn, point)
                      : lookAt<int64_t>(camera, depth, turn, point);
  }

 private:
  template <class Index>
  __device__ bool lookAt(const Pinhole<Number>& camera, Depth depth, int turn,
                         Number (&point)[3]) const {
    const Place<Index> at = place<Index>(pixel(turn));
    return unproject(camera, a.rules, static_cast<Number>(widen(depth)),
                     ray(static_cast<Number>(at.column), a.rules.pixel_offset, camera.centre[0]),
                     ray(static_cast<Number>(at.row), a.rules.pixel_offset, camera.centre[1]),
                     point);
  }
};

template <class Number, class Depth>
__global__ void __launch_bounds__(kThreads)
    countPoints(const __grid_constant__ Arguments<Number> a) {
  __shared__ Pinhole<Number> camera;
  __shared__ int counts[kWarps];
  waitForLaunchesAhead();
  const Tile<Number, Depth> tile(a);
  Depth depths[kTurns];
  tile.fetch(depths);
  tile.loadCamera(&camera);
  int count = 0;
#pragma unroll
  for (int turn = 0; turn < kTurns; ++turn) {
    Number point[3];
    count += __popc(__ballot_sync(~0u, tile.look(camera, depths[turn], turn, point)));
  }
  if (threadIdx.x % 32 == 0) counts[threadIdx.x / 32] = count;
  __syncthreads();
  if (threadIdx.x == 0) {
    int sum = 0;
    for (const int each : counts) sum += each;
    a.counts[blockIdx.x] = sum;
  }
}

// The points of the tiles before the block's own, and of all tiles of its image.
struct Sums {
  int64_t before;
  int64_t all;
};

template <class Number>
__device__ Sums sumTiles(const Arguments<Number>& a, int64_t image, int64_t tile, Sums* shared) {
  if (threadIdx.x < 32) {
    Sums sums = {0, 0};
#pragma unroll 4
    for (int64_t t = threadIdx.x; t < a.tiles; t += 32) {
      const int64_t count = a.counts[image * a.tiles + t];
      sums.all += count;
      if (t < tile) sums.before += count;
    }
    for (int mask = 16; mask > 0; mask /= 2) {
      sums.all += __shfl_xor_sync(~0u, sums.all, mask);
      sums.before += __shfl_xor_sync(~0u, sums.before, mask);
    }
    if (threadIdx.x == 0) *shared = sums;
  }
  __syncthreads();
  return *shared;
}

__device__ void putPixel(const UnprojectProblem& p, int64_t image, int64_t place, int64_t pixel) {
  if (p.pixels.data == nullptr) return;
  const int64_t at = image * p.pixels.stride[0] + place * p.pixels.stride[1];
  if (p.pixels.dtype == DType::I64) {
    static_cast<int64_t*>(p.pixels.data)[at] = pixel;
  } else {
    static_cast<int32_t*>(p.pixels.data)[at] = static_cast<int32_t>(pixel);
  }
}

// A tile's share of the places behind the points.
template <class Element>
__device__ void clearBehind(const UnprojectProblem& p, int64_t image, int64_t tile, int64_t tiles,
                            int64_t kept) {
  const int64_t channels = 3 + p.channels;
  auto* points = static_cast<Element*>(p.points.data) + image * p.points.stride[0];
  for (int64_t first = tile * kTile; first < p.capacity; first += tiles * kTile) {
    const int64_t begin = max(first, kept);
    const int64_t end = min(first + kTile, p.capacity);
    if (p.points.stride[2] == 1 && p.points.stride[1] == channels) {
      for (int64_t i = begin * channels + threadIdx.x; i < end * channels; i += kThreads) {
        points[i] = Element{};
      }
    } else {
      for (int64_t place = begin + threadIdx.x; place < end; place += kThreads) {
        for (int64_t c = 0; c < channels; ++c) {
          points[place * p.points.stride[1] + c * p.points.stride[2]] = Element{};
        }
      }
    }
    for (int64_t place = begin + threadIdx.x; place < end; place += kThreads) {
      putPixel(p, image, place, -1);
    }
  }
}

// Three blocks a multiprocessor: without that bound 104 registers leave room for two.
template <class Number, class Depth, class Element>
__global__ void __launch_bounds__(kThreads, 3)
    writePoints(const __grid_constant__ Arguments<Number> a) {
  __shared__ Pinhole<Number> camera;
  __shared__ Sums sums_of_block;
  __shared__ int places[kTurns * kWarps + 1];  // of the first point of a warp's turn, in the tile
  constexpr bool kStages = sizeof(Element) <= 4;  // more do not fit
  __shared__ Element staged[kStages ? kTile * 3 : 1];
  waitForLaunchesAhead();
  const UnprojectProblem& p = a.problem;
  const Tile<Number, Depth> tile(a);
  Depth depths[kTurns];
  tile.fetch(depths);
  tile.loadCamera(&camera);
  const Sums sums = sumTiles(a, tile.image, tile.tile, &sums_of_block);
  const int64_t kept = min(sums.all, p.capacity);
  // Where points lie one after the other, whole lines are written.
  const bool compact =
      kStages && p.channels == 0 && p.points.stride[2] == 1 && p.points.stride[1] == 3;

  const int warp = threadIdx.x / 32;
  const unsigned below = (1u << (threadIdx.x % 32)) - 1;
  Number points[kTurns][3];
  unsigned votes[kTurns];
#pragma unroll
  for (int turn = 0; turn < kTurns; ++turn) {
    votes[turn] = __ballot_sync(~0u, tile.look(camera, depths[turn], turn, points[turn]));
    if (threadIdx.x % 32 == 0) places[turn * kWarps + warp] = __popc(votes[turn]);
  }
  __syncthreads();
  if (threadIdx.x < 32) {
    // Two for each lane: the sums of those before.
    static_assert(kTurns * kWarps == 64);
    const int one = places[2 * threadIdx.x];
    const int two = places[2 * threadIdx.x + 1];
    int sum = one + two;
    for (int distance = 1; distance < 32; distance *= 2) {
      const int other = __shfl_up_sync(~0u, sum, distance);
      if (threadIdx.x >= static_cast<unsigned>(distance)) sum += other;
    }
    places[2 * threadIdx.x] = sum - one - two;
    places[2 * threadIdx.x + 1] = sum - two;
    if (threadIdx.x == 31) places[kTurns * kWarps] = sum;
  }
  __syncthreads();

  auto* out = static_cast<Element*>(p.points.data) + tile.image * p.points.stride[0];
#pragma unroll
  for (int turn = 0; turn < kTurns; ++turn) {
    if ((votes[turn] >> (threadIdx.x % 32) & 1) == 0) continue;
    const int place = places[turn * kWarps + warp] + __popc(votes[turn] & below);
    const int64_t at = sums.before + place;
    if (at >= p.capacity) continue;
    Element* to = compact ? staged + 3 * place : out + at * p.points.stride[1];
    const int64_t stride = compact ? 1 : p.points.stride[2];
#pragma unroll
    for (int i = 0; i < 3; ++i) to[i * stride] = narrow<Element>(points[turn][i]);
    if (p.channels == 0 && p.pixels.data == nullptr) continue;
    const auto from = tile.template place<int64_t>(tile.pixel(turn));
    putPixel(p, tile.image, at, from.row * p.width + from.column);
    const int64_t color = tile.image * p.colors.stride[0] + from.row * p.colors.stride[1] +
                          from.column * p.colors.stride[2];
    for (int64_t c = 0; c < p.channels; ++c) {
      const auto x = colorAt<Number>(p.colors, color + c * p.colors.stride[3]);
      to[(3 + c) * stride] = narrow<Element>(x / static_cast<Number>(p.color_scale));
    }
  }
  if (compact) {
    __syncthreads();
    const int64_t room = max(int64_t{0}, p.capacity - sums.before);
    const int64_t count = min(static_cast<int64_t>(places[kTurns * kWarps]), room);
    Element* first = out + 3 * sums.before;
    for (int64_t i = threadIdx.x; i < 3 * count; i += kThreads) first[i] = staged[i];
  }
  clearBehind<Element>(p, tile.image, tile.tile, a.tiles, kept);
  if (tile.tile == 0 && threadIdx.x == 0) {
    static_cast<int64_t*>(p.counts.data)[tile.image * p.counts.stride[0]] = kept;
    if (p.overflow.data != nullptr) {
      static_cast<int64_t*>(p.overflow.data)[tile.image * p.overflow.stride[0]] = sums.all - kept;
    }
  }
}

int64_t pixelsOf(const UnprojectProblem& p) { return p.rows() * p.columns(); }
int64_t tilesOf(const UnprojectProblem& p) {
  return std::max<int64_t>(1, ceilDiv(pixelsOf(p), int64_t{kTile}));
}

bool isInLine(const UnprojectProblem& p) {
  return p.step == 1 && p.depth.stride[2] == 1 && p.depth.stride[1] == p.columns();
}

size_t bytesOfCounts(const UnprojectProblem& p, const LaunchDevice&) {
  ScratchLayout layout(nullptr);
  layout.take<int32_t>(p.images * tilesOf(p));
  return layout.used();
}

cudaError_t launchUnproject(const UnprojectProblem& p, void* scratch, const LaunchDevice& device,
                            cudaStream_t stream) {
  const int64_t blocks = p.images * tilesOf(p);
  if (blocks > INT32_MAX) return cudaErrorInvalidConfiguration;
  return visitDepth(p.depth.dtype, [&](auto depth_tag) {
    return visitFloat(p.points.dtype, [&](auto element_tag) {
      using Depth = typename decltype(depth_tag)::type;
      using Element = typename decltype(element_tag)::type;
      using Number = Compute<Element>;
      Arguments<Number> arguments = {
          p,
          rulesAs<Number>(p),
          pixelsOf(p),
          tilesOf(p),
          FastDivmod(tilesOf(p)),
          FastDivmod(p.columns()),
          static_cast<int32_t*>(scratch),
          isInLine(p),
          std::max(p.height, p.width) <= INT32_MAX && pixelsOf(p) <= INT32_MAX};
      const cudaError_t error =
          launchBlocks(countPoints<Number, Depth>, &arguments, blocks, kThreads, device, stream);
      if (error != cudaSuccess) return error;
      return launchBlocks(writePoints<Number, Depth, Element>, &arguments, blocks, kThreads, device,
                          stream);
    });
  });
}

}  // namespace

extern const Operation<UnprojectProblem> kUnproject = {bytesOn<UnprojectProblem, bytesOfCounts>,
                                                       launchOn<UnprojectProblem, launchUnproject>};
cudaError_t loadUnproject() { return loadKernelsBeside(countPoints<float, float>); }

}  // namespace rbc::cuda
