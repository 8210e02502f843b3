// The moments of what a thread reads: a window in registers, and limbs of its own for what lies
// outside of it.
#pragma once

#include <type_traits>

#include "runtime/aligned_vec.cuh"
#include "statistics/brackets.cuh"
#include "statistics/reduce_channels.cuh"
#include "statistics/sample_readers.cuh"
#include "statistics_problem.h"
#include "window_sum.h"

namespace rbc::cuda {
namespace statistics {

// What suits numbers of a storage type; void: any that is computed in Number.
template <class Storage, class Number>
struct WindowOf {
  using type = FloatWindow<2>;
  using Range = FloatLimbs;
};
template <>
struct WindowOf<bf16, float> {
  using type = FloatWindow<1>;
  using Range = FloatLimbs;
};
template <class Storage>
struct WindowOf<Storage, double> {
  using type = DoubleWindow;
  using Range = DoubleLimbs;
};

__device__ __forceinline__ void addAtomically(int64_t* to, int64_t amount) {
  atomicAdd(reinterpret_cast<unsigned long long*>(to), static_cast<unsigned long long>(amount));
}

// Sums in limbs that only this thread sees, in local memory: rarely used.
template <class Range>
struct PrivateLimbs {
  int64_t sum[Range::kSums];
  int64_t square[Range::kSquares];
  bool used = false;

  __device__ __forceinline__ void begin() {
    if (used) return;
    used = true;
#pragma unroll 1
    for (int64_t& limb : sum) limb = 0;
#pragma unroll 1
    for (int64_t& limb : square) limb = 0;
  }

  __device__ __noinline__ void add(double x) {
    begin();
    splitValue(
        x, [&](int limb, int64_t amount) { sum[limb - Range::kFirstSum] += amount; },
        [&](int limb, int64_t amount) { square[limb - Range::kFirstSquare] += amount; });
  }

  template <class Window>
  // By value: what a pointer leads to does not stay in registers.
  __device__ __noinline__ void addWindow(Window window) {
    begin();
    Window::expand(
        window.top, window.field,
        [&](int64_t total, int exponent) {
          splitTotal<SumLimbs>(total, exponent, [&](int limb, int64_t amount) {
            sum[limb - Range::kFirstSum] += amount;
          });
        },
        [&](int64_t total, int exponent) {
          splitTotal<SquareLimbs>(total, exponent, [&](int limb, int64_t amount) {
            square[limb - Range::kFirstSquare] += amount;
          });
        });
  }

  // An amount of many additions in several limbs, so that these take as many more.
  template <class Limbs>
  static __device__ __forceinline__ void spread(int64_t* limbs, int limb, int64_t amount) {
    if (amount == 0) return;
    splitScaled<Limbs>(amount, 32 * limb - Limbs::kUnit,
                       [&](int k, int64_t part) { addAtomically(limbs + k, part); });
  }

  __device__ __noinline__ void flush(Moments* to) {
    if (!used) return;
    used = false;
#pragma unroll 1
    for (int i = 0; i < Range::kSums; ++i) spread<SumLimbs>(to->sum, Range::kFirstSum + i, sum[i]);
#pragma unroll 1
    for (int i = 0; i < Range::kSquares; ++i) {
      spread<SquareLimbs>(to->squares, Range::kFirstSquare + i, square[i]);
    }
  }
};

template <class Reader>
class ChannelSums {
 public:
  using Number = typename Reader::Number;
  using Kind = WindowOf<typename Reader::Storage, Number>;
  using Window = typename Kind::type;
  using Limbs = PrivateLimbs<typename Kind::Range>;
  static constexpr bool kDouble = std::is_same_v<Number, double>;

  __device__ __forceinline__ explicit ChannelSums(Limbs& limbs) : limbs_(limbs) {}

  // Batches of a thread until flush().
  static __device__ __forceinline__ int mostBatches(int phases, int batch) {
    return (kDouble ? Window::kMaxAdditions : Window::kMaxAdditions / phases) / batch;
  }

  __device__ __forceinline__ void start(int top) {
    window_.start(top);
    first_top_ = window_.top;
    restart();
  }

  // Adds numbers, of which those that are not valid are NaN. Returns how many are NaN or the
  // negative infinity.
  template <int kCount, class Again>
  __device__ __forceinline__ int add(const Number (&x)[kCount], uint32_t valid, Again&& again) {
    uint32_t outside = 0;
#pragma unroll
    for (int j = 0; j < kCount; ++j) {
      const bool inside = window_.add(x[j]);
      const Number counted = inside ? x[j] : NotANumber<Number>::value();  // no branch
      low_ = fmin(low_, counted);
      high_ = fmax(high_, counted);
      outside |= (inside ? 0u : 1u) << j;
    }
    seen_ += __popc(valid);
    return outside != 0 ? addOutside(outside, valid, again) : 0;
  }

  // Adds all to the group's. All threads of the block take part.
  __device__ __forceinline__ void flush(Moments* to, FieldMemory& memory, Lanes lanes,
                                        bool active) {
    if (active && window_.top != first_top_) moveTo(window_.top);
    const bool first = active && lanes.phase() == 0;
    int64_t fields[Window::kFields];
    if constexpr (kDouble) {
      // In halves: a sum over threads of wholes would overflow.
      int64_t low[Window::kFields];
#pragma unroll
      for (int f = 0; f < Window::kFields; ++f) {
        low[f] = active ? static_cast<int64_t>(static_cast<uint32_t>(window_.field[f])) : 0;
        fields[f] = active ? window_.field[f] >> 32 : 0;
      }
      sumChannels(low, memory, lanes);
      sumChannels(fields, memory, lanes);
      if (first) {
        int128 total[Window::kFields];
#pragma unroll
        for (int f = 0; f < Window::kFields; ++f) {
          total[f] = static_cast<int128>(fields[f]) * (int64_t{1} << 32) + low[f];
        }
        expand(to, total);
      }
    } else {
#pragma unroll
      for (int f = 0; f < Window::kFields; ++f) fields[f] = active ? window_.field[f] : 0;
      sumChannels(fields, memory, lanes);
      if (first) expand(to, fields);
    }
    if (active) limbs_.flush(to);
    int64_t counts[] = {active ? int64_t{seen_} - nonfinite_ : 0, active ? int64_t{nonfinite_} : 0};
    const bool any = active && seen_ > nonfinite_;
    sumChannels(counts, memory, lanes);
    uint64_t least = any ? valueKey(static_cast<double>(low_)) : ~uint64_t{0};
    uint64_t greatest = any ? valueKey(static_cast<double>(high_)) : 0;
    rangeOfChannels(&least, &greatest, memory, lanes);
    if (first) {
      if (counts[0] != 0) addAtomically(&to->count, counts[0]);
      if (counts[1] != 0) addAtomically(&to->nonfinite, counts[1]);
      if (least <= greatest) {
        atomicMin(reinterpret_cast<unsigned long long*>(&to->min_key), least);
        atomicMax(reinterpret_cast<unsigned long long*>(&to->max_key), greatest);
      }
    }
    const int top = window_.top;
    window_.start(top);
    restart();
  }

 private:
  // `again` reads one of the numbers again: no register is chosen at run time.
  template <class Again>
  __device__ __forceinline__ int addOutside(uint32_t outside, uint32_t valid, Again&& again) {
    int finite = 0;
    int below_all = 0;
    int top = -10000;
#pragma unroll 1
    while (outside != 0) {
      const int j = __ffs(static_cast<int>(outside)) - 1;
      outside &= outside - 1;
      const bool is_valid = (valid >> j & 1) != 0;
      const Number x = is_valid ? again(j) : NotANumber<Number>::value();
      window_.remove(x);
      below_all += x > -Limits<Number>::infinity() ? 0 : 1;
      if (!is_valid) continue;
      if (!isFinite(x)) {
        ++nonfinite_;
        continue;
      }
      low_ = fmin(low_, x);
      high_ = fmax(high_, x);
      limbs_.add(static_cast<double>(x));
      ++finite;
      top = max(top, Window::topOf(x));
    }
    // Data that have moved for good take the window along.
    if (2 * finite >= kMoveAt) moveTo(top + 1);
    return below_all;
  }

  __device__ __forceinline__ void moveTo(int top) {
    bool empty = true;
#pragma unroll
    for (int f = 0; f < Window::kFields; ++f) empty = empty && window_.field[f] == 0;
    if (!empty) limbs_.addWindow(window_);
    window_.start(top);
  }

  __device__ __forceinline__ void restart() {
    low_ = bitCast<Number>(static_cast<ValueKey<Number>>(kInfinity));
    high_ = -low_;
    seen_ = nonfinite_ = 0;
  }

  template <class Total>
  __device__ __forceinline__ void expand(Moments* to, const Total& total) {
    Window::expand(
        first_top_, total,
        [&](int128 value, int exponent) {
          splitTotal<SumLimbs>(value, exponent, [&](int limb, int64_t amount) {
            addAtomically(to->sum + limb, amount);
          });
        },
        [&](int128 value, int exponent) {
          splitTotal<SquareLimbs>(value, exponent, [&](int limb, int64_t amount) {
            addAtomically(to->squares + limb, amount);
          });
        });
  }

  static constexpr int kMoveAt = 8;
  static constexpr uint64_t kInfinity = kDouble ? 0x7ff0000000000000ull : 0x7f800000ull;

  Window window_;
  Number low_;
  Number high_;
  int32_t seen_;
  int32_t nonfinite_;
  int32_t first_top_;  // of all threads with this channel
  Limbs& limbs_;
};

}  // namespace statistics
}  // namespace rbc::cuda
