// Counts the values below the brackets of a channel and keeps those within.
//
// A thread puts what lies within aside in shared memory, without looking further, so that the many
// values that do not take few instructions. Once some thread has put much aside, the block finds the
// brackets of all of it, makes room in the lists of these by one addition each, and writes it there.
#pragma once

#include "statistics/brackets.cuh"
#include "statistics/reduce_channels.cuh"
#include "statistics/sample_readers.cuh"

namespace rbc::cuda {
namespace statistics {

// What a thread puts aside at most.
template <class Number>
inline constexpr int kKeptDepth = sizeof(Number) == 4 ? 24 : 16;
inline constexpr int kMostKeepWidth = 64;  // channels of a block that keeps values

template <class Number>
using KeptMemory = Number[kKeptDepth<Number>][kThreads];

template <bool kKeep>
struct KeptCounts {
  static constexpr int kLists = kKeep ? kMostKeepWidth * kMostBrackets : 1;
  uint32_t count[kLists];
  uint32_t base[kLists];
  uint32_t at_low[kLists];
  uint32_t at_high[kLists];
};

template <class Number>
class KeepBetween {
 public:
  static __device__ __forceinline__ void clear(KeptCounts<true>& counts) {
    for (int i = static_cast<int>(threadIdx.x); i < KeptCounts<true>::kLists; i += kThreads) {
      counts.count[i] = counts.at_low[i] = counts.at_high[i] = 0;
    }
  }

  // `found` is of the block's first channel, the brackets are of the thread's.
  __device__ __forceinline__ void start(const Brackets<Number>* brackets, Found* found,
                                        Number* lists, bool active) {
    brackets_ = brackets;
    found_ = found;
    lists_ = lists;
    depth_ = 0;
#pragma unroll
    for (int b = 0; b < kMostBrackets; ++b) {
      low_[b] = active ? brackets->low[b] : Limits<Number>::infinity();
      high_[b] = active ? brackets->high[b] : -Limits<Number>::infinity();
      below_[b] = 0;
    }
    frequent_ = active ? brackets->frequent : NotANumber<Number>::value();
    frequents_ = infinities_ = 0;
  }

  // Of numbers that may be infinite, or NaN: see addInfinities().
  template <int kCount>
  __device__ __forceinline__ void add(const Number (&x)[kCount], KeptMemory<Number>& memory) {
#if defined(__CUDA_ARCH__)
    if constexpr (sizeof(Number) == 4) return addFloats(x, memory);
#endif
#pragma unroll
    for (int j = 0; j < kCount; ++j) {
      bool within = false;
#pragma unroll
      for (int b = 0; b < kMostBrackets; ++b) {
        const bool below = x[j] < low_[b];
        if (below) ++below_[b];
        within = within | (!below & (x[j] <= high_[b]));
      }
      if (x[j] == frequent_) {
        ++frequents_;
      } else if (within) {
        memory[depth_][threadIdx.x] = x[j];
        ++depth_;
      }
    }
  }

  // How many of them were the negative infinity, which is below all brackets, but does not count.
  __device__ __forceinline__ void addInfinities(int32_t count) { infinities_ += count; }

  // Whether another batch may be too much.
  __device__ __forceinline__ bool isFull() const { return depth_ > kKeptDepth<Number> - kBatch; }

  // Writes what was put aside to the lists. All threads of the block take part.
  __device__ __forceinline__ void flushKept(const KeptMemory<Number>& memory,
                                            KeptCounts<true>& counts, Lanes lanes) {
    const int t = static_cast<int>(threadIdx.x);
    const int list = lanes.channel() * kMostBrackets;
    uint32_t place[kMostBrackets] = {};
#pragma unroll 1
    for (int e = 0; e < depth_; ++e) {
      const Number x = memory[e][t];
#pragma unroll
      for (int b = 0; b < kMostBrackets; ++b) {
        if (x == low_[b]) {
          atomicAdd(&counts.at_low[list + b], 1u);
        } else if (x == high_[b]) {
          atomicAdd(&counts.at_high[list + b], 1u);
        } else if (x > low_[b] && x < high_[b]) {
          ++place[b];
        }
      }
    }
#pragma unroll
    for (int b = 0; b < kMostBrackets; ++b) {
      if (place[b] > 0) place[b] = atomicAdd(&counts.count[list + b], place[b]);
    }
    __syncthreads();
#pragma unroll 1
    for (int l = t; l < lanes.width * kMostBrackets; l += kThreads) {
      Found& found = found_[l / kMostBrackets];
      const int b = l % kMostBrackets;
      const uint32_t count = counts.count[l];
      if (count > 0) {
        // Of a list that overflows nothing is read, so that its places need not be right.
        const unsigned long long base =
            atomicAdd(&found.kept[b], static_cast<unsigned long long>(count));
        counts.base[l] = static_cast<uint32_t>(base < kNowhere ? base : kNowhere);
        counts.count[l] = 0;
      }
      addCount(&found.at_low[b], &counts.at_low[l]);
      addCount(&found.at_high[b], &counts.at_high[l]);
    }
    __syncthreads();
#pragma unroll 1
    for (int e = 0; e < depth_; ++e) {
      const Number x = memory[e][t];
      int at = -1;
      uint32_t to = 0;
#pragma unroll
      for (int b = 0; b < kMostBrackets; ++b) {
        if (x > low_[b] && x < high_[b]) {
          at = b;
          to = place[b]++;
        }
      }
      if (at < 0) continue;
      const int64_t i = static_cast<int64_t>(counts.base[list + at]) + to;
      if (i < brackets_->capacity[at]) lists_[brackets_->start[at] + i] = x;
    }
    depth_ = 0;
    __syncthreads();
  }

  // All threads of the block take part.
  __device__ __forceinline__ void flushCounts(Found* found, FieldMemory& memory, Lanes lanes,
                                              bool active) {
    int64_t counts[kMostBrackets + 1];
#pragma unroll
    for (int b = 0; b < kMostBrackets; ++b) counts[b] = active ? below_[b] - infinities_ : 0;
    counts[kMostBrackets] = active ? frequents_ : 0;
    sumChannels(counts, memory, lanes);
    if (active && lanes.phase() == 0) {
#pragma unroll
      for (int b = 0; b < kMostBrackets; ++b) {
        atomicAdd(&found->below[b], static_cast<unsigned long long>(counts[b]));
      }
      atomicAdd(&found->frequent, static_cast<unsigned long long>(counts[kMostBrackets]));
    }
#pragma unroll
    for (int b = 0; b < kMostBrackets; ++b) below_[b] = 0;
    frequents_ = infinities_ = 0;
  }

 private:
  static __device__ __forceinline__ void addCount(unsigned long long* to, uint32_t* from) {
    if (*from == 0) return;
    atomicAdd(to, static_cast<unsigned long long>(*from));
    *from = 0;
  }

#if defined(__CUDA_ARCH__)
  // The compiler would take three times as many instructions: it adds by selections, and makes numbers
  // of predicates.
  template <int kCount>
  __device__ __forceinline__ void addFloats(const float (&x)[kCount], KeptMemory<Number>& memory) {
    static_assert(kMostBrackets == 5);
    constexpr uint32_t kStep = kThreads * sizeof(float);
    const auto first =
        static_cast<uint32_t>(__cvta_generic_to_shared(&memory[0][threadIdx.x]));
    uint32_t place = first + static_cast<uint32_t>(depth_) * kStep;
#define RBC_BRACKET(below, low, high)                   \
  "setp.lt.f32 p, %7, " low ";\n\t"                     \
  "@p add.s32 " below ", " below ", 1;\n\t"             \
  "setp.le.and.f32 q, %7, " high ", !p;\n\t"            \
  "or.pred w, w, q;\n\t"
#pragma unroll
    for (int j = 0; j < kCount; ++j) {
      asm volatile(
          "{\n\t"
          ".reg .pred p, q, w;\n\t"
          "setp.ne.u32 w, 0, 0;\n\t"
          RBC_BRACKET("%0", "%9", "%14")
          RBC_BRACKET("%1", "%10", "%15")
          RBC_BRACKET("%2", "%11", "%16")
          RBC_BRACKET("%3", "%12", "%17")
          RBC_BRACKET("%4", "%13", "%18")
          "setp.eq.f32 p, %7, %8;\n\t"
          "@p add.s32 %5, %5, 1;\n\t"
          "setp.neu.and.f32 q, %7, %8, w;\n\t"
          "@q st.shared.f32 [%6], %7;\n\t"
          "@q add.s32 %6, %6, %19;\n\t"
          "}"
          : "+r"(below_[0]), "+r"(below_[1]), "+r"(below_[2]), "+r"(below_[3]), "+r"(below_[4]),
            "+r"(frequents_), "+r"(place)
          : "f"(x[j]), "f"(frequent_), "f"(low_[0]), "f"(low_[1]), "f"(low_[2]), "f"(low_[3]),
            "f"(low_[4]), "f"(high_[0]), "f"(high_[1]), "f"(high_[2]), "f"(high_[3]),
            "f"(high_[4]), "n"(kStep)
          : "memory");
    }
#undef RBC_BRACKET
    depth_ = static_cast<int32_t>((place - first) / kStep);
  }
#endif

  // No list is as long.
  static constexpr unsigned long long kNowhere = 0xffffffffull;

  const Brackets<Number>* brackets_;
  Found* found_;  // of the block's first channel
  Number* lists_;
  Number low_[kMostBrackets];
  Number high_[kMostBrackets];
  Number frequent_;
  int32_t below_[kMostBrackets];
  int32_t frequents_;
  int32_t infinities_;
  int32_t depth_;
};

}  // namespace statistics
}  // namespace rbc::cuda
