// Counts the values below the brackets of a channel and keeps those within.
//
// A thread counts values that are certainly outside of brackets, and stores the others in shared
// memory, so that most values take few instructions. Once a thread has stored many, the block finds
// the brackets of all stored values, reserves places in their lists by one addition each, and
// writes them there.
#pragma once

#include "statistics/brackets.cuh"
#include "statistics/reduce_channels.cuh"
#include "statistics/sample_readers.cuh"

namespace rbc::cuda {
namespace statistics {

// ---- Finds for most values by one table lookup that no bracket contains them, and between which
// brackets they are: the range of a channel's brackets is divided into cells of equal width.
//
// A value's cell grows with the value. So a value outside of the cells from one end of a bracket to
// the other is certainly below or above it, regardless of rounding.

inline constexpr int kCells = 128;
inline constexpr int kCellStride = kCells + 1;  // per channel: neighbours are in different banks

// An entry counts a value within one of the gaps below, between and above brackets; the last gap
// needs no count. The counts are packed in one word until one may overflow.
inline constexpr int kGapBits = 6;
inline constexpr int kMaxInGap = (1 << kGapBits) - 1;
inline constexpr uint32_t kUncertain = 0x80000000u;
static_assert(kMaxBrackets * kGapBits < 32);

struct CellMap {
  float center;
  float scale;

  __device__ __forceinline__ explicit CellMap(const Brackets<float>& brackets) {
    const float most = Limits<float>::most();
    int used = 0;
    while (used < kMaxBrackets && brackets.low[used] <= brackets.high[used]) ++used;
    const int last = used > 0 ? used - 1 : 0;
    // The ends of brackets, except open ones.
    const float low = brackets.low[0] > -most ? brackets.low[0] : brackets.high[0];
    const float high = brackets.high[last] < most ? brackets.high[last] : brackets.low[last];
    const float width = high - low;
    const bool wide = used > 0 && width > 0x1p-100f && width < 0x1p100f;
    center = wide ? low + 0.5f * width : used > 0 ? low : 0;
    // Some cells at both ends are for values beyond. A scale of 0 would turn an infinity into NaN.
    scale = wide ? 0.9375f / width : 0x1p-126f;
  }

  // 0 .. kCells - 1; NaN gets 0.
  __device__ __forceinline__ uint32_t cellOf(float x) const {
    constexpr float kMagic = 0x1p23f;  // adding it leaves an integer in the lowest bits
    const float place = __saturatef(fmaf(x - center, scale, 0.5f));
    return bitCast<uint32_t>(fmaf(place, static_cast<float>(kCells - 1), kMagic)) -
           bitCast<uint32_t>(kMagic);
  }
};

__device__ __forceinline__ uint32_t entryOf(const Brackets<float>& brackets, const CellMap& map,
                                            uint32_t cell) {
  int gap = 0;
#pragma unroll
  for (int b = 0; b < kMaxBrackets; ++b) {
    if (!(brackets.low[b] <= brackets.high[b])) break;
    if (cell > map.cellOf(brackets.high[b])) {
      gap = b + 1;
    } else if (cell >= map.cellOf(brackets.low[b])) {
      return kUncertain;
    }
  }
  return gap < kMaxBrackets ? 1u << (kGapBits * gap) : 0;
}

using CellTable = uint32_t[kMaxKeepWidth * kCellStride];

// For `count` channels of a block. All threads take part.
__device__ __forceinline__ void fillCells(CellTable& table, const Brackets<float>* brackets,
                                          int count) {
  for (int i = static_cast<int>(threadIdx.x); i < count * kCells; i += kThreads) {
    const int channel = i / kCells;
    const int cell = i % kCells;
    table[channel * kCellStride + cell] =
        entryOf(brackets[channel], CellMap(brackets[channel]), static_cast<uint32_t>(cell));
  }
  __syncthreads();
}

// The most values that a thread stores.
template <class Number>
inline constexpr int kKeptDepth = sizeof(Number) == 4 ? 24 : 16;

template <class Number>
using KeptMemory = Number[kKeptDepth<Number>][kThreads];

// Doubles have no table.
template <class Number>
struct KeptTable {
  __device__ __forceinline__ void fill(const Brackets<Number>*, int) {}
};
template <>
struct KeptTable<float> {
  CellTable cells;
  __device__ __forceinline__ void fill(const Brackets<float>* brackets, int count) {
    fillCells(cells, brackets, count);
  }
};

// The brackets of a block's channels, and the counts of a flush.
template <class Number>
struct KeptLists {
  static constexpr int kCount = kMaxKeepWidth * kMaxBrackets;
  Number low[kCount];
  Number high[kCount];
  int64_t start[kCount];
  uint32_t capacity[kCount];
  uint32_t count[kCount];
  uint32_t base[kCount];
  uint32_t at_low[kCount];
  uint32_t at_high[kCount];

  // For `channels` channels. All threads take part.
  __device__ __forceinline__ void fill(const Brackets<Number>* brackets, int channels) {
    for (int l = static_cast<int>(threadIdx.x); l < kCount; l += kThreads) {
      count[l] = at_low[l] = at_high[l] = 0;
      if (l >= channels * kMaxBrackets) continue;
      const Brackets<Number>& source = brackets[l / kMaxBrackets];
      const int b = l % kMaxBrackets;
      low[l] = source.low[b];
      high[l] = source.high[b];
      start[l] = source.start[b];
      capacity[l] = static_cast<uint32_t>(source.capacity[b]);  // at most kMaxCapacity
    }
    __syncthreads();
  }
};

template <class Number>
class KeepBetween {
 public:
  // `found` belongs to the block's first channel, the brackets to the thread's.
  __device__ __forceinline__ KeepBetween(const Brackets<Number>* brackets, Found* found,
                                         Number* lists, Lanes lanes, bool active)
      : found_(found), lists_(lists), depth_(0), map_(mapOf(brackets)) {
#pragma unroll
    for (int b = 0; b < kMaxBrackets; ++b) {
      low_[b] = brackets->low[b];
      high_[b] = brackets->high[b];
      below_[b] = 0;
    }
    frequent_ = brackets->frequent;
    frequents_ = below_all_ = 0;
    cells_ = active ? lanes.channel() * kCellStride : 0;
    batches_ = 0;
    gaps_ = 0;
  }

  // For numbers that may be infinite, or NaN: see addBelowAll().
  template <int kCount>
  __device__ __forceinline__ void add(const Number (&x)[kCount], KeptMemory<Number>& memory,
                                      const KeptTable<Number>& table) {
    if constexpr (sizeof(Number) == 4) {
      addFloats(x, memory, table);
    } else {
#pragma unroll
      for (int j = 0; j < kCount; ++j) {
        if (x[j] == frequent_) {
          ++frequents_;
          continue;
        }
        bool within = false;
#pragma unroll
        for (int b = 0; b < kMaxBrackets; ++b) {
          const bool below = !(x[j] >= low_[b]);
          if (below) ++below_[b];
          within = within | (!below & (x[j] <= high_[b]));
        }
        if (within) {
          memory[depth_][threadIdx.x] = x[j];
          ++depth_;
        }
      }
    }
  }

  // Corrects the counts: `count` of the values were NaN or negative infinity.
  __device__ __forceinline__ void addBelowAll(int32_t count) { below_all_ += count; }

  // Whether another batch may be too much.
  __device__ __forceinline__ bool isFull() const { return depth_ > kKeptDepth<Number> - kBatch; }

  // Writes the stored values to the lists. All threads of the block take part.
  __device__ __forceinline__ void flushKept(KeptMemory<Number>& memory, KeptLists<Number>& lists,
                                            Lanes lanes) {
    constexpr bool kFloat = sizeof(Number) == 4;
    const int t = static_cast<int>(threadIdx.x);
    const int list = lanes.channel() * kMaxBrackets - 1;
    if constexpr (kFloat) addGaps();
    uint32_t counts = 0;  // of brackets, packed like gaps
    int kept = 0;
#pragma unroll 1
    for (int e = 0; e < depth_; ++e) {
      const Number x = memory[e][t];
      const int n = bracketsFrom(x);
      if constexpr (kFloat) gaps_ += 1u << (kGapBits * n);  // below all others
      if (n == 0) continue;
      const Number high = lists.high[list + n];
      if (x == lists.low[list + n]) {
        atomicAdd(&lists.at_low[list + n], 1u);
      } else if (x == high) {
        atomicAdd(&lists.at_high[list + n], 1u);
      } else if (x < high) {
        memory[kept++][t] = x;
        counts += 1u << (kGapBits * (n - 1));
      }
    }
    if constexpr (kFloat) addGaps();
    uint32_t place[kMaxBrackets];
#pragma unroll
    for (int b = 0; b < kMaxBrackets; ++b) {
      const uint32_t count = counts >> (kGapBits * b) & kMaxInGap;
      place[b] = count > 0 ? atomicAdd(&lists.count[list + 1 + b], count) : 0;
    }
    __syncthreads();
#pragma unroll 1
    for (int l = t; l < lanes.width * kMaxBrackets; l += kThreads) {
      Found& found = found_[l / kMaxBrackets];
      const int b = l % kMaxBrackets;
      const uint32_t count = lists.count[l];
      if (count > 0) {
        // If a list overflows it is not read, so that its places may be wrong.
        const unsigned long long base =
            atomicAdd(&found.kept[b], static_cast<unsigned long long>(count));
        lists.base[l] = static_cast<uint32_t>(base < kNowhere ? base : kNowhere);
        lists.count[l] = 0;
      }
      addCount(&found.at_low[b], &lists.at_low[l]);
      addCount(&found.at_high[b], &lists.at_high[l]);
    }
    __syncthreads();
#pragma unroll 1
    for (int e = 0; e < kept; ++e) {
      const Number x = memory[e][t];
      const int n = bracketsFrom(x);
      uint32_t to = lists.base[list + n];
#pragma unroll
      for (int b = 0; b < kMaxBrackets; ++b) {
        if (n == b + 1) to += place[b]++;
      }
      if (to < lists.capacity[list + n]) lists_[lists.start[list + n] + to] = x;
    }
    depth_ = 0;
    __syncthreads();
  }

  // All threads of the block take part.
  __device__ __forceinline__ void flushCounts(Found* found, FieldMemory& memory, Lanes lanes,
                                              bool active) {
    if constexpr (sizeof(Number) == 4) addGaps();
    int64_t counts[kMaxBrackets + 1];
#pragma unroll
    for (int b = 0; b < kMaxBrackets; ++b) {
      const int32_t frequent = frequent_ < low_[b] ? frequents_ : 0;
      counts[b] = active ? int64_t{below_[b]} + frequent - below_all_ : 0;
    }
    counts[kMaxBrackets] = active ? frequents_ : 0;
    sumChannels(counts, memory, lanes);
    if (active && lanes.phase() == 0) {
#pragma unroll
      for (int b = 0; b < kMaxBrackets; ++b) {
        atomicAdd(&found->below[b], static_cast<unsigned long long>(counts[b]));
      }
      atomicAdd(&found->frequent, static_cast<unsigned long long>(counts[kMaxBrackets]));
    }
#pragma unroll
    for (int b = 0; b < kMaxBrackets; ++b) below_[b] = 0;
    frequents_ = below_all_ = 0;
  }

 private:
  struct NoMap {};
  static __device__ __forceinline__ auto mapOf(const Brackets<Number>* brackets) {
    if constexpr (sizeof(Number) == 4) {
      return CellMap(*brackets);
    } else {
      static_cast<void>(brackets);
      return NoMap{};
    }
  }

  // The number of brackets that begin at or before x.
  __device__ __forceinline__ int bracketsFrom(Number x) const {
    int n = 0;
#pragma unroll
    for (int b = 0; b < kMaxBrackets; ++b) n += x >= low_[b] ? 1 : 0;
    return n;
  }

  static __device__ __forceinline__ void addCount(unsigned long long* to, uint32_t* from) {
    if (*from == 0) return;
    atomicAdd(to, static_cast<unsigned long long>(*from));
    *from = 0;
  }

  template <int kCount>
  __device__ __forceinline__ void addFloats(const float (&x)[kCount], KeptMemory<float>& memory,
                                            const KeptTable<float>& table) {
    static_assert(kCount * kBatchesInGap <= kMaxInGap);
#if defined(__CUDA_ARCH__)
    constexpr uint32_t kStep = kThreads * sizeof(float);
    const auto first = static_cast<uint32_t>(__cvta_generic_to_shared(&memory[0][threadIdx.x]));
    uint32_t place = first + static_cast<uint32_t>(depth_) * kStep;
#endif
#pragma unroll
    for (int j = 0; j < kCount; ++j) {
      const uint32_t entry = table.cells[cells_ + map_.cellOf(x[j])];
      gaps_ += entry;
#if defined(__CUDA_ARCH__)
      // The code below, without branches.
      asm volatile(
          "{\n\t"
          ".reg .pred p, q;\n\t"
          "setp.eq.f32 p, %2, %3;\n\t"
          "@p add.s32 %0, %0, 1;\n\t"
          "setp.lt.and.s32 q, %4, 0, !p;\n\t"
          "@q st.shared.f32 [%1], %2;\n\t"
          "@q add.s32 %1, %1, %5;\n\t"
          "}"
          : "+r"(frequents_), "+r"(place)
          : "f"(x[j]), "f"(frequent_), "r"(entry), "n"(kStep)
          : "memory");
#else
      if (x[j] == frequent_) {
        ++frequents_;
      } else if (static_cast<int32_t>(entry) < 0) {
        memory[depth_++][threadIdx.x] = x[j];
      }
#endif
    }
#if defined(__CUDA_ARCH__)
    depth_ = static_cast<int32_t>((place - first) / kStep);
#endif
    if (++batches_ == kBatchesInGap) addGaps();
  }

  // A value in a gap is below the brackets after it.
  __device__ __forceinline__ void addGaps() {
    int32_t below = 0;
#pragma unroll
    for (int b = 0; b < kMaxBrackets; ++b) {
      below += static_cast<int32_t>(gaps_ >> (kGapBits * b) & kMaxInGap);
      below_[b] += below;
    }
    gaps_ = 0;
    batches_ = 0;
  }

  static constexpr int kBatchesInGap = kMaxInGap / kBatch;

  // No list is this long, and a few more do not overflow.
  static constexpr unsigned long long kNowhere = 0xf0000000ull;

  Found* found_;  // of the block's first channel
  Number* lists_;
  Number low_[kMaxBrackets];
  Number high_[kMaxBrackets];
  Number frequent_;
  int32_t below_[kMaxBrackets];
  int32_t frequents_;
  int32_t below_all_;
  std::conditional_t<sizeof(Number) == 4, CellMap, NoMap> map_;
  int32_t cells_;
  int32_t batches_;
  uint32_t gaps_;
  int32_t depth_;
};

}  // namespace statistics

}  // namespace rbc::cuda
