// Packed images on CUDA: frames whose pixels are bytes side by side, resized by integer weights that
// round after each pass (the rules of Pillow and torchvision), which is what training needs.
//
// A block makes a strip of columns of some rows of an image, and a thread one column. The rows of
// the frame pass through shared memory in stages: each warp copies a row, and separates its channels
// into planes. For each row a thread multiplies the bytes of its column by their weights,
// 4 at a time (dp4a), and appends the result to a history of bytes, from which it makes a row of the
// output as soon as the last row that it needs has come. Weights have at most 24 bits: three bytes,
// each multiplied separately. So no sum leaves the registers, and a row of the frame is read once.

#include <cuda_pipeline_primitives.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <type_traits>

#include "images/images_arguments.h"
#include "images_problem.h"
#include "resize_sums.h"
#include "runtime/launch.h"
#include "runtime/load_kernels.h"
#include "runtime/pdl.cuh"

namespace rbc::cuda {
namespace {

constexpr int kMostColumns = 224;
constexpr int kMostRows = 32;  // of the output, that a block makes
constexpr int kPlanes = 2;     // stages of planes: one is written while the other is read
constexpr int kParts = 3;      // bytes of a weight
constexpr int kAlign = 16;     // of copies to shared memory

// ---- arithmetic ---------------------------------------------------------------------------------

// sum + the products of the bytes of the weights, signed or not, and of x, not signed.
__device__ __forceinline__ uint32_t addSigned(uint32_t weights, uint32_t x, uint32_t sum) {
  uint32_t result;
  asm("dp4a.s32.u32 %0, %1, %2, %3;" : "=r"(result) : "r"(weights), "r"(x), "r"(sum));
  return result;
}
__device__ __forceinline__ uint32_t addUnsigned(uint32_t weights, uint32_t x, uint32_t sum) {
  return __dp4a(weights, x, sum);
}

// Four weights in words that have one byte of each: [part], the lowest first.
struct FourWeights {
  uint32_t part[kParts];
  __device__ void put(int at, int32_t weight) {
#pragma unroll
    for (int i = 0; i < kParts; ++i) {
      part[i] |= (static_cast<uint32_t>(weight) >> (8 * i) & 0xff) << (8 * at);
    }
  }
};

// Weights of any sign, with 22 bits of fraction.
struct SignedWeights {
  static constexpr int kBits = kFilterBits;
  static __device__ int32_t prepare(int32_t weight, int bits) {
    return weight * (1 << (kBits - bits));
  }
  static __device__ __forceinline__ uint32_t addHigh(uint32_t weights, uint32_t x, uint32_t sum) {
    return addSigned(weights, x, sum);
  }
  static __device__ __forceinline__ uint32_t byteOf(uint32_t sum) {
    return static_cast<uint32_t>(__vimin_s32_relu(static_cast<int32_t>(sum) >> kBits, 255));
  }
  // Appends the byte of a sum to a word of history.
  static __device__ __forceinline__ uint32_t append(uint32_t word, uint32_t sum) {
    return __byte_perm(word, byteOf(sum), 0x4321);
  }
};

// Weights that are not negative, with 24 bits of fraction, so that a result is the upper byte of its
// sum, and none is out of range. A weight of one does not fit, and is a little less than one: the
// others are then at most one unit before the shift, so the sum is rounded to the same byte.
struct PositiveWeights {
  static constexpr int kBits = 24;
  static __device__ int32_t prepare(int32_t weight, int bits) {
    return min(weight * (1 << (kFilterBits - bits)) * 4, (1 << kBits) - 1);
  }
  static __device__ __forceinline__ uint32_t addHigh(uint32_t weights, uint32_t x, uint32_t sum) {
    return addUnsigned(weights, x, sum);
  }
  static __device__ __forceinline__ uint32_t byteOf(uint32_t sum) { return sum >> kBits; }
  static __device__ __forceinline__ uint32_t append(uint32_t word, uint32_t sum) {
    return __byte_perm(word, sum, 0x7321);
  }
};

// Half a unit + the sum of weights times bytes, modulo 2^32.
template <class Weights, int kWords>
__device__ __forceinline__ uint32_t weightedSum(const FourWeights (&weights)[kWords],
                                                const uint32_t (&x)[kWords]) {
  uint32_t sum = 0;
#pragma unroll
  for (int t = 0; t < kWords; ++t) sum = Weights::addHigh(weights[t].part[2], x[t], sum);
  sum <<= 8;
#pragma unroll
  for (int t = 0; t < kWords; ++t) sum = addUnsigned(weights[t].part[1], x[t], sum);
  sum = (sum << 8) + (1u << (Weights::kBits - 1));
#pragma unroll
  for (int t = 0; t < kWords; ++t) sum = addUnsigned(weights[t].part[0], x[t], sum);
  return sum;
}

// The words of 4 pixels: word c has their bytes of channel c.
template <int kChannels>
__device__ __forceinline__ void gatherChannels(const uint32_t* pixels, uint32_t (&to)[kChannels]) {
  if constexpr (kChannels == 1) {
    to[0] = pixels[0];
  } else if constexpr (kChannels == 3) {
    to[0] = __byte_perm(__byte_perm(pixels[0], pixels[1], 0x0630), pixels[2], 0x5210);
    to[1] = __byte_perm(__byte_perm(pixels[0], pixels[1], 0x0741), pixels[2], 0x6210);
    to[2] = __byte_perm(__byte_perm(pixels[0], pixels[1], 0x0052), pixels[2], 0x7410);
  } else {
    const uint32_t low[2] = {__byte_perm(pixels[0], pixels[1], 0x5140),
                             __byte_perm(pixels[2], pixels[3], 0x5140)};
    const uint32_t high[2] = {__byte_perm(pixels[0], pixels[1], 0x7362),
                              __byte_perm(pixels[2], pixels[3], 0x7362)};
    to[0] = __byte_perm(low[0], low[1], 0x5410);
    to[1] = __byte_perm(low[0], low[1], 0x7632);
    to[2] = __byte_perm(high[0], high[1], 0x5410);
    to[3] = __byte_perm(high[0], high[1], 0x7632);
  }
}

// ---- bands --------------------------------------------------------------------------------------

// What makes a row of the output of the history.
template <int kWords>
struct alignas(8) DownRow {
  FourWeights weights[kWords];  // of the newest rows
  int32_t last;                 // the last row of the frame that it needs
};

template <int kWords>
struct PackedShared {
  CudaPlan plan;
  DownRow<kWords> down[kMostRows + 1];  // after the last one there is one that nothing completes
  alignas(8) uint32_t values[kMaxImageChannels * 256];  // elements of up to 4 bytes
};

// Places begin .. end - 1 of the output, along an axis, and those of the image in it, before it is
// flipped: low .. high. There is none if low > high.
struct Part {
  int64_t begin;
  int64_t end;
  int64_t low;
  int64_t high;
};

__device__ Part partOf(const ImagePlan& plan, int axis, int64_t begin, int64_t count) {
  Part part = {begin, min(begin + count, plan.out[axis]), 0, -1};
  if (plan.pixels == nullptr) return part;
  const int64_t first = max(part.begin, plan.place[axis]) - plan.place[axis];
  const int64_t last = min(part.end, plan.place[axis] + plan.size[axis]) - 1 - plan.place[axis];
  if (first > last) return part;
  part.low = plan.flip[axis] ? plan.size[axis] - 1 - last : first;
  part.high = plan.flip[axis] ? plan.size[axis] - 1 - first : last;
  return part;
}

// The rows of the frame that a block needs. Their copies in shared memory are aligned as in the
// frame: their first byte is at any place below 16, their phase.
struct RowReader {
  const uint8_t* first;   // the first byte that the block needs of its first row
  const uint8_t* lowest;  // of the frame
  int64_t stride;
  int32_t bytes;

  __device__ uint32_t phase(int row) const {
    return (static_cast<uint32_t>(reinterpret_cast<uintptr_t>(first)) +
            static_cast<uint32_t>(row) * static_cast<uint32_t>(stride)) %
           kAlign;
  }

  // Copies a row, by the lanes of a warp. It reads no byte outside of the frame.
  __device__ __forceinline__ void copy(int row, uint8_t* to, int lane) const {
    const auto begin = static_cast<int32_t>(phase(row));
    const uint8_t* from = first + row * stride - begin;
    const int32_t end = begin + bytes;
    int32_t at = kAlign * lane;
    if (from < lowest && lane == 0) {
      for (int32_t i = begin; i < min(kAlign, end); ++i) to[i] = from[i];
      at += kAlign * 32;
    }
#pragma unroll 1
    for (; at + kAlign <= end; at += kAlign * 32) {
      __pipeline_memcpy_async(to + at, from + at, kAlign);
    }
    if (at < end) {
      __pipeline_memcpy_async(to + at, from + at, kAlign, static_cast<size_t>(at + kAlign - end));
    }
  }
};

// Separates the bytes of a row by their places modulo kChannels, by the lanes of a warp, 8 pixels at
// a time.
template <int kChannels>
__device__ __forceinline__ void separate(const uint8_t* row, int32_t bytes, int32_t plane_pitch,
                                         uint8_t* planes, int lane) {
  constexpr int kUnit = 8 * kChannels;
  const uint8_t* from = row + lane * kUnit;
  uint8_t* to = planes + lane * 8;
#pragma unroll 1
  for (int32_t at = lane * kUnit; at < bytes; at += 32 * kUnit, from += 32 * kUnit, to += 32 * 8) {
    uint2 pixels[kChannels];
    uint32_t low[kChannels];
    uint32_t high[kChannels];
#pragma unroll
    for (int c = 0; c < kChannels; ++c) pixels[c] = reinterpret_cast<const uint2*>(from)[c];
    const auto* words = reinterpret_cast<const uint32_t*>(pixels);
    gatherChannels<kChannels>(words, low);
    gatherChannels<kChannels>(words + kChannels, high);
#pragma unroll
    for (int c = 0; c < kChannels; ++c) {
      *reinterpret_cast<uint2*>(to + c * plane_pitch) = {low[c], high[c]};
    }
  }
}

// Where a thread finds the bytes of its column in the planes of a row.
template <int kChannels>
struct PlanePlaces {
  uint32_t word[kChannels];
  uint32_t shift[kChannels];

  __device__ __forceinline__ void set(uint32_t phase, uint32_t column, uint32_t plane_pitch) {
#pragma unroll
    for (uint32_t c = 0; c < kChannels; ++c) {
      const uint32_t at = column + (phase + c) / kChannels;
      word[c] = (phase + c) % kChannels * (plane_pitch / 4) + at / 4;
      shift[c] = at % 4 * 8;
    }
  }
};

// Writes the values of a pixel, or its bytes if it waits for the mean of its image.
template <class Word, int kChannels>
__device__ __forceinline__ void writePixel(const ImagesArguments& a, const void* table, bool waits,
                                           void* out, const uint32_t (&bytes)[kChannels]) {
  Word* to = static_cast<Word*>(out);
  const auto* values = static_cast<const Word*>(table);
  Word word[kChannels];
#pragma unroll
  for (int c = 0; c < kChannels; ++c) {
    word[c] = waits ? static_cast<Word>(bytes[c]) : values[c * 256 + bytes[c]];
  }
#pragma unroll
  for (int c = 0; c < kChannels; ++c) to[c * a.problem.out.stride[1]] = word[c];
}

template <int kChannels>
__device__ __forceinline__ void writeWord(const ImagesArguments& a, const uint32_t* values,
                                          bool waits, void* to,
                                          const uint32_t (&bytes)[kChannels]) {
  switch (a.word_bytes) {
    case 1: return writePixel<uint8_t>(a, values, waits, to, bytes);
    case 2: return writePixel<uint16_t>(a, values, waits, to, bytes);
    case 4: return writePixel<uint32_t>(a, values, waits, to, bytes);
    default: return writePixel<uint64_t>(a, a.memory.values, waits, to, bytes);
  }
}

// The steps of a pixel's colours up to its contrast. Returns its gray.
template <int kChannels>
__device__ __forceinline__ int32_t colorPixel(const ColorSteps& steps,
                                              uint32_t (&bytes)[kChannels]) {
  ImagePixel pixel = {};
#pragma unroll
  for (int c = 0; c < kChannels; ++c) pixel.value[c] = static_cast<uint8_t>(bytes[c]);
  applyColors<kChannels>(steps, 0, steps.contrast, 0, &pixel);
#pragma unroll
  for (int c = 0; c < kChannels; ++c) bytes[c] = pixel.value[c];
  return static_cast<int32_t>(grayOf<kChannels>(pixel));
}

template <class Word>
__device__ void writePadding(const ImagesArguments& a, int64_t at) {
  ImagePixel pixel;
#pragma unroll
  for (int c = 0; c < kMaxImageChannels; ++c) pixel.value[c] = a.problem.pad_value[c];
  putPixel(a, static_cast<Word*>(a.problem.out.data) + at, pixel);
}

__device__ void padColumn(const ImagesArguments& a, const ImagePlan& plan, const Part& rows,
                          bool inside, int64_t at) {
  if (inside && rows.high - rows.low + 1 == rows.end - rows.begin) return;  // there is none
  for (int64_t row = rows.begin; row < rows.end; ++row) {
    if (inside && imagePlace(plan, 0, row) >= 0) continue;
    const int64_t to = at + row * plan.out_stride[0];
    switch (a.word_bytes) {
      case 1: writePadding<uint8_t>(a, to); break;
      case 2: writePadding<uint16_t>(a, to); break;
      case 4: writePadding<uint32_t>(a, to); break;
      default: writePadding<uint64_t>(a, to);
    }
  }
}

template <class Weights, int kChannels, int kWords, bool kColors>
__device__ void makeBand(const ImagesArguments& a, PackedShared<kWords>& s, uint8_t* copies,
                         int64_t image, int64_t band, int64_t strip) {
  const CudaPlan& plan = s.plan;
  const int thread = static_cast<int>(threadIdx.x);
  const int warp = thread / 32;
  const int warps = static_cast<int>(blockDim.x) / 32;
  const Part rows = partOf(plan, 0, band * a.packed.rows, a.packed.rows);
  const Part columns = partOf(plan, 1, strip * a.packed.columns, a.packed.columns);
  const int64_t column = columns.begin + thread;
  const int64_t x = imagePlace(plan, 1, column);
  const int64_t to = image * a.problem.out.stride[0] + column * plan.out_stride[1];
  if (column < plan.out[1]) padColumn(a, plan, rows, x >= 0, to);
  if (rows.low > rows.high || columns.low > columns.high) return;  // the same for all threads

  const AxisTable down = tableOf(a, image, 0);
  const AxisTable across = tableOf(a, image, 1);
  const int64_t begin = across.ranges[columns.low].first;
  const TapRange end = across.ranges[columns.high];
  const int64_t first_row = down.ranges[rows.low].first;
  const TapRange end_row = down.ranges[rows.high];
  const auto count = static_cast<int>(end_row.first + end_row.count - first_row);
  if (thread <= rows.high - rows.low) {
    const int64_t y = rows.low + thread;
    const TapRange range = down.ranges[y];
    const int32_t* weights = down.weights + y * plan.room[0];
    const int bits = *down.bits;
    s.down[thread].last = static_cast<int32_t>(range.first + range.count - 1 - first_row);
    if (y == rows.high) s.down[thread + 1].last = INT32_MAX;
    for (int t = 0; t < kWords; ++t) {
      FourWeights four = {};
      for (int i = 0; i < 4; ++i) {
        const int64_t j = 4 * t + i - (4 * kWords - range.count);
        if (j >= 0) four.put(i, Weights::prepare(weights[j], bits));
      }
      s.down[thread].weights[t] = four;
    }
  }
  FourWeights weights[kWords] = {};
  uint32_t pixel = 0;  // of the strip, that the column begins with
  if (x >= 0) {
    const TapRange range = across.ranges[x];
    const int32_t* from = across.weights + x * plan.room[1];
    const int bits = *across.bits;
    pixel = static_cast<uint32_t>(range.first - begin);
#pragma unroll
    for (int j = 0; j < 4 * kWords; ++j) {
      if (j < range.count) weights[j / 4].put(j % 4, Weights::prepare(from[j], bits));
    }
  }
  const RowReader reader = {plan.pixels + first_row * plan.stride[0] + begin * kChannels,
                            plan.frame + min((plan.frame_size[0] - 1) * plan.stride[0], int64_t{0}),
                            plan.stride[0],
                            static_cast<int32_t>(end.first + end.count - begin) * kChannels};
  const int stage_rows = a.packed.stage_rows;
  const int32_t pitch = a.packed.pitch;
  const int32_t plane_pitch = a.packed.plane_pitch;
  uint8_t* const all_planes = copies + stage_rows * pitch;
  const auto copyStage = [&](int begin_row) {
    for (int r = warp; r < stage_rows && begin_row + r < count; r += warps) {
      reader.copy(begin_row + r, copies + r * pitch, thread % 32);
    }
    __pipeline_commit();
  };
  copyStage(0);

  uint32_t history[kChannels][kWords] = {};
  int32_t gray = 0;
  const bool waits = kColors && plan.colors.contrast < plan.colors.count;
  // The row of the output that comes next, and the one of the frame that completes it.
  const DownRow<kWords>* next = s.down;
  const TapRange next_row = down.ranges[rows.low];
  auto completes = static_cast<int32_t>(next_row.first + next_row.count - 1 - first_row);
  const int64_t first_line =
      plan.place[0] + (plan.flip[0] ? plan.size[0] - 1 - rows.low : rows.low);
  char* out = static_cast<char*>(a.problem.out.data) +
              (to + first_line * plan.out_stride[0]) * a.word_bytes;
  const int64_t line_step =
      (plan.flip[0] ? -plan.out_stride[0] : plan.out_stride[0]) * a.word_bytes;
  PlanePlaces<kChannels> places;
  uint32_t phase = reader.phase(0);
  places.set(phase, pixel, static_cast<uint32_t>(plane_pitch));
  const bool phases_differ = reader.stride % kAlign != 0;
  for (int row = 0, slot = 0; row < count; slot ^= 1) {
    __pipeline_wait_prior(0);
    __syncwarp();
    uint8_t* const planes = all_planes + slot * stage_rows * kChannels * plane_pitch;
    for (int r = warp; r < stage_rows && row + r < count; r += warps) {
      separate<kChannels>(copies + r * pitch,
                          static_cast<int32_t>(reader.phase(row + r)) + reader.bytes, plane_pitch,
                          planes + r * kChannels * plane_pitch, thread % 32);
    }
    __syncwarp();
    copyStage(row + stage_rows);
    __syncthreads();
    const auto* words = reinterpret_cast<const uint32_t*>(planes);
    for (int left = min(stage_rows, count - row); left > 0;
         --left, ++row, words += a.packed.plane_words) {
      if (phases_differ && reader.phase(row) != phase) {
        phase = reader.phase(row);
        places.set(phase, pixel, static_cast<uint32_t>(plane_pitch));
      }
#pragma unroll
      for (int c = 0; c < kChannels; ++c) {
        const uint32_t* from = words + places.word[c];
        uint32_t bytes[kWords];
        uint32_t word = from[0];
#pragma unroll
        for (int t = 0; t < kWords; ++t) {
          const uint32_t after = from[t + 1];
          bytes[t] = __funnelshift_r(word, after, places.shift[c]);
          word = after;
        }
        const uint32_t sum = weightedSum<Weights>(weights, bytes);
#pragma unroll
        for (int t = 0; t < kWords - 1; ++t) {
          history[c][t] = __funnelshift_r(history[c][t], history[c][t + 1], 8);
        }
        history[c][kWords - 1] = Weights::append(history[c][kWords - 1], sum);
      }
      for (; completes <= row; out += line_step) {
        uint32_t bytes[kChannels];
#pragma unroll
        for (int c = 0; c < kChannels; ++c) {
          bytes[c] = Weights::byteOf(weightedSum<Weights>(next->weights, history[c]));
        }
        ++next;
        completes = next->last;
        if (x < 0) continue;
        if constexpr (kColors) gray += colorPixel(plan.colors, bytes);
        writeWord(a, s.values, waits, out, bytes);
      }
    }
  }
  if (waits) addToSum(gray, a.memory.sums + image);
}

template <class Weights, int kChannels, int kWords, bool kColors>
__global__ void __launch_bounds__(kMostColumns, kWords == 2 ? 4 : 2)
    makePacked(const __grid_constant__ ImagesArguments a) {
  __shared__ PackedShared<kWords> s;
  extern __shared__ uint4 stages[];
  waitForLaunchesAhead();
  if (a.word_bytes <= 4) {
    const auto* values = reinterpret_cast<const uint32_t*>(a.memory.values);
    const int words = kChannels * 64 * a.word_bytes;
    for (int i = static_cast<int>(threadIdx.x); i < words; i += static_cast<int>(blockDim.x)) {
      s.values[i] = values[i];
    }
  }
  const int64_t blocks = a.problem.images * static_cast<int64_t>(a.packed.per_image.divisor);
  for (int64_t i = blockIdx.x; i < blocks; i += gridDim.x) {
    const int64_t image = a.packed.per_image(i);
    const int64_t rest = i - image * static_cast<int64_t>(a.packed.per_image.divisor);
    const int64_t band = a.packed.strips(rest);
    const int64_t strip = rest - band * static_cast<int64_t>(a.packed.strips.divisor);
    __syncthreads();
    copyPlan(a.memory.plans[image], &s.plan);
    __syncthreads();
    if (s.plan.is_packed == 0) continue;
    makeBand<Weights, kChannels, kWords, kColors>(a, s, reinterpret_cast<uint8_t*>(stages), image,
                                                  band, strip);
  }
}

// ---- launches -----------------------------------------------------------------------------------

struct Kernel {
  int channels;
  int words;
  bool positive;
  void (*plain)(ImagesArguments);
  void (*colored)(ImagesArguments);  // null: colours need 1 or 3 channels
};

template <class Weights, int kChannels, int kWords>
constexpr Kernel kernelOf() {
  constexpr bool kPositive = std::is_same_v<Weights, PositiveWeights>;
  if constexpr (kChannels == 4) {
    return {kChannels, kWords, kPositive, makePacked<Weights, kChannels, kWords, false>, nullptr};
  } else {
    return {kChannels, kWords, kPositive, makePacked<Weights, kChannels, kWords, false>,
            makePacked<Weights, kChannels, kWords, true>};
  }
}

// The first that suits is chosen.
constexpr Kernel kKernels[] = {
    kernelOf<PositiveWeights, 3, 2>(), kernelOf<PositiveWeights, 3, 4>(),
    kernelOf<PositiveWeights, 3, 8>(), kernelOf<SignedWeights, 3, 4>(),
    kernelOf<SignedWeights, 3, 8>(),   kernelOf<SignedWeights, 1, 4>(),
    kernelOf<SignedWeights, 1, 8>(),   kernelOf<SignedWeights, 4, 4>(),
    kernelOf<SignedWeights, 4, 8>(),
};

bool isPositive(ResizeFilter filter) {
  return filter != ResizeFilter::kBicubic && filter != ResizeFilter::kLanczos3;
}

// -1: none has room for so many weights.
int kernelFor(int channels, ResizeFilter filter, int64_t room) {
  for (size_t i = 0; i < std::size(kKernels); ++i) {
    const Kernel& k = kKernels[i];
    if (k.channels == channels && room <= 4 * k.words && (!k.positive || isPositive(filter))) {
      return static_cast<int>(i);
    }
  }
  return -1;
}

// The shared memory of a block, so that some of them run at once.
int64_t stagesBudget(const LaunchDevice& device, int blocks) {
  return device.block_memory / blocks - 6144;
}

bool arePacked(const ImagesProblem& p, const FrameArray& array) {
  return array.stride[2] == p.channels && (p.channels == 1 || array.stride[3] == 1);
}

}  // namespace

int packedSharedBytes(const PackedLaunch& packed) {
  const int channels = kKernels[packed.kernel].channels;
  return packed.stage_rows * (packed.pitch + kPlanes * channels * packed.plane_pitch);
}

int64_t packedBlocks(const ImagesProblem& p, const PackedLaunch& packed) {
  return p.images * static_cast<int64_t>(packed.per_image.divisor);
}

PackedLaunch packedLaunchOf(const ImagesProblem& p, const OneSize& one_size,
                            const LaunchDevice& device) {
  PackedLaunch packed = {};
  const auto refuse = [&](const char* text, int64_t found = 0) {
    packed.words = 0;
    packed.because = {"packed_images", text, nullptr, 0, found};
    return packed;
  };
  if (p.rule == RBC_IMAGES_RULE_OPENCV || p.rule == RBC_IMAGES_RULE_EXACT) {
    return refuse("rule: opencv or exact, expected pillow or torchvision");
  }
  if (p.color_first) return refuse("RBC_IMAGES_FLAG_COLOR_FIRST: set, expected none");
  if (one_size.is_known && one_size.columns_first) {
    return refuse("rule: the columns of such images come first");
  }
  const auto packed_arrays = std::count_if(p.arrays, p.arrays + p.num_arrays,
                                           [&](const FrameArray& a) { return arePacked(p, a); });
  const bool all = packed_arrays == p.num_arrays;
  constexpr char kStrides[] =
      "frames: strides of columns and channels, expected bytes side by side";
  if (packed_arrays == 0) return refuse(kStrides);
  // Of whole frames, if sizes differ: parts of them that fill the output are shrunk less.
  const ResizeAxis& columns = one_size.axes[1];
  const int64_t room = std::max(one_size.room[0], one_size.room[1]);
  packed.kernel = kernelFor(p.channels, p.filter, room);
  if (packed.kernel < 0) return refuse("size: {} weights for a pixel, expected 32 or fewer", room);
  packed.words = kKernels[packed.kernel].words;
  int64_t strips = ceilDiv(p.out_width, int64_t{kMostColumns});
  for (;; ++strips) {
    packed.columns = static_cast<int32_t>(ceilDiv(ceilDiv(p.out_width, strips), int64_t{32}) * 32);
    const int warps = packed.columns / 32;
    packed.stage_rows = warps * std::max(1, 4 / warps);
    packed.pitch = static_cast<int32_t>(packedPitch(columns, p.channels, packed.columns));
    packed.plane_pitch = packed.pitch / p.channels / 8 * 8 + 4 * packed.words + 16;
    if (packedSharedBytes(packed) <= stagesBudget(device, packed.words == 2 ? 4 : 2)) break;
    if (packed.columns == 32) return refuse("size: {} bytes of a row for 32 columns", packed.pitch);
  }
  packed.plane_words = p.channels * packed.plane_pitch / 4;
  strips = ceilDiv(p.out_width, int64_t{packed.columns});
  int64_t bands = ceilDiv(p.out_height, int64_t{kMostRows});
  packed.rows = static_cast<int32_t>(ceilDiv(p.out_height, bands));
  bands = ceilDiv(p.out_height, int64_t{packed.rows});
  packed.per_image = FastDivmod(bands * strips);
  packed.strips = FastDivmod(strips);
  const bool sizes = one_size.is_known || (p.fit == RBC_IMAGES_FIT_STRETCH && !mayTranspose(p));
  packed.makes_all = all && sizes;
  if (!all) {
    packed.because = {"packed_images", kStrides, nullptr, 0, 0};
  } else if (!sizes) {
    packed.because = {"packed_images", "boxes: images of many sizes, expected crop_height", nullptr,
                      0, 0};
  }
  return packed;
}

cudaError_t launchPacked(ImagesArguments* arguments, const LaunchDevice& device,
                         cudaStream_t stream) {
  const ImagesProblem& p = arguments->problem;
  const PackedLaunch& packed = arguments->packed;
  const Kernel& kernel = kKernels[packed.kernel];
  return launchBlocks(p.colors != nullptr ? kernel.colored : kernel.plain, arguments,
                      packedBlocks(p, packed), packed.columns, device, stream,
                      packedSharedBytes(packed));
}

cudaError_t loadPackedImages(const LaunchDevice& device) {
  cudaError_t error = loadKernelsBeside(kKernels[0].plain);
  for (const Kernel& kernel : kKernels) {
    for (auto* function : {kernel.plain, kernel.colored}) {
      if (error != cudaSuccess || function == nullptr) continue;
      error = cudaFuncSetAttribute(
          reinterpret_cast<const void*>(function), cudaFuncAttributeMaxDynamicSharedMemorySize,
          static_cast<int>(stagesBudget(device, kernel.words == 2 ? 4 : 2)));
    }
  }
  return error;
}

}  // namespace rbc::cuda
