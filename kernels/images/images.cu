// Images on CUDA: a small launch plans each image and fills the tables of weights. Packed images
// (packed_images.cu) are made by the next one. The last one makes all others, of any strides, rules
// and sizes, in tiles of 32 x 8 pixels: a block computes the sums along 16 rows at a time, in shared
// memory, and each thread adds those that its pixel needs.

#include <algorithm>
#include <cstdint>

#include "images/images_arguments.h"
#include "images_problem.h"
#include "resize_sums.h"
#include "runtime/cuda_state.h"
#include "runtime/fast_divmod.h"
#include "runtime/launch.h"
#include "runtime/load_kernels.h"
#include "runtime/pdl.cuh"
#include "scratch_layout.h"
#include "visit_dtype.h"

namespace rbc::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kColumns = 32;  // of a tile: the lanes of a warp
constexpr int kRows = kThreads / kColumns;
constexpr int kSteps = 16;                              // rows of the frame at a time
constexpr int64_t kSumPixels = int64_t{kThreads} * 64;  // of a frame, that a block adds

using Memory = ImagesMemory;
using Arguments = ImagesArguments;

Memory layOut(const ImagesProblem& p, ScratchLayout& layout) {
  Memory m = {};
  layout.take(&m.plans, p.images);
  layout.take(&m.values, kMaxImageChannels * 256);
  for (int axis = 0; axis < 2; ++axis) {
    layout.take(&m.ranges[axis], p.tables() * tableRanges(p));
    layout.take(&m.weights[axis], p.tables() * tableWeights(p));
    layout.take(&m.bits[axis], p.tables());
  }
  if (p.colors != nullptr) layout.take(&m.sums, p.images);
  return m;
}

size_t bytesOfMemory(const ImagesProblem& p, const LaunchDevice&) {
  ScratchLayout layout(nullptr);
  layOut(p, layout);
  return layout.used();
}

// ---- plans and tables ---------------------------------------------------------------------------

__device__ double blockLargest(double mine) {
  __shared__ double of_warp[kThreads / 32];
  for (int step = 16; step > 0; step /= 2) {
    mine = fmax(mine, __shfl_xor_sync(0xffffffffu, mine, step));
  }
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = mine;
  __syncthreads();
  double most = of_warp[0];
  for (int i = 1; i < kThreads / 32; ++i) most = fmax(most, of_warp[i]);
  return most;
}

// The plan of an image, without the numbers of all images of one size.
__device__ ImagePlan planFor(const Arguments& a, int64_t image) {
  const ImagesProblem& p = a.problem;
  if (!a.one_size.is_known) return planOf(p, image);
  ImagePlan plan = a.one_size.extents;
  placeImage(p, image, p.boxes == nullptr ? a.one_size.box : boxOf(p, image), &plan);
  if (a.one_size.columns_first) transposePlan(&plan);
  return plan;
}

__device__ void fillTable(const Arguments& a, int64_t n, int axis) {
  const ImagesProblem& p = a.problem;
  __shared__ ImagePlan plan;
  if (threadIdx.x == 0) plan = planFor(a, n);
  __syncthreads();
  ResizeAxis own = a.one_size.is_known ? a.one_size.axes[axis] : axisOf(p, plan, axis);
  if (hasSixteenBits(p)) {
    double most = 0;
    for (int64_t i = threadIdx.x; i < own.out; i += kThreads) {
      most = fmax(most, largestWeight(own, i));
    }
    own.bits = sixteenBits(blockLargest(most));
  }
  const AxisTable table = tableOf(a, n, axis);
  if (threadIdx.x == 0) *table.bits = own.bits;
  for (int64_t i = threadIdx.x; i < plan.size[axis]; i += kThreads) {
    fillTaps(own, plan.window[axis], i, table);
  }
}

// Blocks: two for each table, one for the values of bytes, and the rest for the plans.
template <class Element>
__global__ void __launch_bounds__(kThreads) prepareImages(const __grid_constant__ Arguments a) {
  waitForLaunchesAhead();
  const ImagesProblem& p = a.problem;
  for (int64_t block = blockIdx.x; block < 2 * a.tables; block += gridDim.x) {
    fillTable(a, block / 2, static_cast<int>(block % 2));
    __syncthreads();
  }
  if (blockIdx.x == gridDim.x - 1) {
    auto* values = reinterpret_cast<Element*>(a.memory.values);
    for (int i = static_cast<int>(threadIdx.x); i < p.channels * 256; i += kThreads) {
      values[i] = valueOf<Element>(p, i / 256, i % 256);
    }
  }
  const int64_t step = static_cast<int64_t>(gridDim.x) * kThreads;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < p.images;
       i += step) {
    CudaPlan plan = {planFor(a, i), {}, 0, 0};
    for (int axis = 0; axis < 2; ++axis) {
      plan.room[axis] = a.one_size.is_known ? a.one_size.room[axis]
                                            : static_cast<int32_t>(tapRoom(axisOf(p, plan, axis)));
    }
    plan.is_packed = a.one_size.is_packed != 0 || isPacked(p, a.packed, plan) ? 1 : 0;
    a.memory.plans[i] = plan;
    if (p.colors != nullptr) a.memory.sums[i] = 0;
  }
}

// ---- pixels -------------------------------------------------------------------------------------

__device__ ImagePixel readPixel(const uint8_t* from, int64_t channel_stride, int channels) {
  ImagePixel pixel = {};
#pragma unroll
  for (int c = 0; c < kMaxImageChannels; ++c) {
    if (c < channels) pixel.value[c] = from[c * channel_stride];
  }
  return pixel;
}

__device__ void colorPixel(const ColorSteps& steps, int begin, int end, float mean, int channels,
                           ImagePixel* pixel) {
  if (channels == 3) {
    applyColors<3>(steps, begin, end, mean, pixel);
  } else {
    applyColors<1>(steps, begin, end, mean, pixel);
  }
}

__device__ int32_t grayByte(const ImagePixel& pixel, int channels) {
  return static_cast<int32_t>(channels == 3 ? grayOf<3>(pixel) : grayOf<1>(pixel));
}

// ---- tiles --------------------------------------------------------------------------------------

struct TileShared {
  CudaPlan plan;
  float mean;  // of the colours of the frame
  int32_t middle[kSteps][kMaxImageChannels][kColumns];
};

// The bytes of the pixel of this thread.
template <class Sums>
__device__ ImagePixel resizePixel(const Arguments& a, TileShared& s, int64_t image, int64_t first_y,
                                  int64_t last_y, int64_t y, int64_t x) {
  using Across = typename Sums::Across;
  using Middle = typename Sums::Middle;
  using Down = typename Sums::Down;
  const ImagesProblem& p = a.problem;
  const CudaPlan& plan = s.plan;
  const AxisTable rows = tableOf(a, image, 0);
  const AxisTable columns = tableOf(a, image, 1);
  const int64_t row_room = plan.room[0];
  const int64_t column_room = plan.room[1];
  const Sums sums(sumNumbers(plan, rows, columns));
  const int lane = static_cast<int>(threadIdx.x % kColumns);
  const int warp = static_cast<int>(threadIdx.x / kColumns);
  const TapRange none = {0, 0};
  const TapRange across = x >= 0 ? columns.ranges[x] : none;
  const int32_t* across_weights = columns.weights + (x >= 0 ? x : 0) * column_room;
  const TapRange down = y >= 0 ? rows.ranges[y] : none;
  const int32_t* down_weights = rows.weights + (y >= 0 ? y : 0) * row_room;
  Down total[kMaxImageChannels];
  for (Down& each : total) each = sums.firstDown();
  // All rows that the tile needs, and some that it does not.
  int64_t begin = rows.ranges[first_y].first;
  int64_t end = begin;
  for (int64_t i = first_y; i <= last_y; ++i) {
    begin = min(begin, rows.ranges[i].first);
    end = max(end, rows.ranges[i].first + rows.ranges[i].count);
  }
  for (int64_t row = begin; row < end; row += kSteps) {
    for (int r = warp; r < kSteps && row + r < end; r += kRows) {
      bool needed = false;
      for (int64_t i = first_y; i <= last_y; ++i) {
        const int64_t j = row + r - rows.ranges[i].first;
        needed = needed || (j >= 0 && j < rows.ranges[i].count);
      }
      if (!needed || x < 0) continue;
      const uint8_t* from = plan.pixels + clampIndex(row + r, 0, plan.in[0] - 1) * plan.stride[0];
      Across sum[kMaxImageChannels];
      for (Across& each : sum) each = sums.firstAcross();
      for (int64_t j = 0; j < across.count; ++j) {
        const int64_t column = clampIndex(across.first + j, 0, plan.in[1] - 1);
        ImagePixel pixel = readPixel(from + column * plan.stride[1], plan.stride[2], p.channels);
        if (p.color_first) {
          colorPixel(plan.colors, 0, plan.colors.count, s.mean, p.channels, &pixel);
        }
        const int32_t w = across_weights[j];
#pragma unroll
        for (int c = 0; c < kMaxImageChannels; ++c) {
          sum[c] = sum[c] + termAcross(w, pixel.value[c], Across{});
        }
      }
#pragma unroll
      for (int c = 0; c < kMaxImageChannels; ++c) {
        reinterpret_cast<Middle*>(s.middle[r][c])[lane] = sums.middle(sum[c]);
      }
    }
    __syncthreads();
    for (int r = 0; r < kSteps; ++r) {
      const int64_t j = row + r - down.first;
      if (j < 0 || j >= down.count || x < 0) continue;
      const int32_t w = down_weights[j];
#pragma unroll
      for (int c = 0; c < kMaxImageChannels; ++c) {
        total[c] = total[c] + sums.term(w, reinterpret_cast<const Middle*>(s.middle[r][c])[lane]);
      }
    }
    __syncthreads();
  }
  ImagePixel pixel;
#pragma unroll
  for (int c = 0; c < kMaxImageChannels; ++c) pixel.value[c] = sums.result(total[c]);
  return pixel;
}

__device__ ImagePixel resizedPixel(const Arguments& a, TileShared& s, int64_t image,
                                   int64_t first_y, int64_t last_y, int64_t y, int64_t x) {
  switch (kindOf(a.problem, s.plan).sums) {
    case ResizeSums::kRounded: return resizePixel<RoundedSums>(a, s, image, first_y, last_y, y, x);
    case ResizeSums::kExact: return resizePixel<ExactSums>(a, s, image, first_y, last_y, y, x);
    case ResizeSums::kLinear: return resizePixel<LinearSums>(a, s, image, first_y, last_y, y, x);
    case ResizeSums::kLinearExact:
      return resizePixel<LinearExactSums>(a, s, image, first_y, last_y, y, x);
    case ResizeSums::kBlocks: return resizePixel<BlocksSums>(a, s, image, first_y, last_y, y, x);
    default: return resizePixel<CellsSums>(a, s, image, first_y, last_y, y, x);
  }
}

template <class Word>
__device__ void makeTile(const Arguments& a, TileShared& s, int64_t image, int64_t tile) {
  const ImagesProblem& p = a.problem;
  const CudaPlan& plan = s.plan;
  const int64_t across = (plan.out[1] + kColumns - 1) / kColumns;
  const int64_t first_row = tile / across * kRows;
  if (first_row >= plan.out[0]) return;  // the same for all threads
  const int64_t row = first_row + threadIdx.x / kColumns;
  const int64_t column = tile % across * kColumns + threadIdx.x % kColumns;
  const int64_t y = imagePlace(plan, 0, row);
  const int64_t x = imagePlace(plan, 1, column);
  // The rows of the image in this tile, in order.
  int64_t low = plan.size[0];
  int64_t high = -1;
  for (int i = 0; i < kRows; ++i) {
    const int64_t place = imagePlace(plan, 0, first_row + i);
    if (place < 0) continue;
    low = min(low, place);
    high = max(high, place);
  }
  ImagePixel pixel = {};
  if (high >= 0) pixel = resizedPixel(a, s, image, low, high, y, x);
  const bool inside = y >= 0 && x >= 0;
  const bool colors = p.colors != nullptr && !p.color_first && plan.pixels != nullptr;
  const bool waits = colors && plan.colors.contrast < plan.colors.count;
  if (colors && inside) {
    colorPixel(plan.colors, 0, plan.colors.contrast, 0, p.channels, &pixel);
  }
  if (waits) {
    addToSum(inside ? grayByte(pixel, p.channels) : 0, a.memory.sums + image);
  }
  if (row >= plan.out[0] || column >= plan.out[1]) return;
  Word* to = static_cast<Word*>(p.out.data) + image * p.out.stride[0] + row * plan.out_stride[0] +
             column * plan.out_stride[1];
  if (!inside) {
    for (int c = 0; c < kMaxImageChannels; ++c) pixel.value[c] = p.pad_value[c];
  }
  if (!waits || !inside) {
    putPixel(a, to, pixel);
    return;
  }
  putBytes(a, to, pixel);
}

template <class Word>
__global__ void __launch_bounds__(kThreads) makeImages(const __grid_constant__ Arguments a) {
  __shared__ TileShared s;
  waitForLaunchesAhead();
  const ImagesProblem& p = a.problem;
  const int64_t all = p.images * a.tiles;
  int64_t loaded = -1;
  for (int64_t i = blockIdx.x; i < all; i += gridDim.x) {
    const int64_t image = a.per_image(i);
    if (image != loaded) {
      __syncthreads();
      copyPlan(a.memory.plans[image], &s.plan);
      if (threadIdx.x == 0) {
        s.mean = p.color_first
                     ? meanGray(static_cast<int64_t>(a.memory.sums[image]), p.height * p.width)
                     : 0.0f;
      }
      loaded = image;
      __syncthreads();
    }
    if (s.plan.is_packed != 0) continue;
    makeTile<Word>(a, s, image, i - image * a.tiles);
  }
}

// ---- colours ------------------------------------------------------------------------------------

// The sums of the grays of whole frames: a block adds some pixels of one.
__global__ void __launch_bounds__(kThreads) sumFrames(const __grid_constant__ Arguments a) {
  waitForLaunchesAhead();
  const ImagesProblem& p = a.problem;
  const int64_t pixels = p.height * p.width;
  const int64_t parts = (pixels + kSumPixels - 1) / kSumPixels;
  for (int64_t block = blockIdx.x; block < p.images * parts; block += gridDim.x) {
    const int64_t image = block / parts;
    const ImagePlan& plan = a.memory.plans[image];
    if (plan.pixels == nullptr || plan.colors.contrast == plan.colors.count) continue;
    const int64_t begin = block % parts * kSumPixels;
    const int64_t end = min(begin + kSumPixels, pixels);
    int32_t sum = 0;
    for (int64_t i = begin + threadIdx.x; i < end; i += kThreads) {
      const int64_t row = i / plan.frame_size[1];
      const int64_t column = i - row * plan.frame_size[1];
      ImagePixel pixel = readPixel(plan.frame + row * plan.stride[0] + column * plan.stride[1],
                                   plan.stride[2], p.channels);
      colorPixel(plan.colors, 0, plan.colors.contrast, 0, p.channels, &pixel);
      sum += grayByte(pixel, p.channels);
    }
    addToSum(sum, a.memory.sums + image);
  }
}

// Contrast and the steps after it, of the bytes in the output: a block has a row of an image.
template <class Word>
__global__ void __launch_bounds__(kThreads) finishImages(const __grid_constant__ Arguments a) {
  __shared__ CudaPlan plan;
  waitForLaunchesAhead();
  const ImagesProblem& p = a.problem;
  const int64_t rows = mayTranspose(p) ? max(p.out_height, p.out_width) : p.out_height;
  for (int64_t block = blockIdx.x; block < p.images * rows; block += gridDim.x) {
    const int64_t image = block / rows;
    const int64_t row = block - image * rows;
    __syncthreads();
    copyPlan(a.memory.plans[image], &plan);
    __syncthreads();
    if (plan.pixels == nullptr || plan.colors.contrast == plan.colors.count) continue;
    if (imagePlace(plan, 0, row) < 0) continue;
    const float mean =
        meanGray(static_cast<int64_t>(a.memory.sums[image]), plan.size[0] * plan.size[1]);
    Word* line =
        static_cast<Word*>(p.out.data) + image * p.out.stride[0] + row * plan.out_stride[0];
    for (int64_t x = threadIdx.x; x < plan.size[1]; x += kThreads) {
      Word* to = line + (plan.place[1] + x) * plan.out_stride[1];
      ImagePixel pixel = {};
#pragma unroll
      for (int c = 0; c < kMaxImageChannels; ++c) {
        if (c < p.channels) pixel.value[c] = static_cast<uint8_t>(to[c * p.out.stride[1]]);
      }
      colorPixel(plan.colors, plan.colors.contrast, plan.colors.count, mean, p.channels, &pixel);
      putPixel(a, to, pixel);
    }
  }
}

// ---- launches -----------------------------------------------------------------------------------

int64_t tilesFor(int64_t height, int64_t width) {
  return ceilDiv(height, int64_t{kRows}) * ceilDiv(width, int64_t{kColumns});
}

template <class Element>
cudaError_t launchPrepare(Arguments* arguments, const LaunchDevice& device, cudaStream_t stream) {
  const ImagesProblem& p = arguments->problem;
  const int64_t blocks = std::max(2 * arguments->tables, ceilDiv(p.images, int64_t{kThreads})) + 1;
  return launchBlocks(prepareImages<Element>, arguments, blocks, kThreads, device, stream);
}

OneSize oneSizeOf(const ImagesProblem& p) {
  OneSize one = {};
  one.is_known = p.boxes == nullptr || p.crop_height > 0;
  one.box = {0, 0, p.height, p.width};
  if (p.boxes != nullptr && one.is_known) one.box = {0, 0, p.crop_height, p.crop_width};
  const ResizedSize to =
      resizedSize(p.fit, one.box.height, one.box.width, p.out_height, p.out_width);
  one.extents = extentsOf(p, one.box, to);
  one.columns_first = columnsComeFirst(p, one.box, to);
  ImagePlan plan = one.extents;
  if (one.columns_first) transposePlan(&plan);
  for (int axis = 0; axis < 2; ++axis) {
    one.axes[axis] = axisOf(p, plan, axis);
    one.room[axis] = static_cast<int32_t>(tapRoom(one.axes[axis]));
  }
  return one;
}

cudaError_t launchImages(const ImagesProblem& p, void* scratch, const LaunchDevice& device,
                         cudaStream_t stream, LaunchChoice* chosen) {
  ScratchLayout layout(scratch);
  int64_t tiles = tilesFor(p.out_height, p.out_width);
  if (mayTranspose(p)) {
    tiles = std::max(tiles, tilesFor(p.out_width, p.out_height));
  }
  const OneSize one_size = oneSizeOf(p);
  Arguments arguments = {p,
                         one_size,
                         layOut(p, layout),
                         packedLaunchOf(p, one_size, device),
                         static_cast<int32_t>(sizeOf(p.out.dtype)),
                         p.sharesTables(),
                         p.tables(),
                         tiles,
                         FastDivmod(tiles)};
  arguments.one_size.is_packed = arguments.packed.makes_all ? 1 : 0;
  cudaError_t error =
      p.out.dtype == DType::U8
          ? launchPrepare<uint8_t>(&arguments, device, stream)
          : visitFloat(p.out.dtype, [&](auto tag) {
              return launchPrepare<typename decltype(tag)::type>(&arguments, device, stream);
            });
  if (error != cudaSuccess) return error;
  if (p.color_first) {
    const int64_t parts = ceilDiv(p.height * p.width, kSumPixels);
    error = launchBlocks(sumFrames, &arguments, p.images * parts, kThreads, device, stream);
    if (error != cudaSuccess) return error;
  }
  const PackedLaunch& packed = arguments.packed;
  if (packed.words > 0) {
    error = launchPacked(&arguments, device, stream);
    if (error != cudaSuccess) return error;
    *chosen = onlyKernel("packed_images", packedBlocks(p, packed), packed.columns,
                         packedSharedBytes(packed));
  }
  return visitWord(sizeOf(p.out.dtype), [&](auto tag) {
    using Word = typename decltype(tag)::type;
    cudaError_t made = cudaSuccess;
    if (!packed.makes_all) {
      const int64_t blocks = p.images * tiles;
      *chosen = onlyKernel("images", blocks, kThreads);
      chosen->general = true;
      chosen->because = packed.because;
      made = launchBlocks(makeImages<Word>, &arguments, blocks, kThreads, device, stream);
    }
    if (made != cudaSuccess || p.colors == nullptr || p.color_first) return made;
    const int64_t rows = mayTranspose(p) ? std::max(p.out_height, p.out_width) : p.out_height;
    return launchBlocks(finishImages<Word>, &arguments, p.images * rows, kThreads, device, stream);
  });
}

}  // namespace

extern const Operation<ImagesProblem> kImages = {bytesOn<ImagesProblem, bytesOfMemory>,
                                                 launchOn<ImagesProblem, launchImages>};
cudaError_t loadImages(const LaunchDevice& device) {
  const cudaError_t error = loadKernelsBeside(sumFrames);
  return error == cudaSuccess ? loadPackedImages(device) : error;
}

}  // namespace rbc::cuda
