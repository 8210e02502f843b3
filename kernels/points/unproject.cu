// Converts depth images to clouds: one block per tile of pixels, in one pass. A second launch
// clears the rows after the points.

#include <cinttypes>
#include <type_traits>

#include "points/tile_prefix.cuh"
#include "runtime/aligned_vec.cuh"
#include "runtime/cuda_state.h"
#include "runtime/fast_divmod.h"
#include "runtime/launch.h"
#include "runtime/load_kernels.h"
#include "runtime/pdl.cuh"
#include "runtime/suits_vecs.h"
#include "scratch_layout.h"
#include "status.h"
#include "unproject_problem.h"
#include "visit_dtype.h"

namespace rbc::cuda {
namespace unprojection {

// ---- Writes the rows of points of a tile of pixels from shared memory.

inline constexpr int kThreads = 256;
inline constexpr int kWarps = kThreads / 32;
// Consecutive pixels per thread: shared memory holds half as many of f64.
template <class Element>
inline constexpr int kRun = sizeof(Element) <= 4 ? 8 : 4;
template <class Element>
inline constexpr int kTile = kThreads*(kRun<Element>);

template <class Number>
struct Arguments {
  UnprojectProblem problem;
  DepthRules<Number> rules;
  int64_t pixels;  // visited pixels per image
  int64_t tiles;   // per image
  FastDivmod per_image;
  FastDivmod per_row;
  TileState* states;  // by image and tile; cleared
  bool in_line;       // all pixels of an image are visited, and they are contiguous
  bool in_vecs;       // in_line, and a thread's pixels can be loaded as words
};

inline __device__ void putPixel(const UnprojectProblem& p, int64_t image, int64_t place,
                                int64_t pixel) {
  const int64_t at = image * p.pixels.stride[0] + place * p.pixels.stride[1];
  if (p.pixels.dtype == DType::I64) {
    static_cast<int64_t*>(p.pixels.data)[at] = pixel;
  } else {
    static_cast<int32_t*>(p.pixels.data)[at] = static_cast<int32_t>(pixel);
  }
}

// Positions in shared memory: one word is left free after every eight, which a thread may have, so
// that threads write to different banks.
template <class Element>
struct Staged {
  static constexpr int kGroup = 3 * 8 + 1;
  static constexpr int kMostChannels = 8;

  Element positions[kTile<Element> / 8 * kGroup];
  uint16_t pixels[kTile<Element>];  // by point, in the tile

  __device__ static unsigned at(unsigned point) { return 3 * point + point / 8; }

  // Positions are numbers, so that NaN need not be handled.
  template <class Number>
  __device__ __forceinline__ void put(unsigned point, const Number (&position)[3]) {
    Element* to = positions + at(point);
#pragma unroll
    for (int i = 0; i < 3; ++i) {
      if constexpr (std::is_same_v<Element, Number>) {
        to[i] = position[i];
      } else {
        to[i] = narrow<Element>(position[i]);
      }
    }
  }
};

// Writes the points of a tile by place, after the points of earlier tiles: rows without other
// columns.
template <class Element>
__device__ void copyPositions(const Staged<Element>& staged, int count, Element* to) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  // A warp processes 32 points at a time: 96 numbers in four groups.
  constexpr int kNumbers = 96;
  constexpr int kGroups = 4 * Staged<Element>::kGroup;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const Element* from = staged.positions + warp * kGroups + lane;
  const Element* first = from + lane / 24;
  const Element* second = from + 32 + (32 + lane) / 24;
  const Element* third = from + 64 + (64 + lane) / 24;
  Element* line = to + warp * kNumbers + lane;
  int left = 3 * count - warp * kNumbers - lane;
  for (; left > 64; left -= kWarps * kNumbers) {
    line[0] = *first;
    line[32] = *second;
    line[64] = *third;
    line += kWarps * kNumbers;
    first += kWarps * kGroups, second += kWarps * kGroups, third += kWarps * kGroups;
  }
  if (left > 0) line[0] = *first;
  if (left > 32) line[32] = *second;
}

// The divisor of colours.
template <class Number>
struct Divisor {
  Number value;
  Number reciprocal;
  bool suits;  // whether quotientByProducts() is valid for bytes

  __device__ explicit Divisor(Number by) : value(by), reciprocal(1 / by), suits(isModerate(by)) {}
};
template <class Number>
__device__ Number divideByte(Number byte, const Divisor<Number>& by) {
  return by.suits ? quotientByProducts(byte, by.value, by.reciprocal) : byte / by.value;
}

// Writes the colours of a point; several loads are in flight at once.
template <class Number, class Element, class ColorAt>
__device__ void putColors(const Arguments<Number>& a, Element* to, int64_t stride,
                          ColorAt&& colorOf) {
  constexpr int kSome = 3;
  for (int64_t first = 0; first < a.problem.channels; first += kSome) {
    Number color[kSome];
#pragma unroll
    for (int k = 0; k < kSome; ++k) {
      if (first + k < a.problem.channels) color[k] = colorOf(first + k);
    }
#pragma unroll
    for (int k = 0; k < kSome; ++k) {
      if (first + k < a.problem.channels) to[(first + k) * stride] = narrow<Element>(color[k]);
    }
  }
}

// The same with colours and pixels, for any layout. Contiguous rows are assembled in `rows`, 32 per
// warp, and written as lines.
template <class Number, class Element>
__device__ void writeRows(const Arguments<Number>& a, const Staged<Element>& staged, int64_t image,
                          int64_t first_pixel, int64_t before, int count, Element* rows) {
  const UnprojectProblem& p = a.problem;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const auto channels = static_cast<int>(min(3 + p.channels, int64_t{INT32_MAX}));
  const bool compact = p.points.stride[2] == 1 && p.points.stride[1] == channels &&
                       channels <= Staged<Element>::kMostChannels;
  auto* out = static_cast<Element*>(p.points.data) + image * p.points.stride[0] +
              before * p.points.stride[1];
  Element* of_warp = rows + warp * 32 * Staged<Element>::kMostChannels;
  const Divisor<Number> scale(static_cast<Number>(p.color_divisor));
  for (int turn = warp * 32; turn < count; turn += kThreads) {
    const int point = turn + lane;
    if (point < count) {
      Element* to = compact ? of_warp + lane * channels : out + point * p.points.stride[1];
      const int64_t stride = compact ? 1 : p.points.stride[2];
#pragma unroll
      for (int i = 0; i < 3; ++i) {
        to[i * stride] = staged.positions[staged.at(static_cast<unsigned>(point)) + i];
      }
      const int64_t pixel = first_pixel + staged.pixels[point];
      const int64_t line = a.per_row(pixel);
      const int64_t row = line * p.step;
      const int64_t column = (pixel - line * p.columns()) * p.step;
      if (p.pixels.data != nullptr) putPixel(p, image, before + point, row * p.width + column);
      const int64_t color =
          image * p.colors.stride[0] + row * p.colors.stride[1] + column * p.colors.stride[2];
      if (p.colors.dtype == DType::U8) {
        const auto* bytes = static_cast<const uint8_t*>(p.colors.data);
        putColors(a, to + 3 * stride, stride, [&](int64_t c) {
          return divideByte(static_cast<Number>(bytes[color + c * p.colors.stride[3]]), scale);
        });
      } else {
        putColors(a, to + 3 * stride, stride, [&](int64_t c) {
          return colorAt<Number>(p.colors, color + c * p.colors.stride[3]) / scale.value;
        });
      }
    }
    if (!compact) continue;
    __syncwarp();
    const int numbers = min(count - turn, 32) * channels;
    Element* line = out + int64_t{turn} * channels;
    for (int i = lane; i < numbers; i += 32) line[i] = of_warp[i];
    __syncwarp();
  }
}

}  // namespace unprojection

namespace {

using namespace unprojection;

// ---- pixels -------------------------------------------------------------------------------------

// A visited pixel, as numbers: rows and columns are exact.
template <class Number>
struct Pixel {
  Number row;
  Number column;
  Number step;
  Number width;

  __device__ Pixel(const Arguments<Number>& a, int64_t first) {
    const int64_t line = a.per_row(first);
    step = static_cast<Number>(a.problem.step);
    width = static_cast<Number>(a.problem.width);
    row = static_cast<Number>(line * a.problem.step);
    column = static_cast<Number>((first - line * a.problem.columns()) * a.problem.step);
  }
  __device__ void advance() {
    column += step;
    const bool ends = column >= width;
    column = ends ? Number(0) : column;
    row = ends ? row + step : row;
  }
};

// A thread's depths, starting at a pixel; 0 after the last one.
template <int kCount, class Depth, class Number>
__device__ void loadDepths(const Arguments<Number>& a, int64_t image, int64_t first,
                           Depth (&depths)[kCount]) {
  const UnprojectProblem& p = a.problem;
  const auto* of_image = static_cast<const Depth*>(p.depth.data) + image * p.depth.stride[0];
  if (a.in_vecs && first + kCount <= a.pixels) {
    const auto vec = load<AlignedVec<Depth, kCount>>(of_image + first);
#pragma unroll
    for (int k = 0; k < kCount; ++k) depths[k] = vec.element[k];
    return;
  }
#pragma unroll
  for (int k = 0; k < kCount; ++k) {
    depths[k] = Depth{};
    const int64_t pixel = first + k;
    if (pixel >= a.pixels) continue;
    if (a.in_line) {
      depths[k] = of_image[pixel];
      continue;
    }
    const int64_t line = a.per_row(pixel);
    const int64_t row = line * p.step;
    const int64_t column = (pixel - line * p.columns()) * p.step;
    depths[k] = of_image[row * p.depth.stride[1] + column * p.depth.stride[2]];
  }
}

// A thread's points, starting at a pixel, by products or not; returns the bits of the points that
// are kept.
template <bool kByProducts, int kCount, class Depth, class Number>
__device__ __forceinline__ unsigned unprojectRun(const Arguments<Number>& a,
                                                 const Pinhole<Number>& camera,
                                                 const PinholeReciprocals<Number>& by,
                                                 int64_t first, const Depth (&depths)[kCount],
                                                 Number (&points)[kCount][3]) {
  unsigned kept = 0;
  Pixel<Number> pixel(a, first);
#pragma unroll
  for (int k = 0; k < kCount; ++k) {
    const auto depth = static_cast<Number>(widen(depths[k]));
    const Number ray_x = ray(pixel.column, a.rules.pixel_offset, camera.centre[0]);
    const Number ray_y = ray(pixel.row, a.rules.pixel_offset, camera.centre[1]);
    bool is_point;
    if constexpr (kByProducts) {
      is_point = unprojectByProducts(camera, by, a.rules, depth, ray_x, ray_y, points[k]);
    } else {
      is_point = unproject(camera, a.rules, depth, ray_x, ray_y, points[k]);
    }
    kept |= is_point ? 1u << k : 0u;
    pixel.advance();
  }
  return kept;
}

// ---- kernels ------------------------------------------------------------------------------------

// Blocks that must fit on a multiprocessor, which bounds the registers: as many as fit without
// spills.
template <class Number>
constexpr int kBlocks = sizeof(Number) == 8 ? 2 : 4;

template <class Number, class Depth, class Element>
__global__ void __launch_bounds__(kThreads, kBlocks<Number>)
    writePoints(const __grid_constant__ Arguments<Number> a) {
  constexpr int kCount = kRun<Element>;
  __shared__ Pinhole<Number> camera_of_block;
  __shared__ int of_warps[kWarps];
  __shared__ int64_t before_tile;
  __shared__ Staged<Element> staged;
  __shared__ Element rows[kThreads * Staged<Element>::kMostChannels];
  waitForLaunchesAhead();
  const UnprojectProblem& p = a.problem;
  const int64_t image = a.per_image(static_cast<int64_t>(blockIdx.x));
  const int64_t tile = static_cast<int64_t>(blockIdx.x) - image * a.tiles;
  const int64_t first_pixel = tile * kTile<Element>;
  const int64_t first = first_pixel + static_cast<int64_t>(threadIdx.x) * kCount;
  Depth depths[kCount];
  loadDepths(a, image, first, depths);
  // One thread would wait for one number after the other, and loading all of them takes more
  // registers.
  if (threadIdx.x < kCameraNumbers) {
    readCameraNumber(p, image, static_cast<int>(threadIdx.x), &camera_of_block);
  }
  __syncthreads();

  const Pinhole<Number> camera = camera_of_block;
  const PinholeReciprocals<Number> by = reciprocalsOf(camera, a.rules);
  Number points[kCount][3];
  bool suit = by.suit;
#pragma unroll
  for (int k = 0; k < kCount; ++k) {
    suit = suit & suitsProducts(static_cast<Number>(widen(depths[k])));
  }
  const unsigned kept = suit ? unprojectRun<true>(a, camera, by, first, depths, points)
                             : unprojectRun<false>(a, camera, by, first, depths, points);

  // The points before the thread's, in its tile.
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  unsigned place = __popc(kept);
  for (int distance = 1; distance < 32; distance *= 2) {
    const unsigned other = __shfl_up_sync(~0u, place, distance);
    if (lane >= distance) place += other;
  }
  if (lane == 31) of_warps[warp] = static_cast<int>(place);
  __syncthreads();
  place -= __popc(kept);
  int count = 0;
#pragma unroll
  for (int w = 0; w < kWarps; ++w) {
    if (w == warp) place += static_cast<unsigned>(count);
    count += of_warps[w];
  }
  TileState* states = a.states + image * a.tiles;
  if (threadIdx.x == 0) publishPoints(states, tile, count);
  if (p.channels > 0 || p.pixels.data != nullptr) {
    unsigned at = place;
#pragma unroll
    for (int k = 0; k < kCount; ++k) {
      if ((kept >> k & 1) != 0)
        staged.pixels[at++] = static_cast<uint16_t>(threadIdx.x * kCount + k);
    }
  }
#pragma unroll
  for (int k = 0; k < kCount; ++k) {
    if ((kept >> k & 1) != 0) staged.put(place, points[k]);
    place += kept >> k & 1;
  }
  if (warp == 0) {
    const int64_t before = pointsBefore(states, tile, count);
    if (lane == 0) before_tile = before;
  }
  __syncthreads();

  const int64_t before = before_tile;
  const int64_t room = max(int64_t{0}, p.capacity - before);
  const auto fitting = static_cast<int>(min(static_cast<int64_t>(count), room));
  if (p.channels == 0 && p.pixels.data == nullptr && p.points.stride[2] == 1 &&
      p.points.stride[1] == 3) {
    copyPositions(staged, fitting,
                  static_cast<Element*>(p.points.data) + image * p.points.stride[0] + 3 * before);
  } else {
    writeRows(a, staged, image, first_pixel, before, fitting, rows);
  }
  if (tile + 1 == a.tiles && threadIdx.x == 0) {
    const int64_t all = before + count;
    const int64_t written = min(all, p.capacity);
    static_cast<int64_t*>(p.counts.data)[image * p.counts.stride[0]] = written;
    if (p.over_capacity.data != nullptr) {
      static_cast<int64_t*>(p.over_capacity.data)[image * p.over_capacity.stride[0]] =
          all - written;
    }
  }
}

constexpr int kClearedPlaces = 4096;  // per block

struct ClearArguments {
  UnprojectProblem problem;
  FastDivmod per_image;  // blocks
};

// Called by all threads of a block; writes whole words where possible.
template <class Element>
__device__ void clearLine(Element* begin, Element* end) {
  constexpr int kCount = 16 / sizeof(Element);
  using Vec = AlignedVec<Element, kCount>;
  const auto thread = static_cast<int>(threadIdx.x);
  const auto address = reinterpret_cast<uintptr_t>(begin);
  const auto to_word = static_cast<int64_t>((16 - address % 16) % 16 / sizeof(Element));
  Element* words = begin + min(to_word, static_cast<int64_t>(end - begin));
  const int64_t count = (end - words) / kCount;
  Element* rest = words + count * kCount;
  if (begin + thread < words) begin[thread] = Element{};
#pragma unroll 4
  for (int64_t i = thread; i < count; i += kThreads) store(words + i * kCount, Vec{});
  if (rest + thread < end) rest[thread] = Element{};
}

template <class Element>
__global__ void __launch_bounds__(kThreads) clearBehind(const __grid_constant__ ClearArguments a) {
  waitForLaunchesAhead();
  const UnprojectProblem& p = a.problem;
  const int64_t image = a.per_image(static_cast<int64_t>(blockIdx.x));
  const int64_t block =
      static_cast<int64_t>(blockIdx.x) - image * static_cast<int64_t>(a.per_image.divisor);
  const int64_t kept = static_cast<const int64_t*>(p.counts.data)[image * p.counts.stride[0]];
  const int64_t begin = max(block * kClearedPlaces, kept);
  const int64_t end = min((block + 1) * kClearedPlaces, p.capacity);
  const int64_t channels = 3 + p.channels;
  auto* points = static_cast<Element*>(p.points.data) + image * p.points.stride[0];
  if (p.points.stride[2] == 1 && p.points.stride[1] == channels) {
    clearLine(points + begin * channels, points + max(begin, end) * channels);
  } else {
    for (int64_t place = begin + threadIdx.x; place < end; place += kThreads) {
      for (int64_t c = 0; c < channels; ++c) {
        points[place * p.points.stride[1] + c * p.points.stride[2]] = Element{};
      }
    }
  }
  if (p.pixels.data == nullptr) return;
  for (int64_t place = begin + threadIdx.x; place < end; place += kThreads) {
    putPixel(p, image, place, -1);
  }
}

// ---- launch -------------------------------------------------------------------------------------

int64_t pixelsOf(const UnprojectProblem& p) { return p.rows() * p.columns(); }

int64_t tilesOf(const UnprojectProblem& p) {
  return visitFloat(p.points.dtype, [&](auto tag) {
    constexpr int kSize = kTile<typename decltype(tag)::type>;
    return std::max<int64_t>(1, ceilDiv(pixelsOf(p), int64_t{kSize}));
  });
}

bool isInLine(const UnprojectProblem& p) {
  return p.step == 1 && p.depth.stride[2] == 1 && p.depth.stride[1] == p.columns();
}

int64_t clearedBlocksOf(const UnprojectProblem& p) {
  return ceilDiv(p.capacity, int64_t{kClearedPlaces});
}

size_t bytesOfStates(const UnprojectProblem& p, const LaunchDevice&) {
  const int64_t blocks = std::max(tilesOf(p), clearedBlocksOf(p));  // per image
  if (p.images > INT32_MAX / blocks) {
    fail(RBC_STATUS_SHAPE_MISMATCH,
         "depth: %" PRId64 " images are too many for one call on CUDA, expected at most %" PRId64
         " of this size",
         p.images, INT32_MAX / blocks);
  }
  ScratchLayout layout(nullptr);
  layout.take<TileState>(p.images * tilesOf(p));
  return layout.used();
}

template <class Element>
cudaError_t launchClear(const UnprojectProblem& p, const LaunchDevice& device,
                        cudaStream_t stream) {
  if (p.capacity == 0) return cudaSuccess;
  const int64_t blocks = clearedBlocksOf(p);
  ClearArguments arguments = {p, FastDivmod(blocks)};
  return launchBlocks(clearBehind<Element>, &arguments, p.images * blocks, kThreads, device,
                      stream);
}

cudaError_t launchUnproject(const UnprojectProblem& p, void* scratch, const LaunchDevice& device,
                            cudaStream_t stream, LaunchChoice* chosen) {
  const int64_t blocks = p.images * tilesOf(p);
  *chosen = onlyKernel("unproject", blocks, kThreads);
  auto* states = static_cast<TileState*>(scratch);
  const cudaError_t cleared =
      cudaMemsetAsync(states, 0, static_cast<size_t>(blocks) * sizeof *states, stream);
  if (cleared != cudaSuccess) return cleared;
  return visitDepth(p.depth.dtype, [&](auto depth_tag) {
    return visitFloat(p.points.dtype, [&](auto element_tag) {
      using Depth = typename decltype(depth_tag)::type;
      using Element = typename decltype(element_tag)::type;
      using Number = Compute<Element>;
      const bool in_line = isInLine(p);
      Arguments<Number> arguments = {
          p,
          rulesAs<Number>(p),
          pixelsOf(p),
          tilesOf(p),
          FastDivmod(tilesOf(p)),
          FastDivmod(p.columns()),
          states,
          in_line,
          in_line && suitsVecs(p.depth.data, {p.depth.stride[0]}, sizeof(Depth), kRun<Element>)};
      const cudaError_t error = launchBlocks(writePoints<Number, Depth, Element>, &arguments,
                                             blocks, kThreads, device, stream);
      if (error != cudaSuccess) return error;
      return launchClear<Element>(p, device, stream);
    });
  });
}

}  // namespace

extern const Operation<UnprojectProblem> kUnproject = {bytesOn<UnprojectProblem, bytesOfStates>,
                                                       launchOn<UnprojectProblem, launchUnproject>};
cudaError_t loadUnproject(const LaunchDevice&) { return loadKernelsBeside(clearBehind<float>); }

}  // namespace rbc::cuda
