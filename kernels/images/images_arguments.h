// What the kernels of images share: their arguments and workspace, and how a pixel is written.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "images_problem.h"
#include "launch_choice.h"
#include "runtime/fast_divmod.h"
#include "runtime/launch_device.h"

namespace rbc::cuda {

// The plan of an image, with what the kernels would otherwise compute for each of its blocks.
struct CudaPlan : ImagePlan {
  int32_t room[2];    // weights of an output pixel
  int32_t is_packed;  // whether packed_images.cu makes it
  int32_t unused;
};
static_assert(sizeof(CudaPlan) % sizeof(int64_t) == 0);

struct ImagesMemory {
  CudaPlan* plans;
  unsigned long long* sums;  // of the grays of each image, for its contrast
  uint64_t* values;
  TapRange* ranges[2];
  int32_t* weights[2];
  int32_t* bits[2];
};

// The launch of packed images (packed_images.cu), and which images it makes.
struct PackedLaunch {
  int32_t words;    // of 4 weights, that an output pixel has room for; 0: no launch
  int32_t columns;  // of the output, that a block makes: its threads
  int32_t rows;     // of the output, that a block makes
  int32_t stage_rows;
  int32_t kernel;
  int32_t pitch;        // bytes of a row in shared memory
  int32_t plane_pitch;  // and of one of its channels
  int32_t plane_words;  // of all its channels
  bool makes_all;
  Refusal because;       // why it does not make all images
  FastDivmod per_image;  // blocks
  FastDivmod strips;     // of columns
};

// The images of a call that all have one size, so that the host knows it.
struct OneSize {
  bool is_known;
  bool columns_first;  // axes and room are of the transposed plan, extents are not
  ImageBox box;
  ImagePlan extents;
  ResizeAxis axes[2];
  int32_t room[2];
  int32_t is_packed;
};

struct ImagesArguments {
  ImagesProblem problem;
  OneSize one_size;
  ImagesMemory memory;
  PackedLaunch packed;
  int32_t word_bytes;  // of an element of the output
  bool shares_tables;
  int64_t tables;
  int64_t tiles;  // of an image, at most
  FastDivmod per_image;
};

// How images are made by packed_images.cu, if at all.
PackedLaunch packedLaunchOf(const ImagesProblem& p, const OneSize& one_size,
                            const LaunchDevice& device);
cudaError_t launchPacked(ImagesArguments* arguments, const LaunchDevice& device,
                         cudaStream_t stream);
cudaError_t loadPackedImages(const LaunchDevice& device);
int64_t packedBlocks(const ImagesProblem& p, const PackedLaunch& packed);
int packedSharedBytes(const PackedLaunch& packed);

// The bytes of a row that a strip of columns needs, at any place of 16, and of whole groups of 8
// pixels.
RBC_HD int64_t packedPitch(const ResizeAxis& axis, int channels, int columns) {
  const double span = (columns - 1) * axis.scale + 2 * axis.support + 4;
  const int64_t bytes = static_cast<int64_t>(span) * channels + 15 + 8 * channels;
  return (bytes + 15) / 16 * 16;
}

// Whether packed_images.cu makes the images of such a plan.
RBC_HD bool isPacked(const ImagesProblem& p, const PackedLaunch& packed, const ImagePlan& plan) {
  // A frame that is one pixel wide has its bytes side by side either way.
  if (packed.words == 0 || plan.transposed) return false;
  if (plan.pixels == nullptr) return true;
  if (kindOf(p, plan).sums != ResizeSums::kRounded) return false;
  if (plan.stride[1] != p.channels || (p.channels > 1 && plan.stride[2] != 1)) return false;
  const ResizeAxis columns = axisOf(p, plan, 1);
  const int64_t room = int64_t{4} * packed.words;
  return tapRoom(axisOf(p, plan, 0)) <= room && tapRoom(columns) <= room &&
         packedPitch(columns, p.channels, packed.columns) <= packed.pitch;
}

#if defined(__CUDACC__)

__device__ inline AxisTable tableOf(const ImagesArguments& a, int64_t image, int axis) {
  const int64_t n = a.shares_tables ? 0 : image;
  const ImagesMemory& m = a.memory;
  return {m.ranges[axis] + n * tableRanges(a.problem),
          m.weights[axis] + n * tableWeights(a.problem), m.bits[axis] + n};
}

// Copies a plan to shared memory, by all threads of a block; a barrier must follow.
__device__ inline void copyPlan(const CudaPlan& from, CudaPlan* to) {
  constexpr int kParts = sizeof(CudaPlan) / sizeof(int64_t);
  for (int i = static_cast<int>(threadIdx.x); i < kParts; i += static_cast<int>(blockDim.x)) {
    reinterpret_cast<int64_t*>(to)[i] = reinterpret_cast<const int64_t*>(&from)[i];
  }
}

// The pixels that a column or row of the output has in the image before it is flipped; -1: none, it
// is padding.
__device__ inline int64_t imagePlace(const ImagePlan& plan, int axis, int64_t at) {
  const int64_t place = at - plan.place[axis];
  if (plan.pixels == nullptr || place < 0 || place >= plan.size[axis] || at >= plan.out[axis]) {
    return -1;
  }
  return plan.flip[axis] ? plan.size[axis] - 1 - place : place;
}

// Adds the numbers of a block's threads, of at most 256, to a sum.
__device__ inline void addToSum(int32_t mine, unsigned long long* sum) {
  __shared__ int32_t of_warp[8];
  mine = __reduce_add_sync(0xffffffffu, mine);
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = mine;
  __syncthreads();
  if (threadIdx.x == 0) {
    int32_t all = 0;
    for (int i = 0; i < static_cast<int>(blockDim.x) / 32; ++i) all += of_warp[i];
    if (all != 0) atomicAdd(sum, static_cast<unsigned long long>(all));
  }
  __syncthreads();
}

template <class Word>
__device__ void putPixel(const ImagesArguments& a, Word* to, const ImagePixel& pixel) {
  const auto* values = reinterpret_cast<const Word*>(a.memory.values);
#pragma unroll
  for (int c = 0; c < kMaxImageChannels; ++c) {
    if (c < a.problem.channels) {
      to[c * a.problem.out.stride[1]] = values[c * 256 + pixel.value[c]];
    }
  }
}

// Writes the bytes of a pixel that waits for the mean of its image.
template <class Word>
__device__ void putBytes(const ImagesArguments& a, Word* to, const ImagePixel& pixel) {
#pragma unroll
  for (int c = 0; c < kMaxImageChannels; ++c) {
    if (c < a.problem.channels) to[c * a.problem.out.stride[1]] = Word{pixel.value[c]};
  }
}

#endif  // defined(__CUDACC__)

}  // namespace rbc::cuda
